"""Files of sentences with a line for each token: CoNLL-U, and columns as those of CoNLL-2000 and 2003."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from modgraph.data.errors import BadDataFile
from modgraph.data.text_files import read_text
from modgraph.diagnostics import ModgraphError

NONE = "_"  # of CoNLL-U: a token has nothing there
COLUMNS = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC".split()
PAIRS = ("FEATS", "MISC")  # columns that hold name=value|name=value
NO_TOKEN = re.compile(r"[0-9]+[-.][0-9]+")  # IDs of multiword tokens and of empty nodes
DOCUMENT = "-DOCSTART-"  # of CoNLL-2003, in the place of a word
Row = tuple[int, list[str]]  # a line's number, from 1, and its cells


@dataclass(frozen=True)
class Tokens:
    """The tokens of sentences, one after another: words, labels by the columns asked for, and lines of the file, from
    1; `lengths` are those of the sentences."""

    words: Sequence[str]
    labels: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    lengths: NDArray[np.int64]

    def take(self, sentences: NDArray[np.int64] | slice) -> Tokens:
        """Some of the sentences, as they stand."""
        chosen = np.zeros(len(self.lengths), bool)
        chosen[sentences] = True
        here = np.repeat(chosen, self.lengths)
        labels = {column: list(compress(each, here)) for column, each in self.labels.items()}
        words, lines = list(compress(self.words, here)), list(compress(self.lines, here))
        return Tokens(words, labels, lines, self.lengths[chosen])


def is_universal(path: str) -> bool:
    """Whether a file is CoNLL-U, which its name tells; others hold columns between blanks."""
    return path.endswith(".conllu")


def unknown_column(column: str, universal: bool) -> str | None:
    """What is wrong with the name of a column, or None."""
    if not universal:
        numbered = column.isdecimal() and int(column) > 0
        return None if numbered else f"{column} is no column, which are told by number, from 1"
    name, dot, inside = column.partition(".")
    if name.upper() not in COLUMNS or (dot and (name.upper() not in PAIRS or not inside)):
        return f"{column} is no column: they are {', '.join(COLUMNS)}, and such as Feats.Gender and Misc.NAME"
    return None


def read_tokens(path: str, columns: Sequence[str], word: int = 1) -> Tokens:
    """The tokens of a file with some of its columns; the word stands in column `word` where it is no CoNLL-U.

    Raises `ModgraphError` with the first line that is wrong.
    """
    universal = is_universal(path)
    most = max(word, *map(int, columns), 1) if not universal else len(COLUMNS)
    sentences = [each for each in _sentences(path, _universal if universal else _columns(most)) if each]
    if not sentences:
        raise _bad(path, "it holds no sentences")
    rows = [row for sentence in sentences for row in sentence]
    labels = {column: _labels(path, rows, column, universal) for column in columns}
    words = [cells[1 if universal else word - 1] for _, cells in rows]
    return Tokens(words, labels, [number for number, _ in rows], np.array([len(each) for each in sentences]))


def _sentences(path: str, kept: Callable[[list[Row], str], list[str] | str | None]) -> Iterator[list[Row]]:
    """The rows of each sentence. Of a line `kept` says its cells, what is wrong with it, or None: it is no token."""
    rows: list[Row] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        text = line.rstrip("\r")
        if not text.strip():
            yield rows
            rows = []
            continue
        cells = kept(rows, text)
        if isinstance(cells, str):
            raise _bad(path, f"line {number} {cells}")
        if cells is not None:
            rows.append((number, cells))
    yield rows


def _universal(rows: list[Row], line: str) -> list[str] | str | None:
    """A line of CoNLL-U. Multiword tokens, empty nodes and comments are no tokens."""
    if line.startswith("#"):
        return None
    cells = line.split("\t")
    if len(cells) != len(COLUMNS):
        return f"has {len(cells)} columns between tabs, not {len(COLUMNS)}"
    if NO_TOKEN.fullmatch(cells[0]):
        return None
    return cells if cells[0] == str(len(rows) + 1) else f'has the ID "{cells[0]}", not {len(rows) + 1}'


def _columns(most: int) -> Callable[[list[Row], str], list[str] | str | None]:
    """Lines of columns between blanks, at least so many."""

    def kept(rows: list[Row], line: str) -> list[str] | str | None:
        cells = line.split()
        if cells[0] == DOCUMENT:
            return None
        return cells if len(cells) >= most else f"has {len(cells)} columns, and column {most} is asked for"

    return kept


def _labels(path: str, rows: Sequence[Row], column: str, universal: bool) -> list[str]:
    """What a column holds. Raises `ModgraphError`."""
    if not universal:
        return [cells[int(column) - 1] for _, cells in rows]
    name, _, inside = column.partition(".")
    at = COLUMNS.index(name.upper())
    if not inside:
        return [cells[at] for _, cells in rows]
    return [_pairs(path, number, cells[at]).get(inside, NONE) for number, cells in rows]


def _pairs(path: str, number: int, cell: str) -> Mapping[str, str]:
    """What `Gender=Fem|Number=Sing` says. Raises `ModgraphError`."""
    found = _among(cell)
    if found is None:
        raise _bad(path, f'line {number}: "{cell}" is no NAME=VALUE|NAME=VALUE')
    return found


@lru_cache(maxsize=10_000)
def _among(cell: str) -> Mapping[str, str] | None:
    pairs = [] if cell == NONE else [each.partition("=") for each in cell.split("|")]
    return {name: value for name, _, value in pairs} if all(equals for _, equals, _ in pairs) else None


def _bad(path: str, reason: str) -> ModgraphError:
    way_out = "it is CoNLL-U if it is called .conllu, and else has a word a line, columns between blanks, and an empty "
    return ModgraphError([BadDataFile(path=path, reason=reason, way_out=f"{way_out}line after each sentence")])
