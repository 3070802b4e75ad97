"""What a run measured over time: its metrics.jsonl. Needs no torch."""

from __future__ import annotations

import json
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.files import read_file
from modgraph.store.errors import DamagedMetrics
from modgraph.store.run_directory import RunDirectory


def read_metrics(run: RunDirectory) -> list[dict[str, Any]]:
    """The lines of a run's metrics, none where it has measured nothing yet; a last line without an end is left out.

    Raises `ModgraphError`.
    """
    if not run.metrics.exists():
        return []
    whole, _, _ = read_file(run.metrics).decode(errors="replace").rpartition("\n")
    return [_record(text, number, run) for number, text in enumerate(whole.splitlines(), 1)]


def _record(text: str, number: int, run: RunDirectory) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not {"step", "split"} <= record.keys():
        raise ModgraphError([DamagedMetrics(path=str(run.metrics), line=number)])
    return record
