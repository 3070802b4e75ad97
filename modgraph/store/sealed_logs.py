"""Seals the logs of a run in its checkpoints, and detects changes of lines that were written. Needs no torch.

Each checkpoint keeps the length of every log and the hash of its content. Lines after that belong to a training that is
running or was killed; the record of a finished run keeps seals of the end, after which no line may follow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.files import read_file, reason_of, write_atomically, writing
from modgraph.store.checkpoint_record import CheckpointRecord, newest, path_of
from modgraph.store.errors import BadCheckpoint, LogsChanged
from modgraph.store.run_directory import RunDirectory

LOGS = "logs"  # the key of the seals in a checkpoint
Seals = Mapping[str, Mapping[str, Any]]


def seal_logs(run: RunDirectory) -> dict[str, dict[str, Any]]:
    """The length and the hash of each log that exists. Raises `ModgraphError`."""
    contents = {path.name: _content(run, path.name) for path in run.logs}
    return {name: _seal(content) for name, content in contents.items() if content is not None}


def check_logs(run: RunDirectory) -> None:
    """Raises `ModgraphError` where a log has changed before the newest checkpoint of the run, or has more lines after a
    run has ended."""
    record = newest(run.checkpoints, CheckpointRecord.read, origin=run.origin())
    if record is None:
        return
    if LOGS not in record.facts:
        path, reason = path_of(run.checkpoints, record.step), "its record has no digests of the logs"
        raise ModgraphError([BadCheckpoint(path=str(path), reason=reason)])
    seals: Seals = record.facts[LOGS]
    ended = run.read_record().get(LOGS) == seals
    found = {path.name: _problem(_content(run, path.name), seals.get(path.name), ended) for path in run.logs}
    wrong = [f"{name} ({problem})" for name, problem in found.items() if problem]
    if wrong:
        raise ModgraphError([LogsChanged(path=str(run.path), names=", ".join(wrong))])


def cut_logs(run: RunDirectory, seals: Seals) -> None:
    """Truncate logs to their lengths in a checkpoint; `check_logs` has checked the content. Raises `ModgraphError`."""
    for path in run.logs:
        length, content = seals.get(path.name, {}).get("bytes", 0), _content(run, path.name)
        if content is None or len(content) == length:
            continue
        if length:
            write_atomically(path, content[:length])
        else:
            with writing(path):
                path.unlink()


def _problem(content: bytes | None, seal: Mapping[str, Any] | None, ended: bool) -> str:
    """What is wrong with a log, "" if nothing is; a last line without its end may still be written."""
    length = 0 if seal is None else seal["bytes"]
    if content is None:
        return "the file is missing" if seal else ""
    if seal and (len(content) < length or _seal(content[:length]) != seal):
        return "its lines have changed"
    return "lines were added" if ended and b"\n" in content[length:] else ""


def _seal(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _content(run: RunDirectory, name: str) -> bytes | None:
    """The content of a log, None where there is none. Raises `ModgraphError`."""
    try:
        return read_file(run.path / name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise run.fault(f"{name} cannot be read: {reason_of(error)}") from error
