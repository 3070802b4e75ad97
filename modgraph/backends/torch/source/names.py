"""Names for what a graph holds, as Python takes them."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection, Iterator
from functools import cache
from importlib import import_module
from itertools import count, islice
from pkgutil import iter_modules
from typing import Any

from torch import nn

from modgraph.backends.torch.construct import child
from modgraph.ir import Graph, OpNode
from modgraph.ops.op import Op

WRITTEN = {"self", "torch", "nn", "F", "math", "Tensor", "losses", "each", "modules", "module_E", "shared"}  # in lines


@cache
def definitions() -> frozenset[str]:
    """The names of all definitions in the files from which the source copies."""
    import modgraph.nn as library

    modules = [import_module(f"modgraph.nn.{each.name}") for each in iter_modules(library.__path__) if not each.ispkg]
    modules.append(import_module("modgraph.backends.torch.source.alone"))
    modules.append(import_module("modgraph.backends.torch.padding"))
    modules.append(import_module("modgraph.backends.torch.labelled"))
    return frozenset(name for each in modules for name in vars(each))


@cache
def reserved() -> frozenset[str]:
    """Names that no variable and no class may have: those in written lines, and definitions that these may call."""
    return frozenset({*WRITTEN, *dir(builtins), *keyword.kwlist, *definitions()})


def argument(name: str) -> str:
    """The argument for an input or a target. It may have the name of a builtin that no line calls."""
    name = re.sub(r"\W", "_", name)
    name = f"value{name}" if name.startswith("__") else name  # Python mangles such names in a class
    used = {*WRITTEN, *keyword.kwlist, *definitions(), "len", "zip", "range", "super", "float", "__debug__"}
    return f"{name}_" if name in used else name


def arguments(graph: Graph) -> dict[str, str]:
    """The argument of `forward` for each input and target, all different."""
    found: dict[str, str] = {}
    for name in (*graph.input_types, *graph.target_types):
        found[name] = next(each for each in numbered(argument(name)) if each not in found.values())
    return found


def names(name: str) -> Iterator[str]:
    """Names for variables that are like this one, the best first."""
    name = name if name.isidentifier() else "value_" + re.sub(r"\W", "_", name)
    yield f"{name}_" if name in reserved() else name
    yield from islice(numbered(name), 1, None)


def numbered(name: str) -> Iterator[str]:
    """A name, and then the same with a number."""
    yield name
    yield from (f"{name}_{at}" for at in count(2))


def free(name: str, taken: Collection[str]) -> str:
    """A name for a variable that nothing else has."""
    return next(each for each in names(name) if each not in taken)


def variable(node: str, of: Any) -> str:
    """What a node's result is called by those who wrote it: the name that it is bound to, or its own."""
    path, _, helper = node.partition("~")
    *scope, last = path.split(".")
    ops = {*Op.registry, *([of.op.name] if isinstance(of, OpNode) else [])}
    if scope and (last in ops or re.sub(r"\d+$", "", last) in ops):
        last = next((each for each in reversed(scope) if not each.isdigit()), last)
        last = re.sub(r"(?<=[a-z_])[2-9]$", "", last)
    return f"{last}_{helper}" if helper else last


def class_name(name: str) -> str:
    """What a class is called that is named after something."""
    said = "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", name) if part)
    return said if said.isidentifier() else f"Module{said}"


def below(root: nn.Module, path: str) -> nn.Module | None:
    """The module under a dotted path, whatever its name means otherwise; None if there is none."""
    here: Any = root
    for part in filter(None, path.split(".")):
        here = child(here, part) if here is not None else None
    return here  # type: ignore[no-any-return]


def is_attribute(name: str) -> bool:
    """Whether a module can be asked for something of this name by a dot."""
    return is_plain_name(name) and not hasattr(nn.Module, name)


def is_plain_name(name: str) -> bool:
    """Whether a class's code can use a name unchanged: Python mangles private ones such as `__x`."""
    is_private = name.startswith("__") and not name.endswith("__")
    return name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__" and not is_private
