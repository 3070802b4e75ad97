"""Initialises weights from trained ones: from a run by name, or from a file by a map. Files are safetensors, or a state
dict saved by torch."""

from __future__ import annotations

import os
import zipfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from pickle import UnpicklingError
from typing import Any

import torch
from modgraph_runtime.files import refuse_beyond_memory
from safetensors.torch import load
from torch import Tensor

from modgraph.diagnostics import ModgraphError, list_names
from modgraph.files import explain_error, open_file
from modgraph.ir import Graph, find_module_axes, weights_of
from modgraph.store.records import json_text
from modgraph.training.start.errors import BadWeightFile, CannotStart
from modgraph.training.start.fresh import is_fresh
from modgraph.training.start.weight_map import Origin, WeightMap, matches

RANDOM = "or list weights that may start afresh under random in the map"
SAFETENSORS = b"{"  # the ninth byte, after the length of the JSON header; zip archives and pickles have another
WITHIN = ("model", "state_dict")  # keys under which checkpoints of common training scripts keep the weights


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
    unlike = [_difference(name, own[name], found[name]) for name in origins if places[name].shape != found[name].shape]
    if unlike:
        way_out = "make the shapes equal, or list under start.fresh what should start anew"
        raise ModgraphError([CannotStart(path=path, reason=list_names(unlike), way_out=way_out)])
    return _take_over(graph, {**own, **places}, path, found, origins, found)


def inherit_file(graph: Graph, own: Mapping[str, Tensor], path: str, weight_map: WeightMap) -> Inherited:
    """Give the weights of a graph the tensors of a file, by a map. Raises `ModgraphError` with every problem."""
    found = read_tensors(path)
    known = {name: origin for name, origin in weight_map.origins.items() if origin.tensor in found}
    arranged = {name: _arrange(found[origin.tensor], origin, own[name]) for name, origin in known.items()}
    needed = {name: origin for name, origin in weight_map.origins.items() if name not in weight_map.random}
    missing = sorted({origin.tensor for origin in needed.values() if origin.tensor not in found})
    extra = [str(each) for each in _find_unused(found, known.values()) if not matches(weight_map.unused, each.tensor)]
    wrong = {name: origin for name, origin in needed.items() if name in known and arranged[name] is None}
    odd = {origin.tensor: found[origin.tensor] for origin in wrong.values() if not _is_plain(found[origin.tensor])}
    unlike = [
        _difference(name, own[name], found[origin.tensor], origin)
        for name, origin in wrong.items()
        if origin.tensor not in odd
    ]
    types = [f"{name} holds {tensor.dtype}, {tensor.layout}" for name, tensor in sorted(odd.items())]
    faults = [
        ("it lacks ", missing, f"take another file, {RANDOM}"),
        ("no rule takes ", extra, "add a rule for each to the map, or list it under unused"),
        ("", types, f"map weights to plain real numbers, {RANDOM}"),
        ("", unlike, f"make the shapes equal, give their axes in the map, {RANDOM}"),
    ]
    reasons = [(words + list_names(names), way_out) for words, names, way_out in faults if names]
    if reasons:
        raise ModgraphError(CannotStart(path=path, reason=reason, way_out=way_out) for reason, way_out in reasons)
    fitting = {name: tensor for name, tensor in arranged.items() if tensor is not None}
    return _take_over(graph, own, path, found, {name: known[name] for name in fitting}, fitting)


def _is_plain(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.dtype.is_floating_point


def _arrange(tensor: Tensor, origin: Origin, like: Tensor) -> Tensor | None:
    """Return a tensor of a file, or a slice of it, permuted to the weight's axes, without leading axes of length 1.
    None where it does not fit."""
    if not _is_plain(tensor):
        return None
    if (arrangement := origin.arrangement) is not None:
        if tensor.dim() != arrangement.rank:
            return None
        if arrangement.stack is not None and origin.slice is not None:
            if origin.slice >= tensor.shape[arrangement.stack]:
                return None
            tensor = tensor.select(arrangement.stack, origin.slice)
        tensor = tensor.permute(arrangement.order)
    spare = tensor.dim() - like.dim()
    fits = spare >= 0 and tensor.shape[spare:] == like.shape and like.numel() == tensor.numel()
    return tensor.reshape(like.shape) if fits else None


def _find_unused(found: Mapping[str, Tensor], origins: Collection[Origin]) -> list[Origin]:
    """Return the tensors that belong to no weight, and the slices of unstacked ones."""
    taken = {(origin.tensor, origin.slice) for origin in origins}
    layouts = {origin.tensor: origin.arrangement for origin in origins if origin.arrangement is not None}
    left = [Origin(name) for name in sorted(found.keys() - {name for name, _ in taken})]
    for name, arrangement in sorted(layouts.items()):
        if arrangement.stack is not None and found[name].dim() == arrangement.rank:
            length = found[name].shape[arrangement.stack]
            left += [Origin(name, None, at) for at in range(length) if (name, at) not in taken]
    return left


def _difference(name: str, own: Tensor, found: Tensor, origin: Origin | None = None) -> str:
    here = f"{name} is {list(own.shape)} here"
    if origin is None:
        return f"{here} and {list(found.shape)} there"
    taken = "" if origin.arrangement is None else f', taken as "{origin.arrangement.text}"'
    return f"{here} and {origin} is {'of ' if origin.slice is not None else ''}{list(found.shape)} there{taken}"


@torch.no_grad()
def _take_over(
    graph: Graph,
    own: Mapping[str, Tensor],
    path: str,
    found: Mapping[str, Tensor],
    origins: Mapping[str, Origin],
    values: Mapping[str, Tensor],
) -> Inherited:
    """Copy values into those weights that have an origin. Raises `ModgraphError` if a frozen one has none."""
    fresh = tuple(name for name in own if name not in origins)
    frozen = {weight.name for weight in weights_of(graph) if weight.frozen}
    unset = [name for name in fresh if name in frozen]
    if unset:
        reason = f"frozen weights would stay random, without a tensor: {list_names(unset)}"
        way_out = "move them out of frozen { … }, or start from weights that include them"
        raise ModgraphError([CannotStart(path=path, reason=reason, way_out=way_out)])
    for name in origins:
        own[name].copy_(values[name])
    uses = Counter(map(str, origins.values()))
    return Inherited(
        source=path,
        taken=tuple(origins),
        copies=tuple(name for name, origin in origins.items() if uses[str(origin)] > 1),
        fresh=fresh,
        left=tuple(map(str, _find_unused(found, origins.values()))),
    )


def read_tensors(path: str) -> dict[str, Tensor]:
    """Read the tensors of a file by name. Raises `ModgraphError`; nothing in it is run."""
    try:
        content = _content(path)
    except UnpicklingError as error:
        fault = BadWeightFile(path=path, reason="it is damaged, or contains more than tensors")
        raise ModgraphError([fault]) from error
    except Exception as error:  # a damaged file fails anywhere in torch's reader
        raise ModgraphError([BadWeightFile(path=path, reason=explain_error(error).rstrip(". "))]) from error
    reason = f"it contains a {type(content).__name__}, not tensors by name"
    if isinstance(content, Mapping):
        wrong = [name for name, value in content.items() if not (isinstance(name, str) and isinstance(value, Tensor))]
        if content and not wrong:
            return dict(content)
        reason = "it has no tensors"
        if wrong:
            reason = f'"{wrong[0]}" in it is a {type(content[wrong[0]]).__name__}, not a tensor with a name'
    raise ModgraphError([BadWeightFile(path=path, reason=reason)])


def _content(path: str) -> Any:
    """Read a file whose first bytes give its format: a name may be that of a link. Raises the exceptions of its reader,
    also where an archive exceeds memory or is compressed."""
    with open_file(path) as file:
        safetensors = file.read(9)[8:] == SAFETENSORS
        needed = os.fstat(file.fileno()).st_size
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise ValueError("its tensors are compressed, which torch does not do")
            needed = sum(member.file_size for member in members)
        refuse_beyond_memory(needed)
        file.seek(0)
        if safetensors:
            return load(file.read())
        content = torch.load(file, map_location="cpu", weights_only=True)
    inner = [content[key] for key in WITHIN if isinstance(content, Mapping) and isinstance(content.get(key), Mapping)]
    return inner[0] if inner else content
