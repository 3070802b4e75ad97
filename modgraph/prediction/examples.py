"""Examples of a model: arrays that fit its inputs, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from modgraph_runtime import BundleError, Port
from modgraph_runtime.ports import LENGTH, Array, Inputs

from modgraph.diagnostics import ModgraphError
from modgraph.prediction.errors import DoesNotFitInput
from modgraph.prediction.facts import Facts
from modgraph.prediction.texts import encode_texts


@dataclass(frozen=True)
class Examples:
    """Some examples: their origins, and the model's arrays, examples first."""

    sources: Sequence[str]
    arrays: Mapping[str, Array]


@contextmanager
def reporting_misfits(path: str, facts: Facts) -> Iterator[None]:
    """Within it, what does not fit the inputs is reported. Raises `ModgraphError`."""
    try:
        yield
    except BundleError as error:
        way_out = error.way_out or DoesNotFitInput.way_out.format(inputs=facts.takes)
        raise ModgraphError(
            [DoesNotFitInput(path=path, origin=facts.origin, reason=error.reason, way_out=way_out)]
        ) from error


def examples_of(arrays: Mapping[str, Array], facts: Facts, source: str = "arrays") -> Examples:
    """Check arrays by input, examples first. Raises `ModgraphError` if they do not fit."""
    with reporting_misfits(source, facts):
        fitted, _ = Inputs(facts.inputs, facts.longest).fit(arrays)
    count = len(next(iter(fitted.values())))
    return Examples([f"{source}[{at}]" for at in range(count)], fitted)


def text_arrays(texts: Sequence[str], names: Sequence[str], facts: Facts) -> dict[str, Array]:
    """Convert texts to ids by input, padded at the end, with the lengths of examples."""
    found: dict[str, Array] = {}
    for name in names:
        how, port = facts.preprocessing[name], facts.inputs[name]
        rows = encode_texts(texts, facts.words[name], how)
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
            reason = f'"{port.name}" needs {port.shape[0]} words, but text {number} has {len(row)}'
            way_out = "give texts of that length, or the spec an axis of any length: token[time, …]"
            raise ModgraphError(
                [DoesNotFitInput(path=f"text {number}", origin=facts.origin, reason=reason, way_out=way_out)]
            )
