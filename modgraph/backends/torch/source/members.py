"""The members of classes, under the names of a model's state dict, and their initialisers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from torch import nn

from modgraph.backends.torch.initial import find_initialiser, has_matrices
from modgraph.backends.torch.source.text import is_plain_name, literal, number_names
from modgraph.backends.torch.source.vendored import Vendored
from modgraph.ir import GraphWeight
from modgraph.nn.names import Named, keep_names

CLAIMED = frozenset({*vars(nn.Module()), "renamed"})  # the attributes that torch itself or `keep_names` sets
NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.BatchNorm2d)


class Tree:
    """The members of a model, or of a pool's module, by path.

    `leaves` construct layers, pools and parameters, `instances` are instances of classes in the file, and `kinds` has
    the torch class of each layer.
    """

    def __init__(
        self, weights: Iterable[GraphWeight], vendored: Vendored, class_of: Callable[[Any], str] = str
    ) -> None:
        self.weights = {weight.name: weight for weight in weights}
        self.vendored, self.class_of = vendored, class_of  # returns the class of an instance
        self.leaves: dict[str, Callable[[], str]] = {}
        self.kinds: dict[str, Any] = {}
        self.instances: dict[str, Any] = {}
        self.pools: list[Any] = []
        self.sharing: dict[str, int] = {}  # the sizes of pools whose modules share members
        self.borrowing: set[str] = set()  # leaves that receive the shared members of a pool
        self.before: list[str] = []  # lines that construct shared members
        self.after: dict[str, str] = {}  # the variables of shared members

    def find_weights_below(self, path: str) -> dict[str, GraphWeight]:
        """Find the weights below a path."""
        return {name: each for name, each in self.weights.items() if is_below(path, name)}

    def describe_content(self, path: str) -> tuple[Any, ...]:
        """Describe the weights below a path: relative names, shapes and initialisers."""
        found = self.find_weights_below(path).items()
        return tuple((name.removeprefix(f"{path}."), each.shape, each.initial, each.scale) for name, each in found)

    def list_children(self, path: str) -> list[str]:
        """List the names directly below a path."""
        lead = f"{path}." if path else ""
        rest = (each.removeprefix(lead) for each in (*self.leaves, *self.instances) if each.startswith(lead))
        return list(dict.fromkeys(each.partition(".")[0] for each in rest))

    def find_attribute(self, path: str, name: str) -> str:
        """Return the attribute for a name below a path. A name that torch claims gets another attribute."""
        if name not in CLAIMED:
            return name
        return next(each for each in number_names(f"{name}_") if each not in self.list_children(path))

    def is_list(self, path: str) -> bool:
        """Whether only modules numbered from 0 stand below a path."""
        names = self.list_children(path)
        is_array = any(self.kinds.get(f"{path}.{name}") is nn.Parameter for name in names)
        return sorted(names, key=len) == [str(at) for at in range(len(names))] and not is_array

    def access(self, path: str, root: str = "", said: str = "self") -> str:
        """Write the expression for the member at a path, in a class whose members stand below a root."""
        here = root
        for name in path.removeprefix(f"{root}.").split("."):
            inner = f"{here}.{name}" if here else name
            in_list = name.isdigit() and (self.kinds.get(here) == "pool" or (here != root and self.is_list(here)))
            kind = "_parameters" if self.kinds.get(inner) is nn.Parameter else "_modules"
            name = self.find_attribute(here, name)
            is_attribute = is_plain_name(name) and not hasattr(nn.Module(), name)
            said += f"[{name}]" if in_list else f".{name}" if is_attribute else f".{kind}[{literal(name)}]"
            here = inner
        return said

    # ------------------------------------------------------------ lines of `__init__`

    def write_members(self, root: str) -> Iterator[str]:
        """Write the lines that construct the members below a root."""
        for name in sorted(self.list_children(root), key=lambda name: name.isdigit() and int(name)):
            path = f"{root}.{name}" if root else name
            made = self._construct(path)
            yield from (*self.before, f"{self.access(path, root)} = {made}")
            yield from (f"{self.access(each, root)}.shared = {shared}" for each, shared in self.after.items())
            self.before, self.after = [], {}
        homes = {root: "self"}  # containers that the class constructs itself
        for path in (*self.leaves, *self.instances):
            parents = [path[:at] for at, char in enumerate(path) if char == "." and is_below(root, path[:at])]
            if is_below(root, path) and not self._belongs_to_instance(path, root):
                homes |= {each: self.access(each, root) for each in parents}
        for path, said in homes.items():
            names = {name: self.find_attribute(path, name) for name in self.list_children(path) if name in CLAIMED}
            if names:
                yield f"{self.vendored.name_of(keep_names)}({said}, {literal(names)})"

    def _construct(self, path: str) -> str:
        if path in self.instances:
            return f"{self.class_of(self.instances[path])}()"
        return self.leaves[path]() if path in self.leaves else self.write_container(path)

    def write_container(self, path: str) -> str:
        """Write the call that constructs the container at a path."""
        inner = {
            self.find_attribute(path, name): f"{path}.{name}" if path else name for name in self.list_children(path)
        }
        parts = {name: self._construct(each) for name, each in inner.items()}
        if self.is_list(path):
            runs = [(one, len([*same])) for one, same in groupby(parts[str(at)] for at in range(len(parts)))]
            lists = [f"[{one} for _ in range({times})]" if times > 1 else f"[{one}]" for one, times in runs]
            lists = lists if len(runs) < len(parts) else [f"[{', '.join(one for one, _ in runs)}]"]
            return f"nn.ModuleList({' + '.join(lists)})"
        arrays = any(self.kinds.get(each) is nn.Parameter for each in inner.values())
        is_plain = all(is_plain_name(name) and not hasattr(nn.ModuleDict(), name) for name in parts)
        called = "nn.ModuleDict" if is_plain and not arrays else self.vendored.name_of(Named)
        return f"{called}({{{', '.join(f'{literal(name)}: {each}' for name, each in parts.items())}}})"

    def write_initialisers(self, root: str, said: str = "self") -> Iterator[str]:
        """Write a line for each weight that torch would initialise differently."""
        for path, kind in self.kinds.items():
            if kind in (nn.Parameter, "pool") or not is_below(root, path) or self._belongs_to_instance(path, root):
                continue
            weights = self.find_weights_below(path)
            fan = math.prod(weights[f"{path}.weight"].shape[1:]) if f"{path}.weight" in weights else 1
            for name, weight in weights.items():
                start, is_bias = weight.initial.kind, name.endswith(".bias")
                if issubclass(kind, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
                    is_torchs = start == "uniform" and math.isclose(weight.scale, 1 / math.sqrt(fan))
                elif issubclass(kind, nn.Embedding):
                    is_torchs = start == "normal" and weight.scale == 1
                else:
                    is_torchs = issubclass(kind, NORMS) and start == ("zeros" if is_bias else "ones")
                if not weight.buffer and not is_torchs:
                    yield initialise(self.access(name, root, said), weight)

    def _belongs_to_instance(self, path: str, root: str) -> bool:
        return any(is_below(each, path) and is_below(root, each) for each in self.instances)

    def write_frozen(self) -> Iterator[str]:
        """Write a line for each frozen part of a model. A part is as large as possible without a weight that trains."""
        own = [each for each in self.weights.values() if not each.buffer]
        learns = [each.name for each in own if not each.frozen]
        paths: dict[str, None] = {}
        for name in (each.name for each in own if each.frozen):
            parts = [*(name[:at] for at, char in enumerate(name) if char == "."), name]
            paths[next(part for part in parts if not any(is_below(part, each) for each in learns))] = None
        yield from (f"{self.access(path)}.requires_grad_(False)" for path in paths)


def is_below(path: str, name: str) -> bool:
    return not path or name.startswith(f"{path}.")


def parameter(weight: GraphWeight) -> str:
    """Write the call that constructs a learned array."""
    if has_matrices(weight):
        *outer, rows, columns = weight.shape
        one = initialise(f"torch.empty({rows}, {columns})", weight)
        stacked = f"torch.stack([{one} for _ in range({math.prod(outer)})])"
        return f"nn.Parameter({stacked}{f'.unflatten(0, {tuple(outer)})' if len(outer) > 1 else ''})"
    empty = f"torch.empty({', '.join(map(str, weight.shape)) or '()'})"
    return f"nn.Parameter({initialise(empty, weight)})"


def initialise(said: str, weight: GraphWeight) -> str:
    """Write the call that initialises a weight."""
    name, numbers = find_initialiser(weight)
    return f"nn.init.{name}_({', '.join([said, *map(str, numbers)])})"
