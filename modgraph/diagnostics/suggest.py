"""Suggests known names for a misspelt one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

MOST_NAMED = 4  # names of a list in a message
MOST_DIFFERENCE = 4  # in letters, between the lengths of two similar names
MOST_CANDIDATES = 1000
MOST_LISTED = 8
SIMILAR, FAINTLY_SIMILAR = 0.6, 0.3  # twice the common letters over the letters of both


def closest(name: str, known: Iterable[str], cutoff: float = SIMILAR) -> str | None:
    """Find the known name most similar to a misspelt one, or the only one that contains it as a word."""
    names = sorted(set(known))
    matches = _find_similar(name, names, 1, cutoff)
    if matches:
        return matches[0]
    longer = [candidate for candidate in names if name.lower() in candidate.lower().split("_")]
    return longer[0] if len(longer) == 1 else None


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """List some of the known names: the most similar, then others in their order."""
    names = _drop_repeats(known)
    cutoff = _find_similar(name, sorted(names), MOST_LISTED, FAINTLY_SIMILAR)
    others = [each for each in names if each not in cutoff]
    return [*cutoff, *others[: MOST_LISTED - len(cutoff)]]


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "known: {known}", cutoff: float = SIMILAR) -> str:
    """Write the help line for a misspelt name; of many known names it lists the most similar, then the first."""
    names = _drop_repeats(known)
    match = closest(name, names, cutoff)
    if match is not None:
        return f'did you mean "{match}"?'
    if not names:
        return "none are known here"
    if len(names) <= MOST_LISTED:
        return otherwise.format(known=", ".join(sorted(names)))
    return otherwise.format(known=", ".join(nearest(name, names)) + ", …")


def list_names(names: Sequence[str]) -> str:
    """Join the first of some names for a message."""
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _drop_repeats(known: Iterable[str]) -> list[str]:
    """List each name once, a set in alphabetical order."""
    return sorted(known) if isinstance(known, set | frozenset) else list(dict.fromkeys(known))


def _find_similar(name: str, names: list[str], most: int, cutoff: float) -> list[str]:
    similar = [candidate for candidate in names if abs(len(candidate) - len(name)) <= MOST_DIFFERENCE]
    lowered = {candidate.lower(): candidate for candidate in similar[:MOST_CANDIDATES]}
    return [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered, n=most, cutoff=cutoff)]
