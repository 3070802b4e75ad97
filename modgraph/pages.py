"""Pages of what was opened: a spec or a bundle as a graph, a run with what it measured and what was traced of it."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.files import read_file
from modgraph.inspect.page import Curve, Curves, Pane, Section, page_of
from modgraph.inspect.scene import scene_of
from modgraph.inspect.trace_sections import loads_of, sections_of
from modgraph.store.opened import Opened, opened
from modgraph.store.run_directory import RunDirectory
from modgraph.store.stored_trace import StoredTrace, read_trace

ABOUT = ("step", "epoch", "split", "task")  # what a line of metrics tells beside them


class DamagedMetrics(Diagnostic):
    """Each line of a run's `metrics.jsonl` is a JSON object: step, epoch, split, and metrics by name. A last line that
    does not end is one that a training is writing."""

    code = "MG141"
    message = 'line {line} of "{path}" holds no metrics'
    help = "remove the line, or take the run up again, which writes the file anew: modgraph train SPEC --resume RUN"
    path: str
    line: int


def page_of_opened(shown: Opened) -> str:
    """The page of a spec, a run or a bundle. Raises `ModgraphError` where a run's records are damaged."""
    scene = scene_of(shown.graph)
    if shown.run is None:
        return page_of(scene.name, [Pane(scene, shown.source)])
    trace = read_trace(shown.run)
    measured = list(_charts(_metrics(shown.run)))
    sections = [Section("Training", measured)] if measured else []
    if trace is not None:
        pictures = {view: read_file(path) for view, path in trace.pictures.items()}
        sections += sections_of(trace.content, pictures, trace.stale)
    loads = {} if trace is None else loads_of(trace.content)
    return page_of(scene.name, [Pane(scene, shown.source, loads=loads, notes=_notes(shown, trace))], sections)


def page_of_run(path: str) -> str:
    """The page of a run's folder. Raises `ModgraphError`."""
    return page_of_opened(opened(path))


def in_notebook(page: str) -> str:
    """A page as a notebook shows it: in a frame of its own, which reaches nothing around it."""
    content = html.escape(page)
    style = "width: 100%; height: 640px; border: 1px solid #d3d8df; border-radius: 6px"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{content}"></iframe>'


def _notes(shown: Opened, trace: StoredTrace | None) -> list[str]:
    if trace is None and not shown.graph.records():
        return []
    if trace is None:
        return [f"What its routers do on real data is shown here after: modgraph trace {shown.path}"]
    return [f"The trace is of an older model; make it anew: modgraph trace {shown.path}"] if trace.stale else []


# ------------------------------------------------------------ metrics over time


def _metrics(run: RunDirectory) -> list[dict[str, Any]]:
    if not run.metrics.exists():
        return []
    whole, _, _ = read_file(run.metrics).decode(errors="replace").rpartition("\n")
    return [_line(text, number, run) for number, text in enumerate(whole.splitlines(), 1)]


def _line(text: str, number: int, run: RunDirectory) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not {"step", "split"} <= record.keys():
        raise ModgraphError([DamagedMetrics(path=str(run.metrics), line=number)])
    return record


def _charts(records: Iterable[Mapping[str, Any]]) -> Iterator[Curves]:
    """A chart for each metric, with a curve for each split, and each number at the end of its name."""
    charts: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for record in records:
        for name, value in record.items():
            if name not in ABOUT and isinstance(value, int | float):
                metric, _, number = name.rpartition(".") if name.rpartition(".")[2].isdecimal() else (name, "", "")
                curve = f"{record['split']} {number}".strip()
                charts.setdefault(metric, {}).setdefault(curve, []).append((record["step"], value))
    for metric, curves in charts.items():
        yield Curves([Curve(name, points) for name, points in curves.items()], metric, "step")
