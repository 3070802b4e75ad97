"""How much each module was used in each epoch of a training, as the run has written it down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.ir import Graph
from modgraph.training.controllers import controllers
from modgraph.training.data import TRAIN


def history_of(metrics: Path, graph: Graph) -> dict[str, NDArray[np.float64]]:
    """Shares [epochs, modules] by route, of the controllers whose use the run has recorded."""
    lines = list(_lines(metrics))
    found = {}
    for each in controllers(graph):
        epochs = [[line[name] for name in each.use] for line in lines if all(name in line for name in each.use)]
        if epochs:
            found[each.route] = np.array(epochs, np.float64)
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
