"""Predictions, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modgraph.prediction.predictions import Predictions
from modgraph.prediction.predictions import predict as predict_at
from modgraph.training.stored_run import StoredRun


def predict(model: StoredRun | str | Path, inputs: Any, check: bool = True) -> Predictions:
    """What a run or a bundle predicts, for each example names of classes with probabilities, or numbers.

    `model` is a `Run`, its folder, or the path of a bundle, which ONNX Runtime computes; `check=False` takes a bundle
    whose digest does not fit. `inputs` are paths of images, folders of them, arrays (`.npz`, `.npy`), tables (`.csv`)
    or texts (`.txt`), or a dictionary of arrays by input, examples first. `pandas.DataFrame(found.records)` takes the
    result. Raises `ModgraphError` for what is no model and for inputs that do not fit it, and `TypeError` for another
    kind of value.
    """
    path = model.path if isinstance(model, StoredRun) else model
    if not isinstance(path, str | Path):
        raise TypeError(f"predict takes a run or a path, of a run or a bundle, not {type(model).__name__}")
    return predict_at(path, inputs, check)
