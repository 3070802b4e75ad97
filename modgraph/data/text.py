"""Language modelling: predict the next word, or the next piece of one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.data.declaration import TRAIN, VALIDATION, Arrays, DataSet, check_splits
from modgraph.data.errors import VocabularyDoesNotFit, bad_file, does_not_fit
from modgraph.data.files import cut_off, find_file_of_extra, read_text, spread
from modgraph.data.tokenizer import Tokenizer, describe_pieces
from modgraph.data.vocabulary import Vocabulary, describe_words
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, name_length
from modgraph.types import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

END = "<eos>"
WORD_OR_SIGN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|\S")
Words = tuple[str, ...]
BPE = "bpe"


def words_of_file(path: str) -> Words:
    """Read the words of a file, split at blanks, with `<eos>` at the end of each line, as in the Penn Treebank's files.
    Raises `ModgraphError`."""
    lines = read_text(path).replace("\r\n", "\n").removesuffix("\n").split("\n")
    words = tuple(word for line in lines for word in (*line.split(), END))
    if len(words) == len(lines):
        raise bad_file(path, "it has no words")
    return words


@cache
def read_king_james() -> Words:
    """Read the King James Bible, in lower case, signs apart from words, `<eos>` at the end of each verse. Raises
    `ModgraphError` if its package is missing."""
    verses = [verse.lower() for verse in _read_verses()]
    return tuple(word for verse in verses for word in (*WORD_OR_SIGN.findall(verse), END))


def _read_verses() -> list[str]:
    path = "bible/data/kjv.jsonl"  # the package's own reader needs pkg_resources, which setuptools no longer brings
    path = find_file_of_extra("texts", path, "the King James Bible", "name files: data.train")
    return [json.loads(line)["text"] for line in read_text(path).splitlines()]


def letters_of_file(path: str) -> str:
    """Read the text of a file, with one kind of line ends. Raises `ModgraphError`."""
    text = read_text(path).replace("\r\n", "\n")
    if not text:
        raise bad_file(path, "it is empty")
    return text


class Text(DataSet, name="text"):
    """Windows of a text: `words`, and as target `next` the words that follow.

    The vocabulary has the size of the spec's `words`: the most frequent of the training text, and `<unk>` for the rest.
    A run keeps it, as vocabulary.json. With `units: bpe`, or a `tokenizer`, words are pieces of words, blanks included,
    and the run keeps tokenizer.json. Windows follow each other without overlap and stay the same throughout a run;
    the last of a text may be shorter.
    """

    kept = "vocabulary"

    train: str | None = setting(
        None,
        path=True,
        doc="training text: words between blanks, sentences in lines; the King James Bible if not given",
    )
    validation: str | None = setting(None, path=True, doc="validation text; a part of the training text if not given")
    test: str | None = setting(None, path=True, doc="test text; a part of the training text if not given")
    validation_fraction: float = setting(
        0.05, min=0, max=0.4, doc="share of the training text for validation if it has no file; or 0"
    )
    test_fraction: float = setting(
        0.05, min=0.001, max=0.4, doc="share at the end of the training text for the test if it has no file"
    )
    parts: int = setting(
        1, min=1, max=10_000, doc="take those shares at the end of each of so many equal parts of the training text"
    )
    window: int = setting(35, min=1, max=100_000, doc="words in an example")
    limit: int | None = setting(None, min=1, doc="train on so many windows only, spread over the text")
    vocabulary: str | None = setting(
        None, path=True, doc="a JSON list of words that includes <unk>, instead of the most frequent words"
    )
    units: str = setting(
        "words",
        choices=("words", BPE),
        doc="words, or pieces of words by a tokenizer trained on the training text (bpe)",
    )
    tokenizer: str | None = setting(
        None, path=True, doc="a tokenizer.json that gives the pieces, instead of a trained one"
    )

    def contradiction(self) -> str | None:
        if self.vocabulary is not None and self._has_pieces:
            return "cannot combine vocabulary with pieces of words; give a tokenizer"
        return None

    @property
    def _has_pieces(self) -> bool:
        return self.units == BPE or self.tokenizer is not None

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        texts = self._texts()
        vocabulary = self._vocabulary(graph, texts[TRAIN])
        ids = {split: self._ids(text, vocabulary, split) for split, text in texts.items()}
        made = {split: self._windows(each, graph) for split, each in ids.items()}
        made[TRAIN] = made[TRAIN].take(spread(len(made[TRAIN]), self.limit))
        if isinstance(vocabulary, Tokenizer) and (characters := vocabulary.characters):
            made = {split: replace(each, characters={"next": characters}) for split, each in made.items()}
        return check_splits(made, graph)

    def follows(self) -> dict[str, str]:
        return {"next": "words"}

    def extras(self) -> tuple[str, ...]:
        return (*(() if self.train else ("texts",)), *(("tokenizers",) if self._has_pieces else ()))

    def keeps(self, graph: Graph) -> dict[str, bytes]:
        kept = "tokenizer" if self._has_pieces else self.kept
        return {f"{kept}.json": self._vocabulary(graph, self._texts()[TRAIN]).as_json()}

    def with_kept_files(self, folder: Path) -> DataSet:
        path = folder / "tokenizer.json"
        return replace(self, tokenizer=str(path)) if path.exists() else super().with_kept_files(folder)

    def description(self) -> dict[str, Any]:
        if self.tokenizer is not None:
            tokenizer = Tokenizer.read(self.tokenizer)
            names, pieces = list(tokenizer.pieces), describe_pieces(tokenizer)
            return {"classes": {"next": names}, "words": {"words": names}, "preprocessing": {"words": pieces}}
        if self.vocabulary is None:
            return {}
        made, of_file = "split at blanks" if self.train else "in lower case, signs apart", self.train is not None
        how = f"the place of each word in the list of words; {made}, <eos> ends a line, <unk> is any other word"
        facts = describe_words(how, "blanks" if of_file else "signs", lower=not of_file, end=END)
        words = list(Vocabulary.read(self.vocabulary).words)
        return {"classes": {"next": words}, "words": {"words": words}, "preprocessing": {"words": facts}}

    def _texts(self) -> dict[str, Words] | dict[str, str]:
        """Return the words of each split, or its letters for a tokenizer. A split without a file is the end of the
        training text. Raises `ModgraphError`."""
        read: Any = letters_of_file if self._has_pieces else words_of_file
        bible: Any = _join_verses if self._has_pieces else read_king_james
        whole = read(self.train) if self.train else bible()
        texts = cut_off(self, whole, read, self.parts)
        for name, text in texts.items():
            if len(text) < 2 and (text or name != VALIDATION):
                raise self._too_short(f"{len(whole)} {'letters' if self._has_pieces else 'words'}", name, len(text))
        return {name: text for name, text in texts.items() if text}

    def _too_short(self, has: str, split: str, count: int) -> ModgraphError:
        way_out = "use a longer text, or set data.validation_fraction and data.test_fraction"
        return bad_file(str(self.train), f"{has} are too few: {split} would have {count}", way_out)

    def _ids(self, text: Words | str, vocabulary: Vocabulary | Tokenizer, split: str) -> NDArray[Any]:
        ids: NDArray[Any] = vocabulary.ids_of(text)  # type: ignore[arg-type] # letters for a tokenizer, else words
        if len(ids) < 2:
            raise self._too_short(f"{len(text)} letters", split, len(ids))
        return ids

    def _vocabulary(self, graph: Graph, train: Words | str) -> Vocabulary | Tokenizer:
        size = _size_of(graph.input_types.get("words"), "words", "token")
        following = _size_of(graph.target_types.get("next"), "next", "class")
        if size != following:
            raise does_not_fit(f'"words" has {size} words and "next" {following}', "give both the same number")
        found: Vocabulary | Tokenizer
        if self.tokenizer is not None:
            found, source = Tokenizer.read(self.tokenizer), f'"{self.tokenizer}"'
            found = found.fill(size) if len(found) < size else found
        elif isinstance(train, str):
            found, source = Tokenizer.train(train, size), "the training text"
        elif self.vocabulary is not None:
            found, source = Vocabulary.read(self.vocabulary), f'"{self.vocabulary}"'
        else:
            found, source = Vocabulary.most_frequent(train, size), "the training text"
        units = "pieces" if isinstance(found, Tokenizer) else "words, <unk> included"
        if len(found) != size:
            raise ModgraphError([VocabularyDoesNotFit(source=source, words=len(found), units=units, size=size)])
        return found

    def _windows(self, ids: NDArray[Any], graph: Graph) -> Arrays:
        """Return `words` and `next` [windows, window]. Where the axis has any length, the last may be shorter."""
        import numpy as np

        count, length = len(ids) - 1, self.window
        lengths = np.full(-(-count // length), length)
        lengths[-1] -= len(lengths) * length - count
        padded = np.zeros((2, len(lengths) * length), np.int64)
        padded[0, :count], padded[1, :count] = ids[:-1], ids[1:]
        words, following = padded.reshape(2, -1, length)
        arrays, axes = {"words": words, "next": following}, graph.input_types["words"].padded
        if not axes:
            return Arrays(arrays).take(np.flatnonzero(lengths == length))
        return Arrays({**arrays, name_length(graph, axes[0]): lengths})


@cache
def _join_verses() -> str:
    return "\n".join(_read_verses())


def _size_of(type_: TensorType | None, name: str, dtype: str) -> int:
    if type_ is None or type_.dtype != dtype or type_.size is None:
        reason = f'a text gives "{name}", {dtype}[time, vocabulary]; the spec has {type_ or "nothing of that name"}'
        raise does_not_fit(reason, "input words: token[time, vocabulary], target next: class[time, vocabulary]")
    return type_.size
