"""What controllers did in each epoch of a training, as the run has written it down."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data import TRAIN
from modgraph.ir import Graph
from modgraph.metrics.controllers import controllers


def history_of(metrics: Path, graph: Graph) -> dict[str, NDArray[np.float64]]:
    """Shares [epochs, modules] by route, of the controllers whose use the run has recorded."""
    return _metrics_of(metrics, {each.route: each.use for each in controllers(graph)})


def entropies_of(metrics: Path, graph: Graph) -> dict[str, NDArray[np.float64]]:
    """H_a and H_b [epochs, 2] by route, of the controllers for which the run has recorded them."""
    return _metrics_of(metrics, {each.route: each.entropies for each in controllers(graph)})


def _metrics_of(metrics: Path, wanted: Mapping[str, Sequence[str]]) -> dict[str, NDArray[np.float64]]:
    """The named metrics of each route, [epochs, names], in the epochs that have all of them."""
    lines, found = list(_lines(metrics)), {}
    for route, names in wanted.items():
        epochs = [[line[name] for name in names] for line in lines if all(name in line for name in names)]
        if epochs:
            found[route] = np.array(epochs, np.float64)
    return found


def _lines(metrics: Path) -> Iterator[dict[str, Any]]:
    """The records of the training data, epoch by epoch; lines that are cut off are passed over."""
    if not metrics.exists():
        return
    for text in metrics.read_text().splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and line.get("split") == TRAIN:
            yield line
