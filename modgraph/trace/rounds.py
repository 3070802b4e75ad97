"""Which rounds of many are shown to a reader."""

from __future__ import annotations

MOST_SHOWN = 8


def shown_rounds(rounds: int) -> list[int]:
    """All rounds from 0, or of many the first, the last and some between at even steps."""
    if rounds <= MOST_SHOWN:
        return list(range(rounds))
    return [round(at * (rounds - 1) / (MOST_SHOWN - 1)) for at in range(MOST_SHOWN)]
