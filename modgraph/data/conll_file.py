"""Files of sentences with a line for each token: CoNLL-U, and columns as in CoNLL-2000 and 2003."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING

from modgraph.data.errors import bad_file
from modgraph.data.files import read_text
from modgraph.diagnostics import ModgraphError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NONE = "_"  # an empty cell of CoNLL-U
COLUMNS = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC".split()
PAIRS = ("FEATS", "MISC")  # columns that hold name=value|name=value
NO_TOKEN = re.compile(r"[0-9]+[-.][0-9]+")  # IDs of multiword tokens and of empty nodes
DOCUMENT = "-DOCSTART-"  # marks documents in CoNLL-2003, in the column of words


@dataclass(frozen=True)
class Tokens:
    """The tokens of sentences, concatenated: words, labels by column, and line numbers from 1. `lengths` are those of
    the sentences."""

    words: Sequence[str]
    labels: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, sentences: NDArray[np.int64] | slice) -> Tokens:
        """Return some of the sentences, in their order."""
        import numpy as np

        mask = np.zeros(len(self.lengths), bool)
        mask[sentences] = True
        here = np.repeat(mask, self.lengths)
        labels = {column: list(compress(each, here)) for column, each in self.labels.items()}
        words, lines = list(compress(self.words, here)), list(compress(self.lines, here))
        return Tokens(words, labels, lines, self.lengths[mask])


def is_universal(path: str) -> bool:
    """Whether a file is CoNLL-U, by its name; other files have columns between blanks."""
    return path.endswith(".conllu")


def explain_unknown_column(column: str, universal: bool) -> str | None:
    """Return the problem with the name of a column, or None."""
    if not universal:
        numbered = column.isdecimal() and int(column) > 0
        return None if numbered else f"{column} is no column, they are numbers from 1"
    name, dot, inside = column.partition(".")
    if name.upper() not in COLUMNS or (dot and (name.upper() not in PAIRS or not inside)):
        return f"{column} is no column: they are {', '.join(COLUMNS)}, and such as Feats.Gender and Misc.NAME"
    return None


def read_tokens(path: str, columns: Sequence[str], word: int = 1) -> Tokens:
    """Read the tokens of a file with some of its columns. `word` is the column of the words where it is not CoNLL-U.
    Raises `ModgraphError` for the first wrong line."""
    import numpy as np

    universal = is_universal(path)
    most = len(COLUMNS) if universal else max(word, *map(int, columns), 1)
    rows: list[list[str]] = []
    lines, boundaries = [], [0]
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            boundaries.append(len(rows))
            continue
        cells = _cells(line.rstrip("\r"), universal, len(rows) - boundaries[-1] + 1, most)
        if isinstance(cells, str):
            raise _bad(path, f"line {number} {cells}")
        if cells is not None:
            rows.append(cells)
            lines.append(number)
    if not rows:
        raise _bad(path, "it has no sentences")
    lengths = np.diff([*boundaries, len(rows)])
    labels = {column: _labels(path, rows, lines, column, universal) for column in columns}
    words = [cells[1 if universal else word - 1] for cells in rows]
    return Tokens(words, labels, lines, lengths[lengths > 0])


def _cells(line: str, universal: bool, place: int, most: int) -> list[str] | str | None:
    """Return the cells of a line that is the token at a place of its sentence, a problem, or None: comments, multiword
    tokens and empty nodes are no tokens."""
    cells = line.split("\t") if universal else line.split()
    if line.startswith("#") if universal else cells[0] == DOCUMENT:
        return None
    if not universal:
        return cells if len(cells) >= most else f"has {len(cells)} columns, but the recipe names column {most}"
    if len(cells) != most:
        return f"has {len(cells)} columns between tabs, not {most}"
    if NO_TOKEN.fullmatch(cells[0]):
        return None
    return cells if cells[0] == str(place) else f'has the ID "{cells[0]}", not {place}'


def _labels(path: str, rows: Sequence[Sequence[str]], lines: Sequence[int], column: str, universal: bool) -> list[str]:
    name, _, inside = column.partition(".")
    found = [cells[COLUMNS.index(name.upper()) if universal else int(column) - 1] for cells in rows]
    if not universal or not inside:
        return found
    pairs = list(map(_pairs, found))
    if None in pairs:
        at = pairs.index(None)
        raise _bad(path, f'line {lines[at]}: "{found[at]}" is no NAME=VALUE|NAME=VALUE')
    return [each.get(inside, NONE) for each in pairs if each is not None]


@lru_cache(maxsize=10_000)
def _pairs(cell: str) -> Mapping[str, str] | None:
    """Parse `Gender=Fem|Number=Sing`; None if the cell has another format."""
    pairs = [] if cell == NONE else [each.partition("=") for each in cell.split("|")]
    return {name: value for name, _, value in pairs} if all(equals for _, equals, _ in pairs) else None


def _bad(path: str, reason: str) -> ModgraphError:
    way_out = "name CoNLL-U files .conllu; others have a word a line, columns between blanks, and an empty "
    return bad_file(path, reason, f"{way_out}line after each sentence")
