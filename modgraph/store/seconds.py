"""The wall seconds that a run's steps took. Needs no torch.

A training appends a segment before each checkpoint: the steps since the checkpoint before, and their seconds. A resumed
training trains steps again after a kill; its segments replace those from its first step on. The file is no part of what
makes runs equal, so no checkpoint seals it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from modgraph.files import read_file
from modgraph.log import log
from modgraph.store.checkpoint_record import list_steps_in
from modgraph.store.run_directory import RunDirectory

Seconds = list[tuple[int, float]]


@dataclass(frozen=True)
class Segment:
    """The steps of a training after `since`, to `step`, and the seconds that they took."""

    since: int
    step: int
    seconds: float


def add_segment(run: RunDirectory, segment: Segment) -> None:
    """Append a segment to the run's seconds. A training does not fail because they cannot be written."""
    try:
        with run.seconds.open("ab+") as file:
            file.seek(max(0, file.tell() - 1))
            end = b"" if file.read() in (b"", b"\n") else b"\n"  # of a line that a kill cut
            file.write(end + json.dumps(asdict(segment)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        log.info(f"the seconds of {segment.step - segment.since} steps are not recorded: {error}")


def read_seconds(run: RunDirectory) -> Seconds | None:
    """Return the steps of a run's segments and the seconds of training until each, without validation, tests and
    checkpoints. None where the seconds of some steps are missing. Raises `ModgraphError` if this is no run."""
    first = int(run.read_record().get("step", 0))
    try:
        lines = read_file(run.seconds).decode(errors="replace").splitlines() if run.seconds.exists() else []
    except OSError:
        return None
    found: Seconds = [(first, 0.0)]
    for segment in _parse(lines):
        while found and found[-1][0] > segment.since:
            found.pop()
        if not found or found[-1][0] != segment.since:
            return None
        found.append((segment.step, found[-1][1] + segment.seconds))
    newest = max(list_steps_in(run.checkpoints), default=first)
    return found[1:] if found[-1][0] >= newest else None


def _parse(lines: list[str]) -> Iterator[Segment]:
    """Yield the segments of whole lines. The line of steps that count leaves a gap if it is damaged."""
    for line in lines:
        try:
            segment = Segment(**json.loads(line))
        except (RecursionError, TypeError, ValueError):
            continue
        kinds = type(segment.since), type(segment.step), type(segment.seconds)
        if kinds == (int, int, float) and segment.step > segment.since and 0 <= segment.seconds < math.inf:
            yield segment
