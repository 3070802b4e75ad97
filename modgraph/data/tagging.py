"""What a tagger knows: words, their endings, and the classes of each target; a run keeps it as tagging.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.conll_file import NONE
from modgraph.data.errors import BadDataFile
from modgraph.data.text_files import read_text
from modgraph.data.vocabulary import Vocabulary, problem_of
from modgraph.diagnostics import ModgraphError

MISSING = -1
LETTERS = 3  # of an ending


@dataclass(frozen=True)
class Tagging:
    """Vocabularies by the input of ids, names of classes by target."""

    words: Mapping[str, Vocabulary]
    classes: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, path: str) -> Tagging:
        """What a run has kept. Raises `ModgraphError`."""
        try:
            record = json.loads(read_text(path))
        except (ValueError, RecursionError):
            record = None
        reason = _wrong(record)
        if reason is not None:
            way_out = "it has words by input and classes by target, lists of text, as runs keep it in tagging.json"
            raise ModgraphError([BadDataFile(path=path, reason=reason, way_out=way_out)])
        words = {name: Vocabulary(tuple(each)) for name, each in record["words"].items()}
        return cls(words, {name: tuple(each) for name, each in record["classes"].items()})

    def as_json(self) -> bytes:
        words = {name: list(each.words) for name, each in self.words.items()}
        record = {"words": words, "classes": {name: list(each) for name, each in self.classes.items()}}
        return (json.dumps(record, indent=0, ensure_ascii=False) + "\n").encode()


def _wrong(record: Any) -> str | None:
    """What is wrong with the content of such a file, or None."""
    words, classes = (record.get(key) for key in ("words", "classes")) if isinstance(record, dict) else (None, None)
    if not isinstance(words, dict) or not isinstance(classes, dict):
        return "it holds no words and classes"
    for each in words.values():
        if (problem := problem_of(each)) is not None:
            return problem
    lists = all(isinstance(each, list) and all(isinstance(name, str) for name in each) for each in classes.values())
    return None if lists else "the classes of a target are no list of names"


def endings_of(words: Sequence[str]) -> list[str]:
    """The last letters of words."""
    return [word[-LETTERS:] for word in words]


def classes_of(labels: Sequence[str], least: int, missing: bool) -> tuple[str, ...]:
    """The classes of a column by name: what occurs so often; for the rest one of its own, unless that is missing."""
    names, counts = np.unique(np.array(labels), return_counts=True)
    kept = {str(name) for name, count in zip(names, counts, strict=True) if count >= least and name != NONE}
    rest = not missing and len(kept) < len(names)
    return tuple(sorted({*kept, NONE} if rest else kept))


def ids_of(labels: Sequence[str], classes: Sequence[str]) -> NDArray[np.int64]:
    """The class of each label; of one that is none, that of `_`, or −1 where there is no such class."""
    known = {name: number for number, name in enumerate(classes)}
    rest = known.get(NONE, MISSING)
    return np.fromiter((known.get(label, rest) for label in labels), np.int64, len(labels))
