"""Patterns of names: between dots, `*` is any one part, `#` every number."""

from __future__ import annotations

from collections.abc import Iterable

ANY, EVERY = "*", "#"


def is_pattern(name: str) -> bool:
    return ANY in name or EVERY in name


def captured(pattern: str, name: str) -> tuple[str, ...] | None:
    """What each `*` of a pattern stands for in a name, or None if the name is none of its names."""
    return _standing_for(ANY, pattern, name)


def numbers(pattern: str, name: str) -> tuple[int, ...]:
    """What each `#` of a pattern stands for in one of its names."""
    found = _standing_for(EVERY, pattern, name)
    assert found is not None, f"{name} is none of {pattern}"
    return tuple(map(int, found))


def filled(pattern: str, values: Iterable[str]) -> str:
    """The name that a pattern means for these values of its `*`."""
    values = iter(values)
    return ".".join(next(values) if part == ANY else part for part in pattern.split("."))


def matches(patterns: Iterable[str], name: str) -> bool:
    """Whether one of the patterns means this name, among others."""
    return any(captured(each, name) is not None if is_pattern(each) else each == name for each in patterns)


def problem_of(pattern: str, every: bool = True) -> str | None:
    """What is wrong with a pattern, or None; `every` says whether a `#` may be in it."""
    if any(sign in part and sign != part for part in pattern.split(".") for sign in (ANY, EVERY)):
        return f"{ANY} and {EVERY} stand for a whole part between dots"
    return f"{EVERY} makes no sense on the side of the file" if EVERY in pattern and not every else None


def _standing_for(sign: str, pattern: str, name: str) -> tuple[str, ...] | None:
    parts, found = pattern.split("."), name.split(".")
    if len(parts) != len(found):
        return None
    pairs = list(zip(parts, found, strict=True))
    if not all(part in (ANY, each) or (part == EVERY and each.isdecimal()) for part, each in pairs):
        return None
    return tuple(each for part, each in pairs if part == sign)
