"""What classes hold, under the names of a model's state dict, and how weights begin."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby
from typing import Any

from torch import nn

from modgraph.backends.torch.source.copied import STANDALONE, Copied
from modgraph.backends.torch.source.names import is_attribute, is_plain_name, numbered
from modgraph.backends.torch.source.text import literal
from modgraph.ir import GraphWeight

CLAIMED = frozenset({*vars(nn.Module()), "renamed"})  # the attributes that torch itself, or `keep_names`, sets


class Tree:
    """What a model, or a module of a pool, holds by path: `leaves` say what makes each layer, pool and parameter,
    `instances` are of classes of the file."""

    def __init__(self, weights: Iterable[GraphWeight], copied: Copied) -> None:
        self.copied = copied
        self.weights = {weight.name: weight for weight in weights}
        self.leaves: dict[str, Callable[[], str]] = {}
        self.kinds: dict[str, Any] = {}  # the torch class of a layer
        self.instances: dict[str, Any] = {}
        self.calls: Callable[[Any], str] = str  # the class of an instance
        self.pools: list[Any] = []
        self.sharing: dict[str, int] = {}  # pools whose modules share something, and how many these are
        self.before: list[str] = []  # lines that make what they share
        self.after: dict[str, str] = {}  # the variables for that

    def holds(self, path: str) -> bool:
        """Whether weights stand below a path."""
        return any(name.startswith(f"{path}.") for name in self.weights)

    def content(self, path: str) -> tuple[Any, ...]:
        """The weights below a path, as they are there."""
        found = ((name.removeprefix(f"{path}."), each) for name, each in self.weights.items() if _below(path, name))
        return tuple((name, each.shape, each.initial, each.scale) for name, each in found)

    def children(self, path: str) -> list[str]:
        """The names directly below a path."""
        lead = f"{path}." if path else ""
        rest = (each.removeprefix(lead) for each in (*self.leaves, *self.instances) if each.startswith(lead))
        return list(dict.fromkeys(each.partition(".")[0] for each in rest))

    def attribute(self, path: str, name: str) -> str:
        """The attribute for a name below a path: what torch itself sets has none of its own."""
        if name not in CLAIMED:
            return name
        return next(each for each in numbered(f"{name}_") if each not in self.children(path))

    def is_list(self, path: str) -> bool:
        """Whether modules that are numbered from 0 stand below a path, and nothing else."""
        names = self.children(path)
        is_array = any(self.kinds.get(f"{path}.{name}") is nn.Parameter for name in names)
        return sorted(names, key=len) == [str(at) for at in range(len(names))] and not is_array

    def at(self, path: str, root: str = "", said: str = "self") -> str:
        """The expression for what stands at a path, in a class that holds what is below a root."""
        here = root
        for name in path.removeprefix(f"{root}.").split("."):
            inner = f"{here}.{name}" if here else name
            in_list = name.isdigit() and (self.kinds.get(here) == "pool" or (here != root and self.is_list(here)))
            kind = "_parameters" if self.kinds.get(inner) is nn.Parameter else "_modules"
            name = self.attribute(here, name)
            said += f"[{name}]" if in_list else f".{name}" if is_attribute(name) else f".{kind}[{literal(name)}]"
            here = inner
        return said

    # ------------------------------------------------------------ lines of `__init__`

    def members(self, root: str) -> Iterator[str]:
        """The lines that make what stands below a root."""
        for name in sorted(self.children(root), key=lambda name: name.isdigit() and int(name)):
            path = f"{root}.{name}" if root else name
            made = self._made(path)
            yield from (*self.before, f"{self.at(path, root)} = {made}")
            yield from (f"{self.at(each, root)}.shared = {shared}" for each, shared in self.after.items())
            self.before, self.after = [], {}
        for path in self._homes(root):
            names = {name: self.attribute(path, name) for name in self.children(path) if name in CLAIMED}
            if names:
                kept, of = self.copied.needed(("modgraph.nn.names", "keep_names")), self.at(path, root)
                yield f"{kept}({of if path != root else 'self'}, {literal(names)})"

    def _homes(self, root: str) -> list[str]:
        """The paths of what a class makes itself to hold others."""
        found = {root: None}
        for path in (*self.leaves, *self.instances):
            if _below(root, path) and not self._in_instance(path, root):
                parts = path.split(".")
                found |= dict.fromkeys(
                    ".".join(parts[:at]) for at in range(len(root.split(".")) + 1 if root else 1, len(parts))
                )
        return [*found]

    def _made(self, path: str) -> str:
        if path in self.instances:
            return f"{self.calls(self.instances[path])}()"
        if path in self.leaves:
            return self.leaves[path]()
        return self.container(path)

    def container(self, path: str) -> str:
        """The call that makes what holds all that stands below a path."""
        own = self.children(path)
        names = [self.attribute(path, name) for name in own]
        inner = {self.attribute(path, name): f"{path}.{name}" if path else name for name in own}
        parts = {name: self._made(each) for name, each in inner.items()}
        if self.is_list(path):
            return _as_list([parts[str(at)] for at in range(len(parts))])
        said = ", ".join(f"{literal(name)}: {each}" for name, each in parts.items())
        arrays = [self.kinds.get(each) is nn.Parameter for each in inner.values()]
        for kind, fits in ((nn.ModuleDict, not any(arrays)), (nn.ParameterDict, all(arrays))):
            if fits and all(map(is_plain_name, names)) and not any(hasattr(kind(), name) for name in names):
                return f"nn.{kind.__name__}({{{said}}})"
        return f"{self.copied.needed((STANDALONE, 'Named'))}({{{said}}})"

    def starts(self, root: str, said: str = "self") -> Iterator[str]:
        """A line for each weight of the layers of a class that torch would begin otherwise."""
        for path, kind in self.kinds.items():
            if kind in (nn.Parameter, "pool") or not _below(root, path) or self._in_instance(path, root):
                continue
            fan = next(
                (math.prod(each.shape[1:]) for name, each in self.weights.items() if name == f"{path}.weight"), 1
            )
            for name, weight in self.weights.items():
                plain = _is_torchs(kind, name.rpartition(".")[2], weight, fan)
                if _below(path, name) and not weight.buffer and not plain:
                    yield f"nn.init.{_start(self.at(name, root, said), weight)}"

    def _in_instance(self, path: str, root: str) -> bool:
        return any(_below(each, path) and _below(root, each) for each in self.instances)

    def frozen(self) -> Iterator[str]:
        """A line for each part of a model that does not learn, whole parts as one."""
        own = [each for each in self.weights.values() if not each.buffer]
        learns = {each.name for each in own if not each.frozen}
        paths = dict.fromkeys(_part(each.name, learns) for each in own if each.frozen)
        yield from (f"{self.at(path)}.requires_grad_(False)" for path in paths)


def _below(path: str, name: str) -> bool:
    return not path or name.startswith(f"{path}.")


def _part(name: str, learns: Collection[str]) -> str:
    """The largest part that a weight stands in without any that learns."""
    parts = name.split(".")
    paths = (".".join(parts[:at]) for at in range(1, len(parts)))
    return next((path for path in paths if not any(_below(path, each) for each in learns)), name)


# ------------------------------------------------------------ how weights begin

NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.BatchNorm2d)


def parameter(weight: GraphWeight) -> str:
    """The call that makes an array that is learnt."""
    shape = ", ".join(map(str, weight.shape)) or "()"
    drawn = {"uniform": f"uniform_(-{weight.scale}, {weight.scale})", "normal": f"normal_(0, {weight.scale})"}
    if weight.initial.kind in drawn:
        return f"nn.Parameter(torch.empty({shape}).{drawn[weight.initial.kind]})"
    if weight.initial.kind == "constant":
        return f"nn.Parameter(torch.full({weight.shape!r}, {weight.scale}))"
    return f"nn.Parameter(torch.{weight.initial.kind}({shape}))"


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


def _is_torchs(module: Any, name: str, weight: GraphWeight, fan: int) -> bool:
    """Whether torch begins a layer's weight in the same way."""
    kind, scale = weight.initial.kind, weight.scale
    if issubclass(module, nn.Linear | nn.Conv2d):
        return kind == "uniform" and math.isclose(scale, 1 / math.sqrt(fan))
    if issubclass(module, nn.Embedding):
        return kind == "normal" and scale == 1
    return issubclass(module, NORMS) and kind == ("zeros" if name == "bias" else "ones")


def _as_list(parts: list[str]) -> str:
    """A list of modules, those that are made alike by a comprehension."""
    runs = [(one, len([*same])) for one, same in groupby(parts)]
    if len(runs) == len(parts):
        return f"nn.ModuleList([{', '.join(parts)}])"
    lists = [f"[{one} for _ in range({times})]" if times > 1 else f"[{one}]" for one, times in runs]
    return f"nn.ModuleList({' + '.join(lists)})"
