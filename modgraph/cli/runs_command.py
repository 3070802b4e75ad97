"""List runs, and print tables of them: means over seeds, the best marked and tested."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.cli.common import add_options, read_lengths
from modgraph.files import exists, refuse_foreign, write_output
from modgraph.log import log

if TYPE_CHECKING:
    from modgraph.api.runs import Runs
    from modgraph.tables.compare import GroupsCompared
    from modgraph.tables.table import Table

USAGE = (
    "modgraph runs",
    "modgraph runs runs/sweep --where 'test.accuracy>0.9' --sort=-test.accuracy --list",
    "modgraph runs runs/sweep --compare experts=1 experts=4",
    "modgraph runs runs/sweep --rows experts --columns test.accuracy,active_macs --format markdown",
)
PICTURES = (".svg", ".png", ".pdf")
SUFFIXES = {".md": "markdown", ".csv": "csv", ".json": "json"}
LISTED = {"rows": "keys whose values make the rows", "columns": "metrics, costs and facts to print"}
SINGLE = {
    "across": ("KEY", "a key whose values make columns"),
    "choose": ("METRIC", "of the runs of each row take only the best by a metric"),
    "against": ("ROW", "test the others against this row, not against the best"),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    what = "folders that are searched for runs (runs)"
    parser.add_argument("folders", metavar="DIR", nargs="*", help=what)
    parser.add_argument("--list", action="store_true", help="a row for each run, whatever its state")
    what = "only runs that meet a condition: experts=4, 'test.accuracy>0.9', state=failed"
    parser.add_argument("--where", action="append", default=[], metavar="CONDITION", help=what)
    parser.add_argument("--sort", metavar="KEY", help="sort by a key; --sort=-KEY begins with the largest")
    for name, what in LISTED.items():
        parser.add_argument(f"--{name}", metavar="KEYS", help=f"{what}, between commas")
    for name, (metavar, what) in SINGLE.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=what)
    parser.add_argument("--percent", action="store_true", help="print accuracies as percentages")
    parser.add_argument("--table", metavar="NAME", help="only this one of the tables that a sweep lists")
    what = "compare two groups of runs: folders, or conditions on the runs of DIR"
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help=what)
    add_options(parser, "length")
    choices = ("text", "markdown", "csv", "json")
    parser.add_argument("--format", choices=choices, help="how to print: by default as text, or by the suffix of -o")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the tables to a file, or their charts: .svg, .png, .pdf"
    )
    parser.add_argument("--html", metavar="FILE", help="write a page with tables, curves, and metrics against costs")
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    from modgraph.tables.compare_text import make_tables, render_comparison
    from modgraph.tables.render import FORMATS

    for path in filter(None, (options.output, options.html)):
        refuse_foreign(path, force=options.force)
    is_picture = Path(options.output or "").suffix.lower() in PICTURES
    kind = options.format or SUFFIXES.get(Path(options.output or "").suffix, "text")
    if options.compare:
        found, compared = _compare(options)
        tables, text = make_tables(compared), render_comparison(compared, kind)
    else:
        found = _find_runs(options)
        tables = _make_tables(found, options)
        text = FORMATS[kind](tables)
    if options.html:
        found.write_page(options.html, *tables, force=options.force)
        log.info(f"{options.html}: {len(found)} runs")
    if is_picture:
        found.write_picture(options.output, *tables, force=options.force)
    elif options.output:
        write_output(options.output, f"{text}\n".encode(), options.force)
    if options.output:
        log.info(f"{options.output}: {len(found)} runs")
    elif not options.html:
        print(text)
    return 0


def _find_runs(options: argparse.Namespace, *conditions: str) -> Runs:
    """Find the runs that meet conditions, and those of the options. Raises `ModgraphError` where none does."""
    from modgraph.api.runs import runs
    from modgraph.diagnostics import ModgraphError
    from modgraph.tables.errors import NothingFits

    everything = runs(*options.folders, lengths=read_lengths(options.length))
    found = everything.where(*options.where, *conditions)
    if not found:
        raise ModgraphError([NothingFits.explain_conditions(len(everything), (*options.where, *conditions))])
    return found


def _compare(options: argparse.Namespace) -> tuple[Runs, GroupsCompared]:
    """Compare two groups of runs: each a folder, or a condition on the runs of those that the command names."""
    from modgraph.api.runs import Runs, runs
    from modgraph.tables.compare import compare_groups
    from modgraph.tables.select import CONDITION

    groups = [
        _find_runs(options, name)
        if CONDITION.fullmatch(name) and not exists(name)
        else runs(name, where=options.where, lengths=read_lengths(options.length))
        for name in options.compare
    ]
    before, after = groups
    return Runs((*before, *after)), compare_groups(before, after, tuple(options.compare))


def _read_layout(options: argparse.Namespace) -> dict[str, Any]:
    """Read the keys of a table that options give."""
    layout: dict[str, Any] = {name: getattr(options, name) for name in ("sort", *SINGLE) if getattr(options, name)}
    layout |= {name: _split(getattr(options, name)) for name in LISTED if getattr(options, name)}
    return layout | ({"percent": True} if options.percent else {})


def _make_tables(found: Runs, options: argparse.Namespace) -> list[Table]:
    """Make the tables that the options ask for: a list, one table, or those of the sweeps."""
    layout = _read_layout(options)
    if options.list:
        return [found.list(**layout)]
    if options.table is not None:
        return [found.table(options.table, **layout)]
    if layout or not found.layouts:
        return [found.table(**layout)]
    return [*found.tables().values()]


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
