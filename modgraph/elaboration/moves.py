"""`moved old -> new`: what an earlier version of a model called otherwise. It says nothing of the model itself."""

from __future__ import annotations

from itertools import accumulate

from modgraph.diagnostics import Report, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.scope import join
from modgraph.elaboration.site import Site
from modgraph.ir import Graph, OpNode
from modgraph.syntax import ast


def moves_in(file: ast.File) -> dict[str, str]:
    """The moves that a file's model declares, new names by old ones."""
    return {each.before.name: each.after.name for model in file.models[:1] for each in _declared_in(model.body)}


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
    for each in _declared_in(body):
        for path, known in ((each.before, before), (each.after, after)):
            if known.setdefault(path.name, each) is not each:
                report.add(errors.MovedTwice(span=path.span, name=path.name))
    if not before:
        return
    nodes = [node for part in graph.parts() for node in part.graph]
    whole = {name for node in nodes for name in (node.name, node.owner if isinstance(node, OpNode) else node.name)}
    names = {above for name in whole for above in accumulate(name.split("."), join)}
    for name, each in after.items():
        if name not in names and name not in before:  # else it is there, or has moved on
            suggestion = did_you_mean(name, names, "names are those that are shown by: modgraph show")
            report.add(errors.MovedNowhere(span=each.after.span, name=name, suggestion=suggestion))


def _declared_in(body: ast.Body) -> list[ast.Moved]:
    return [each for each in body.statements if isinstance(each, ast.Moved)]
