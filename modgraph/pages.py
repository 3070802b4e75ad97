"""Builds pages: the graph of a spec or a bundle, and the graph, metrics and trace of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from modgraph.files import read_file
from modgraph.inspect.diff import Side, compare_sides
from modgraph.inspect.diff.architecture_diff import drop_marks
from modgraph.inspect.diff.html import build_panes
from modgraph.inspect.diff.plan import build_plan
from modgraph.inspect.page.content import FITTING, Content, DrawingOptions, Pane, Plan, Section, Text
from modgraph.inspect.page.document import page_of, page_of_levels
from modgraph.inspect.quote import escape_html
from modgraph.inspect.run_sections import (
    build_confusion,
    build_curves,
    build_loads,
    build_recipe,
    build_results,
    summarize_results,
)
from modgraph.inspect.scene import scene_of
from modgraph.inspect.trace_sections import build_sections, find_loads, growth_section
from modgraph.store.architecture import Architecture, Kind, read_architecture
from modgraph.store.growth import read_growth
from modgraph.store.journal import check_logs, read_metrics, read_samples
from modgraph.store.matrices import read_confusion
from modgraph.store.run_directory import CHANGED, RunDirectory
from modgraph.store.stored_trace import read_trace
from modgraph.tables.collect import read_run
from modgraph.tables.facts import DAMAGED, RunFacts


def write_page_of_architecture(architecture: Architecture, options: DrawingOptions = FITTING) -> str:
    """Build the page of a spec, a run or a bundle. Raises `ModgraphError` where a run's records are damaged."""
    run, pane = architecture.run, Pane(scene_of(architecture.graph), architecture.source, options=options)
    if run is None or architecture.kind is not Kind.RUN:
        return page_of(pane.scene.name, [pane])
    check_logs(run)
    trace, growth, facts = read_trace(run), read_growth(run), read_run(run.path)
    sections = [*_list_sections(architecture, run, facts)]
    sections += [growth_section(growth)] if growth is not None else []
    if trace is not None:
        pictures = {view: read_file(path) for view, path in trace.pictures.items()}
        sections += build_sections(trace.content, pictures, trace.stale)
    splits = run.read_data_record()["splits"]
    grown = " ".join(f"-s {name}={value}" for name, value in (run.read_record().get("grown") or {}).items())
    notes = [*summarize_results(facts.metrics, splits)]
    notes += [f"the grown model is the spec with {grown}"] if grown else []
    if trace is None and architecture.graph.records():
        notes.append(f"What its routers do on real data is shown here after: modgraph trace {architecture.label}")
    if trace is not None and trace.stale:
        notes.append(f"The trace is of an older model; make it anew: modgraph trace {architecture.label}")
    panes, plan = _compare_with_start(architecture, run)
    *earlier, now = panes or [pane]
    loads = {} if trace is None else find_loads(trace.content)
    return page_of(
        architecture.graph.name, [*earlier, replace(now, loads=loads, notes=notes, options=options)], sections, plan
    )


def write_notebook_view(architecture: Architecture, options: DrawingOptions = FITTING) -> str:
    """Build a small page of a graph for a notebook, which unfolds in levels, without the data of a run."""
    pane = Pane(scene_of(architecture.graph), architecture.source)
    run = architecture.run if architecture.kind is Kind.RUN else None
    panes = [pane] if run is None else [*_compare_with_start(architecture, run)[0]] or [pane]
    more = "" if run is None else ", with its metrics and trace"
    hint = f'Here boxes unfold level by level. The whole page{more}: visualize("page.html").'
    return page_of_levels(architecture.graph.name, [*panes[:-1], replace(panes[-1], notes=[hint], options=options)])


def _list_sections(architecture: Architecture, run: RunDirectory, facts: RunFacts) -> Iterator[Section]:
    """Yield what the run's files hold, and for what they lack how to get it."""
    label, records, samples = architecture.label, read_metrics(run), read_samples(run)
    record, parameters = run.read_record(), architecture.graph.parameters
    unfinished = f"The run is not finished; resume it: modgraph train --resume {label}"
    notes = [] if facts.is_finished else [unfinished]
    notes = [f"Its results cannot be read: {facts.reason}."] if facts.state == DAMAGED else notes
    yield build_results(facts.metrics, facts.latest, facts.costs, run.read_data_record()["splits"], notes)
    yield build_recipe(facts.settings, parameters, record.get(CHANGED))
    found = read_confusion(run)
    pairs = {split: {name: (each.classes, each.counts) for name, each in of.items()} for split, of in found.items()}
    confusion: list[Content] = [*build_confusion(pairs)]
    if not confusion and facts.is_finished and any(name.endswith(".accuracy") for name in facts.metrics):
        confusion = [Text(f"This run keeps no confusion matrix, but this prints it: modgraph eval {label} --detail")]
    if confusion:
        yield Section("Confusion", confusion)
    if curves := build_curves(records, samples):
        missing = "" if samples else "Norms of gradients are recorded in trainings from now on: train the model anew."
        yield Section("Training", [*curves, *([Text(missing)] if missing else [])])
    if loads := build_loads(records, samples):
        yield Section("Load of modules", loads)


def _compare_with_start(architecture: Architecture, run: RunDirectory) -> tuple[Sequence[Pane], Plan | None]:
    """Build panes for the initial and the current graph of a run, with additions marked, and the plan from one to the
    other; none without growth."""
    if run.read_graph() == architecture.graph:
        return (), None
    began = read_architecture(run.ir)
    sides = Side(run.ir.name, began.kind, began.graph), Side(architecture.label, architecture.kind, architecture.graph)
    found = drop_marks(compare_sides(*sides, {}, {}))
    if not found.diff:
        return (), None
    panes = build_panes(found, (began.source, architecture.source), ("as it began", "as it is now"))
    return panes, build_plan(found, panes[0].scene, panes[1].scene)


def embed_in_notebook(page: str) -> str:
    """Wrap a page in an isolated frame for a notebook.

    The result is ASCII, because in another encoding the hashes of the scripts would differ from those that the page
    allows.
    """
    content = escape_html(page).encode("ascii", "xmlcharrefreplace").decode()
    style = "width: 100%; height: 640px; border: 1px solid #d3d8df; border-radius: 6px"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{content}"></iframe>'
