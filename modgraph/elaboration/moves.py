"""`moved old -> new`: what an earlier version of a model called otherwise. It says nothing of the model itself."""

from __future__ import annotations

from collections.abc import Iterator

from modgraph.diagnostics import Report, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.site import Site
from modgraph.ir import Graph, OpNode
from modgraph.syntax import ast


def moves_in(file: ast.File) -> dict[str, str]:
    """The moves that a file's model declares, new names by old ones."""
    return {each.before.name: each.after.name for model in file.models[:1] for each in _declared(model.body)}


def elaborate_moved(statement: ast.Moved, site: Site) -> None:
    """A declaration stands at the top of a model, and is looked at when the graph is whole."""
    outer = site.scope.outer
    at_top = outer is not None and outer.outer is None
    if site.call is not None or site.region or not at_top:
        site.tell(errors.MoveInside(span=statement.span))


def check_moves(body: ast.Body, graph: Graph, report: Report) -> None:
    """Tells of names that are moved twice, and of those that the graph does not have."""
    before: dict[str, ast.Moved] = {}
    after: dict[str, ast.Moved] = {}
    for each in _declared(body):
        for path, known in ((each.before, before), (each.after, after)):
            if known.setdefault(path.name, each) is not each:
                report.add(errors.MovedTwice(span=path.span, name=path.name))
    if before:
        names = sorted(_names(graph))
        for each in after.values():
            _check_new(each, names, {*before}, report)


def _check_new(declared: ast.Moved, names: list[str], moved_on: set[str], report: Report) -> None:
    """The new name is there, or has moved on."""
    name = declared.after.name
    if name not in names and name not in moved_on:
        suggestion = did_you_mean(name, names, "names are those that are shown by: modgraph show")
        report.add(errors.MovedNowhere(span=declared.after.span, name=name, suggestion=suggestion))


def _declared(body: ast.Body) -> list[ast.Moved]:
    return [each for each in body.statements if isinstance(each, ast.Moved)]


def _names(graph: Graph) -> set[str]:
    """The names of nodes and of weights, and all that these lie below."""
    return {head for name in _whole_names(graph) for head in _heads(name)}


def _whole_names(graph: Graph) -> Iterator[str]:
    for part in graph.parts():
        for node in part.graph:
            yield node.name
            if isinstance(node, OpNode):
                yield node.owner


def _heads(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))
