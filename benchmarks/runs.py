"""Runs of a benchmark: ordinary run directories, trained once, taken up where they were interrupted."""

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
    """The metrics of a run, trained unless it is finished already."""
    record = out / "run.json"
    found = json.loads(record.read_text()) if record.exists() else None
    if found is not None and "metrics" in found:
        return dict(found["metrics"])
    begun = found is not None and found["status"] != "starting"
    session = resume_run(str(out)) if begun else start_run(str(spec), str(recipe), settings, str(out))
    with contextlib.redirect_stderr(io.StringIO()), session as engine:
        return finish(engine)


def percent(values: list[float]) -> str:
    """Mean and standard deviation."""
    spread = f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.1f}{spread}"


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-s", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="for every run")


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """What `-s` has set."""
    return read_settings(options.settings)


def read_settings(texts: list[str]) -> dict[str, Any]:
    """Settings from texts such as `train.epochs=1`."""
    return {name: read_value(text) for name, _, text in (each.partition("=") for each in texts)}
