"""How much each module was used in each epoch of a training, as the run has written it down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.tools.trace.record import RouteTrace
from modgraph.training.data import TRAIN
from modgraph.training.use import USE


def history_of(metrics: Path, routes: tuple[RouteTrace, ...]) -> dict[str, NDArray[np.float64]]:
    """Shares [epochs, modules] by route, of those routes whose use the run has recorded."""
    lines = list(_lines(metrics))
    found = {}
    for route in routes:
        names = [f"{USE}{route.name}.{module}" for module in range(route.modules)]
        epochs = [[line[name] for name in names] for line in lines if all(name in line for name in names)]
        if epochs:
            found[route.name] = np.array(epochs, np.float64)
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
