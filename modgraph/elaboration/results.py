"""Outputs and losses: what a model or a block gives, and what a training makes small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from modgraph.elaboration import errors
from modgraph.elaboration.bindings import member_key, named_after
from modgraph.elaboration.context import BlockCall
from modgraph.elaboration.entities import POISON, Family, Poison, Tensor, described
from modgraph.elaboration.scans import stands_in_scan
from modgraph.elaboration.site import Site
from modgraph.ir import LossNode, OutputNode
from modgraph.syntax import ast
from modgraph.vocabulary import find_op


def elaborate_output(statement: ast.Output, site: Site) -> None:
    if site.call is not None:
        _give_out(statement, site.call, site)
        return
    if stands_in_scan(statement, "an output", "yield it, and output what was yielded", site):
        return
    reference = statement.reference or _reference(statement.value)
    if reference is None:
        found, advice = "this is an expression", "give it a name: output NAME = …"
        site.tell(errors.WrongKind(span=statement.value.span, needed="a name", found=found, way_out=advice))
        return
    key = member_key(reference, site)
    if key is POISON and statement.reference is None:
        return
    label = site.scope.weights_below(reference.name) if key is None else f"{reference.name}.{key}"
    name = f"output.{label}"
    if name in site.graph:
        advice = "give it a name of its own: output NAME = …"
        site.tell(errors.DuplicateName(span=statement.span, name=label, way_out=advice))
        return
    value = _name_member(f"output.{reference.name}", key, site).tensor(statement.value, "an output")
    if key is not POISON and isinstance(value, Tensor):
        site.add(OutputNode(name=name, label=label, span=statement.span), statement.span, {"x": value.result})


def _give_out(statement: ast.Output, call: BlockCall, site: Site) -> None:
    """Add a result to those of a block; members of one family are one result."""
    reference, expression = statement.reference, statement.value
    if reference is None:
        name = expression.name if isinstance(expression, ast.Name) else "output"
        value = named_after(name, site).tensor(expression, "an output")
        reference = _reference(expression)
        key = None if reference is None else member_key(reference, site)
    else:
        key = member_key(reference, site)
        value = _name_member(reference.name, key, site).tensor(expression, "an output")
    if reference is None or key is None or isinstance(value, Poison):
        call.outputs.append(value)
        return
    known = [each for each in call.outputs if isinstance(each, Family) and each.name == reference.name]
    family = known[0] if known else Family(reference.name, {})
    family.members[key] = value
    if not known:
        call.outputs.append(family)


def _reference(value: ast.Expression) -> ast.Reference | None:
    """The name of what is given out, or of a member of a family, where it is no other expression."""
    match value:
        case ast.Name(name=name):
            return ast.Reference(span=value.span, name=name)
        case ast.Index(target=ast.Name(name=name), index=index):
            return ast.Reference(span=value.span, name=name, index=index)
        case _:
            return None


def _name_member(name: str, key: Any, site: Site) -> Site:
    """Where the right side stands: a member is called by its key alone, whatever loops it stands in."""
    if key is None or isinstance(key, Poison):
        return named_after(name, site)
    return site.under(site.scope.member_of_body(f"{name}.{key}"))


def elaborate_loss(statement: ast.Loss, site: Site) -> None:
    if site.region:
        site.tell(errors.NotInRegion(span=statement.span, what="a loss"))
        return
    if stands_in_scan(statement, "a loss", "yield what it is of, and take the loss of what was yielded", site):
        return
    reference = statement.reference
    key = member_key(reference, site) if reference is not None else None
    inside = _name_member(f"loss.{_name_of_loss(statement)}", key, site)
    if inside.naming.node in site.graph:
        advice = "give it a name of its own: loss NAME = …"
        site.tell(errors.DuplicateName(span=statement.span, name=inside.naming.node, way_out=advice))
        return
    value = inside.evaluate(statement.value)
    if isinstance(value, Poison) or value == 0.0:  # what counts as zero is no loss
        return
    if not isinstance(value, Tensor):
        inside.tell(errors.NotValue(span=statement.value.span, what="a loss", found=described(value)))
    elif value.type.shape or value.type.dtype != "float":
        inside.tell(errors.LossIsNotNumber(span=statement.value.span, found=str(value.type)))
    elif key is not POISON:
        site.add(LossNode(name=inside.naming.node, span=statement.span), statement.span, {"x": value.result})


def _name_of_loss(statement: ast.Loss) -> str:
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
    names = (each.name for each in ast.walk(statement.value) if isinstance(each, ast.Name))
    return applied[-1] if applied else next(names, "value")


def _applied(tree: ast.Tree) -> Iterator[str]:
    """The names of what is called, or stands right of an arrow, in the order of work."""
    for value in (getattr(tree, field.name) for field in fields(tree)):
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, ast.Tree):
                yield from _applied(child)
    term = tree.callee if isinstance(tree, ast.Call) else tree.term if isinstance(tree, ast.Stage) else None
    if isinstance(term, ast.Name):
        yield term.name
