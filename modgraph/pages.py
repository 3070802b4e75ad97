"""Builds pages: the graph of a spec or a bundle, and the graph, metrics and trace of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from modgraph.files import read_file
from modgraph.inspect.diff import Side, compare_sides
from modgraph.inspect.diff.architecture_diff import drop_marks
from modgraph.inspect.diff.html import build_panes
from modgraph.inspect.page.content import FITTING, Curve, Curves, DrawingOptions, Pane, Section
from modgraph.inspect.page.document import page_of, page_of_levels
from modgraph.inspect.quote import escape_html
from modgraph.inspect.scene import scene_of
from modgraph.inspect.trace_sections import build_sections, find_loads, growth_section
from modgraph.store.architecture import Architecture, Kind, read_architecture
from modgraph.store.growth import read_growth
from modgraph.store.journal import check_logs, read_metrics
from modgraph.store.run_directory import RunDirectory
from modgraph.store.stored_trace import read_trace

ABOUT = ("step", "epoch", "split", "task", "phase")  # keys of a record besides metrics


def write_page_of_architecture(architecture: Architecture, options: DrawingOptions = FITTING) -> str:
    """Build the page of a spec, a run or a bundle. Raises `ModgraphError` where a run's records are damaged."""
    run, pane = architecture.run, Pane(scene_of(architecture.graph), architecture.source, options=options)
    if run is None or architecture.kind is not Kind.RUN:
        return page_of(pane.scene.name, [pane])
    check_logs(run)
    trace, growth = read_trace(run), read_growth(run)
    measured = list(_charts(read_metrics(run)))
    sections = [Section("Training", measured)] if measured else []
    sections += [growth_section(growth)] if growth is not None else []
    if trace is not None:
        pictures = {view: read_file(path) for view, path in trace.pictures.items()}
        sections += build_sections(trace.content, pictures, trace.stale)
    grown = " ".join(f"-s {name}={value}" for name, value in (run.read_record().get("grown") or {}).items())
    notes = [f"the grown model is the spec with {grown}"] if grown else []
    if trace is None and architecture.graph.records():
        notes.append(f"What its routers do on real data is shown here after: modgraph trace {architecture.label}")
    if trace is not None and trace.stale:
        notes.append(f"The trace is of an older model; make it anew: modgraph trace {architecture.label}")
    *earlier, now = _panes(architecture, run) or [pane]
    loads = {} if trace is None else find_loads(trace.content)
    return page_of(
        architecture.graph.name, [*earlier, replace(now, loads=loads, notes=notes, options=options)], sections
    )


def write_notebook_view(architecture: Architecture, options: DrawingOptions = FITTING) -> str:
    """Build a small page of a graph for a notebook, which unfolds in levels, without the data of a run."""
    pane = Pane(scene_of(architecture.graph), architecture.source)
    run = architecture.run if architecture.kind is Kind.RUN else None
    panes = [pane] if run is None else [*_panes(architecture, run)] or [pane]
    more = "" if run is None else ", with its metrics and trace"
    hint = f'Here boxes unfold level by level. The whole page{more}: visualize("page.html").'
    return page_of_levels(architecture.graph.name, [*panes[:-1], replace(panes[-1], notes=[hint], options=options)])


def _panes(architecture: Architecture, run: RunDirectory) -> Sequence[Pane]:
    """Build panes for the initial and the current graph of a run, with additions marked; none without growth."""
    if run.read_graph() == architecture.graph:
        return ()
    began = read_architecture(run.ir)
    sides = Side(run.ir.name, began.kind, began.graph), Side(architecture.label, architecture.kind, architecture.graph)
    found = drop_marks(compare_sides(*sides, {}, {}))
    return (
        build_panes(found, (began.source, architecture.source), ("as it began", "as it is now")) if found.diff else ()
    )


def embed_in_notebook(page: str) -> str:
    """Wrap a page in an isolated frame for a notebook.

    The result is ASCII, because in another encoding the hashes of the scripts would differ from those that the page
    allows.
    """
    content = escape_html(page).encode("ascii", "xmlcharrefreplace").decode()
    style = "width: 100%; height: 640px; border: 1px solid #d3d8df; border-radius: 6px"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{content}"></iframe>'


# ------------------------------------------------------------ metrics over time


def _charts(records: Iterable[Mapping[str, Any]]) -> Iterator[Curves]:
    """Yield a chart for each metric, with a curve for each split and for each number that ends its name."""
    charts: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for record in records:
        for name, value in record.items():
            if name not in ABOUT and isinstance(value, int | float):
                metric, _, number = name.rpartition(".") if name.rpartition(".")[2].isdecimal() else (name, "", "")
                curve = f"{record['split']} {number}".strip()
                charts.setdefault(metric, {}).setdefault(curve, []).append((record["step"], value))
    for metric, curves in charts.items():
        yield Curves([Curve(name, points) for name, points in curves.items()], metric, "step")
