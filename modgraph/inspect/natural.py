"""An order of names in which numbers count as such."""

from __future__ import annotations


def natural(name: str) -> list[tuple[int, int | str]]:
    """Sorts `expert.10` behind `expert.9`."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in name.replace("/", ".").split(".")]
