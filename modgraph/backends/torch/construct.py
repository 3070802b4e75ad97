"""Torch modules from declarations: import paths resolved, constructors called."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import groupby
from typing import Any, Self

from torch import nn

from modgraph.declare import Signature
from modgraph.declare.errors import BrokenModule, describe_failure
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Call, Graph, OpNode, PoolNode
from modgraph.nn import Parameter
from modgraph.nn.names import keep_names


def resolve(path: str) -> Any:
    """Import the object at a path such as `torch.nn.Linear`. Paths come from declarations, never from a spec.

    Raises `ModgraphError` if the import of an installed package fails.
    """
    home, _, name = path.rpartition(".")
    try:
        return getattr(import_module(home), name)
    except Exception as error:  # foreign code, which can fail in any way
        if home.partition(".")[0] in ("modgraph", "torch"):
            raise
        package = path.partition(".")[0]
        raise ModgraphError([BrokenModule(path=path, package=package, problem=describe_failure(error))]) from error


def construct(signature: Signature) -> Any:
    """Construct the torch module of a bound declaration; its weights are uninitialised."""
    path, positional, named = signature.constructor()
    return resolve(path)(*positional, **named)


class Namespace(nn.Module):
    """A module that only holds modules and parameters, so that state dicts have hierarchical names.

    `namespace[key]` is the entry of that name. A name that torch claims, such as `type`, gets another attribute,
    `type_`, and keeps its name in state dicts. Subclasses set their own attributes before they register anything.
    `functions` are modules without weights that it calls; they follow its training mode.
    """

    def __init__(self) -> None:
        super().__init__()
        self.renamed: dict[str, str] = {}  # attributes by name, where the two differ
        self.functions: list[nn.Module] = []

    def train(self, mode: bool = True) -> Self:
        for function in self.functions:
            function.train(mode)
        return super().train(mode)

    def __getitem__(self, name: int | str) -> Any:
        """The entry of a name, or a round by its key."""
        return getattr(self, attribute(self, str(name)))

    def __iter__(self) -> Iterator[nn.Module]:
        return iter(self.children())

    def __repr__(self) -> str:
        return show(self)

    def put(self, path: str, module: Any, homes: Mapping[str, Namespace] | None = None, above: str = "") -> Any:
        """Register a module or a learned array under a dotted path.

        `homes` are namespaces for intermediate paths; `above` is the path of this namespace.
        """
        first, _, rest = path.partition(".")
        name = self._attribute_for(first)
        if not rest and isinstance(module, Parameter):
            return module.register(self, name)
        if not rest:
            self._modules[name] = module
            return module
        above += first
        if name not in self._modules:
            self._modules[name] = (homes or {}).get(above) or Namespace()
        inner = self._modules[name]
        assert isinstance(inner, Namespace), f"{path} lies below a module"
        return inner.put(rest, module, homes, f"{above}.")

    def is_free(self, path: str) -> bool:
        """Whether a dotted path is free and can be registered."""
        first, _, rest = path.partition(".")
        inner = self._modules.get(attribute(self, first))
        if inner is None or not rest:
            return inner is None and attribute(self, first) not in self._parameters
        return isinstance(inner, Namespace) and inner.is_free(rest)

    def sort(self, ranks: Mapping[str, int], above: str = "") -> None:
        """Sort all entries by the ranks of their paths; `above` is the path of this namespace."""
        names = {each: name for name, each in self.renamed.items()}
        for kept in (self._modules, self._parameters):
            places = {each: f"{above}{names.get(each, each)}" for each in kept}
            order = sorted(kept, key=lambda each: ranks.get(places[each], len(ranks)))
            for each in order:
                kept[each] = kept.pop(each)  # type: ignore[assignment]
                inner = kept[each]
                if isinstance(inner, Namespace):
                    inner.sort(ranks, f"{places[each]}.")

    def lookup(self, path: str) -> Any:
        """Find the module or tensor under a dotted path of names."""
        here: Any = self
        for name in attribute_path(self, path).split("."):
            here = getattr(here, name)
        return here

    def _attribute_for(self, name: str) -> str:
        holds = (name in self._modules or name in self._parameters) and name not in self.renamed.values()
        if name in self.renamed or holds or not hasattr(self, name):
            return attribute(self, name)
        if not self.renamed:
            keep_names(self, self.renamed)
        longer = (name + "_" * count for count in itertools.count(1))
        self.renamed[name] = next(each for each in longer if not hasattr(self, each))
        return self.renamed[name]


def attribute(module: nn.Module, name: str) -> str:
    """Find the attribute of a module for a name."""
    return module.renamed.get(name, name) if isinstance(module, Namespace) else name


def attribute_path(root: nn.Module, path: str) -> str:
    """Find the dotted path of attributes for a dotted path of names."""
    found, here = list[str](), root
    for name in path.split("."):
        found.append(attribute(here, name))
        here = here._modules.get(found[-1], here)  # type: ignore[assignment]
    return ".".join(found)


def build_shared(pool: PoolNode) -> Namespace | None:
    """Build the modules that the modules of a pool share, by the owner of their weights in the region; None without
    any."""
    shared = Namespace()
    if not pool.is_homogeneous:
        return None
    region = pool.region(0).graph
    for node in region.nodes_of(OpNode):
        if any(weight.shared for weight in node.op.all_weights()):
            path, positional, named = region.signature(node).constructor()
            shared.put(node.owner, resolve(path).Shared(*positional, **named))
    return shared if shared._modules else None


def build_expert(region: Graph, node: OpNode, shared: Namespace | None) -> Any:
    """Build the torch module of one op of a pool's module; if the op shares weights, only its own part."""
    signature = region.signature(node)
    if shared is None or not any(weight.shared for weight in node.op.all_weights()):
        return construct(signature)
    own = resolve(node.op.module.path).Own
    module: nn.Module = own(shared.lookup(node.owner), signature.axes["code_width"])
    return module


def show(module: nn.Module) -> str:
    """Print a module with its parameters and submodules. A bare namespace of one entry becomes part of its name."""
    lines = [line for names, text in entries(module) for line in f"({names}): {text}".splitlines()]
    name = type(module).__name__
    return "\n".join([f"{name}(", *textwrap.indent("\n".join(lines), "  ").splitlines(), ")"]) if lines else f"{name}()"


def entries(module: nn.Module) -> list[tuple[str, str]]:
    """List the entries directly below a module, by names; equal rounds are one entry, in which `#` stands for the
    key."""
    call = getattr(module, "call", None)
    members, key = (call.members, call.key) if isinstance(call, Call) else ((), None)
    same: dict[tuple[str, str], list[str]] = {}
    for name, child in module.named_children():
        inner = entries(child) if type(child) is Namespace else []
        below, text = (f".{inner[0][0]}", inner[0][1]) if len(inner) == 1 else ("", repr(child))
        if name in members and (below + ".").startswith(f".{key}."):
            below = f".#{below.removeprefix(f'.{key}')}"
        own = "" if name.isdigit() or "\n" in text else name  # layers of one kind stay apart
        same.setdefault((own, f"{below}: {text}"), []).append(name)
    found = [(name, f"Parameter{[*each.shape]}") for name, each in module.named_parameters(recurse=False)]
    for (_, said), names in same.items():
        below, _, text = said.partition(": ")
        found.append((f"{join_ranges(names)}{below}", text if len(names) == 1 else f"{len(names)} x {text}"))
    return found


def join_ranges(names: Sequence[str]) -> str:
    """Join names; consecutive numbers become a range: `0-7, 9`."""
    if not all(name.isdigit() for name in names):
        return ", ".join(names)
    runs = [[name for _, name in run] for _, run in groupby(enumerate(names), lambda pair: int(pair[1]) - pair[0])]
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
