"""Logs of a run and what its checkpoints know of them: a change of what was written is noticed. Needs no torch.

Each checkpoint keeps how long every log is and the hash of its content. Lines behind that are those of a training that
is at work or was killed; the record of a finished run keeps the same of the end, where none may follow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.files import read_file, reason_of, write_atomically, writing
from modgraph.store.checkpoint_record import CheckpointRecord, newest
from modgraph.store.errors import LogsChanged
from modgraph.store.run_directory import RunDirectory

LOGS = "logs"  # what a checkpoint keeps of them is called
Seals = Mapping[str, Mapping[str, Any]]


def seal_logs(run: RunDirectory) -> dict[str, dict[str, Any]]:
    """What a checkpoint keeps of each log that there is: its bytes, and the hash of them. Raises `ModgraphError`."""
    contents = {path.name: _content(run, path.name) for path in run.logs}
    return {name: _seal(content) for name, content in contents.items() if content is not None}


def check_logs(run: RunDirectory) -> None:
    """Raises `ModgraphError` where a log is not what the training wrote until the newest checkpoint of the run, or, of
    a run that has ended, says more. Runs of older versions have no seals."""
    record = newest(run.checkpoints, CheckpointRecord.read, origin=run.origin())
    seals: Seals | None = None if record is None else record.facts.get(LOGS)
    if seals is None:
        return
    ended = run.read_record().get(LOGS) == seals
    found = {path.name: _problem(_content(run, path.name), seals.get(path.name), ended) for path in run.logs}
    wrong = [f"{name} ({problem})" for name, problem in found.items() if problem]
    if wrong:
        raise ModgraphError([LogsChanged(path=str(run.path), names=", ".join(wrong))])


def cut_logs(run: RunDirectory, seals: Seals) -> None:
    """Cut logs back to what a checkpoint knows of them, whose content was checked. Raises `ModgraphError`."""
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
    """What is wrong with a log, "" if nothing is; an unended last line is being written."""
    length = 0 if seal is None else seal["bytes"]
    if content is None:
        return "it is gone" if seal else ""
    if seal and (len(content) < length or _seal(content[:length]) != seal):
        return "its lines have changed"
    return "lines were added" if ended and b"\n" in content[length:] else ""


def _seal(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _content(run: RunDirectory, name: str) -> bytes | None:
    """What a log says, None where there is none. Raises `ModgraphError`."""
    try:
        return read_file(run.path / name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise run.fault(f"{name} cannot be read: {reason_of(error)}") from error
