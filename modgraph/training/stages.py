"""Weights that grow along an axis, stored in parts.

Each part is a parameter, frozen or not, with an optimizer state of its own. The model and checkpoints see the whole
weight. The graph says what is frozen: of a frozen weight all but the last, new positions. A weight that is not frozen
is cut by stage of growth since a checkpoint. The name of a part has its positions: `gate.weight[0:4]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn

from modgraph.backends.torch import Model
from modgraph.backends.torch.construct import attribute
from modgraph.backends.torch.model import weights_to_hold
from modgraph.backends.torch.parts import WeightInParts
from modgraph.backends.torch.stored import tensors_by_name
from modgraph.ir import Graph, find_module_axes, weights_of
from modgraph.store.checkpoint import Checkpoint
from modgraph.training.processes import divide_like, whole

FACT = "stages"  # the key of a checkpoint with the number of positions of each stage by weight


@dataclass(frozen=True, eq=False)
class StagedWeight:
    """A weight cut along an axis into parameters: `places` are the start and the stop of each."""

    axis: int
    places: tuple[tuple[int, int], ...]
    parts: tuple[nn.Parameter, ...]

    def iter_parts(self, name: str) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the parts by name."""
        for places, part in zip(self.places, self.parts, strict=True):
            yield part_name(name, *places), part

    @property
    def stages(self) -> list[int]:
        """The number of positions of each stage."""
        return [stop - start for start, stop in self.places]

    def whole(self) -> Tensor:
        return torch.cat([part.detach() for part in self.parts], self.axis)

    @torch.no_grad()
    def take(self, whole: Tensor) -> None:
        """Copy the values of the first stages, or of all; later stages stay unchanged."""
        for (start, stop), part in zip(self.places, self.parts, strict=True):
            if stop <= whole.shape[self.axis]:
                part.copy_(whole.narrow(self.axis, start, stop - start))


Staged = Mapping[str, StagedWeight]


def part_name(weight: str, start: int, stop: int) -> str:
    """Return the name of the part of a weight at these positions."""
    return f"{weight}[{start}:{stop}]"


def cut_weights(model: Model, graph: Graph, checkpoint: Checkpoint | None = None) -> Staged:
    """Cut those weights of a fresh model that are frozen but for new positions, or have grown since a checkpoint.
    Raises `ValueError` where the checkpoint has invalid stages."""
    frozen, states = {weight.name for weight in weights_of(graph) if weight.frozen}, states_along_modules(graph)
    found: dict[str, StagedWeight] = {}
    present = {weight.name for weight in weights_to_hold(graph, model.group)}
    for name, of in find_module_axes(graph).items():
        if name in states or name not in present:
            continue
        own, old = model.lookup(name).detach(), of.old if name in frozen else 0
        grew = {stop for stop in accumulate(_stages(own, checkpoint, name, of.axis)) if old < stop}
        places = tuple(pairwise(sorted({0, old, *grew, own.shape[of.axis]})))
        if len(places) > 1:
            parts = tuple(
                nn.Parameter(own.narrow(of.axis, start, stop - start).clone(), requires_grad=start >= old)
                for start, stop in places
            )
            path, _, local = name.rpartition(".")
            module = model.lookup(path) if path else model
            model.in_parts.append(WeightInParts.cut(module, attribute(module, local), of.axis, list(parts)))
            found[name] = StagedWeight(of.axis, places, parts)
    return found


def states_along_modules(graph: Graph) -> set[str]:
    """Return the states of a graph, which no gradient moves, that grow along an axis."""
    return {weight.name for weight in weights_of(graph) if weight.buffer} & find_module_axes(graph).keys()


def _stages(own: Tensor, checkpoint: Checkpoint | None, name: str, axis: int) -> list[int]:
    """Return the number of positions of each stage of a weight; none where a checkpoint lacks it."""
    before = None if checkpoint is None else checkpoint.weights.get(name)
    if checkpoint is None or before is None or before.dim() != own.dim():
        return []
    size, now = before.shape[axis], own.shape[axis]
    if size > now or before.narrow(axis, 0, 0).shape != own.narrow(axis, 0, 0).shape:
        return []
    stages = [int(stage) for stage in checkpoint.facts.get(FACT, {}).get(name, [size])]
    if sum(stages) != size or min(stages) < 1:
        raise ValueError(f"{name} has the stages {stages}, of {size} places")
    return [*stages, now - size] if now > size else stages


# ---------------------------------------------------------------- a model with such weights


def find_trained_weights(model: Model, cut: Staged) -> dict[str, nn.Parameter]:
    """Return the parameters that are trained, by name; a stored weight once, for all modules."""
    parts = {id(part): name for weight, each in cut.items() for name, part in each.iter_parts(weight)}
    named = tensors_by_name(model).items()
    known = ((name, each) for name, each in named if isinstance(each, nn.Parameter) and each.requires_grad)
    return {parts.get(id(each), name): each for name, each in known}


def shapes_of(model: Model) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight by name, as the graph declares it."""
    return {weight.name: weight.shape for weight in weights_of(model.graph)}


def whole_weights(model: Model, cut: Staged) -> dict[str, Tensor]:
    """Return the state dict of the model with every weight whole."""
    part_ids, shapes = {id(part) for each in cut.values() for part in each.parts}, shapes_of(model)
    rest = {name: each for name, each in model.state_dict(keep_vars=True).items() if id(each) not in part_ids}
    found = {name: whole(each.detach(), shapes.get(name)) for name, each in rest.items()}
    return found | {name: each.whole() for name, each in cut.items()}


def take_weights(model: Model, cut: Staged, weights: Mapping[str, Tensor]) -> None:
    """Load weights into a model, each whole or its first stages; of a state that has grown, the first positions."""
    own, taken = model.state_dict(), {}
    for name, value in weights.items():
        if name in cut:
            cut[name].take(value)
        elif name in own:
            if value.dim() and own[name].shape != value.shape:
                grown = own[name].clone()
                grown[tuple(map(slice, value.shape))] = value
                value = grown
            taken[name] = divide_like(value, own[name])
    model.load_state_dict(taken, strict=False)
