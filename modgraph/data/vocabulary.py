"""Vocabularies: words by id, and for taggers the classes of each target. A run keeps them in a file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from modgraph.data.files import read_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNKNOWN = "<unk>"


@dataclass(frozen=True)
class Vocabulary:
    """Words by id. `<unk>` stands for every other word."""

    words: tuple[str, ...]

    @classmethod
    def most_frequent(cls, text: Iterable[str], size: int) -> Vocabulary:
        """Return `<unk>` and the most frequent words, `size` in all if the text has as many."""
        counts = Counter(text)
        del counts[UNKNOWN]
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls((UNKNOWN, *ranked[: size - 1]))

    @classmethod
    def read(cls, path: str) -> Vocabulary:
        """Read a JSON file with a list of words. Raises `ModgraphError`."""
        way_out = "write a JSON list of words with <unk>, as runs keep it in vocabulary.json"
        return cls(tuple(read_json(path, _wrong_words, way_out)))

    def as_json(self) -> bytes:
        return (json.dumps(self.words, indent=0, ensure_ascii=False) + "\n").encode()

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: id_ for id_, word in enumerate(self.words)}

    def ids_of(self, text: Sequence[str]) -> NDArray[np.int64]:
        """Return the id of each word."""
        import numpy as np

        ids, unknown = self._ids, self._ids[UNKNOWN]
        return np.fromiter((ids.get(word, unknown) for word in text), np.int64, len(text))


@dataclass(frozen=True)
class Tagging:
    """Vocabularies by the input of ids, names of classes by target."""

    words: Mapping[str, Vocabulary]
    classes: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, path: str) -> Tagging:
        """Read the file that a run keeps. Raises `ModgraphError`."""
        way_out = "write words by input and classes by target, as runs keep it in tagging.json"
        record = read_json(path, _wrong_tagging, way_out)
        words = {name: Vocabulary(tuple(each)) for name, each in record["words"].items()}
        return cls(words, {name: tuple(each) for name, each in record["classes"].items()})

    def as_json(self) -> bytes:
        words = {name: each.words for name, each in self.words.items()}
        record = {"words": words, "classes": dict(self.classes)}
        return (json.dumps(record, indent=0, ensure_ascii=False) + "\n").encode()


def _wrong_words(words: Any) -> str | None:
    if not _is_list_of_texts(words):
        return "it is no list of words"
    if UNKNOWN not in words:
        return f"{UNKNOWN} is not in it"
    if any("\ud800" <= letter <= "\udfff" for word in words for letter in word):
        return "a word in it holds half a letter (a surrogate)"
    twice = next((word for word, count in Counter(words).items() if count > 1), None)
    return None if twice is None else f'it has "{twice}" twice'


def _wrong_tagging(record: Any) -> str | None:
    words, classes = (record.get(key) for key in ("words", "classes")) if isinstance(record, dict) else (None, None)
    if not isinstance(words, dict) or not isinstance(classes, dict):
        return "it has no words and classes"
    if problem := next(filter(None, map(_wrong_words, words.values())), None):
        return problem
    return None if all(map(_is_list_of_texts, classes.values())) else "the classes of a target are no list of names"


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def describe_words(
    words: str, split: Literal["blanks", "signs"], lower: bool, end: str | None = None, letters: int | None = None
) -> dict[str, Any]:
    """Return how ids are made from texts, for deploying a model: `split` at blanks only, or signs apart too. `end` is
    the word that ends a line, `letters` the number of last letters that count, where not all do."""
    more = {**({"end": end} if end else {}), **({"letters": letters} if letters else {})}
    return {"words": words, "split": split, "lower": lower, "unknown": UNKNOWN, **more}
