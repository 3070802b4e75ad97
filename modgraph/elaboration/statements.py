"""The rules of the language for each kind of tree; elaborates inputs and targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modgraph.elaboration import bindings, declarations, errors
from modgraph.elaboration.apply import apply_module, apply_op
from modgraph.elaboration.bindings import bind_name, evaluate_key, is_taken
from modgraph.elaboration.blocks import apply_block, elaborate_require
from modgraph.elaboration.decisions import bind_input, elaborate_record
from modgraph.elaboration.elaborator import Elaborator, Rules
from modgraph.elaboration.entities import POISON, BlockUse, ModuleEntity, OpUse, Poison, PoolMember, Template, Tensor
from modgraph.elaboration.expressions import EXPRESSIONS, resolve_term
from modgraph.elaboration.growth import elaborate_grow, elaborate_grow_by
from modgraph.elaboration.loops import elaborate_frozen, elaborate_if, elaborate_loop
from modgraph.elaboration.nodes import add_node
from modgraph.elaboration.operands import evaluate_default, take_operand
from modgraph.elaboration.pipelines import apply_template
from modgraph.elaboration.routes import apply_member
from modgraph.elaboration.scans import elaborate_scan, elaborate_yield, refuse_in_scan
from modgraph.elaboration.typing import elaborate_type
from modgraph.ir import InputNode, Result, TargetNode
from modgraph.syntax import ast
from modgraph.types import Axis


def _elaborate_target(statement: ast.Target, elaborator: Elaborator) -> None:
    key = None
    value: Tensor | Poison = POISON
    if not refuse_in_scan(statement, "a target", "declare it before the scan", elaborator):
        if elaborator.call is not None or elaborator.region:
            elaborator.refuse(statement.span, "the body of a model", "the body of a block")
        else:
            key = evaluate_key(statement.reference, elaborator)
            if key is POISON or (
                key is None and is_taken(statement.reference.name, statement.reference.span, elaborator)
            ):
                return
            value = _declare_given(statement, key, elaborator)
    bind_name(statement.reference, key, value, elaborator)


def _elaborate_input(statement: ast.Input, elaborator: Elaborator) -> None:
    """Bind the next operand of a block, or declare an input of the model."""
    name, key = statement.reference.name, evaluate_key(statement.reference, elaborator)
    if key is POISON or (key is None and is_taken(name, statement.span, elaborator)):
        return
    value: Any = POISON
    if elaborator.call is not None and elaborator.call.operands is not None:
        edges = Axis(None, name) if key is None else None
        type_ = elaborate_type(statement.type, elaborator, of_input=True, edges=edges)
        value = take_operand(type_, statement, elaborator)
        value = bind_input(value, statement, elaborator) if isinstance(value, Tensor | Poison) else value
    elif refuse_in_scan(statement, "an input", "declare it before the scan", elaborator):
        pass
    elif key is None and (elaborator.scope.path, elaborator.scope.suffix) != (
        elaborator.scope.body.path,
        elaborator.scope.body.suffix,
    ):
        way_out = f"declare a member of a family: input {name}[k]: …"
        elaborator.refuse(statement.span, "a place outside loops", "a loop", way_out)
    else:
        value = _declare_given(statement, key, elaborator)
        if statement.default is not None and elaborator.call is not None:  # a block by itself
            evaluate_default(statement.default, statement, elaborator)
        elif statement.default is not None:
            way_out = f"leave it out: input {statement.reference.span.text}: {statement.type.span.text}"
            elaborator.refuse(statement.default, "no default", "a default of a model's input", way_out)
    if key is None:
        elaborator.scope.declare(name, value)
    else:
        bind_name(statement.reference, key, value, elaborator)


def _declare_given(statement: ast.Input | ast.Target, key: Any, elaborator: Elaborator) -> Tensor | Poison:
    """Declare an input or a target of the model."""
    name = statement.reference.name if key is None else f"{statement.reference.name}.{key}"
    kind = InputNode if isinstance(statement, ast.Input) else TargetNode
    edges = Axis(None, name) if kind is InputNode and key is None else None
    type_ = elaborate_type(statement.type, elaborator, edges=edges)
    if isinstance(type_, Poison) or not add_node(
        elaborator, kind(name=name, types=(type_,), span=statement.span), statement.span
    ):
        return POISON
    return Tensor(Result(name), type_, statement.span)


def _check_move(statement: ast.Move, elaborator: Elaborator) -> None:
    """Check that a move is at the top of a model; `check_moves` compares it with the finished graph."""
    is_inside = elaborator.call is not None or elaborator.region or elaborator.scan is not None
    if is_inside or not elaborator.scope.is_body:
        elaborator.report(errors.MoveInside(span=statement.span))


STATEMENTS: dict[type[ast.Statement], Callable[[Any, Elaborator], None]] = {
    ast.Input: _elaborate_input,
    ast.Target: _elaborate_target,
    ast.Module: declarations.declare_module,
    ast.Pool: declarations.declare_pool,
    ast.Router: declarations.declare_router,
    ast.Binding: bindings.elaborate_binding,
    ast.Output: bindings.elaborate_output,
    ast.Loss: bindings.elaborate_loss,
    ast.Loop: elaborate_loop,
    ast.If: elaborate_if,
    ast.Frozen: elaborate_frozen,
    ast.Scan: elaborate_scan,
    ast.Grow: elaborate_grow,
    ast.GrowBy: elaborate_grow_by,
    ast.Yield: elaborate_yield,
    ast.Move: _check_move,
    ast.Array: declarations.declare_array,
    ast.Next: declarations.elaborate_next,
    ast.Record: elaborate_record,
    ast.Require: elaborate_require,
}
RULES = Rules(
    expressions=EXPRESSIONS,
    statements=STATEMENTS,
    applications={
        OpUse: apply_op,
        BlockUse: apply_block,
        Template: apply_template,
        ModuleEntity: apply_module,
        PoolMember: apply_member,
    },
    term=resolve_term,
)
