"""Initialises weights from trained ones: from a run by name, or from a file by a map."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath

import torch
from torch import Tensor

from modgraph.diagnostics import ModgraphError, list_names
from modgraph.ir import Graph, find_module_axes, weights_of
from modgraph.store.records import json_text
from modgraph.training.start.arrangement import Origin
from modgraph.training.start.errors import CannotStart
from modgraph.training.start.fresh import is_fresh
from modgraph.training.start.tensor_files import WIDENED, Header, open_tensors
from modgraph.training.start.weight_map import WeightMap, matches

RANDOM = "or list weights that may start afresh under random in the map"


@dataclass(frozen=True)
class Beginning:
    """The origin of a run's first weights, if they are not random; its text is for the user."""

    source: str

    def record(self) -> bytes:
        """Return the record for a run, with the name of the source only, since a run may move to another machine."""
        facts = {**asdict(self), "source": PurePath(self.source).name}
        return (json_text(facts, indent=1) + "\n").encode()


@dataclass(frozen=True)
class Inherited(Beginning):
    """Names of tensors: those taken over, the copies among them that share a tensor of the source, those that begin
    afresh, and those left behind in the source."""

    taken: tuple[str, ...]
    copies: tuple[str, ...]
    fresh: tuple[str, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{len(self.taken)} tensors come from {self.source}"]
        parts += [f"of these {len(self.copies)} copies: {list_names(self.copies)}"] if self.copies else []
        parts += [f"new: {list_names(self.fresh)}"] if self.fresh else []
        parts += [f"not used: {list_names(self.left)}"] if self.left else []
        return "; ".join(parts)


def inherit_run(
    graph: Graph, own: Mapping[str, Tensor], path: str, found: Mapping[str, Tensor], fresh: Sequence[str] = ()
) -> Inherited:
    """Give the weights of a graph the values that a run has found, by name; one that has grown since, in its first
    positions. Those that match a pattern of `fresh` keep their own. Raises `ModgraphError` where they do not fit."""
    before = {name: own[name].narrow(of.axis, 0, of.old) for name, of in find_module_axes(graph).items()}
    origins = {name: Origin(name) for name in own if name in found and not is_fresh(name, fresh)}
    if not origins:
        reason = f"no tensor has a name of this spec; the run has {list_names(sorted(found))}"
        way_out = "name values and modules as in the run's spec"
        raise ModgraphError([CannotStart(path=path, reason=reason, way_out=way_out)])
    grown = {name for name in origins if name in before and found[name].shape == before[name].shape}
    places = {name: before[name] if name in grown else own[name] for name in origins}
    unlike = [
        _difference(name, own[name].shape, found[name].shape)
        for name in origins
        if places[name].shape != found[name].shape
    ]
    if unlike:
        way_out = "make the shapes equal, or list under start.fresh what should start anew"
        raise ModgraphError([CannotStart(path=path, reason=list_names(unlike), way_out=way_out)])
    left = [Origin(name) for name in sorted(found.keys() - origins.keys())]
    return _take_over(graph, {**own, **places}, path, found, origins, left)


def inherit_file(graph: Graph, own: Mapping[str, Tensor], path: str, weight_map: WeightMap) -> Inherited:
    """Give the weights of a graph the tensors of a file or of shards, by a map; none where a header does not fit. At
    most one tensor of them is in memory at once. Raises `ModgraphError` with every problem."""
    found = open_tensors(path)
    headers = found.headers
    known = {name: origin for name, origin in weight_map.origins.items() if origin.tensor in headers}
    odd = {origin.tensor for origin in known.values() if not headers[origin.tensor].is_plain}
    plain = {name: origin for name, origin in known.items() if origin.tensor not in odd}
    empty = {name: headers[name].empty() for name in dict.fromkeys(origin.tensor for origin in plain.values())}
    fitting = {
        name: origin for name, origin in plain.items() if arrange(empty[origin.tensor], origin, own[name]) is not None
    }
    needed = {name: origin for name, origin in weight_map.origins.items() if name not in weight_map.random}
    missing = sorted({origin.tensor for origin in needed.values() if origin.tensor not in headers})
    extra = [str(each) for each in _find_unused(headers, known.values()) if not matches(weight_map.unused, each.tensor)]
    types = [f"{name} holds {headers[name].type}" for name in sorted({each.tensor for each in needed.values()} & odd)]
    unlike = [
        _difference(name, own[name].shape, headers[origin.tensor].shape, origin)
        for name, origin in needed.items()
        if name in plain and name not in fitting
    ]
    faults = [
        ("it lacks ", missing, f"take another file, {RANDOM}"),
        ("no rule takes ", extra, "add a rule for each to the map, or list it under unused"),
        ("", types, f"map weights to numbers of {', '.join(WIDENED.values())}, {RANDOM}"),
        ("", unlike, f"make the shapes equal, give their axes in the map, {RANDOM}"),
    ]
    reasons = [(words + list_names(names), way_out) for words, names, way_out in faults if names]
    if reasons:
        raise ModgraphError(CannotStart(path=path, reason=reason, way_out=way_out) for reason, way_out in reasons)
    left = _find_unused(headers, fitting.values())
    return _take_over(graph, own, path, found, fitting, left)


def arrange(tensor: Tensor, origin: Origin, like: Tensor) -> Tensor | None:
    """Return a tensor of a file, or a slice or part of it, permuted to the weight's axes, without leading axes of
    length 1. None where it does not fit."""
    if (arrangement := origin.arrangement) is not None:
        if tensor.dim() != arrangement.rank:
            return None
        if arrangement.divided is not None and (part := origin.part) is not None:
            axis, _ = arrangement.divided
            if tensor.shape[axis] != part.whole:
                return None
            places = slice(part.start, part.start + part.size * part.step, part.step)
            tensor = tensor[(*[slice(None)] * axis, places)]
        if arrangement.stack is not None and origin.slice is not None:
            if origin.slice >= tensor.shape[arrangement.stack]:
                return None
            tensor = tensor.select(arrangement.stack, origin.slice)
        sizes = [[like.shape[axis] for axis in merged] for merged in arrangement.merged]
        if [*map(math.prod, sizes)] != [*tensor.shape]:
            return None
        tensor = tensor.reshape([size for each in sizes for size in each]).permute(arrangement.order)
    spare = tensor.dim() - like.dim()
    fits = spare >= 0 and tensor.shape[spare:] == like.shape and like.numel() == tensor.numel()
    return tensor.reshape(like.shape) if fits else None


def _find_unused(headers: Mapping[str, Header], origins: Collection[Origin]) -> list[Origin]:
    """Return the tensors that belong to no weight, and the slices of unstacked ones."""
    taken = {(origin.tensor, origin.slice) for origin in origins}
    layouts = {origin.tensor: origin.arrangement for origin in origins if origin.arrangement is not None}
    left = [Origin(name) for name in sorted(headers.keys() - {name for name, _ in taken})]
    for name, arrangement in sorted(layouts.items()):
        if arrangement.stack is not None and len(headers[name].shape) == arrangement.rank:
            length = headers[name].shape[arrangement.stack]
            left += [Origin(name, None, at) for at in range(length) if (name, at) not in taken]
    return left


def _difference(name: str, own: Sequence[int], found: Sequence[int], origin: Origin | None = None) -> str:
    here = f"{name} is {list(own)} here"
    if origin is None:
        return f"{here} and {list(found)} there"
    taken = "" if origin.arrangement is None else f', taken as "{origin.arrangement.text}"'
    return f"{here} and {origin} is {'of ' if origin.slice is not None else ''}{list(found)} there{taken}"


def _take_over(
    graph: Graph,
    own: Mapping[str, Tensor],
    path: str,
    found: Mapping[str, Tensor],
    origins: Mapping[str, Origin],
    left: Sequence[Origin],
) -> Inherited:
    """Copy what is found into those weights that have an origin. Raises `ModgraphError` if a frozen one has none."""
    fresh = tuple(name for name in own if name not in origins)
    frozen = {weight.name for weight in weights_of(graph) if weight.frozen}
    unset = [name for name in fresh if name in frozen]
    if unset:
        reason = f"frozen weights would stay random, without a tensor: {list_names(unset)}"
        way_out = "move them out of frozen { … }, or start from weights that include them"
        raise ModgraphError([CannotStart(path=path, reason=reason, way_out=way_out)])
    weights: dict[str, list[str]] = {}
    for name, origin in origins.items():
        weights.setdefault(origin.tensor, []).append(name)
    for tensor, names in weights.items():
        _copy(found[tensor], {name: origins[name] for name in names}, own)
    uses = Counter(origins.values())
    return Inherited(
        source=path,
        taken=tuple(origins),
        copies=tuple(name for name, origin in origins.items() if uses[origin] > 1),
        fresh=fresh,
        left=tuple(map(str, left)),
    )


@torch.no_grad()
def _copy(tensor: Tensor, origins: Mapping[str, Origin], own: Mapping[str, Tensor]) -> None:
    """Copy one tensor into the weights that take it, in their precision."""
    for name, origin in origins.items():
        value = arrange(tensor, origin, own[name])
        assert value is not None, "its header fits"
        own[name].copy_(value)
