"""Batches for any graph: examples of unlike lengths, rubbish in their padding, labels that are missing; and what of a
value is no padding."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from modgraph.backends.report import move_ends
from modgraph.backends.torch import Model, make_generator
from modgraph.ir import Graph, comparisons, find_padded_axes, longest, with_missing_labels
from modgraph.types import TensorType

RUBBISH = 100.0  # about how large the numbers in padding are
LENGTH = 5  # of the longest example along the first axis of any length; each further one has another
Batch = dict[str, Tensor]


def batch_for(graph: Graph, size: int, *seed: object) -> Batch:
    """Examples in float64 with targets, some shorter than others along each axis of any length, and their lengths."""
    generator = make_generator("examples", *seed)
    limits = longest(graph)
    ends = {axis: min(LENGTH + at, limits.get(axis, LENGTH + at)) for at, axis in enumerate(find_padded_axes(graph))}
    types = graph.input_types | graph.target_types
    batch = {name: _values(type_, ends, size, generator) for name, type_ in types.items()}
    _take_labels_away(graph, batch, generator)
    return move_ends(batch, graph)


def _values(type_: TensorType, ends: Mapping[str, int], size: int, generator: torch.Generator) -> Tensor:
    if type_.dtype == "length":
        lengths = torch.randint(1, ends[type_.of] + 1, (size,), generator=generator)
        lengths[0] = ends[type_.of]
        lengths[-1] *= bool(torch.rand((), generator=generator) < 0.85)  # sometimes there is nothing of an example
        return lengths
    shape = [size, *(ends[axis.name] if axis.size is None else axis.size for axis in type_.shape)]
    if type_.ends:
        nodes = [ends[axis.lengths] if axis.size is None else axis.size for axis in type_.ends]
        return torch.stack([torch.randint(each, shape[:-1], generator=generator) for each in nodes], -1)
    if type_.size is not None:
        return torch.randint(type_.size, shape, generator=generator)
    return torch.randn(shape, generator=generator).double()


def _take_labels_away(graph: Graph, batch: Batch, generator: torch.Generator) -> None:
    """A label in five is missing where some may be; of the first example none is."""
    ignored = {each.target: each.ignored for each in comparisons(graph)}
    for name, type_ in graph.target_types.items():
        lost = torch.rand(batch[name].shape, generator=generator) < 0.2
        lost[0] = False
        if name in with_missing_labels(graph):
            batch[name] = batch[name].masked_fill(lost, -1 if type_.size is not None else torch.nan)
        elif ignored.get(name) is not None:
            batch[name] = batch[name].masked_fill(lost, int(ignored[name] or 0))


def with_rubbish(graph: Graph, batch: Batch, *seed: object) -> Batch:
    """The same batch with other values in all padding of inputs."""
    generator, found = make_generator("rubbish", *seed), dict(batch)
    for name, type_ in graph.input_types.items():
        mask = find_unpadded(graph, type_, batch, batch[name].shape)
        if mask is not None and type_.ends:
            found[name] = torch.where(mask, batch[name], 0)
        elif mask is not None and type_.size is not None:
            found[name] = torch.where(mask, batch[name], type_.size - 1)
        elif mask is not None:
            noise = RUBBISH * torch.randn(batch[name].shape, generator=generator).double()
            found[name] = torch.where(mask, batch[name], noise)
    return found


def find_unpadded(graph: Graph, type_: TensorType, batch: Batch, shape: torch.Size) -> Tensor | None:
    """Which places of a value [B, …] are no padding; None where all are."""
    mask, lengths = None, graph.length_inputs
    for at, axis in enumerate(type_.shape, start=1):
        if axis.is_padded and axis.name in lengths and type_.per == "example":
            places = torch.arange(shape[at]).view(-1, *[1] * (len(shape) - at - 1))
            inside = places < batch[lengths[axis.name]].view(-1, *[1] * (len(shape) - 1))
            mask = inside if mask is None else mask & inside
    return None if mask is None else mask.expand(shape)


def mask_padding(graph: Graph, type_: TensorType, batch: Batch, value: Tensor) -> Tensor:
    """A value with zeros in its padding."""
    mask = find_unpadded(graph, type_, batch, value.shape)
    return value if mask is None else value.masked_fill(~mask, 0)


def single_example(graph: Graph, batch: Batch, at: int) -> Batch:
    """One example of a batch by itself, cut to its lengths; one place is left where there is nothing of it."""
    lengths = graph.length_inputs
    found = {}
    for name, type_ in (graph.input_types | graph.target_types).items():
        ends = [max(1, int(batch[lengths[axis.name]][at])) if axis.name in lengths else None for axis in type_.shape]
        found[name] = batch[name][(slice(at, at + 1), *map(slice, ends))].clone()
    return found


def unlike_start(model: Model, *seed: object) -> None:
    """Move weights and states away from zeros and ones, so that no two places are equal."""
    generator = make_generator("start", *seed)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.dtype.is_floating_point:
                noise = 0.2 * torch.randn(value.shape, generator=generator, dtype=torch.float64).to(value.dtype)
                value.copy_(value * noise.exp() if name.endswith("running_var") else value + noise)
