"""Training, as Python programs and the command begin it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from modgraph.api.errors import NothingToLearnFrom
from modgraph.api.run import Run, train_to_end
from modgraph.data.in_python import InPython, refuse_without_training
from modgraph.diagnostics import ModgraphError
from modgraph.log import printing_progress
from modgraph.program import Program
from modgraph.store.run_directory import RunDirectory
from modgraph.training.callbacks import Watch
from modgraph.training.run import path_of, start_run


def train(
    program: Program | str | Path,
    recipe: str | Path | Mapping[str, Any] | None = None,
    *,
    out: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    callbacks: Sequence[Any] = (),
    quiet: bool = False,
) -> Run:
    """Train a spec, or a program that was read from one, and test it: bit for bit what `modgraph train` does.

    `recipe` is a path or a dictionary of the same keys, by default the YAML file next to the spec. `overrides` set
    dotted keys of it (`{"train.epochs": 2}`) and parameters of the spec (`{"width": 64}`). The run is written to
    `out`, `runs/NAME` by default, a folder that must not hold another.

    `data` are data sets by split, `{"train": …, "test": …}`, in place of the recipe's: any `torch.utils.data.Dataset`
    whose examples are dictionaries by the names of inputs and targets, or tuples in the order of the spec; or a
    dictionary of whole arrays. They are read once, before the training, and kept in memory. Values of an example have
    the shape of the type, without the batch; where an axis has any length, examples may differ in it. Splits but
    `train` and `validation` are tested on. `callbacks` hear of each step and epoch, and may stop (`Callback`).

    Each epoch prints its metrics on stderr, as the command does; `quiet` omits that. Where `logging` is configured for
    the level INFO, its handlers get the lines instead.

    Returns the `Run`. Raises `ModgraphError` for a mistake in spec, recipe or data, and `TypeError` for a value of
    another kind.
    """
    _refuse_kinds(program, recipe, overrides, data)
    watch, given = Watch(callbacks), None
    if data is not None:
        given = InPython.from_splits(data)
        refuse_without_training(data)
    with (
        printing_progress(quiet),
        start_run(program, recipe, dict(overrides or {}), out, given, watch, "overrides") as engine,
    ):
        run = Run(RunDirectory(engine.directory.path)).with_data(given)
        train_to_end(engine, run, watch)
    return run


def _refuse_kinds(program: Any, recipe: Any, overrides: Any, data: Any) -> None:
    if not isinstance(program, Program | str | Path):
        wanted = "a path of a spec, or a Program (modgraph.load)"
        raise TypeError(f"train takes {wanted}, not {type(program).__name__}")
    if not isinstance(recipe, str | Path | Mapping | None):
        raise TypeError(f"recipe must be a path or a dictionary, not {type(recipe).__name__}")
    if not isinstance(overrides, Mapping | None):
        wanted = 'a dictionary by dotted key, {"train.epochs": 2}'
        raise TypeError(f"overrides must be {wanted}, not {type(overrides).__name__}")
    if recipe is None and data is None and isinstance(program, Program) and path_of(program) is None:
        raise ModgraphError([NothingToLearnFrom(name=program.ir.name)])
