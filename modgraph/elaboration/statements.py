"""What each kind of statement does: the table of them, and those by which values enter and leave a body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modgraph.elaboration import errors
from modgraph.elaboration.bindings import elaborate_binding, is_taken, member_key, named_after, remember
from modgraph.elaboration.blocks import take_operand
from modgraph.elaboration.declarations import declare_module, declare_pool, declare_router
from modgraph.elaboration.entities import POISON, Poison, Tensor, described
from modgraph.elaboration.growth import elaborate_grow_by
from modgraph.elaboration.loops import elaborate_for, elaborate_frozen, elaborate_if, elaborate_repeat
from modgraph.elaboration.loss_names import name_of_loss
from modgraph.elaboration.scans import elaborate_scan, elaborate_yield, stands_in_scan
from modgraph.elaboration.site import Site
from modgraph.elaboration.typing import elaborate_type
from modgraph.ir import InputNode, LossNode, OutputNode, Result, TargetNode
from modgraph.syntax import ast
from modgraph.syntax.errors import NotThereYet


def _target(statement: ast.Target, site: Site) -> None:
    if stands_in_scan(statement, "a target", "declare it before the scan", site):
        remember(statement.reference, None, POISON, site)
        return
    reference = statement.reference
    if site.call is not None or site.region:
        site.tell(errors.WrongKind(span=statement.span, needed="a model's body", found="this is a block's"))
        return
    key = member_key(reference, site)
    name = reference.name if key is None else f"{reference.name}.{key}"
    if key is POISON or (key is None and is_taken(name, reference.span, site)):
        return
    remember(reference, key, _from_outside(name, statement, TargetNode, site), site)


def _input(statement: ast.Input, site: Site) -> None:
    if is_taken(statement.name, statement.span, site):
        return
    if site.call is not None:
        type_ = elaborate_type(statement.type, site)
        given = POISON if isinstance(type_, Poison) else take_operand(type_, statement.span, site)
        site.scope.declare(statement.name, given)
        return
    if stands_in_scan(statement, "an input", "declare it before the scan", site):
        site.scope.declare(statement.name, POISON)
        return
    if site.scope.outer is not None and not site.scope.is_body:
        found = "this is inside a loop or a branch"
        site.tell(errors.WrongKind(span=statement.span, needed="a model's or a block's body", found=found))
        site.scope.declare(statement.name, POISON)
        return
    site.scope.declare(statement.name, _from_outside(statement.name, statement, InputNode, site))


def _from_outside(name: str, statement: ast.Input | ast.Target, kind: Any, site: Site) -> Tensor | Poison:
    """A value that is given to the model: an input or a target."""
    type_ = elaborate_type(statement.type, site)
    if isinstance(type_, Poison):
        return POISON
    added = site.add(kind(name=name, types=(type_,), span=statement.span), statement.span)
    return Tensor(Result(name), type_, statement.span) if added else POISON


def _output(statement: ast.Output, site: Site) -> None:
    if site.call is None and stands_in_scan(statement, "an output", "yield it, and output what was yielded", site):
        return
    name = statement.name
    if name is None:
        if not isinstance(statement.value, ast.Name) and site.call is None:
            found = "this is an expression"
            advice = "give it a name: output NAME = …"
            site.tell(errors.WrongKind(span=statement.value.span, needed="a name", found=found, way_out=advice))
            return
        name = statement.value.name if isinstance(statement.value, ast.Name) else "output"
    local = name if site.call is not None else f"output.{name}"
    value = named_after(local, site).tensor(statement.value, "an output")
    if site.call is not None:
        site.call.outputs.append(value)
    elif isinstance(value, Tensor):
        node = OutputNode(name=f"output.{site.scope.weights_below(name)}", span=statement.span)
        if node.name in site.graph:
            advice = "give it a name of its own: output NAME = …"
            site.tell(errors.DuplicateName(span=statement.span, name=name, way_out=advice))
            return
        site.add(node, statement.span, {"x": value.result})


def _loss(statement: ast.Loss, site: Site) -> None:
    if site.region:
        site.tell(errors.NotInRegion(span=statement.span, what="a loss"))
        return
    if stands_in_scan(statement, "a loss", "yield what it is of, and take the loss of what was yielded", site):
        return
    name = name_of_loss(statement)
    place = named_after("loss" if name is None else f"loss.{name}", site)
    value = place.evaluate(statement.value)
    if isinstance(value, Poison) or value == 0.0:
        return
    if not isinstance(value, Tensor):
        site.tell(errors.NotValue(span=statement.value.span, what="a loss", found=described(value)))
        return
    if value.type.shape or value.type.dtype != "float":
        site.tell(errors.LossIsNotNumber(span=statement.value.span, found=str(value.type)))
        return
    site.add(LossNode(name=place.naming.node, span=statement.span), statement.span, {"x": value.result})


def _later(what: str) -> Callable[[Any, Site], None]:
    def tell(statement: ast.Statement, site: Site) -> None:
        site.tell(NotThereYet(span=statement.span, what=what))
        for name in getattr(statement, "names", ()):
            site.scope.declare(name, POISON)

    return tell


STATEMENTS: dict[type[ast.Statement], Callable[[Any, Site], None]] = {
    ast.Input: _input,
    ast.Target: _target,
    ast.Module: declare_module,
    ast.Pool: declare_pool,
    ast.Router: declare_router,
    ast.Binding: elaborate_binding,
    ast.Output: _output,
    ast.Loss: _loss,
    ast.Repeat: elaborate_repeat,
    ast.For: elaborate_for,
    ast.If: elaborate_if,
    ast.Frozen: elaborate_frozen,
    ast.Scan: elaborate_scan,
    ast.Grow: _later('"grow … when"'),
    ast.GrowBy: elaborate_grow_by,
    ast.Yield: elaborate_yield,
}
