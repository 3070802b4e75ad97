"""List runs, and print tables of them: means over seeds, the best marked and tested."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from modgraph.cli.common import add_options, read_lengths
from modgraph.files import refuse_foreign, write_output
from modgraph.log import log

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
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    from modgraph.api.runs import Runs, runs
    from modgraph.diagnostics import ModgraphError
    from modgraph.tables.errors import NothingFits
    from modgraph.tables.render import FORMATS

    if options.output:
        refuse_foreign(options.output, force=options.force)
    lengths = read_lengths(options.length)
    everything: Runs = runs(*options.folders, lengths=lengths)
    found = everything.where(*options.where)
    if not found:
        raise ModgraphError([NothingFits.explain_conditions(len(everything))])
    kind = options.format or SUFFIXES.get(Path(options.output or "").suffix, "text")
    text = FORMATS[kind](_make_tables(found, options))
    if options.output:
        write_output(options.output, f"{text}\n".encode(), options.force)
        log.info(f"{options.output}: {len(found)} runs")
    else:
        print(text)
    return 0


def _make_tables(found: Any, options: argparse.Namespace) -> list[Any]:
    """Make the tables that the options ask for: a list, one table, or those of the sweeps."""
    from modgraph.tables.group import make_list
    from modgraph.tables.layout import make_layout

    layout: dict[str, Any] = {name: getattr(options, name) for name in ("sort", *SINGLE) if getattr(options, name)}
    layout |= {name: _split(getattr(options, name)) for name in LISTED if getattr(options, name)}
    layout |= {"percent": True} if options.percent else {}
    if options.list:
        return [make_list(found.facts, make_layout(**layout))]
    if options.table is not None:
        return [found.table(options.table, **layout)]
    if layout or not found.layouts:
        return [found.table(**layout)]
    return list(found.tables().values())


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
