"""Names for what a graph holds, as Python takes them."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import count

from torch import nn

from modgraph.backends.torch.source.copied import definitions
from modgraph.ir import Call, Graph

WRITTEN = {"self", "torch", "nn", "F", "math", "Tensor", "losses", "module", "row", "shared"}  # in lines


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
        found[name] = free(argument(name), found.values(), known=True)
    return found


def numbered(name: str) -> Iterator[str]:
    """A name, and then the same with a number."""
    yield name
    yield from (f"{name}_{at}" for at in count(2))


def free(name: str, taken: Collection[str], known: bool = False) -> str:
    """A name like this one that nothing else has; one that is `known` to be none of Python's own."""
    name = name if name.isidentifier() else "value_" + re.sub(r"\W", "_", name)
    name = f"value{name}" if name.startswith("__") and not name.endswith("__") else name  # mangled in a class
    name = f"{name}_" if name in reserved() and not known else name
    return next(each for each in numbered(name) if each not in taken)


def variable(node: str, call: Call | None) -> str:
    """What the author calls a value of a body: the words of its binding, without keys of rounds."""
    name, _, helper = node.partition("~")
    if call is not None and name == call.path:
        return call.definition
    inner = name.removeprefix(f"{call.path}.") if call is not None else name
    words = inner.split(".")
    words = [word for word in (words[:-1] or words) if not word.isdigit()] or [words[-1]]
    words = words[1:] if words[0] in ("loss", "record") and len(words) > 1 else words
    word = re.sub(r"(?<=[a-z_])[2-9]$", "", "_".join(words))
    return f"{word}_{helper}" if helper else word


def last_word(path: str) -> str:
    """The name of a pool, a router or a module, without its path and its key."""
    return next((each for each in reversed(path.split(".")) if not each.isdigit()), path)


def class_name(name: str) -> str:
    """What a class is called that is named after something."""
    said = "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", name) if part)
    return said if said.isidentifier() else f"Module{said}"


def is_attribute(name: str) -> bool:
    """Whether a module can be asked for something of this name by a dot."""
    return is_plain_name(name) and not hasattr(nn.Module(), name)


def is_plain_name(name: str) -> bool:
    """Whether a class's code can use a name unchanged: Python mangles private ones such as `__x`."""
    is_private = name.startswith("__") and not name.endswith("__")
    return name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__" and not is_private
