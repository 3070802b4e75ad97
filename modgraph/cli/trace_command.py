"""Summarise what the routers of a run or of a bundle do on real data."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph_runtime.integrity import SUMMARY_KEYS

from modgraph.cli.common import add_options, is_count, read_overrides
from modgraph.diagnostics import ModgraphError, render_all
from modgraph.extras import find_missing, require
from modgraph.files import CannotWrite, refuse_foreign, write_output
from modgraph.log import log
from modgraph.store.records import json_text
from modgraph.trace.errors import NoData, NotAPicture, NotForThisTrace, NotKept, UnknownTraceSuffix
from modgraph.trace.views import EXAMPLES, VIEWS, draw, render_pictures

if TYPE_CHECKING:
    from modgraph.store.run_directory import RunDirectory
    from modgraph.trace.trace import Trace

LEAST_MEASURED = 512
PICTURES = (".png", ".svg", ".pdf")
PAGE = ".html"
SUFFIXES = (".npz", ".json", PAGE, *PICTURES)


USAGE = ("modgraph trace runs/mine", "modgraph trace runs/mine -o trace.html")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN|BUNDLE", help="a run's folder, or a bundle (.onnx)")
    add_options(parser, "set")
    what = "arrays (.npz), summary (.json), a page (.html), a view (.png .svg .pdf)"
    parser.add_argument("-o", "--output", metavar="FILE", help=what)
    parser.add_argument("--html", metavar="FILE", help="a page with the graph and the whole trace, as -o x.html")
    what = "modules over the image (places, the default), by class and group of the data, over the training; "
    what += "entropies of controllers over the training, paths from route to route, "
    what += "active modules by task and step, modules added in training"
    parser.add_argument("--view", choices=VIEWS, help=what)
    parser.add_argument("--recipe", metavar="FILE", help="for a bundle: the recipe with its data")
    what = "for a bundle: arrays named as its inputs and targets"
    parser.add_argument("--input", metavar="x.npz", help=what)
    parser.add_argument("--split", metavar="NAME", help="which data (the first split outside training)")
    parser.add_argument("--route", metavar="NAME", help="only this route")
    what = f"examples in a file of arrays or places (4); statistics use at least {LEAST_MEASURED}"
    parser.add_argument("--examples", type=_count, default=EXAMPLES, metavar="N", help=what)
    what = "steps of a time axis to print, from the first (12)"
    parser.add_argument("--steps", type=_count, metavar="N", help=what)
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object on stdout")
    add_options(parser, "force")


def _count(text: str) -> int:
    if not is_count(text):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, not {text}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    files = [path for path in (options.output, options.html) if path is not None]
    unknown = [path for path in files if _suffix(path) not in SUFFIXES]
    if options.html is not None and _suffix(options.html) != PAGE:
        unknown.append(options.html)
    if unknown:
        raise ModgraphError([UnknownTraceSuffix(path=unknown[0])])
    if options.view is not None and not any(_suffix(path) in PICTURES for path in files):
        raise ModgraphError([NotAPicture(view=options.view)])
    refuse_foreign(*files, force=options.force, keys=SUMMARY_KEYS)
    if any(_suffix(path) in (PAGE, *PICTURES) for path in files):
        require("pictures", "a picture of a trace", "write numbers: -o trace.npz")
    if any(_suffix(path) == PAGE for path in files):
        require("visualize", "a page of a trace")
    from modgraph.store.architecture import Kind, find_kind

    trace_it = _trace_bundle if find_kind(options.path) is Kind.BUNDLE else _trace_run
    trace, kept_by = trace_it(options, max(LEAST_MEASURED, options.examples))
    trace = trace if options.steps is None else replace(trace, steps=options.steps)
    from modgraph.trace.summary import as_json, as_table

    summary, pictures = as_json(trace), cache(partial(render_pictures, trace))
    for path in files:
        match _suffix(path):
            case ".json":
                content = (json_text(summary, indent=2) + "\n").encode()
            case ".npz":
                content = trace.first(options.examples).as_npz()
            case ".html":
                content = _page(options.path, summary, pictures).encode()
            case suffix:
                content = draw(options.view or "places", trace, suffix, options.examples)
        write_output(path, content, options.force, SUMMARY_KEYS)
    if kept_by is not None:
        _keep(kept_by, summary, pictures, options.force)
    print(json_text(summary) if options.json else as_table(trace, summary))
    return 0


def _suffix(path: str) -> str:
    return Path(path).suffix.lower()


def _page(path: str, summary: dict[str, Any], pictures: Callable[[], dict[str, bytes]]) -> str:
    from modgraph.inspect.page.content import Pane
    from modgraph.inspect.page.document import page_of
    from modgraph.inspect.scene import scene_of
    from modgraph.inspect.trace_sections import build_sections, find_loads, growth_section
    from modgraph.store.architecture import read_architecture

    found = read_architecture(path)
    pane = Pane(scene_of(found.graph), found.source, loads=find_loads(summary))
    grown = [growth_section(summary["growth"])] if summary["growth"] is not None else []
    return page_of(f"{found.graph.name}: trace", [pane], [*build_sections(summary, pictures()), *grown])


def _keep(run: RunDirectory, summary: dict[str, Any], pictures: Callable[[], dict[str, bytes]], force: bool) -> None:
    """Write the trace into a run that has none; report a run that cannot be written to."""
    from modgraph.store.stored_trace import keep_trace, keeps

    missing = find_missing("pictures")
    if keeps(run, summary, with_pictures=missing is None):
        return
    try:
        keep_trace(run, summary, {} if missing else pictures(), force)
        if missing:
            pictures_need = f"pictures need {missing}: pip install 'modgraph-compiler[pictures]'"
            log.info(f"trace.json is in {run.path}; {pictures_need}")
        else:
            log.info(f"trace.json and {len(pictures())} pictures are in {run.path}")
    except ModgraphError as error:
        reasons = [each.reason for each in error.diagnostics if isinstance(each, CannotWrite)]
        if not reasons:
            raise
        log.warning(render_all([NotKept(path=str(run.path), reason=reasons[0])]))


def _trace_run(options: argparse.Namespace, examples: int) -> tuple[Trace, RunDirectory | None]:
    """The trace of a run, and the run if it is to keep the trace: one of all routes, on the run's own data."""
    from modgraph.trace.trace_run import trace_run
    from modgraph.training.run import threads
    from modgraph.training.stored_run import load_run, select_data_overrides

    for option, value in (("--recipe", options.recipe), ("--input", options.input)):
        if value is not None:
            instead = "other data of its kind: -s data.test=FILE"
            raise ModgraphError([NotForThisTrace(option=option, what="a run, which has its own data", instead=instead)])
    run = load_run(options.path, **select_data_overrides(read_overrides(options.set)))
    refuse_foreign(run.directory.trace, force=options.force, keys=SUMMARY_KEYS)
    with threads(run.recipe.train.threads):
        trace = trace_run(run, options.split, options.route, examples)
    return trace, run.directory if options.route is None and not options.set else None


def _trace_bundle(options: argparse.Namespace, examples: int) -> tuple[Trace, RunDirectory | None]:
    """The trace of a bundle, which keeps nothing, on the data of a recipe or in a file."""
    from modgraph.trace.trace_bundle import TraceableBundle, trace_bundle

    traceable = TraceableBundle.read(options.path)
    if options.recipe is None and options.input is None:
        raise ModgraphError([NoData(path=options.path)])
    if options.input is None:
        splits = traceable.splits_of_recipe(options.recipe, read_overrides(options.set))
    else:
        for option, value in (("--recipe", options.recipe), ("-s", options.set)):
            if value:
                instead = "--input has all data of the trace"
                raise ModgraphError([NotForThisTrace(option=option, what="data from a file", instead=instead)])
        splits = traceable.splits_of_file(options.input)
    return trace_bundle(traceable, splits, options.split, options.route, examples), None
