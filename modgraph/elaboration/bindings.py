"""Elaborates the statements that bind names: bindings, members of families, outputs and losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from modgraph.diagnostics import Span
from modgraph.elaboration import entities, errors
from modgraph.elaboration.context import BlockCall
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import (
    POISON,
    AxisEntity,
    Family,
    Poison,
    Tensor,
    describe,
    flatten_values,
    is_callable,
)
from modgraph.elaboration.nodes import add_node
from modgraph.elaboration.scans import is_bound_outside, refuse_in_scan, refuse_inside
from modgraph.ir import LossNode, OutputNode
from modgraph.syntax import ast
from modgraph.types import is_key
from modgraph.vocabulary import find_op


def elaborate_binding(statement: ast.Binding, elaborator: Elaborator) -> None:
    references, span = statement.references, statement.span
    keys = [evaluate_key(reference, elaborator) for reference in references]
    name = "_".join(reference.name for reference in references)
    indexed = dict.fromkeys(key for key in keys if key is not None)
    if indexed and POISON not in keys:
        inside = elaborator.with_naming(
            elaborator.scope.next_binding(f"{name}.{'.'.join(map(str, indexed))}", is_member=True)
        )
    else:
        inside = enter_binding(name, elaborator)
    value = inside.evaluate(statement.value)
    if isinstance(value, entities.TensorTuple):
        values = list(value.tensors)
    else:  # a family is one result, or one for each member
        values = [value] if len(keys) == 1 else list(flatten_values(value))
    if len(values) != len(keys) and not isinstance(value, Poison):
        value = elaborator.report(errors.NamesAndResults(span=span, names=len(keys), values=len(values)))
    if isinstance(value, Poison):
        values = [POISON] * len(keys)
    for reference, key, each in zip(references, keys, values, strict=True):
        if is_bound_outside(reference.name, elaborator):
            elaborator.report(errors.NotAState(span=reference.span, name=reference.name))
        if is_callable(each):
            advice = f"apply it to a value, or declare it: module {reference.name} = …"
            facts: Any = {"what": "a binding", "found": describe(each), "way_out": advice}
            each = elaborator.report(errors.NotValue(span=statement.value.span, **facts))
        if isinstance(elaborator.scope.find_bound(reference.name), entities.DeclaredEntity | AxisEntity):
            elaborator.report(errors.DuplicateName(span=reference.span, name=reference.name))
            continue
        if isinstance(each, Family):  # a block names the family; the binding renames it
            each = replace(each, name=reference.name)
        elaborator.context.observe(reference.span, each)
        bind_name(reference, key, each, elaborator)


def evaluate_key(reference: ast.Reference, elaborator: Elaborator) -> Any:
    """Return the key of the member `s[k]`, or None for a plain name."""
    if reference.index is None:
        return None
    key = elaborator.evaluate_constant(reference.index, "an index")
    if isinstance(key, Poison) or is_key(key):
        return key
    problem = f"a member's name must be a whole number from 0 or a word, not {describe(key)}"
    return elaborator.report(errors.BadIndex(span=reference.index.span, problem=problem))


def bind_name(reference: ast.Reference, key: Any, value: Any, elaborator: Elaborator) -> None:
    """Bind a name, or add a member to a family, which the whole body sees."""
    name, body = reference.name, elaborator.scope.body
    family = body.names.get(name)
    if key is None or isinstance(key, Poison):
        elaborator.scope.rebind(name, value)
    elif isinstance(family, Poison):
        return
    elif family is not None and not isinstance(family, Family):
        elaborator.report(errors.DuplicateName(span=reference.span, name=name, way_out="give the family a name"))
    elif isinstance(value, Poison):
        body.declare(name, POISON)
    else:
        body.names.setdefault(name, Family(name, {})).members[key] = value


def enter_binding(name: str, elaborator: Elaborator) -> Elaborator:
    """Return an elaborator for the right side of a statement, whose inline ops take the name that it binds."""
    return elaborator.with_naming(elaborator.scope.next_binding(name))


def is_taken(name: str, span: Span, elaborator: Elaborator) -> bool:
    if name in elaborator.scope.names:
        elaborator.report(errors.DuplicateName(span=span, name=name))
        return True
    return False


def elaborate_output(statement: ast.Output, elaborator: Elaborator) -> None:
    if elaborator.call is not None:
        _add_result(statement, elaborator.call, elaborator)
        return
    if refuse_in_scan(statement, "an output", "yield it, and output the result of the scan", elaborator):
        return
    reference = statement.reference or _find_reference(statement.value)
    if reference is None:
        elaborator.refuse(statement.value.span, "a name", "an expression", "give it a name: output NAME = …")
        return
    key = evaluate_key(reference, elaborator)
    if key is POISON and statement.reference is None:
        return
    label = elaborator.scope.weight_path(reference.name) if key is None else f"{reference.name}.{key}"
    name = f"output.{label}"
    if name in elaborator.graph:
        advice = "give it another name: output NAME = …"
        elaborator.report(errors.DuplicateName(span=statement.span, name=label, way_out=advice))
        return
    value = _name_member(f"output.{reference.name}", key, elaborator).evaluate_tensor(statement.value, "an output")
    if isinstance(value, Tensor) and value.type.ends:
        what, advice = "edges are an input, not an output", "output a value of their nodes, or one over the edges"
        elaborator.report(errors.DoesNotFit(span=statement.span, who=label, reason=what, way_out=advice))
    elif key is not POISON and isinstance(value, Tensor):
        node = OutputNode(name=name, label=label, span=statement.span)
        add_node(elaborator, node, statement.span, {"x": value.result})


def _add_result(statement: ast.Output, call: BlockCall, elaborator: Elaborator) -> None:
    """Add a result to the call of a block; members of one family form one result."""
    reference, expression = statement.reference, statement.value
    if reference is None:
        name = expression.name if isinstance(expression, ast.Name) else "output"
        value = enter_binding(name, elaborator).evaluate_tensor(expression, "an output")
        reference = _find_reference(expression)
        key = None if reference is None else evaluate_key(reference, elaborator)
    else:
        key = evaluate_key(reference, elaborator)
        value = _name_member(reference.name, key, elaborator).evaluate_tensor(expression, "an output")
    if reference is None or key is None or isinstance(value, Poison):
        call.outputs.append(value)
        return
    known = [each for each in call.outputs if isinstance(each, Family) and each.name == reference.name]
    family = known[0] if known else Family(reference.name, {})
    family.members[key] = value
    if not known:
        call.outputs.append(family)


def _find_reference(value: ast.Expression) -> ast.Reference | None:
    """Return the reference that an expression consists of: a name or a member of a family; None for any other."""
    match value:
        case ast.Name(name=name):
            return ast.Reference(span=value.span, name=name)
        case ast.Index(target=ast.Name(name=name), index=index):
            return ast.Reference(span=value.span, name=name, index=index)
        case _:
            return None


def _name_member(name: str, key: Any, elaborator: Elaborator) -> Elaborator:
    """Return an elaborator for the right side of a member, named by its key regardless of enclosing loops."""
    if key is None or isinstance(key, Poison):
        return enter_binding(name, elaborator)
    return elaborator.with_naming(elaborator.scope.name_member(f"{name}.{key}"))


def elaborate_loss(statement: ast.Loss, elaborator: Elaborator) -> None:
    if refuse_inside(statement, "a loss", "yield its operand, and take the loss of the result of the scan", elaborator):
        return
    reference = statement.reference
    key = evaluate_key(reference, elaborator) if reference is not None else None
    inside = _name_member(f"loss.{_name_loss(statement)}", key, elaborator)
    if inside.naming.node in elaborator.graph:
        advice = "give it another name: loss NAME = …"
        elaborator.report(errors.DuplicateName(span=statement.span, name=inside.naming.node, way_out=advice))
        return
    value = inside.evaluate(statement.value)
    if isinstance(value, Poison) or value == 0.0:  # a constant zero is no loss
        return
    if not isinstance(value, Tensor):
        inside.report(errors.NotValue(span=statement.value.span, what="a loss", found=describe(value)))
    elif value.type.shape or value.type.dtype != "float":
        inside.report(errors.LossIsNotNumber(span=statement.value.span, found=str(value.type)))
    elif key is not POISON:
        node = LossNode(name=inside.naming.node, span=statement.span)
        add_node(elaborator, node, statement.span, {"x": value.result})


def _name_loss(statement: ast.Loss) -> str:
    """Return the given name, or `importance` for `0.1 * importance(r)`.

    If the expression applies objectives, all of them are named (`importance_load`); otherwise the last op that it
    applies, or the first name in it.
    """
    if statement.reference is not None:
        return statement.reference.name
    applied = list(_find_applied(statement.value))
    objectives = [name for name in applied if (op := find_op(name)) is not None and op.objective]
    if objectives:
        return "_".join(dict.fromkeys(objectives))
    names = (each.name for each in ast.walk(statement.value) if isinstance(each, ast.Name))
    return applied[-1] if applied else next(names, "value")


def _find_applied(tree: ast.Tree) -> Iterator[str]:
    """Iterate over the names of ops in the order in which they are applied."""
    for value in (getattr(tree, field.name) for field in fields(tree)):
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, ast.Tree):
                yield from _find_applied(child)
    term = tree.callee if isinstance(tree, ast.Call) else tree.term if isinstance(tree, ast.Stage) else None
    if isinstance(term, ast.Name):
        yield term.name
