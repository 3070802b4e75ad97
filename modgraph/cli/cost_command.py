"""Count parameters and multiply-accumulates per example, in all and by node."""

from __future__ import annotations

import argparse
import json
import os

from modgraph.cli.common import add_overrides, load_spec
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.inspect.cost import COUNTS, Cost, check_lengths, cost_of
from modgraph.ir import Graph


class BadLength(Diagnostic):
    """`cost --length` takes AXIS=N: an axis without a number in the spec, and how long it is taken to be."""

    code = "MG126"
    message = '--length takes AXIS=N with a whole number from 1 to 999999999, not "{given}"'
    help = "for example: --length time=100"
    given: str


class LengthGivenTwice(Diagnostic):
    """An axis has one length in a count."""

    code = "MG127"
    message = '--length gives the axis "{name}" twice'
    help = "keep one of them"
    name: str


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC|RUN")
    add_overrides(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--length",
        action="append",
        default=[],
        metavar="AXIS=N",
        help="the length of an axis of any length (1 where none is given)",
    )


def run(options: argparse.Namespace) -> int:
    graph, lengths = _graph(options), _lengths(options.length)
    check_lengths(graph, lengths)
    cost = cost_of(graph, lengths)
    print(json.dumps(cost.as_json(), indent=2) if options.json else _table(cost))
    return 0


def _graph(options: argparse.Namespace) -> Graph:
    if os.path.isdir(options.spec):  # noqa: PTH112 (`Path.is_dir` raises for a name that is too long)
        from modgraph.store.run_directory import graph_of_run

        return graph_of_run(options.spec)
    return load_spec(options.spec, options).ir


def _lengths(given: list[str]) -> dict[str, int]:
    lengths = {}
    for text in given:
        name, _, number = text.partition("=")
        if not (number.isascii() and number.isdigit()) or len(number) > 9 or int(number) < 1:
            raise ModgraphError([BadLength(given=text)])
        if name in lengths:
            raise ModgraphError([LengthGivenTwice(name=name)])
        lengths[name] = int(number)
    return lengths


def _table(cost: Cost) -> str:
    """A row a node that costs anything, indented below what it is part of."""
    rows = [("", *COUNTS)]
    for name, each in cost.nodes.items():
        if each.parameters or each.macs:
            depth = name.count(".")
            rows.append(("  " * depth + name.rpartition(".")[2], *_numbers(each)))
    rows.append(("in all", *_numbers(cost)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        row[0].ljust(widths[0]) + "".join("  " + cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _numbers(cost: Cost) -> tuple[str, ...]:
    return tuple(f"{getattr(cost, name):,}" for name in COUNTS)
