"""Pages of what was opened: a spec or a bundle as a graph, a run with what it measured and what was traced of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from modgraph.files import read_file
from modgraph.inspect.diff import Side, compare_sides
from modgraph.inspect.diff.comparison import drop_marks
from modgraph.inspect.diff.html import panes_of
from modgraph.inspect.page.content import Curve, Curves, Pane, Section
from modgraph.inspect.page.document import page_of
from modgraph.inspect.quote import escape_html
from modgraph.inspect.scene import scene_of
from modgraph.inspect.trace_sections import growth_section, loads_of, sections_of
from modgraph.store.architecture import Architecture, Kind, read_architecture
from modgraph.store.growth import growth_of
from modgraph.store.journal import check_logs, read_metrics
from modgraph.store.run_directory import RunDirectory
from modgraph.store.stored_trace import read_trace

ABOUT = ("step", "epoch", "split", "task", "phase")  # what a line of metrics tells beside them


def page_of_architecture(shown: Architecture) -> str:
    """The page of a spec, a run or a bundle. Raises `ModgraphError` where a run's records are damaged."""
    run, pane = shown.run, Pane(scene_of(shown.graph), shown.source)
    if run is None or shown.kind is not Kind.RUN:
        return page_of(pane.scene.name, [pane])
    check_logs(run)
    trace, growth = read_trace(run), growth_of(run)
    measured = list(_charts(read_metrics(run)))
    sections = [Section("Training", measured)] if measured else []
    sections += [growth_section(growth)] if growth is not None else []
    if trace is not None:
        pictures = {view: read_file(path) for view, path in trace.pictures.items()}
        sections += sections_of(trace.content, pictures, trace.stale)
    grown = " ".join(f"-s {name}={value}" for name, value in (run.read_record().get("grown") or {}).items())
    notes = [f"the grown model is the spec with {grown}"] if grown else []
    if trace is None and shown.graph.records():
        notes.append(f"What its routers do on real data is shown here after: modgraph trace {shown.label}")
    if trace is not None and trace.stale:
        notes.append(f"The trace is of an older model; make it anew: modgraph trace {shown.label}")
    *earlier, now = _panes(shown, run) or [pane]
    loads = {} if trace is None else loads_of(trace.content)
    return page_of(shown.graph.name, [*earlier, replace(now, loads=loads, notes=notes)], sections)


def _panes(shown: Architecture, run: RunDirectory) -> Sequence[Pane]:
    """Where the graph of a run has grown, the one that it began with and what it is now, what was added marked."""
    if run.read_graph() == shown.graph:
        return ()
    began = read_architecture(run.ir)
    sides = Side(run.ir.name, began.kind, began.graph), Side(shown.label, shown.kind, shown.graph)
    found = drop_marks(compare_sides(*sides, {}, {}))
    return panes_of(found, (began.source, shown.source), ("as it began", "as it is now")) if found.diff else ()


def in_notebook(page: str) -> str:
    """A page as a notebook shows it: in a frame of its own, which reaches nothing around it.

    It is ASCII: read in another encoding, scripts would not have the hashes that the page allows.
    """
    content = escape_html(page).encode("ascii", "xmlcharrefreplace").decode()
    style = "width: 100%; height: 640px; border: 1px solid #d3d8df; border-radius: 6px"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{content}"></iframe>'


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
