"""What a misspelt name may have meant, in words for the help line of a message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

MOST_NAMED = 4  # names of a list in a message
MOST_DIFFERENCE = 4  # letters by which a name may be longer or shorter than what was meant
MOST_CANDIDATES = 1000
MOST_LISTED = 8
SIMILAR, FAINTLY_SIMILAR = 0.6, 0.3  # twice the letters in common, over those of both


def closest(name: str, known: Iterable[str], cutoff: float = SIMILAR) -> str | None:
    """The known name that a misspelt one most likely meant, or the only one that it is a word of."""
    names = sorted(set(known))
    matches = _find_similar(name, names, 1, cutoff)
    if matches:
        return matches[0]
    longer = [candidate for candidate in names if name.lower() in candidate.lower().split("_")]
    return longer[0] if len(longer) == 1 else None


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Some of the known names: those most alike, then others in their order."""
    names = _drop_repeats(known)
    cutoff = _find_similar(name, sorted(names), MOST_LISTED, FAINTLY_SIMILAR)
    others = [each for each in names if each not in cutoff]
    return [*cutoff, *others[: MOST_LISTED - len(cutoff)]]


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str = "known are: {known}", cutoff: float = SIMILAR
) -> str:
    """The help line for a misspelt name; of many known ones it lists the nearest, then the first."""
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
    """Names for a message, the first of many."""
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _drop_repeats(known: Iterable[str]) -> list[str]:
    """Each name once: in the order given, or of the alphabet where none is given."""
    return sorted(known) if isinstance(known, set | frozenset) else list(dict.fromkeys(known))


def _find_similar(name: str, names: list[str], most: int, cutoff: float) -> list[str]:
    similar = [candidate for candidate in names if abs(len(candidate) - len(name)) <= MOST_DIFFERENCE]
    lowered = {candidate.lower(): candidate for candidate in similar[:MOST_CANDIDATES]}
    return [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered, n=most, cutoff=cutoff)]
