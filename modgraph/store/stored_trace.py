"""What `modgraph trace` leaves in a run: `trace.json`, and pictures in `trace/`. Needs no torch.

The pictures go and come before `trace.json` does: where that is, they are those of this trace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph_runtime.integrity import SUMMARY_KEYS

from modgraph.diagnostics import ModgraphError
from modgraph.files import read_file, reason_of, refuse_foreign, write_atomically, writing
from modgraph.store.errors import BadTrace, OtherFormat
from modgraph.store.records import finite, json_text, sealed, unsealed
from modgraph.store.run_directory import RunDirectory

FORMAT = 1
PICTURES = "pictures"  # the key of trace.json that names the views which were drawn


@dataclass(frozen=True)
class StoredTrace:
    """A trace that a run holds. `content` is its trace.json, `pictures` are files by the name of their view; it is
    `stale` where the run has another model by now: it was trained further, or grew."""

    content: Mapping[str, Any]
    pictures: Mapping[str, Path]
    stale: bool


def read_trace(run: RunDirectory) -> StoredTrace | None:
    """What was traced of a run, None if nothing was. Raises `ModgraphError` for a trace.json that is damaged."""
    path = run.trace
    if not path.exists():
        return None
    try:
        content = json.loads(read_file(path))
        if not isinstance(content, dict) or not {"format", *SUMMARY_KEYS} <= content.keys():
            raise ValueError("it is no trace")
        OtherFormat.refuse(path, content["format"], FORMAT, way_out=f"trace it anew: modgraph trace {path.parent}")
        content = unsealed(content)
    except (OSError, ValueError, RecursionError) as error:
        raise ModgraphError([BadTrace(path=str(path), run=str(path.parent), reason=reason_of(error))]) from error
    paths = {view: run.pictures / f"{view}.png" for view in content.get(PICTURES, ())}
    graph, newest = run.now()
    now = (None if newest is None else newest.step, graph.hash())
    stale = (content.get("step"), content.get("graph")) != now
    return StoredTrace(content, {view: each for view, each in paths.items() if each.exists()}, stale)


def keep_trace(run: RunDirectory, content: Mapping[str, Any], pictures: Mapping[str, bytes], force: bool) -> None:
    """Leave a trace in a run, whole or not at all; a file of anybody else's is not overwritten without `force`. Raises
    `ModgraphError`."""
    paths = {run.pictures / f"{view}.png": picture for view, picture in pictures.items()}
    refuse_foreign(run.trace, force=force, keys=SUMMARY_KEYS)
    refuse_foreign(*paths, force=force)
    with writing(run.path):
        run.trace.unlink(missing_ok=True)
        if paths:
            run.pictures.mkdir(exist_ok=True)
    for path, picture in paths.items():
        write_atomically(path, picture)
    write_atomically(run.trace, sealed(finite({**content, PICTURES: list(pictures)})))


def keeps(run: RunDirectory, content: Mapping[str, Any]) -> bool:
    """Whether a run holds this very trace already, with all its pictures."""
    try:
        kept = read_trace(run)
    except ModgraphError:
        return False
    if kept is None or kept.pictures.keys() != {*kept.content.get(PICTURES, ())}:
        return False
    return {**kept.content, PICTURES: None} == {**json.loads(json_text(content)), PICTURES: None}
