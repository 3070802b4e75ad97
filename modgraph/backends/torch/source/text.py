"""Python as text: literals and comments that no text of a spec ends, and long lines in several."""

from __future__ import annotations

import io
import math
import re
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

LINE = 112
ENDING = re.compile(r'"(?="|$)')  # a quote that could end a docstring


def prose(text: str) -> str:
    """A text in a docstring or in a comment, on one line."""
    return ENDING.sub(r'\\"', _visible(text))


def _visible(text: str) -> str:
    """A text with escapes for backslashes and for characters that cannot be printed."""
    return "".join(
        char if char.isprintable() and char != "\\" else char.encode("unicode_escape").decode() for char in text
    )


def literal(value: Any) -> str:
    """The Python expression of a text, a number, or a list, tuple or dictionary of them."""
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


def laid_out(text: str) -> str:
    """A text of Python as people write it."""
    lines, inside = text.splitlines(), set[int]()
    for token in reversed([*tokenize.generate_tokens(io.StringIO(text).readline)]):
        (row, start), (last, end) = token.start, token.end
        if token.type == tokenize.STRING:
            inside |= {*range(row + 1, last + 1)}
            if token.string.startswith("'") and '"' not in token.string:
                lines[row - 1] = f'{lines[row - 1][:start]}"{token.string[1:-1]}"{lines[row - 1][end:]}'
    return "\n".join(each for at, line in enumerate(lines, 1) for each in ([line] if at in inside else _wrapped(line)))


def _wrapped(line: str) -> Iterator[str]:
    """A statement in several lines, if it is long: the longest brackets are opened."""
    code = line if len(line) <= LINE else line.partition("  # ")[0]
    first, *commas, last = _longest(code) if len(code) > LINE and '"""' not in code else (0, 0)
    if first == last:
        yield code
        return
    indent = " " * (len(code) - len(code.lstrip()))
    inner = code[first + 1 : last]
    yield code[: first + 1]
    if len(inner) + len(indent) + 4 <= LINE or not commas:
        yield from _wrapped(f"{indent}    {inner.strip()}")
    else:
        for start, end in pairwise([first, *commas, last]):
            yield from _wrapped(f"{indent}    {code[start + 1 : end].strip()},")
    yield from _wrapped(indent + code[last:])


def _longest(code: str) -> list[int]:
    """Where the longest outermost brackets of a line open, have commas to cut at, and close."""
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
