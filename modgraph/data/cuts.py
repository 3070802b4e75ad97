"""Parts of data that lie in one file: what is cut off its end for other splits, and some examples spread over it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import TRAIN, VALIDATION


def cut_off(count: int, validation: float, test: float) -> dict[str, slice]:
    """What each split has of so many things in their order: those to test on at the end, those to watch before them."""
    first, last = (count - round(share * count) for share in (validation + test, test))
    return {TRAIN: slice(first), VALIDATION: slice(first, last), "test": slice(last, count)}


def spread(count: int, limit: int | None) -> NDArray[np.int64] | None:
    """So many of `count` things, at even distances from the first to the last; None where there is nothing to leave
    out."""
    if limit is None or limit >= count:
        return None
    return np.linspace(0, count - 1, limit).round().astype(np.int64)
