"""How an input was made of a picture or a text: in words for those who deploy a model, in facts for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from modgraph.data.declaration import Scale
from modgraph.data.vocabulary import UNKNOWN

Place = tuple[float, float, float, float]  # left, top, width, height, as shares of an image


def describe_images(
    classes: Iterable[str], words: str, scale: Scale | None = None, places: tuple[Place, ...] = ()
) -> dict[str, Any]:
    """Of a data set of images in colour on a `scale`; without, of grey light from 0 for black to 1 for white on a dark
    ground. `places` are where each of several things stands."""
    how: dict[str, Any] = {"words": words, "channels": "grey" if scale is None else "red, green, blue"}
    how |= {"ground": "dark"} if scale is None else {"mean": list(scale.mean), "deviation": list(scale.deviation)}
    how |= {"places": [list(each) for each in places]} if places else {}
    return {"classes": {"label": list(classes)}, "preprocessing": {"image": how}}


def of_words(
    words: str, split: Literal["blanks", "signs"], lower: bool, end: str | None = None, letters: int | None = None
) -> dict[str, Any]:
    """Of texts: `split` at blanks alone, or signs apart too; `end` is the word that ends a line, `letters` how many of
    each word count, its last, where not all do."""
    more = {**({"end": end} if end else {}), **({"letters": letters} if letters else {})}
    return {"words": words, "split": split, "lower": lower, "unknown": UNKNOWN, **more}
