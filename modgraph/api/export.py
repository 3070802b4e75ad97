"""Bundles, of models and of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modgraph.api.run import Run
from modgraph.backends.onnx import Report
from modgraph.backends.onnx import export as export_model
from modgraph.backends.torch import Model


def export(model: Model | Run, path: str | Path, **options: Any) -> Report:
    """Write a verified bundle for ONNX Runtime, `model.onnx`, and its manifest beside it, as `<stem>.json`.

    Of a `Run` the trained model is written, with the names of its classes, and verified on its test data: options are
    those of `Run.export`. Of a `Model`, `examples` are arrays by input to verify on (random ones otherwise), and
    `description` gives `classes` by target, `preprocessing` by input, and by input of tokens the `words`. Options of
    both: `routing`, `novelty`, `int8`, `only`, `force`.

    Raises `ModgraphError`, and then leaves what was there before, and `TypeError` for anything else than a model or a
    run, such as a path: `load_run(path)` reads a run.
    """
    if isinstance(model, Run):
        return model.export(path, **options)
    if not isinstance(model, Model):
        wanted = "a model (program.build()) or a run (modgraph.load_run(PATH))"
        raise TypeError(f"export takes {wanted}, not {type(model).__name__}")
    return export_model(model, path, **options)
