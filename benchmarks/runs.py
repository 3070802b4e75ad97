"""Runs of a benchmark: ordinary run directories, which are trained once and resumed if they were interrupted."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
from pathlib import Path
from typing import Any

from modgraph.elaboration import read_value
from modgraph.training.run import finish, resume_run, start_run


def train(spec: Path, recipe: Path, settings: dict[str, Any], out: Path) -> dict[str, float]:
    """Return the metrics of a run, trained unless it is finished already."""
    record = out / "run.json"
    found = json.loads(record.read_text()) if record.exists() else None
    if found is not None and "metrics" in found:
        return dict(found["metrics"])
    begun = found is not None and found["status"] != "starting"
    session = resume_run(str(out)) if begun else start_run(str(spec), str(recipe), settings, str(out))
    with contextlib.redirect_stderr(io.StringIO()), session as engine:
        return finish(engine)


def percent(values: list[float]) -> str:
    """Format mean and standard deviation."""
    spread = f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.1f}{spread}"


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-s", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="overrides for every run"
    )


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Parse the values of `-s`."""
    return read_settings(options.settings)


def read_settings(texts: list[str]) -> dict[str, Any]:
    """Parse settings from texts such as `train.epochs=1`."""
    return {name: read_value(text) for name, _, text in (each.partition("=") for each in texts)}
