"""Lays Python out: strings in double quotes, long lines in several."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from itertools import pairwise

LINE = 112


def laid_out(text: str) -> str:
    """A text of Python as people write it."""
    lines = text.splitlines()
    tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    inside = {at for each in tokens if each.type == tokenize.STRING for at in range(each.start[0], each.end[0] + 1)[1:]}
    for token in reversed(tokens):
        (row, start), (_, end) = token.start, token.end
        if token.type == tokenize.STRING and token.string.startswith("'") and '"' not in token.string:
            lines[row - 1] = f'{lines[row - 1][:start]}"{token.string[1:-1]}"{lines[row - 1][end:]}'
    return "\n".join(each for at, line in enumerate(lines, 1) for each in ([line] if at in inside else _wrapped(line)))


def _wrapped(line: str) -> Iterator[str]:
    """A statement in several lines, if it is long: the longest brackets are opened."""
    code = line if len(line) <= LINE else line.partition("  # ")[0]
    if len(code) <= LINE or '"""' in code:
        yield code
        return
    first, last, commas = _longest(code)
    indent = " " * (len(code) - len(code.lstrip()))
    inner = code[first + 1 : last]
    if first == last:
        yield code
        return
    yield code[: first + 1]
    cuts = [first, *commas, last]
    if len(inner) + len(indent) + 4 <= LINE or not commas:
        yield from _wrapped(f"{indent}    {inner.strip()}")
    else:
        for start, end in pairwise(cuts):
            yield from _wrapped(f"{indent}    {code[start + 1 : end].strip()},")
    yield from _wrapped(indent + code[last:])


class _Uncut(list[int]):
    """Commas that are no places to cut."""

    def append(self, at: int, /) -> None:
        """Leave it out."""


def _longest(code: str) -> tuple[int, int, list[int]]:
    """Where the longest brackets of a line open and close, and the commas between what they hold."""
    opened, found = list[tuple[int, list[int]]](), [(0, 0, list[int]())]
    quoted = ""
    for at, char in enumerate(code):
        if quoted:
            quoted = "" if char == quoted and code[at - 1] != "\\" else quoted
        elif char in "\"'":
            quoted = char
        elif char in "([{":
            opened.append((at, []))
        elif char == "," and opened:
            opened[-1][1].append(at)
        elif opened and code.startswith(" for ", at):  # a comprehension, which is cut nowhere
            opened[-1] = (opened[-1][0], _Uncut())
        elif char in ")]}" and opened:
            start, commas = opened.pop()
            found += [(start, at, commas)] if not opened else []
    return max(found, key=lambda each: each[1] - each[0])
