"""Images moved at random while a model trains, so that few of them go further; every step draws anew.

Axis letters: B examples, C channels, H and W height and width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

from modgraph.diagnostics import Diagnostic, did_you_mean
from modgraph.ir import Graph
from modgraph.training.errors import NotAnImage
from modgraph.training.sections import Augment

IMAGE_RANK = 3
DRAWS = 6  # random numbers that an example takes


def unfit_inputs(graph: Graph, augment: Mapping[str, Augment]) -> Iterator[tuple[str, Diagnostic]]:
    """Names that are not inputs of images."""
    images = [
        name for name, each in graph.input_types.items() if each.dtype == "float" and len(each.shape) == IMAGE_RANK
    ]
    for name in augment:
        if name not in images:
            yield name, NotAnImage(name=name, suggestion=did_you_mean(name, images))


def augmented(batch: Mapping[str, Tensor], augment: Mapping[str, Augment], noise: Tensor) -> dict[str, Tensor]:
    """A batch with its images moved by noise [B, 6] from 0 to 1; those of one example move alike."""
    moved = {name: _moved(batch[name], each, noise) for name, each in augment.items()}
    return {**batch, **moved}


def _moved(x: Tensor, augment: Augment, noise: Tensor) -> Tensor:
    """Images [B, C, H, W], each seen through a window of its own; beyond the image is zero."""
    area, left, top, right, down, mirror = noise.to(x).unbind(1)
    side = (1 - area * (1 - augment.crop)).sqrt()
    window = torch.zeros(len(x), 2, 3, dtype=x.dtype, device=x.device)
    window[:, 0, 0] = torch.where(mirror < 0.5, -side, side) if augment.flip else side
    window[:, 1, 1] = side
    window[:, 0, 2] = (2 * left - 1) * (1 - side) + (2 * right - 1) * 2 * augment.shift
    window[:, 1, 2] = (2 * top - 1) * (1 - side) + (2 * down - 1) * 2 * augment.shift
    grid = F.affine_grid(window, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, align_corners=False)
