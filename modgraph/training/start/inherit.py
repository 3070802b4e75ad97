"""Starting from trained weights: a run's by name, or a file's by a map; a report says what came from where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from modgraph.diagnostics import ModgraphError, listed
from modgraph.ir import Graph, module_axes, weights_of
from modgraph.training.start.beginning import Beginning
from modgraph.training.start.errors import CannotStart
from modgraph.training.start.weight_file import read_tensors
from modgraph.training.start.weight_map import WeightMap
from modgraph.training.start.weight_rule import Origin


def is_plain(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.dtype.is_floating_point


def fits(own: Tensor, tensor: Tensor, origin: Origin) -> bool:
    """Whether a tensor holds a weight: shapes are equal but for axes of one in front."""
    found = arranged(tensor, origin) if is_plain(tensor) else None
    if found is None:
        return False
    spare = found.dim() - own.dim()
    return spare >= 0 and found.shape[spare:] == own.shape and own.numel() == found.numel()


def arranged(tensor: Tensor, origin: Origin) -> Tensor | None:
    """A tensor of the file, its slice, with axes in the order of the weight's; None if it has not those axes."""
    arrangement = origin.arrangement
    if arrangement is None:
        return tensor
    if tensor.dim() != len(arrangement.there):
        return None
    if arrangement.stack is not None and origin.slice is not None:
        if origin.slice >= tensor.shape[arrangement.stack]:
            return None
        tensor = tensor.select(arrangement.stack, origin.slice)
    return tensor.permute(arrangement.order)


def left_over(found: Mapping[str, Tensor], origins: Collection[Origin]) -> list[Origin]:
    """The tensors that are no weight's, and slices of those that are taken apart."""
    taken = {(origin.tensor, origin.slice) for origin in origins}
    layouts = {origin.tensor: origin.arrangement for origin in origins if origin.arrangement is not None}
    left = [Origin(name) for name in sorted(found.keys() - {name for name, _ in taken})]
    for name, arrangement in sorted(layouts.items()):
        if arrangement.stack is not None and found[name].dim() == len(arrangement.there):
            length = found[name].shape[arrangement.stack]
            left += [Origin(name, None, at) for at in range(length) if (name, at) not in taken]
    return left


RANDOM = "or list weights that may start afresh under random in the map"


@dataclass(frozen=True)
class Inherited(Beginning):
    """Names of tensors: taken over, those among them that share a tensor of the source with others, started afresh,
    and left behind in the source."""

    taken: tuple[str, ...]
    copied: tuple[str, ...]
    fresh: tuple[str, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{len(self.taken)} tensors are those of {self.source}"]
        parts += [f"of these {len(self.copied)} copies: {listed(self.copied)}"] if self.copied else []
        parts += [f"new: {listed(self.fresh)}"] if self.fresh else []
        parts += [f"left behind: {listed(self.left)}"] if self.left else []
        return "; ".join(parts)


def inherit_run(graph: Graph, own: Mapping[str, Tensor], path: str, found: Mapping[str, Tensor]) -> Inherited:
    """Give the weights of a graph the values that a run found, by name; one that has grown since, in its first places.

    Raises `ModgraphError` where they do not fit.
    """
    before = {**own, **_before(graph, own)}
    shared = [name for name in own if name in found]
    if not shared:
        reason = f"no tensor has a name of this spec's; the run has {listed(sorted(found))}"
        way_out = "give values and modules the names they have in the run's spec"
        raise ModgraphError([CannotStart(path=path, reason=reason, way_out=way_out)])
    unlike = [
        _difference(own[name], name, found[name])
        for name in shared
        if found[name].shape not in (own[name].shape, before[name].shape)
    ]
    if unlike:
        way_out = "make the shapes equal, or give what is to start afresh another name"
        raise ModgraphError([CannotStart(path=path, reason=listed(unlike), way_out=way_out)])
    places = {name: before[name] if found[name].shape == before[name].shape else own[name] for name in shared}
    return _take_over(graph, {**own, **places}, path, found, {name: Origin(name) for name in shared})


def _before(graph: Graph, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Of the weights along an axis that grows the places that were there before it did."""
    return {name: own[name].narrow(of.axis, 0, of.old) for name, of in module_axes(graph).items()}


def inherit_file(graph: Graph, own: Mapping[str, Tensor], path: str, weight_map: WeightMap) -> Inherited:
    """Give the weights of a graph the tensors of a file, by a map. Raises `ModgraphError` naming all that is amiss."""
    found = read_tensors(path)
    known = {name: origin for name, origin in weight_map.origins.items() if origin.tensor in found}
    fitting = {name: origin for name, origin in known.items() if fits(own[name], found[origin.tensor], origin)}
    extra = [str(each) for each in left_over(found, known.values()) if not weight_map.is_unused(each.tensor)]
    needed = {name: origin for name, origin in weight_map.origins.items() if name not in weight_map.random}
    missing = sorted({origin.tensor for origin in needed.values() if origin.tensor not in found})
    wrong = {name: origin for name, origin in needed.items() if name in known and name not in fitting}
    faults = {
        f"take another file, {RANDOM}": _listed_after("it lacks ", missing),
        "give each a rule in the map, or list it there under unused": _listed_after("no rule takes ", extra),
        **_misfits(wrong, own, found),
    }
    diagnostics = [
        CannotStart(path=path, reason=reason, way_out=way_out) for way_out, reason in faults.items() if reason
    ]
    if diagnostics:
        raise ModgraphError(diagnostics)
    return _take_over(graph, own, path, found, fitting)


def _misfits(wrong: Mapping[str, Origin], own: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> dict[str, str]:
    """What is wrong with tensors that do not fit, by what to do about it."""
    kinds = {origin.tensor: found[origin.tensor] for origin in wrong.values() if not is_plain(found[origin.tensor])}
    unlike = [
        _difference(own[name], name, found[origin.tensor], origin)
        for name, origin in wrong.items()
        if origin.tensor not in kinds
    ]
    odd = [f"{name} holds {tensor.dtype}, {tensor.layout}" for name, tensor in sorted(kinds.items())]
    return {
        f"map weights to plain real numbers, {RANDOM}": _listed_after("", odd),
        f"make the shapes equal, say in the map how the axes lie there, {RANDOM}": _listed_after("", unlike),
    }


def _listed_after(words: str, names: Sequence[str]) -> str:
    return words + listed(names) if names else ""


def _difference(own: Tensor, name: str, found: Tensor, origin: Origin | None = None) -> str:
    here = f"{name} is {list(own.shape)} here"
    if origin is None:
        return f"{here} and {list(found.shape)} there"
    taken = "" if origin.arrangement is None else f', taken as "{origin.arrangement}"'
    return f"{here} and {origin} is {'of ' if origin.slice is not None else ''}{list(found.shape)} there{taken}"


@torch.no_grad()
def _take_over(
    graph: Graph, own: Mapping[str, Tensor], path: str, found: Mapping[str, Tensor], origins: Mapping[str, Origin]
) -> Inherited:
    """Copy tensors into weights: `origins` has that of each. Raises `ModgraphError` if a frozen one has none."""
    fresh = tuple(name for name in own if name not in origins)
    frozen = {weight.name for weight in weights_of(graph) if weight.frozen}
    unset = [name for name in fresh if name in frozen]
    if unset:
        reason = f"frozen weights would stay random: {listed(unset)} of this spec have no tensor there"
        way_out = "take them out of frozen { … }, or start from weights that include them"
        raise ModgraphError([CannotStart(path=path, reason=reason, way_out=way_out)])
    for name, origin in origins.items():
        tensor = arranged(found[origin.tensor], origin)
        assert tensor is not None, f"{name} fits"
        own[name].copy_(tensor.reshape(own[name].shape))
    uses = Counter(map(str, origins.values()))
    return Inherited(
        source=path,
        taken=tuple(origins),
        copied=tuple(name for name, origin in origins.items() if uses[str(origin)] > 1),
        fresh=fresh,
        left=tuple(map(str, left_over(found, origins.values()))),
    )
