"""The rows of a table as examples of a model."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from modgraph_runtime.ports import Array, Inputs

from modgraph.data.files import read_text
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.log import log
from modgraph.prediction.errors import DoesNotFitInput, NotAnInput
from modgraph.prediction.examples import Examples, reporting_misfits, text_arrays
from modgraph.prediction.facts import Facts


def read_table(path: str, facts: Facts) -> Examples:
    """The rows of a CSV file. Columns are named after inputs, those of a vector x by x.0, x.1, …; where the one input
    is a vector and no column is named so, all columns are it, in their order."""
    try:
        rows = list(csv.reader(io.StringIO(read_text(path))))
    except csv.Error as error:
        raise ModgraphError(
            [NotAnInput(path=path, reason=str(error), way_out="save it as a plain CSV file")]
        ) from error
    rows = [row for row in rows if row]
    header = [] if not rows or all(map(_is_number, rows[0])) else [cell.strip() for cell in rows.pop(0)]
    if not rows:
        raise ModgraphError([NotAnInput(path=path, reason="it has no rows", way_out="give an example in each row")])
    refuse = partial(_refuse_cell, path, facts, bool(header))
    for number, row in enumerate(rows):
        if len(row) != len(header or rows[0]):
            refuse(number, f"must have {len(header or rows[0])} cells, not {len(row)}")
    found: dict[str, Array] = {}
    for name, columns in _columns_of(path, header, len(rows[0]), facts).items():
        cells, port = [[row[at] for at in columns] for row in rows], facts.inputs[name]
        if name in facts.text_inputs():
            found |= text_arrays([cell for (cell,) in cells], [name], facts)
            continue
        for number, row in enumerate(cells):
            is_fitting, kind = (_is_number, "number") if port.dtype == "float" else (_is_whole, "whole number")
            if wrong := [cell for cell in row if not is_fitting(cell)]:
                refuse(number, f'must have a {kind} for "{name}", not "{wrong[0]}"')
        numbers = np.array([[*map(float, row)] for row in cells]).reshape(len(rows), *port.shape)
        found[name] = numbers if port.dtype == "float" else numbers.astype(np.int64)
    with reporting_misfits(path, facts):
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
        log.info(f"{path}: columns without an input are left out: {', '.join(left)}")
    return found


def _refuse_cell(path: str, facts: Facts, has_header: bool, number: int, problem: str) -> None:
    reason, way_out = f"row {number + 1 + has_header} {problem}", "correct that row"
    raise ModgraphError([DoesNotFitInput(path=path, origin=facts.origin, reason=reason, way_out=way_out)])


def _is_whole(cell: str) -> bool:
    return cell.strip().lstrip("-").isdecimal() and len(cell) < 19  # as int64 has them


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
