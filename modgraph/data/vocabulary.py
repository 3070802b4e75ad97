"""The words that a model knows, each with its id."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.errors import BadDataFile
from modgraph.data.text_files import read_text
from modgraph.diagnostics import ModgraphError

UNKNOWN = "<unk>"


@dataclass(frozen=True)
class Vocabulary:
    """Words by id. `<unk>` stands for every other."""

    words: tuple[str, ...]

    @classmethod
    def most_frequent(cls, text: Iterable[str], size: int) -> Vocabulary:
        """`<unk>`, and so many of the most frequent words that there are `size` in all, if the text has as many."""
        counts = Counter(text)
        del counts[UNKNOWN]
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls((UNKNOWN, *ranked[: size - 1]))

    @classmethod
    def read(cls, path: str) -> Vocabulary:
        """The vocabulary of a JSON file: a list of words. Raises `ModgraphError`."""
        try:
            words = json.loads(read_text(path))
        except (ValueError, RecursionError):
            words = None
        reason = problem_of(words)
        if reason is not None:
            way_out = "it is a JSON list of words, <unk> among them, as runs keep it in vocabulary.json"
            raise ModgraphError([BadDataFile(path=path, reason=reason, way_out=way_out)])
        return cls(tuple(words))

    def as_json(self) -> bytes:
        return (json.dumps(self.words, indent=0, ensure_ascii=False) + "\n").encode()

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: id_ for id_, word in enumerate(self.words)}

    def ids_of(self, text: Sequence[str]) -> NDArray[np.int64]:
        """The id of each word."""
        ids, unknown = self._ids, self._ids[UNKNOWN]
        return np.fromiter((ids.get(word, unknown) for word in text), np.int64, len(text))


def problem_of(words: Any) -> str | None:
    """What is wrong with a list of words, or None."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return "it is no list of words"
    if UNKNOWN not in words:
        return f"{UNKNOWN} is not in it"
    if any("\ud800" <= letter <= "\udfff" for word in words for letter in word):
        return "a word in it holds half a letter (a surrogate)"
    twice = next((word for word, count in Counter(words).items() if count > 1), None)
    return None if twice is None else f'it has "{twice}" twice'


def file_in(folder: Path) -> Path:
    """Where a run keeps its vocabulary."""
    return folder / "vocabulary.json"
