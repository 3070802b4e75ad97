"""Pages of what was opened: a spec or a bundle as a graph, a run with what it measured and what was traced of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from modgraph.files import read_file
from modgraph.inspect.diff import Side, compared
from modgraph.inspect.diff.comparison import without_marks
from modgraph.inspect.diff.html import panes_of
from modgraph.inspect.growth_sections import growth_section
from modgraph.inspect.page import Curve, Curves, Pane, Section, page_of
from modgraph.inspect.quote import escape_html
from modgraph.inspect.scene import scene_of
from modgraph.inspect.trace_sections import loads_of, sections_of
from modgraph.store.growth import growth_of
from modgraph.store.metrics import read_metrics
from modgraph.store.opened import Kind, Opened, opened
from modgraph.store.run_directory import RunDirectory
from modgraph.store.sealed_logs import check_logs
from modgraph.store.stored_trace import StoredTrace, read_trace

ABOUT = ("step", "epoch", "split", "task", "phase")  # what a line of metrics tells beside them


def page_of_opened(shown: Opened) -> str:
    """The page of a spec, a run or a bundle. Raises `ModgraphError` where a run's records are damaged."""
    if shown.run is None or shown.kind is not Kind.RUN:
        scene = scene_of(shown.graph)
        return page_of(scene.name, [Pane(scene, shown.source)])
    check_logs(shown.run)
    trace, growth = read_trace(shown.run), growth_of(shown.run)
    measured = list(_charts(read_metrics(shown.run)))
    sections = [Section("Training", measured)] if measured else []
    sections += [growth_section(growth)] if growth is not None else []
    if trace is not None:
        pictures = {view: read_file(path) for view, path in trace.pictures.items()}
        sections += sections_of(trace.content, pictures, trace.stale)
    loads = {} if trace is None else loads_of(trace.content)
    *earlier, now = _panes(shown, shown.run)
    return page_of(
        shown.graph.name, [*earlier, replace(now, loads=loads, notes=_notes(shown, shown.run, trace))], sections
    )


def _panes(shown: Opened, run: RunDirectory) -> list[Pane]:
    """The graph of a run; where it has grown, the graph that it began with before it, what was added marked."""
    if run.read_graph() == shown.graph:
        return [Pane(scene_of(shown.graph), shown.source)]
    began = opened(run.ir)
    sides = Side(run.ir.name, began.kind, began.graph), Side(shown.label, shown.kind, shown.graph)
    found = without_marks(compared(*sides, {}, {}))
    if not found.diff:
        return [Pane(scene_of(shown.graph), shown.source)]
    return [*panes_of(found, (began.source, shown.source), ("as it began", "as it is now"))]


def page_of_run(path: str) -> str:
    """The page of a run's folder. Raises `ModgraphError`."""
    return page_of_opened(opened(path))


def in_notebook(page: str) -> str:
    """A page as a notebook shows it: in a frame of its own, which reaches nothing around it."""
    content = escape_html(page)
    style = "width: 100%; height: 640px; border: 1px solid #d3d8df; border-radius: 6px"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{content}"></iframe>'


def _notes(shown: Opened, run: RunDirectory, trace: StoredTrace | None) -> list[str]:
    grown = " ".join(f"-s {name}={value}" for name, value in (run.read_record().get("grown") or {}).items())
    return [f"the grown model is the spec with {grown}"] * bool(grown) + _notes_of_trace(shown, trace)


def _notes_of_trace(shown: Opened, trace: StoredTrace | None) -> list[str]:
    if trace is None and not shown.graph.records():
        return []
    if trace is None:
        return [f"What its routers do on real data is shown here after: modgraph trace {shown.label}"]
    return [f"The trace is of an older model; make it anew: modgraph trace {shown.label}"] if trace.stale else []


# ------------------------------------------------------------ metrics over time


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
