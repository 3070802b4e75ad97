"""The trace in a run's folder: `trace.json`, and pictures in `trace/`. Needs no torch.

trace.json is deleted before pictures change and written after them, so that both belong to one trace where it exists.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph_runtime.integrity import SUMMARY_KEYS

from modgraph.diagnostics import ModgraphError
from modgraph.files import explain_error, read_file, refuse_foreign, write_atomically, writing
from modgraph.store.errors import BadTrace, OtherFormat
from modgraph.store.records import finite, json_text, seal, unseal
from modgraph.store.run_directory import RunDirectory

FORMAT = 1
PICTURES = "pictures"  # the key of trace.json that names the rendered views


@dataclass(frozen=True)
class StoredTrace:
    """The trace of a run: the `content` of trace.json, and `pictures` as files by view. It is `stale` if the run's
    model has changed since: the run was trained further, or grew."""

    content: Mapping[str, Any]
    pictures: Mapping[str, Path]
    stale: bool


def read_trace(run: RunDirectory) -> StoredTrace | None:
    """Read the trace of a run, None if there is none. Raises `ModgraphError` for a damaged trace.json."""
    path = run.trace
    if not path.exists():
        return None
    try:
        content = json.loads(read_file(path))
        if not isinstance(content, dict) or not {"format", *SUMMARY_KEYS} <= content.keys():
            raise ValueError("it is no trace")
        OtherFormat.refuse(path, content["format"], FORMAT, way_out=f"trace it again: modgraph trace {path.parent}")
        content = unseal(content)
    except (OSError, ValueError, RecursionError) as error:
        raise ModgraphError([BadTrace(path=str(path), run=str(path.parent), reason=explain_error(error))]) from error
    paths = {view: run.pictures / f"{view}.png" for view in content.get(PICTURES, ())}
    graph, newest = run.now()
    now = (None if newest is None else newest.step, graph.hash())
    stale = (content.get("step"), content.get("graph")) != now
    return StoredTrace(content, {view: each for view, each in paths.items() if each.exists()}, stale)


def keep_trace(run: RunDirectory, content: Mapping[str, Any], pictures: Mapping[str, bytes], force: bool) -> None:
    """Write a trace into a run, atomically. A file of another program is overwritten only with `force`. Raises
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
    write_atomically(run.trace, seal(finite({**content, PICTURES: list(pictures)})))


def keeps(run: RunDirectory, content: Mapping[str, Any], with_pictures: bool = True) -> bool:
    """Whether a run holds this very trace already, with all its pictures; `with_pictures`, with one at least."""
    try:
        kept = read_trace(run)
    except ModgraphError:
        return False
    if kept is None or kept.pictures.keys() != {*kept.content.get(PICTURES, ())}:
        return False
    if with_pictures and not kept.pictures:
        return False
    return {**kept.content, PICTURES: None} == {**json.loads(json_text(content)), PICTURES: None}
