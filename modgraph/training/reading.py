"""Reads the batch of each step while the step before runs, and augments its images.

The content of a batch is a function of the data, the seed, the step and the examples' numbers, independent of the
process. Axis letters: B examples, C channels, H and W height and width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

from modgraph.backends.torch import make_generator
from modgraph.data import Arrays
from modgraph.data.batches import Batch, batch_of, prefetch
from modgraph.nn.device import Transfer, Uploader
from modgraph.training.processes import Processes
from modgraph.training.sections import Augment, Train

NOISE = "noise of augment"  # an entry of a batch; no input has this name
IMAGE_RANK = 3
DRAWS = 6  # random numbers per example


class BatchReader:
    """Reads this process's part of batches, and transfers it to the device."""

    def __init__(self, train: Train, processes: Processes) -> None:
        self.train = train
        self.processes = processes
        self.transfer = Uploader(processes.device)

    def reading(
        self, data: Arrays, order: Iterator[Tensor], since: int
    ) -> AbstractContextManager[Iterator[tuple[Tensor, Transfer]]]:
        """Yield the examples and batches of each step from `since` on. They are read ahead where reading takes time:
        from files, or to an accelerator. Raises `ModgraphError`."""
        made = ((indices, self.read(data, indices, step)) for step, indices in enumerate(order, since))
        return prefetch(made, reads=bool(data.on_disk) or self.processes.device.type != "cpu")

    def receive(self, read: Transfer) -> tuple[Batch, Batch]:
        """Return a batch on the device, and the same with augmented images."""
        batch = read.wait()
        noise = batch.pop(NOISE, None)
        return batch, batch if noise is None else augment_images(batch, self.train.augment or {}, noise)

    def read(self, data: Arrays, indices: Tensor, step: int) -> Transfer:
        """Read this process's part of a batch, with the augmentation noise that one process would use."""
        own = slice(*self.processes.own(indices))
        batch = batch_of(data, indices[own].numpy(), among=indices.numpy())
        if self.train.augment:
            noise = torch.rand(len(indices), DRAWS, generator=make_generator(self.train.seed, "augment", step))
            batch[NOISE] = noise[own]
        return self.transfer.send(batch)


def augment_images(batch: Mapping[str, Tensor], augment: Mapping[str, Augment], noise: Tensor) -> dict[str, Tensor]:
    """Augment the images of a batch by noise [B, 6] from 0 to 1; all images of one example move in the same way."""
    moved = {name: _transform(batch[name], each, noise) for name, each in augment.items()}
    return {**batch, **moved}


def _transform(x: Tensor, augment: Augment, noise: Tensor) -> Tensor:
    """Sample images [B, C, H, W] through a window each; zero beyond the image."""
    area, left, top, right, down, mirror = noise.to(x).unbind(1)
    side = (1 - area * (1 - augment.crop)).sqrt()
    window = torch.zeros(len(x), 2, 3, dtype=x.dtype, device=x.device)
    window[:, 0, 0] = torch.where(mirror < 0.5, -side, side) if augment.flip else side
    window[:, 1, 1] = side
    window[:, 0, 2] = (2 * left - 1) * (1 - side) + (2 * right - 1) * 2 * augment.shift
    window[:, 1, 2] = (2 * top - 1) * (1 - side) + (2 * down - 1) * 2 * augment.shift
    grid = F.affine_grid(window, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, align_corners=False)
