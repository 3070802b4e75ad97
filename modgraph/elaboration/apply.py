"""Applies ops and modules to values by adding nodes to the graph. Formulas of ops become nodes only on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modgraph.diagnostics import Span
from modgraph.elaboration import errors
from modgraph.elaboration.causes import find_cause
from modgraph.elaboration.context import OPERAND
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import (
    POISON,
    ModuleEntity,
    OpUse,
    Poison,
    Tensor,
    TensorTuple,
    flatten_values,
    note_origins,
)
from modgraph.elaboration.nodes import add_node, is_own
from modgraph.elaboration.scope import Naming, Scope
from modgraph.frozen import replace_fields
from modgraph.ir import Graph, OpNode, Result
from modgraph.ops import Op
from modgraph.ops.arithmetic import ARITHMETIC
from modgraph.ops.compared import Where
from modgraph.ops.edges import EdgeOp, Send
from modgraph.types import Misfit, TensorType

ADD: Any = ARITHMETIC["+"]
MULTIPLY: Any = ARITHMETIC["*"]
SEND: Any = Send
MOST_OPS = 100  # in one formula


def apply_module(module: ModuleEntity, tensors: tuple[Tensor, ...], span: Span, elaborator: Elaborator) -> Any:
    """Apply a named instance: its nodes lie below the statement, its weights below the module."""
    if not is_own(module, span, elaborator):
        return POISON
    node, _ = elaborator.naming.next(module.word)
    naming = Naming(node, module.path, Scope(module.path, node, frozen=module.frozen))
    elaborator.context.shorter[node] = elaborator.naming.shorter(node)
    with elaborator.context.enter_use("module", module.word, naming, span):
        return elaborator.with_naming(naming).with_scope(naming.scope).apply(module.template, tensors, span)


def apply_op(bound: OpUse, tensors: tuple[Tensor, ...], span: Any, elaborator: Elaborator) -> Any:
    """Add an op node and return its results; poison where the types do not fit."""
    op, context = bound.op, elaborator.context
    if isinstance(op, EdgeOp):
        tensors = _add_nodes(op, tensors, elaborator)
    context.spend(OPERAND * len(tensors), span)
    try:
        signature = context.bind_signature(op, tuple([tensor.type for tensor in tensors]))
        shapes = signature.weight_shapes
        if bound.initial is not None and op.all_weights():
            signature.compute_scale(op.all_weights()[0], bound.initial)
    except Misfit as misfit:
        return report_misfit(misfit, op.name, tensors, span, elaborator)
    context.spend(2 * len(signature.results), span)
    name, owner = elaborator.naming.next(op.name, bound.label)
    if not _has_name_of_its_own(owner, span, elaborator) or (
        shapes and not agree_on_weights(owner, shapes, span, elaborator)
    ):
        return POISON
    context.count("weights", len(shapes), span)
    if shapes and elaborator.naming.shifting is not None and bound.label is None:
        elaborator.report(errors.NamesWouldShift(span=span, name=elaborator.naming.shifting))
    inputs = {slot: tensor.result for slot, tensor in zip(op.slots_of(len(tensors)), tensors, strict=True)}
    facts: Any = {"op": op, "owner": owner, "initial": bound.initial, "frozen": elaborator.scope.frozen}
    node = OpNode(name=name, types=signature.results, span=span, within=context.call, **facts)
    known = signature if signature.declaration is op else replace_fields(signature, declaration=op)
    if not add_node(elaborator, node, span, inputs, padded=signature.padded, known=known):
        return POISON
    results = tuple([Tensor(Result(name, at), type_, span) for at, type_ in enumerate(signature.results)])
    return results[0] if len(results) == 1 else TensorTuple(results)


def _add_nodes(op: EdgeOp, tensors: tuple[Tensor, ...], elaborator: Elaborator) -> tuple[Tensor, ...]:
    """Add a value over the nodes where no operand has their axis: an input of the body if there is one."""
    axis = op.lacks_nodes(tuple(tensor.type for tensor in tensors))
    if axis is None:
        return tensors
    known = [value for scope in reversed([*elaborator.scope.chain()]) for value in scope.names.values()]
    values = [
        each for each in known if isinstance(each, Tensor) and each.type.dtype != "edge" and each.type.per != "batch"
    ]
    found = [each for each in values if axis in each.type.shape]
    found.sort(key=lambda each: each.result.node not in elaborator.context.given)
    return (*tensors, *found[:1])


def _has_name_of_its_own(owner: str, span: Span, elaborator: Elaborator) -> bool:
    """Whether the name of an op's weights lies neither above nor below that of another op; reserve the name."""
    known, parts = elaborator.context.owners.setdefault(elaborator.home, {}), owner.split(".")
    above = [".".join(parts[:end]) for end in range(1, len(parts))]
    other = next((each for each in above if known.get(each) == each), None)
    other = other or (known[owner] if known.get(owner, owner) != owner else None)
    for each in (*above, owner):
        known.setdefault(each, owner)
    if other is not None:
        elaborator.report(errors.NameAcross(span=span, name=owner, other=other))
    return other is None


def agree_on_weights(owner: str, shapes: dict[str, tuple[int, ...]], span: Span, elaborator: Elaborator) -> bool:
    """Whether the weights of an owner have the shapes of its earlier uses."""
    earlier = elaborator.context.weights.setdefault((elaborator.home, owner), shapes)
    if earlier.keys() != shapes.keys():
        facts: Any = {"found": ", ".join(shapes) or "none", "earlier": ", ".join(earlier) or "none"}
        elaborator.report(errors.SharedWithOtherWeights(span=span, name=owner, **facts))
        return False
    other = next((name for name, shape in shapes.items() if earlier[name] != shape), None)
    if other is not None:
        facts = {"weight": other or owner, "found": str([*shapes[other]]), "earlier": str([*earlier[other]])}
        elaborator.report(errors.SharedWithOtherShapes(span=span, name=owner, **facts))
    return other is None


def report_misfit(misfit: Misfit, who: str, tensors: tuple[Tensor, ...], span: Span, elaborator: Elaborator) -> Poison:
    """Report a misfit, with its likely cause and notes on the origins of the `tensors`."""
    way_out, further = find_cause(misfit, tensors, elaborator) or (misfit.help, ())
    notes = (*note_origins(tensors, misfit.operand), *further)
    return elaborator.report(errors.DoesNotFit(span=span, notes=notes, who=who, reason=misfit.reason, way_out=way_out))


@dataclass(frozen=True)
class Formula:
    """A result of a graph, or the result at `index` of an op applied to formulas. `size` counts the ops."""

    type: TensorType
    source: Result | Op
    operands: tuple[Formula, ...] = ()
    index: int = 0
    size: int = 0


def make_formula(result: Result, graph: Graph) -> Formula:
    """Return the formula of a result, which has no ops."""
    return Formula(graph.type_of(result), result)


def apply_to(op: Op, *operands: Formula | None, index: int = 0) -> Formula | None:
    """Apply an op to formulas; None if one is None, the op does not fit them, or the formula exceeds `MOST_OPS`."""
    known = tuple(each for each in operands if each is not None)
    size = 1 + sum(each.size for each in known)
    if len(known) < len(operands) or size > MOST_OPS:
        return None
    try:
        results = op.bind(*(each.type for each in known)).results
    except Misfit:
        return None
    return Formula(results[index], op, known, index, size)


def ones_like(formula: Formula) -> Formula | None:
    return apply_to(Where(then=1.0, otherwise=1.0), formula)


def broadcast_to(formula: Formula, place: int, operands: tuple[Formula, ...], type_: TensorType) -> Formula | None:
    """Broadcast a formula that takes the place of an op's operand to the shape of the op's result."""
    if formula.type.shape == type_.shape:
        return formula
    found: Formula | None = None
    for at, other in enumerate(operands):
        each = formula if at == place else ones_like(other)
        found = each if at == 0 else apply_to(MULTIPLY(left=None, right=None), found, each)
    return found if found is not None and found.type.shape == type_.shape else None


def compute(formula: Formula, span: Span | None, elaborator: Elaborator) -> Tensor | Poison:
    """Add the ops of a formula to the graph and return its value."""
    if isinstance(formula.source, Result):
        return Tensor(formula.source, formula.type, span)
    operands = [each for operand in formula.operands if isinstance(each := compute(operand, span, elaborator), Tensor)]
    if len(operands) < len(formula.operands):
        return POISON
    found: Tensor | Poison = flatten_values(apply_op(OpUse(formula.source), tuple(operands), span, elaborator))[
        formula.index
    ]
    return found
