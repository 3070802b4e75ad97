"""Logs of a training, one JSON object a line. Needs no torch.

Each checkpoint seals them: it keeps the length of every log and the hash of its content. Later lines belong to a
training that is running or was killed. The record of a finished run keeps seals of the end, after which no line may
follow.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from modgraph.diagnostics import ModgraphError
from modgraph.files import read_file, write_atomically, writing
from modgraph.store.checkpoint_record import path_of, read_newest_record
from modgraph.store.errors import BadCheckpoint, DamagedGrowth, DamagedMetrics, LogsChanged
from modgraph.store.records import json_text
from modgraph.store.run_directory import RunDirectory

T = TypeVar("T")
LOGS = "logs"  # the key of the seals in a checkpoint
Seals = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Journal:
    """A log. A training that resumes from a checkpoint truncates it to the length that the checkpoint sealed."""

    path: Path

    def add(self, *records: Mapping[str, Any]) -> None:
        """Append lines and sync them to disk. Raises `ModgraphError`."""
        with writing(self.path), self.path.open("a") as file:
            file.writelines(json_text(record) + "\n" for record in records)
            file.flush()
            os.fsync(file.fileno())

    def read(self, parse: Callable[[Any], T], fault: type[DamagedGrowth | DamagedMetrics] = DamagedGrowth) -> list[T]:
        """Parse its lines, none where there is no log. Skips a last line without an end, which is still being written.
        Raises `ModgraphError`."""
        if not self.path.exists():
            return []
        whole, _, _ = read_file(self.path).decode(errors="replace").rpartition("\n")
        found = []
        for number, text in enumerate(whole.splitlines(), start=1):
            try:
                found.append(parse(json.loads(text)))
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
                raise ModgraphError([fault(path=str(self.path), line=number)]) from error
        return found


def read_metrics(run: RunDirectory) -> list[dict[str, Any]]:
    """Read the metrics of a run over time. Raises `ModgraphError`."""

    def parse_metrics(record: Any) -> dict[str, Any]:
        if not isinstance(record, dict) or not {"step", "split"} <= record.keys():
            raise ValueError(f"it has no metrics: {record}")
        return record

    return Journal(run.metrics).read(parse_metrics, DamagedMetrics)


def read_samples(run: RunDirectory) -> list[dict[str, Any]]:
    """Read the samples of single steps of a run, none of a run without. Raises `ModgraphError`."""

    def parse_sample(record: Any) -> dict[str, Any]:
        if not {"step", "loss", "gradient_norm", "load"} <= record.keys():
            raise ValueError(f"it is no sample: {record}")
        return dict(record)

    return Journal(run.steps).read(parse_sample, DamagedMetrics)


def seal_logs(run: RunDirectory) -> dict[str, dict[str, Any]]:
    """Return the length and the hash of each log that exists. Raises `ModgraphError`."""
    contents = {path.name: run.content(path) for path in run.logs}
    return {name: _seal(content) for name, content in contents.items() if content is not None}


def check_logs(run: RunDirectory) -> None:
    """Raises `ModgraphError` where a log has changed before the newest checkpoint of the run, or has lines after the
    end of a finished run."""
    record = read_newest_record(run.checkpoints, run.origin(), best=False)
    if record is None:
        return
    if LOGS not in record.facts:
        path, reason = path_of(run.checkpoints, record.step), "its record has no digests of the logs"
        raise ModgraphError([BadCheckpoint(path=str(path), reason=reason)])
    seals: Seals = record.facts[LOGS]
    ended = run.read_record().get(LOGS) == seals
    found = {path.name: _problem(run.content(path), seals.get(path.name), ended) for path in run.logs}
    wrong = [f"{name} ({problem})" for name, problem in found.items() if problem]
    if wrong:
        raise ModgraphError([LogsChanged(path=str(run.path), names=", ".join(wrong))])


def cut_logs(run: RunDirectory, seals: Seals) -> None:
    """Truncate logs to their sealed lengths, after `check_logs` has checked the content. Raises `ModgraphError`."""
    for path in run.logs:
        length, content = seals.get(path.name, {}).get("bytes", 0), run.content(path)
        if content is None or len(content) == length:
            continue
        if length:
            write_atomically(path, content[:length])
        else:
            with writing(path):
                path.unlink()


def _problem(content: bytes | None, seal: Mapping[str, Any] | None, ended: bool) -> str:
    """Return the problem with a log, "" if there is none. A last line without its end may still be written."""
    length = 0 if seal is None else seal["bytes"]
    if content is None:
        return "the file is missing" if seal else ""
    if seal and (len(content) < length or _seal(content[:length]) != seal):
        return "its lines have changed"
    return "lines were added" if ended and b"\n" in content[length:] else ""


def _seal(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
