"""Loops in place of lines that say the same several times one after another."""

from __future__ import annotations

import re
from collections.abc import Sequence

WORTH = 3  # so many lines less are worth a loop


def folded(lines: Sequence[str]) -> list[str]:
    """Lines with a loop in place of a block that stands there several times one after another."""
    lines, found = _each_of_list(lines), list[str]()
    at = 0
    while at < len(lines):
        length, times = _block(lines, at)
        if (times - 1) * length >= WORTH:
            found += [f"for _ in range({times}):", *(f"    {line}" for line in lines[at : at + length])]
            at += length * times
        else:
            found.append(lines[at])
            at += 1
    return found


def _block(lines: Sequence[str], at: int) -> tuple[int, int]:
    """The length of a block that begins here, and how often it stands one after another: what covers most lines."""
    best = (1, 1)
    for length in range(1, (len(lines) - at) // 2 + 1):
        block, times = lines[at : at + length], 1
        while lines[at + times * length : at + (times + 1) * length] == block:
            times += 1
        if times > 1 and times * length > best[0] * best[1] and not block[0].startswith(" "):
            best = (length, times)
    return best


CALL = re.compile(r"^(\w+) = (self(?:\.\w+)*)\[(\d+)\]\(\1\)(  # .*)?$")


def _each_of_list(lines: Sequence[str]) -> list[str]:
    """Lines with a loop in place of calls of the modules of a list one after another."""
    found: list[str] = []
    at = 0
    while at < len(lines):
        first, until = CALL.match(lines[at]), at + 1
        while first and until < len(lines):
            other = CALL.match(lines[until])
            if not other or other.group(1, 2, 4) != first.group(1, 2, 4) or int(other[3]) != int(first[3]) + until - at:
                break
            until += 1
        if first is None or until - at < WORTH:
            found.append(lines[at])
            at += 1
            continue
        x, modules, begin, comment = first.groups()
        of = f"{modules}[{begin}:{int(begin) + until - at}]"
        found += [f"for each in {of}:", f"    {x} = each({x}){comment or ''}"]
        at = until
    return found
