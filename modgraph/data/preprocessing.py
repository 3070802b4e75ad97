"""How an input was made of a picture or a text: in words for those who deploy a model, in facts for programs."""

from __future__ import annotations

from typing import Any, Literal

from modgraph.data.declaration import Scale
from modgraph.data.vocabulary import UNKNOWN

Place = tuple[float, float, float, float]  # left, top, width, height, as shares of an image


def of_images(
    words: str,
    channels: Literal["grey", "red, green, blue"],
    scale: Scale | None = None,
    ground: Literal["dark"] | None = None,
    places: tuple[Place, ...] = (),
) -> dict[str, Any]:
    """Of images, whose numbers are light from 0 for black to 1 for white unless there is a `scale`.

    `ground` is what they show things on, where that is always so, `places` where each of several things stands.
    """
    numbers = {} if scale is None else {"mean": list(scale.mean), "deviation": list(scale.deviation)}
    more = {**({"ground": ground} if ground else {}), **({"places": [list(each) for each in places]} if places else {})}
    return {"words": words, "channels": channels, **numbers, **more}


def of_words(
    words: str, split: Literal["blanks", "signs"], lower: bool, end: str | None = None, letters: int | None = None
) -> dict[str, Any]:
    """Of texts: `split` at blanks alone, or signs apart too; `end` is the word that ends a line, `letters` how many of
    each word count, its last, where not all do."""
    more = {**({"end": end} if end else {}), **({"letters": letters} if letters else {})}
    return {"words": words, "split": split, "lower": lower, "unknown": UNKNOWN, **more}
