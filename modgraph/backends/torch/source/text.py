"""Writes Python text: names for the values of a graph, literals and comments that no text of a spec can end, wrapped
lines."""

from __future__ import annotations

import builtins
import io
import keyword
import math
import re
import tokenize
from collections.abc import Collection, Iterator
from functools import cache
from itertools import count, pairwise
from typing import Any

from modgraph.backends.torch.source.vendored import definitions
from modgraph.ir import Call, Graph

LINE = 112
ENDING = re.compile(r'"(?="|$)')  # a quote that could end a docstring
WRITTEN = {"self", "torch", "nn", "F", "math", "Tensor", "losses", "module", "row", "shared"}  # the number of lines


# ------------------------------------------------------------ names


@cache
def reserve_names() -> frozenset[str]:
    """List the names that no variable and no class may have: those in written lines and in definitions that they may
    call."""
    return frozenset({*WRITTEN, *dir(builtins), *keyword.kwlist, *definitions()})


def argument(name: str) -> str:
    """Return the argument for an input or a target. It may shadow a builtin that no line calls."""
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


def number_names(name: str) -> Iterator[str]:
    """Yield a name, then the same name with numbers."""
    yield name
    yield from (f"{name}_{at}" for at in count(2))


def free(name: str, taken: Collection[str], known: bool = False) -> str:
    """Find a free name like this one. A name in `known` is not one of Python's."""
    name = name if name.isidentifier() else "value_" + re.sub(r"\W", "_", name)
    name = f"value{name}" if name.startswith("__") and not name.endswith("__") else name  # mangled in a class
    name = f"{name}_" if name in reserve_names() and not known else name
    return next(each for each in number_names(name) if each not in taken)


def variable(node: str, call: Call | None) -> str:
    """Return the author's name of a value in a body: the words of its binding, without keys of rounds."""
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
    """Return the name of a pool, a router or a module without path and key."""
    return next((each for each in reversed(path.split(".")) if not each.isdigit()), path)


def class_name(name: str) -> str:
    """Make a class name of the words of a name."""
    said = "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", name) if part)
    return said if said.isidentifier() else f"Module{said}"


def is_plain_name(name: str) -> bool:
    """Whether a class's code can use a name unchanged: Python mangles private ones such as `__x`."""
    is_private = name.startswith("__") and not name.endswith("__")
    return name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__" and not is_private


# ------------------------------------------------------------ literals and lines


def prose(text: str) -> str:
    """Escape a text for a docstring or a comment, on one line."""
    return ENDING.sub(r'\\"', _visible(text))


def _visible(text: str) -> str:
    """Escape backslashes and unprintable characters."""
    return "".join(
        char if char.isprintable() and char != "\\" else char.encode("unicode_escape").decode() for char in text
    )


def literal(value: Any) -> str:
    """Write a text, a number, or a list, tuple or dictionary of them as a Python literal."""
    match value:
        case str():
            return '"' + _visible(value).replace('"', '\\"') + '"'
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case dict():
            return f"{{{', '.join(f'{literal(key)}: {literal(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{', '.join(map(literal, value))}]"
        case tuple():
            return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def wrap_lines(text: str) -> str:
    """Wrap the long lines of a Python text."""
    lines, inside = text.splitlines(), set[int]()
    for token in reversed([*tokenize.generate_tokens(io.StringIO(text).readline)]):
        (row, start), (last, end) = token.start, token.end
        if token.type == tokenize.STRING:
            inside |= {*range(row + 1, last + 1)}
            if token.string.startswith("'") and '"' not in token.string:
                lines[row - 1] = f'{lines[row - 1][:start]}"{token.string[1:-1]}"{lines[row - 1][end:]}'
    return "\n".join(each for at, line in enumerate(lines, 1) for each in ([line] if at in inside else _wrap(line)))


def _wrap(line: str) -> Iterator[str]:
    """Wrap a long statement: open its longest brackets."""
    code = line if len(line) <= LINE else line.partition("  # ")[0]
    first, *commas, last = _longest(code) if len(code) > LINE and '"""' not in code else (0, 0)
    if first == last:
        yield code
        return
    indent = " " * (len(code) - len(code.lstrip()))
    inner = code[first + 1 : last]
    yield code[: first + 1]
    if len(inner) + len(indent) + 4 <= LINE or not commas:
        yield from _wrap(f"{indent}    {inner.strip()}")
    else:
        for start, end in pairwise([first, *commas, last]):
            yield from _wrap(f"{indent}    {code[start + 1 : end].strip()},")
    yield from _wrap(indent + code[last:])


def _longest(code: str) -> list[int]:
    """Find the longest outermost brackets of a line: their start, commas and end."""
    opened, found, comprehensions, quoted = list[list[int]](), [[0, 0]], set[int](), ""
    for at, char in enumerate(code):
        if quoted:
            quoted = "" if char == quoted and code[at - 1] != "\\" else quoted
        elif char in "\"'":
            quoted = char
        elif char in "([{":
            opened.append([at])
        elif char == "," and opened:
            opened[-1].append(at)
        elif opened and code.startswith(" for ", at):
            comprehensions.add(opened[-1][0])
        elif char in ")]}" and opened:
            first, *commas = opened.pop()
            found += [[first, *(commas if first not in comprehensions else ()), at]] if not opened else []
    return max(found, key=lambda each: each[-1] - each[0])
