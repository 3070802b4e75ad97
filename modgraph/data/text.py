"""Word-level language modelling: which word comes next?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.cuts import cut_off, spread
from modgraph.data.declaration import TRAIN, VALIDATION, Arrays, DataSet, check
from modgraph.data.errors import BadDataFile, DataDoesNotFit, VocabularyDoesNotFit
from modgraph.data.preprocessing import of_words
from modgraph.data.text_files import END, king_james, words_of_file
from modgraph.data.vocabulary import Vocabulary, file_in
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, length_name
from modgraph.types import TensorType

Words = tuple[str, ...]


class Text(DataSet):
    """Windows of a text: `words`, and as target `next` the words that follow. The vocabulary has the size of the spec's
    `words`: the most frequent of the training text, and `<unk>` for the rest. A run keeps it, as vocabulary.json.

    Windows follow each other without overlap and stay the same throughout a run; the last of a text may be shorter.
    """

    name = "text"

    train: str | None = setting(
        None,
        path=True,
        doc="the text to learn from: words between blanks, sentences in lines; the King James Bible if not given",
    )
    validation: str | None = setting(None, path=True, doc="the text to watch meanwhile; part of the other if not given")
    test: str | None = setting(None, path=True, doc="the text to test on; part of the other if not given")
    validation_fraction: float = setting(0.05, min=0, max=0.4, doc="share cut off for it where there is no file; or 0")
    test_fraction: float = setting(0.05, min=0.001, max=0.4, doc="share at the end for it where there is no file")
    window: int = setting(35, min=1, max=100_000, doc="words of an example")
    limit: int | None = setting(None, min=1, doc="learn from so many windows only, spread over the text")
    vocabulary: str | None = setting(
        None, path=True, doc="a JSON list of words, <unk> among them, instead of the most frequent"
    )

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        texts = self._texts()
        vocabulary = self._vocabulary(graph, texts[TRAIN])
        lengths = _lengths_of_windows(graph)
        made = {split: self._windows(vocabulary.ids_of(words), lengths) for split, words in texts.items()}
        made[TRAIN] = self._limited(made[TRAIN])
        return {split: check(arrays, graph, split) for split, arrays in made.items()}

    def keeps(self, graph: Graph) -> dict[str, bytes]:
        return {file_in(Path()).name: self._vocabulary(graph, self._texts()[TRAIN]).as_json()}

    def kept_in(self, folder: Path) -> DataSet:
        path = file_in(folder)
        return replace(self, vocabulary=str(path)) if path.exists() else self

    def description(self) -> dict[str, Any]:
        if self.vocabulary is None:
            return {}
        made = "split at blanks" if self.train else "in lower case, signs apart"
        how = f"the place of each word in the list of words; {made}, <eos> ends a line, <unk> is any other word"
        of_file = self.train is not None
        facts = of_words(how, "blanks" if of_file else "signs", lower=not of_file, end=END)
        words = Vocabulary.read(self.vocabulary).words
        return {"classes": {"next": list(words)}, "words": {"words": list(words)}, "preprocessing": {"words": facts}}

    def _texts(self) -> dict[str, Words]:
        """The words of each split; what has no file is cut off the end of the training text. Raises `ModgraphError`."""
        whole = words_of_file(self.train) if self.train else king_james()
        shares = (0 if self.validation else self.validation_fraction, 0 if self.test else self.test_fraction)
        texts = {split: whole[part] for split, part in cut_off(len(whole), *shares).items()}
        texts |= {name: words_of_file(path) for name, path in self._files().items()}
        short = [name for name, words in texts.items() if len(words) < 2 and (words or name != VALIDATION)]
        if short:
            reason = f"its {len(whole)} words are too few: {short[0]} would have {len(texts[short[0]])}"
            way_out = "take a longer text, or set data.validation_fraction and data.test_fraction"
            raise ModgraphError([BadDataFile(path=str(self.train), reason=reason, way_out=way_out)])
        return {name: words for name, words in texts.items() if words}

    def _files(self) -> dict[str, str]:
        """The files of splits that have one of their own."""
        given = {VALIDATION: self.validation, "test": self.test}
        return {name: path for name, path in given.items() if path is not None}

    def _vocabulary(self, graph: Graph, train: Words) -> Vocabulary:
        size = _size(graph)
        if self.vocabulary is not None:
            found, source = Vocabulary.read(self.vocabulary), f'"{self.vocabulary}"'
        else:
            found, source = Vocabulary.most_frequent(train, size), "the training text"
        if len(found) != size:
            raise ModgraphError([VocabularyDoesNotFit(source=source, words=len(found), size=size)])
        return found

    def _windows(self, ids: NDArray[np.int64], length_input: str | None) -> Arrays:
        """`words` and `next` [windows, window]. Where the axis has no fixed length, the last may be shorter."""
        count, length = len(ids) - 1, self.window
        lengths = np.full(-(-count // length), length)
        lengths[-1] -= len(lengths) * length - count
        padded = np.zeros((2, len(lengths) * length), np.int64)
        padded[0, :count], padded[1, :count] = ids[:-1], ids[1:]
        words, following = padded.reshape(2, -1, length)
        arrays = {"words": words, "next": following}
        if length_input is None:
            return Arrays(arrays).take(np.flatnonzero(lengths == length))
        return Arrays({**arrays, length_input: lengths})

    def _limited(self, train: Arrays) -> Arrays:
        chosen = spread(len(train), self.limit)
        return train if chosen is None else train.take(chosen)


def _lengths_of_windows(graph: Graph) -> str | None:
    """What the lengths of windows are called, none where all are equally long."""
    axes = graph.input_types["words"].padded
    return length_name(graph, axes[0]) if axes else None


def _size(graph: Graph) -> int:
    """How many words the spec knows. Raises `ModgraphError`."""
    words = _size_of(graph.input_types.get("words"), "words", "token")
    following = _size_of(graph.target_types.get("next"), "next", "class")
    if words != following:
        reason = f'"words" knows {words} words and "next" {following}'
        raise ModgraphError([DataDoesNotFit(reason=reason, way_out="give both the same number")])
    return words


def _size_of(type_: TensorType | None, name: str, dtype: str) -> int:
    if type_ is None or type_.dtype != dtype or type_.size is None:
        reason = f'a text gives "{name}", {dtype}[time, vocabulary]; the spec has {type_ or "nothing of that name"}'
        way_out = "input words: token[time, vocabulary], target next: class[time, vocabulary]"
        raise ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out)])
    return type_.size
