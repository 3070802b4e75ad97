"""What is the same of repeated parts, told once: `blocks.0-7.gate` for eight gates that changed alike."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from modgraph.diagnostics import listed
from modgraph.inspect.diff.values import Moved
from modgraph.inspect.folding import ranges

STAR = "*"
NUMBER = re.compile(r"\.(\d+)(?=\.|$)")


@dataclass(frozen=True)
class Line:
    """A line of a diff: its sign, what the node is, where it stands, and details below it."""

    sign: str
    kind: str
    place: str
    details: tuple[str, ...] = ()
    what: str = ""  # behind the place
    count: int = 1


def folded(lines: Iterable[Line], keys: Collection[str] = ()) -> list[Line]:
    """Lines that differ in one number of their places alone as one, where the first of them stands; then those that
    differ in one of some keys of families alone."""
    return _folded_by_key(_folded_by_number(lines), keys)


def _folded_by_number(lines: Iterable[Line]) -> list[Line]:
    groups: dict[Line, list[tuple[Line, str]]] = {}
    for line in lines:
        number = _first_number(line.place)
        groups.setdefault(_starred(line, number) if number else line, []).append((line, number))
    return [_fold(pattern, group) for pattern, group in groups.items()]


def _folded_by_key(lines: list[Line], keys: Collection[str]) -> list[Line]:
    groups: dict[tuple[Line, int], list[tuple[Line, str]]] = {}
    for line in lines:
        key = next((word for word in re.split(r"[./]", line.place) if word in keys), "")
        pattern = without_keys(line, {key}) if key else line
        groups.setdefault((pattern, line.count), []).append((line, key))
    return [
        group[0][0] if len(group) == 1 else _with_keys(pattern, [key for _, key in group])
        for (pattern, _), group in groups.items()
    ]


def _with_keys(pattern: Line, keys: list[str]) -> Line:
    return replace(
        pattern, place=pattern.place.replace(STAR, f"{{{listed(keys)}}}", 1), count=len(keys) * pattern.count
    )


def without_keys(line: Line, keys: Collection[str]) -> Line:
    """A line with a star for some keys, wherever it says them."""
    place, what, *details = (starred_keys(text, keys) for text in (line.place, line.what, *line.details))
    return replace(line, place=place, what=what, details=tuple(details))


def starred_keys(text: str, keys: Collection[str]) -> str:
    """A text with a star for the words of names in it that are some keys."""
    if not keys:
        return text
    return re.sub(rf"(?<=\.)(?:{'|'.join(map(re.escape, sorted(keys)))})(?![\w])", STAR, text)


def _fold(pattern: Line, group: list[tuple[Line, str]]) -> Line:
    if len(group) == 1:
        return group[0][0]
    numbers = ranges(sorted({int(number.rpartition(".")[2]) for _, number in group}))
    index = numbers if "," not in numbers else f"{{{numbers}}}"
    return replace(pattern, place=pattern.place.replace(STAR, index, 1), count=len(group))


def _first_number(place: str) -> str:
    """What a place begins with, up to its first number."""
    found = re.match(r"[^/]*?\.\d+(?=[./]|$)", place)
    return found[0] if found else ""


def _starred(line: Line, number: str) -> Line:
    """The line without its number, wherever it says it."""
    head = number.rpartition(".")[0]
    place = f"{head}.{STAR}{line.place[len(number) :]}"
    known = re.compile(rf"(?<![\w.]){re.escape(number)}(?=[./:,\s=\]]|$)")
    details = tuple(known.sub(f"{head}.{STAR}", each) for each in line.details)
    return replace(line, place=place, details=details, what=known.sub(f"{head}.{STAR}", line.what))


@dataclass(frozen=True)
class Move:
    """Names that moved together: what they lay below, what they lie below now, and how many nodes do."""

    before: str
    after: str
    count: int


def moves_of(moved: Iterable[Moved]) -> list[Move]:
    """Moves by what the names lie below: the longest end that the old and the new names have in common is left out;
    numbers that move by one step are told as one."""
    counts: dict[tuple[str, str], int] = {}
    for each in moved:
        heads = _heads(each.before, each.after)
        counts[heads] = counts.get(heads, 0) + 1
    groups: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    for (before, after), count in counts.items():
        groups.setdefault(_shift(before, after), []).append((_number(before), count))
    return [_move(key, group) for key, group in groups.items()]


def _heads(before: str, after: str) -> tuple[str, str]:
    old, new = before.split("."), after.split(".")
    while len(old) > 1 < len(new) and old[-1] == new[-1] and old[:-1] != new[:-1]:
        old, new = old[:-1], new[:-1]
    return ".".join(old), ".".join(new)


def _number(name: str) -> int:
    found = NUMBER.search(name)
    return int(found[1]) if found else -1


def _shift(before: str, after: str) -> tuple[str, str, int]:
    """Two names without their first numbers, and how much larger the second is."""
    if not (NUMBER.search(before) and NUMBER.search(after)):
        return before, after, 0
    step = _number(after) - _number(before)
    return NUMBER.sub(f".{STAR}", before, count=1), NUMBER.sub(f".{STAR}", after, count=1), step


def _move(key: tuple[str, str, int], group: list[tuple[int, int]]) -> Move:
    before, after, step = key
    numbers = sorted(number for number, _ in group)
    count = sum(count for _, count in group)
    return Move(_in_numbers(before, numbers), _in_numbers(after, [number + step for number in numbers]), count)


def _in_numbers(name: str, numbers: list[int]) -> str:
    told = ranges(numbers)
    return name.replace(STAR, told if "," not in told else f"{{{told}}}", 1)
