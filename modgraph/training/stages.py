"""A weight that grows along an axis, held in parts: each a parameter of its own, frozen or not, with an optimizer state
of its own; one whole to the model, and one whole under its name to whoever reads a checkpoint.

The graph tells what is frozen: of a frozen weight all but the last places, which are new. One that is not frozen is in
parts by stage of growth since a checkpoint. A part is called after the places that it is of: `gate.weight[0:4]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn

from modgraph.backends.torch import Model
from modgraph.backends.torch.construct import attribute
from modgraph.backends.torch.parts import WeightInParts
from modgraph.ir import Graph, module_axes, weights_of
from modgraph.store.checkpoint import Checkpoint, OptimizerState
from modgraph.training.divided import divided_as, whole

FACT = "stages"  # of a checkpoint: by weight, how many places each stage has


@dataclass(frozen=True, eq=False)
class StagedWeight:
    """A weight cut along an axis that grows, at `bounds`, into parameters."""

    axis: int
    bounds: tuple[int, ...]
    parts: tuple[nn.Parameter, ...]

    def named(self, name: str) -> Iterator[tuple[str, nn.Parameter]]:
        """The parts by name."""
        for (start, stop), part in zip(pairwise(self.bounds), self.parts, strict=True):
            yield part_name(name, start, stop), part

    @property
    def stages(self) -> list[int]:
        """How many places each stage has."""
        return [stop - start for start, stop in pairwise(self.bounds)]

    def whole(self) -> Tensor:
        return torch.cat([part.detach() for part in self.parts], self.axis)

    @torch.no_grad()
    def take(self, whole: Tensor) -> None:
        """Take the values of the first stages, or of all; whatever lies behind them stays."""
        for (start, stop), part in zip(pairwise(self.bounds), self.parts, strict=True):
            if stop <= whole.shape[self.axis]:
                part.copy_(whole.narrow(self.axis, start, stop - start))


Staged = Mapping[str, StagedWeight]


def part_name(weight: str, start: int, stop: int) -> str:
    """What the part of a weight is called that is of these places."""
    return f"{weight}[{start}:{stop}]"


def staged(model: Model, graph: Graph, checkpoint: Checkpoint | None = None) -> Staged:
    """Cut those weights of a fresh model that are frozen but for new places, or have grown since a checkpoint.

    Raises `ValueError` where the checkpoint tells stages that cannot be.
    """
    frozen = {weight.name for weight in weights_of(graph) if weight.frozen}
    found: dict[str, StagedWeight] = {}
    states = states_along_modules(graph)
    for name, of in module_axes(graph).items():
        if name in states:
            continue
        old = of.old if name in frozen else 0
        stages = [] if checkpoint is None else _stages(model.lookup(name), checkpoint, name, of.axis)
        bounds = _bounds(model.lookup(name).shape[of.axis], old, stages)
        if len(bounds) > 2:
            found[name] = _cut(model, name, of.axis, bounds, first_trained=old)
    return found


def _bounds(size: int, frozen: int, stages: list[int]) -> tuple[int, ...]:
    """Where a weight of so many places is cut, of which the first are frozen, and that grew in these stages."""
    grew = {stop for stop in accumulate(stages) if frozen < stop}
    return tuple(sorted({0, frozen, *grew, size}))


def states_along_modules(graph: Graph) -> set[str]:
    """The states of a graph, which no gradient moves, that grow along an axis."""
    return {weight.name for weight in weights_of(graph) if weight.buffer} & module_axes(graph).keys()


def _stages(own: Tensor, checkpoint: Checkpoint, name: str, axis: int) -> list[int]:
    """How many places of a weight came in each stage; nothing where the checkpoint has none that it grew from."""
    before = checkpoint.weights.get(name)
    if before is None or _without(axis, before) != _without(axis, own) or before.shape[axis] > own.shape[axis]:
        return []
    size = before.shape[axis]
    stages = [int(stage) for stage in checkpoint.facts.get(FACT, {}).get(name, [size])]
    if sum(stages) != size or min(stages) < 1:
        raise ValueError(f"{name} has the stages {stages}, of {size} places")
    return [*stages, own.shape[axis] - size] if own.shape[axis] > size else stages


def _without(axis: int, tensor: Tensor) -> tuple[int, ...]:
    """The lengths of a tensor's other axes."""
    return tuple(length for at, length in enumerate(tensor.shape) if at != axis)


def _cut(model: Model, name: str, axis: int, bounds: tuple[int, ...], first_trained: int) -> StagedWeight:
    """Hold a weight in parts, of which those from a place on are trained."""
    path, _, local = name.rpartition(".")
    module = model.lookup(path) if path else model
    local = attribute(module, local)
    whole = model.lookup(name).detach()
    parts = [
        nn.Parameter(whole.narrow(axis, start, stop - start).clone(), requires_grad=start >= first_trained)
        for start, stop in pairwise(bounds)
    ]
    model.in_parts.append(WeightInParts.cut(module, local, axis, parts))
    return StagedWeight(axis, bounds, tuple(parts))


# ---------------------------------------------------------------- a model with such weights


def trained_weights(model: Model, cut: Staged) -> dict[str, nn.Parameter]:
    """The parameters that are trained, by name."""
    named = model.state_dict(keep_vars=True).items()
    parts = {id(part): name for weight, each in cut.items() for name, part in each.named(weight)}
    return {parts.get(id(each), name): each for name, each in named if each.requires_grad}


def shapes_of(model: Model) -> dict[str, tuple[int, ...]]:
    """The shape of each weight by its name, as the graph declares it."""
    return {weight.name: weight.shape for weight in weights_of(model.graph)}


def whole_weights(model: Model, cut: Staged) -> dict[str, Tensor]:
    """The state dict of the model as if no weight were in parts."""
    held = {id(part) for each in cut.values() for part in each.parts}
    rest = {name: each for name, each in model.state_dict(keep_vars=True).items() if id(each) not in held}
    shapes = shapes_of(model)
    return {name: whole(each.detach(), shapes.get(name)) for name, each in rest.items()} | {
        name: each.whole() for name, each in cut.items()
    }


def take_weights(model: Model, cut: Staged, weights: Mapping[str, Tensor]) -> None:
    """Give a model the weights that it has of these, each whole or its first stages."""
    own = model.state_dict()
    taken = {name: _among(own.get(name, value), value) for name, value in weights.items() if name not in cut}
    parts = {name: divided_as(each, own.get(name, each)) for name, each in taken.items()}
    model.load_state_dict(parts, strict=False)
    for name, each in cut.items():
        if name in weights:
            each.take(weights[name])


def _among(own: Tensor, value: Tensor) -> Tensor:
    """A value, or of a state that has grown its own one with the value in front."""
    if own.shape == value.shape or not value.dim():
        return value
    found = own.clone()
    found[tuple(map(slice, value.shape))] = value
    return found


def in_parts(state: OptimizerState, cut: Staged) -> OptimizerState:
    """An optimizer's state in which that of a weight is its first part's, where it was whole before."""
    first = {name: part_name(name, *each.bounds[:2]) for name, each in cut.items()}
    return {first.get(name, name): fields for name, fields in state.items()}
