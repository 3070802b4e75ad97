"""How weights begin, where torch's own layers begin otherwise, and which are frozen."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from torch import nn

from modgraph.backends.torch.source.classes import Class, at_path
from modgraph.backends.torch.source.names import below
from modgraph.ir import GraphWeight

NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.BatchNorm2d)


def parameter(sizes: Sequence[int], home: Class, path: str) -> str:
    """The call that makes an array that is learnt, which a class holds under a path."""
    weight = home.file.weights[home.prefix + path]
    shape = ", ".join(map(str, sizes)) or "()"
    drawn = {"uniform": f"uniform_(-{weight.scale}, {weight.scale})", "normal": f"normal_(0, {weight.scale})"}
    if weight.initial.kind in drawn:
        return f"nn.Parameter(torch.empty({shape}).{drawn[weight.initial.kind]})"
    if weight.initial.kind == "constant":
        return f"nn.Parameter(torch.full({tuple(sizes)!r}, {weight.scale}))"
    return f"nn.Parameter(torch.{weight.initial.kind}({shape}))"


def starts(home: Class, paths: Collection[str], said: str = "self") -> Iterator[str]:
    """A line for each weight of some modules of a class that torch would begin otherwise."""
    root, prefix = home.root, home.prefix
    for name, weight in home.file.weights.items():
        own = name.removeprefix(prefix)
        if not name.startswith(prefix) or not own.startswith(tuple(f"{path}." for path in paths)):
            continue
        of, _, last = own.rpartition(".")
        if weight.buffer or _is_torchs(below(root, of), last, weight):
            continue
        yield f"nn.init.{_start(at_path(said, root, own), weight)}"


def _start(said: str, weight: GraphWeight) -> str:
    match weight.initial.kind:
        case "uniform":
            return f"uniform_({said}, -{weight.scale}, {weight.scale})"
        case "normal":
            return f"normal_({said}, 0, {weight.scale})"
        case "constant":
            return f"constant_({said}, {weight.scale})"
        case kind:
            return f"{kind}_({said})"


def _is_torchs(module: nn.Module | None, name: str, weight: GraphWeight) -> bool:
    """Whether torch begins a layer's weight in the same way."""
    kind, scale = weight.initial.kind, weight.scale
    if isinstance(module, nn.Linear | nn.Conv2d):
        return kind == "uniform" and math.isclose(scale, 1 / math.sqrt(module.weight[0].numel()))
    if isinstance(module, nn.Embedding):
        return kind == "normal" and scale == 1
    return isinstance(module, NORMS) and kind == ("zeros" if name == "bias" else "ones")


def frozen(home: Class) -> Iterator[str]:
    """A line for each part of a model that does not learn, whole parts as one."""
    prefix = home.prefix
    weights = {name.removeprefix(prefix): each for name, each in home.file.weights.items() if name.startswith(prefix)}
    own = {name: each for name, each in weights.items() if not each.buffer and not home.covers(name)}
    learns = {name for name, each in weights.items() if not each.buffer and not each.frozen}
    fixed = [name for name, each in own.items() if each.frozen]
    yield from (
        f"{home.at(path)}.requires_grad_(False)" for path in dict.fromkeys(_part(name, learns) for name in fixed)
    )


def _part(name: str, learns: Collection[str]) -> str:
    """The largest part that a weight stands in without any that learns."""
    parts = name.split(".")
    for at in range(1, len(parts)):
        path = ".".join(parts[:at])
        if not any(each.startswith(f"{path}.") for each in learns):
            return path
    return name
