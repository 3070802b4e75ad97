"""List runs, and print tables of them: means over seeds, the best marked and tested."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.cli.common import add_options, read_lengths
from modgraph.files import refuse_foreign, write_output
from modgraph.log import log

if TYPE_CHECKING:
    from modgraph.api.runs import Runs
    from modgraph.tables.table import Table

USAGE = (
    "modgraph runs",
    "modgraph runs runs/sweep --where 'test.accuracy>0.9' --sort=-test.accuracy --list",
    "modgraph runs runs/sweep --rows experts --columns test.accuracy,active_macs --format markdown",
)
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
    add_options(parser, "length")
    choices = ("text", "markdown", "csv", "json")
    parser.add_argument("--format", choices=choices, help="how to print: by default as text, or by the suffix of -o")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the tables to a file")
    parser.add_argument("--html", metavar="FILE", help="write a page with tables, curves, and metrics against costs")
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    from modgraph.api.runs import runs
    from modgraph.diagnostics import ModgraphError
    from modgraph.tables.errors import NothingFits
    from modgraph.tables.render import FORMATS

    for path in filter(None, (options.output, options.html)):
        refuse_foreign(path, force=options.force)
    everything = runs(*options.folders, lengths=read_lengths(options.length))
    found = everything.where(*options.where)
    if not found:
        raise ModgraphError([NothingFits.explain_conditions(len(everything))])
    if options.html:
        found.write_page(options.html, force=options.force, name=options.table, **_read_layout(options))
        log.info(f"{options.html}: {len(found)} runs")
    kind = options.format or SUFFIXES.get(Path(options.output or "").suffix, "text")
    if options.output:
        text = FORMATS[kind](_make_tables(found, options))
        write_output(options.output, f"{text}\n".encode(), options.force)
        log.info(f"{options.output}: {len(found)} runs")
    elif not options.html:
        print(FORMATS[kind](_make_tables(found, options)))
    return 0


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
