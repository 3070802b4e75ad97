"""The batch of each step, read while the step before runs.

What a batch holds is a function of the data, the seed, the step and the examples' numbers, whoever reads it and when.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from modgraph.backends.torch import generator_for
from modgraph.data import Arrays
from modgraph.data.batches import Batch, ahead, batch_of
from modgraph.nn.device import Sender, Sent
from modgraph.training.augment import DRAWS, augmented
from modgraph.training.processes import Processes
from modgraph.training.sections import Train

NOISE = "noise of augment"  # beside what a batch holds; no input is called so


class BatchReader:
    """Reads this process's part of batches, and sends it to the device."""

    def __init__(self, train: Train, processes: Processes) -> None:
        self.train = train
        self.processes = processes
        self.sender = Sender(processes.device)
        self.ready: tuple[Tensor, Sent] | None = None

    @contextmanager
    def reading(self, data: Arrays, order: Iterator[Tensor], since: int) -> Iterator[Iterator[Tensor]]:
        """Within it, the examples of each step from one on, whose batches are read ahead where that takes time: from
        files, or to an accelerator. Arrays in memory are taken as they are asked for."""

        def batches() -> Iterator[tuple[Tensor, Sent]]:
            for step, indices in enumerate(order, since):
                yield indices, self._read(data, indices, step)

        if not data.on_disk and self.processes.device.type == "cpu":
            yield order
            return
        with ahead(batches()) as made:
            yield self._remembering(made)

    def _remembering(self, made: Iterator[tuple[Tensor, Sent]]) -> Iterator[Tensor]:
        for self.ready in made:
            yield self.ready[0]

    def batch(self, data: Arrays, indices: Tensor, step: int) -> tuple[Batch, Batch]:
        """A step's batch on the device, and the same with its images moved. Raises `ModgraphError`."""
        ready, self.ready = self.ready, None
        found = ready[1] if ready is not None and ready[0] is indices else self._read(data, indices, step)
        batch = found.received()
        noise = batch.pop(NOISE, None)
        return batch, batch if noise is None else augmented(batch, self.train.augment or {}, noise)

    def _read(self, data: Arrays, indices: Tensor, step: int) -> Sent:
        """This process's part of a batch, and the noise that moves its images as it would in one process."""
        own = slice(*self.processes.own(indices))
        batch = batch_of(data, indices[own].numpy(), among=indices.numpy())
        if self.train.augment:
            noise = torch.rand(len(indices), DRAWS, generator=generator_for(self.train.seed, "augment", step))
            batch[NOISE] = noise[own]
        return self.sender.send(batch)
