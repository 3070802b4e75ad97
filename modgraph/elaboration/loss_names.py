"""What a loss statement without a name is called: after the ops that make it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from modgraph.syntax import ast
from modgraph.vocabulary import find_op


def name_of_loss(statement: ast.Loss) -> str:
    """The given name, or `importance` for `0.1 * importance(r)`.

    Of several ops that are made to be minimised all are named (`importance_load`); of none the last that is applied,
    or the value that was bound before.
    """
    if statement.reference is not None:
        return statement.reference.name
    applied = list(_applied(statement.value))
    objectives = [name for name in applied if (op := find_op(name)) is not None and op.objective]
    if objectives:
        return "_".join(dict.fromkeys(objectives))
    if applied:
        return applied[-1]
    return next(_names(statement.value), "value")


def _applied(tree: ast.Tree) -> Iterator[str]:
    """The names of what is called, or stands right of an arrow, in the order of work."""
    for child in _children(tree):
        yield from _applied(child)
    term = tree.callee if isinstance(tree, ast.Call) else tree.term if isinstance(tree, ast.Stage) else None
    if isinstance(term, ast.Name):
        yield term.name


def _names(tree: ast.Tree) -> Iterator[str]:
    """The names in an expression, from left to right."""
    if isinstance(tree, ast.Name):
        yield tree.name
    for child in _children(tree):
        yield from _names(child)


def _children(tree: ast.Tree) -> Iterator[ast.Tree]:
    for field in fields(tree):
        value = getattr(tree, field.name)
        yield from (each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, ast.Tree))
