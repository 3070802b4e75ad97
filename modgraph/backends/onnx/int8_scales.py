"""Scales of weights of eight bits, fitted to the values that a matrix multiplies on calibration data.

A product x·W has a scale for each output, a column of W. The largest weight of a column gives its range; a smaller
range rounds the other weights more finely. For each column this takes the range and scale with the least squared error
of the products. In a pool each module multiplies only tokens that its router sends there, and gets scales of its own.

Letters: n values, K inputs and N outputs of a product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir
from numpy.typing import NDArray

from modgraph.backends.onnx.examples import Arrays
from modgraph.backends.onnx.trace import Traced
from modgraph.backends.onnx.verify import Session, Values

LARGEST = 127  # of a rounded value; the same number lies below zero
TINY = 1e-30  # the least range, of zeros
ZERO = LARGEST + 1  # the byte that stands for zero
RANGES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6)  # shares of the largest weight
BATCH = 4  # examples, for every product's values of a batch are in memory at once
AT_ONCE, ENOUGH, FEWEST = 64, 512, 32  # values of a batch that are kept, of all batches, and that a fit needs


@dataclass
class Seen:
    """What a value was on calibration data: the number of its rows, and some of them [n, K]; of ids, how often each
    occurred."""

    count: int = 0
    values: list[NDArray[Any]] = field(default_factory=list)
    rows: Counter[int] = field(default_factory=Counter)

    def add(self, found: NDArray[Any]) -> None:
        if not np.issubdtype(found.dtype, np.floating):
            self.rows.update(found.ravel().tolist())
            return
        rows = found.reshape(-1, found.shape[-1])
        self.count += len(rows)
        if rows.size and sum(map(len, self.values)) < ENOUGH:
            self.values.append(rows[:: -(-len(rows) // AT_ONCE)].copy())

    def sample(self, width: int) -> NDArray[Any]:
        return np.concatenate([np.zeros((0, width), np.float32), *self.values])


def observe(
    model: onnx_ir.Model, names: Collection[str], choices: Collection[str], inputs: Arrays
) -> tuple[dict[str, Seen], dict[str, NDArray[Any]]]:
    """Run a model on calibration data, and note what values of its outer graph were.

    Returns these by name, and the number of tokens of each module [M] by the name of a choice.
    """
    proto, seen, counts = onnx_ir.to_proto(model), {name: Seen() for name in sorted(names)}, dict[str, NDArray[Any]]()
    outputs = [each.name for each in proto.graph.output]
    others = [name for name in seen if name not in {*outputs, *inputs}]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in others)
    session = Session(Traced(proto, {name: name for name in (*outputs, *others)}))
    for batch in cut_batches(inputs, BATCH):
        found = {**batch, **session.run(batch)}
        for name, each in seen.items():
            each.add(found[name])
        for name in choices:
            picked = found[name] != 0
            counts[name] = counts.get(name, 0) + picked.sum(tuple(range(picked.ndim - 1)))
    return seen, counts


def cut_batches(inputs: Mapping[str, NDArray[Any]], size: int) -> Iterator[Values]:
    for at in range(0, len(next(iter(inputs.values()))), size):
        yield {name: array[at : at + size] for name, array in inputs.items()}


def round_columns(matrix_KN: NDArray[Any], scale_N: NDArray[Any]) -> NDArray[np.float32]:
    """Whole numbers that times the scales are near the matrix."""
    found: NDArray[np.float32] = np.clip(np.rint(matrix_KN / scale_N), -LARGEST, LARGEST).astype(np.float32)
    return found


def find_range(matrix_KN: NDArray[Any]) -> NDArray[Any]:
    """The scale of each column by its largest weight."""
    largest: NDArray[Any] = np.abs(matrix_KN).max(-2, initial=TINY)
    return largest / np.float32(LARGEST)


def fit(matrix_KN: NDArray[Any], values_nK: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Bytes [K, N] and scales [N] of a matrix, by ranges of its columns if there are too few values to fit."""
    scale_N = find_range(matrix_KN)
    rounded_KN = round_columns(matrix_KN, scale_N)
    if len(values_nK) >= FEWEST:
        wanted_nN, least_N = values_nK @ matrix_KN, np.full(len(scale_N), np.inf)
        first_N = scale_N.copy()
        for share in RANGES:
            found_KN = round_columns(matrix_KN, first_N * share)
            products_nN = values_nK @ found_KN
            square_N = (products_nN**2).sum(0)
            fitted_N = np.where(square_N > 0, (products_nN * wanted_nN).sum(0) / np.maximum(square_N, 1e-30), first_N)
            error_N = ((wanted_nN - products_nN * fitted_N) ** 2).sum(0)
            better_N = (error_N < least_N) & (fitted_N > 0)
            least_N[better_N], scale_N[better_N] = error_N[better_N], fitted_N[better_N]
            rounded_KN[:, better_N] = found_KN[:, better_N]
    return to_bytes(rounded_KN), scale_N.astype(np.float32)


def to_bytes(rounded: NDArray[Any]) -> NDArray[np.uint8]:
    found: NDArray[np.uint8] = (rounded + ZERO).astype(np.uint8)
    return found
