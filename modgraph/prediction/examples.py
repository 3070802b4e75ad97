"""Files as examples of a model: images, arrays, tables and lines of text, prepared as the data of its training were."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
from modgraph_runtime import BundleError, Port
from modgraph_runtime.arrays import read_arrays
from modgraph_runtime.ports import LENGTH, Array, Inputs

from modgraph.data.files import read_text, reading
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.files import exists, open_file
from modgraph.log import log
from modgraph.prediction.errors import DoesNotFitInput, NotAnInput, NoWayFrom
from modgraph.prediction.facts import Facts
from modgraph.prediction.images import prepare_image
from modgraph.prediction.texts import ids_of, split_words

IMAGES, ARRAY, ARRAYS, TABLE, TEXT = (".png", ".jpg", ".jpeg"), ".npy", ".npz", ".csv", ".txt"
STDIN = "-"
TOGETHER = 64  # images that are read before they are computed


@dataclass(frozen=True)
class Examples:
    """Some examples: where each comes from, and arrays as the model takes them, the examples first."""

    sources: Sequence[str]
    arrays: Mapping[str, Array]


def read_examples(paths: Iterable[str], facts: Facts) -> Iterator[Examples]:
    """The examples of files, and of the images in folders. Raises `ModgraphError`."""
    for suffix, files in groupby(_list_files(paths), _kind_of):
        every = list(files)
        if suffix in IMAGES:
            for at in range(0, len(every), TOGETHER):
                yield _images(every[at : at + TOGETHER], facts)
        else:
            readers = {ARRAY: _array, ARRAYS: _arrays, TABLE: _table, TEXT: _lines}
            yield from (readers[suffix](path, facts) for path in every)


def examples_of(arrays: Mapping[str, Array], facts: Facts, source: str = "the arrays") -> Examples:
    """Arrays by input, examples first. Raises `ModgraphError` where they do not fit."""
    with _fitting(source, facts):
        fitted, _ = Inputs(facts.inputs, facts.longest).fit(arrays)
    count = len(next(iter(fitted.values())))
    return Examples([f"{source}[{at}]" for at in range(count)], fitted)


def _kind_of(path: str) -> str:
    suffix = Path(path).suffix.lower()
    return IMAGES[0] if suffix in IMAGES else TEXT if path == STDIN else suffix


def _list_files(paths: Iterable[str]) -> Iterator[str]:
    """Paths of files, with those of the images in folders, by name. Raises `ModgraphError` for what is none."""
    for path in paths:
        if path != STDIN and not exists(path):
            raise ModgraphError([NotAnInput(path=path, reason="there is no such file", way_out="check the path")])
        if path != STDIN and Path(path).is_dir():
            found = [str(each) for each in sorted(Path(path).rglob("*")) if each.suffix.lower() in IMAGES]
            if not found:
                raise ModgraphError([NotAnInput(path=path, reason=f"the folder has no image ({', '.join(IMAGES)})")])
            yield from found
            continue
        if _kind_of(path) not in (*IMAGES, ARRAY, ARRAYS, TABLE, TEXT):
            raise ModgraphError([NotAnInput(path=path, reason="its name says neither image, array, table nor text")])
        yield path


@contextmanager
def _fitting(path: str, facts: Facts) -> Iterator[None]:
    """Within it, what does not fit the inputs is reported. Raises `ModgraphError`."""
    try:
        yield
    except BundleError as error:
        way_out = error.way_out or DoesNotFitInput.way_out.format(inputs=facts.takes)
        raise ModgraphError(
            [DoesNotFitInput(path=path, origin=facts.origin, reason=error.reason, way_out=way_out)]
        ) from error


def _no_way(path: str, what: str, reason: str, facts: Facts) -> ModgraphError:
    return ModgraphError([NoWayFrom(path=path, what=what, origin=facts.origin, reason=reason, inputs=facts.takes)])


# ------------------------------------------------------------ images and arrays


def _images(paths: Sequence[str], facts: Facts) -> Examples:
    name = facts.image_input()
    if name is None:
        reason = "no description of how an image becomes its one input"
        raise _no_way(paths[0], "an image", reason, facts)
    how, port = facts.preprocessing[name], facts.inputs[name]
    log.debug(f"{name} {port}: {how.get('words', how)}")
    images, negatives = zip(*(prepare_image(path, port, how) for path in paths), strict=True)
    if any(negatives):
        count = f"{sum(negatives)} of {len(paths)}"
        log.info(f"note: negatives are taken of {count} images, which have a light ground: the model knows dark ones")
    return Examples(paths, {name: np.stack(images)})


def _arrays(path: str, facts: Facts) -> Examples:
    with _fitting(path, facts):
        found = {name: each for name, each in read_arrays(path).items() if name not in facts.ignored}
    return examples_of(found, facts, path)


def _array(path: str, facts: Facts) -> Examples:
    """The one input of a model; of a single example, whose axis of examples may be missing."""
    (name, port), *others = facts.needed.items()
    if others:
        raise _no_way(path, "a single array", "several inputs", facts)
    with reading(path), open_file(path) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
    return examples_of({name: array[None] if array.ndim == len(port.shape) else array}, facts, path)


# ------------------------------------------------------------ texts


def _lines(path: str, facts: Facts) -> Examples:
    """An example for each line that is not empty."""
    names = facts.text_inputs()
    if sorted(names) != sorted(facts.needed):
        raise _no_way(path, "a text", "no description of how a text becomes its inputs", facts)
    text = sys.stdin.read() if path == STDIN else read_text(path)
    lines = [(f"{path}:{number}", line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise ModgraphError([NotAnInput(path=path, reason="it has no lines", way_out="write a text in each line")])
    arrays = text_arrays([line for _, line in lines], names, facts)
    with _fitting(path, facts):
        fitted, _ = Inputs(facts.inputs, facts.longest).fit(arrays)
    return Examples([source for source, _ in lines], fitted)


def text_arrays(texts: Sequence[str], names: Sequence[str], facts: Facts) -> dict[str, Array]:
    """Texts as ids by input, padded behind the end of each, with the lengths of examples."""
    found: dict[str, Array] = {}
    for name in names:
        how, port = facts.preprocessing[name], facts.inputs[name]
        rows = [ids_of(split_words(text, how), facts.words[name], how) for text in texts]
        longest = max(1, *map(len, rows))
        found[name] = np.array([[*row, *[0] * (longest - len(row))] for row in rows], np.int64)
        for length, each in facts.inputs.items():
            if each.dtype == LENGTH and each.along == port.shape[0]:
                found[length] = np.array([*map(len, rows)], np.int64)
        if isinstance(port.shape[0], int):
            _refuse_other_lengths(rows, port, facts)
    return found


def _refuse_other_lengths(rows: Sequence[Sequence[int]], port: Port, facts: Facts) -> None:
    for number, row in enumerate(rows, start=1):
        if len(row) != port.shape[0]:
            reason = f'"{port.name}" needs {port.shape[0]} words, and text {number} has {len(row)}'
            way_out = "give texts of that length, or let the spec have an axis of any length: token[time, …]"
            raise ModgraphError(
                [DoesNotFitInput(path=f"text {number}", origin=facts.origin, reason=reason, way_out=way_out)]
            )


# ------------------------------------------------------------ tables


def _table(path: str, facts: Facts) -> Examples:
    """The rows of a CSV file. Columns are named after inputs, those of a vector x by x.0, x.1, …; where the one input
    is a vector and no column is named so, all columns are it, in their order."""
    rows = list(csv.reader(io.StringIO(read_text(path))))
    rows = [row for row in rows if row]
    header = [] if not rows or all(map(_is_number, rows[0])) else [cell.strip() for cell in rows.pop(0)]
    if not rows:
        raise ModgraphError([NotAnInput(path=path, reason="it has no rows", way_out="give an example in each row")])
    refuse = partial(_refuse_cell, path, facts, bool(header))
    for number, row in enumerate(rows):
        if len(row) != len(header or rows[0]):
            refuse(number, f"has {len(row)} cells, and {len(header or rows[0])} are expected")
    found: dict[str, Array] = {}
    for name, columns in _columns_of(path, header, len(rows[0]), facts).items():
        cells, port = [[row[at] for at in columns] for row in rows], facts.inputs[name]
        if name in facts.text_inputs():
            found |= text_arrays([cell for (cell,) in cells], [name], facts)
            continue
        for number, row in enumerate(cells):
            if wrong := [cell for cell in row if not _is_number(cell)]:
                refuse(number, f'has "{wrong[0]}" for "{name}", which is no number')
        numbers = np.array([[*map(float, row)] for row in cells]).reshape(len(rows), *port.shape)
        found[name] = numbers if port.dtype == "float" else numbers.astype(np.int64)
    with _fitting(path, facts):
        fitted, _ = Inputs(facts.inputs, facts.longest).fit(found)
    return Examples([f"{path}:{number + 1 + bool(header)}" for number in range(len(rows))], fitted)


def _columns_of(path: str, header: Sequence[str], width: int, facts: Facts) -> dict[str, list[int]]:
    """The columns of each input. Raises `ModgraphError` where one has none."""
    found: dict[str, list[int]] = {}
    texts, needed = facts.text_inputs(), facts.needed
    for name, port in needed.items():
        size = math.prod(axis for axis in port.shape if isinstance(axis, int))
        names = [name] if not port.shape or name in texts else [f"{name}.{at}" for at in range(size)]
        if all(each in header for each in names):
            found[name] = [header.index(each) for each in names]
        elif len(needed) == 1 and all(isinstance(axis, int) for axis in port.shape) and width == size:
            found[name] = list(range(width))
        else:
            reason = f'it has no column "{next((each for each in names if each not in header), name)}"'
            way_out = did_you_mean(name, header, "its columns are: {known}") if header else "name the columns first"
            raise ModgraphError([DoesNotFitInput(path=path, origin=facts.origin, reason=reason, way_out=way_out)])
    read = {at for columns in found.values() for at in columns}
    if left := [name for at, name in enumerate(header) if at not in read and name not in facts.ignored]:
        log.info(f"{path}: columns that are no inputs are left out: {', '.join(left)}")
    return found


def _refuse_cell(path: str, facts: Facts, has_header: bool, number: int, problem: str) -> None:
    reason, way_out = f"row {number + 1 + has_header} {problem}", "correct that row"
    raise ModgraphError([DoesNotFitInput(path=path, origin=facts.origin, reason=reason, way_out=way_out)])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
