"""The metrics that a recipe may ask for, by the kind of target that they measure: `train.metrics`."""

from __future__ import annotations

from collections.abc import Mapping

REQUESTED_METRICS: Mapping[str, str] = {"f1": "class", "auc": "class", "mae": "float", "r2": "float"}
