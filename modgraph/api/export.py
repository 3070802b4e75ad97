"""Bundles, of models and of runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from modgraph.api.run import Run
from modgraph.backends.onnx import Report
from modgraph.backends.onnx import export as export_model
from modgraph.backends.torch import Model


def export(
    model: Model | Run,
    path: str | Path,
    *,
    routing: bool = False,
    novelty: bool = False,
    int8: bool = False,
    stepwise: bool = False,
    only: Collection[str] = (),
    examples: Mapping[str, Any] | None = None,
    tests: Mapping[str, Any] | None = None,
    calibration: Mapping[str, Any] | None = None,
    description: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Report:
    """Write a verified bundle for ONNX Runtime, `model.onnx`, and its manifest next to it, as `<stem>.json`.

    Of a `Run` the trained model is written with the names of its classes, and verified on its test data. Of a `Model`,
    `examples` are arrays by input to verify on, examples first (random ones otherwise), `tests` what `int8` is measured
    on (`modgraph.backends.onnx.Test` by name), `calibration` the arrays that its scales are fitted on (both: the
    examples otherwise), and `description` gives `classes` by target,
    `preprocessing` by input, and by input of tokens the `words`.

    `routing` and `novelty` add the routers' records as outputs; `int8` rounds weights to eight bits (the report
    says what that changes); `stepwise` takes tokens one after another, to continue texts; `only` names the outputs to
    keep, `*` stands for anything.

    Raises `ModgraphError`, and then leaves what was there before, also for a file that modgraph did not write unless
    `force` is true; and `TypeError` for anything else than a model or a run, such as a path: `load_run(path)` reads a
    run.
    """
    asked: Any = {"routing": routing, "novelty": novelty, "int8": int8, "stepwise": stepwise}
    asked |= {"only": only, "force": force}
    if isinstance(model, Run):
        if (examples, tests, calibration, description) != (None, None, None, None):
            own = "leave examples, tests, calibration and description out"
            raise TypeError(f"a run has test data and names of classes of its own: {own}")
        return model.export(path, **asked)
    if not isinstance(model, Model):
        wanted = "a model (program.build()) or a run (modgraph.load_run(PATH))"
        raise TypeError(f"export takes {wanted}, not {type(model).__name__}")
    asked |= {"tests": tests, "calibration": calibration}
    return export_model(model, path, examples=examples, description=description, **asked)
