"""Expressions of ops over results of a graph that become nodes only on demand."""

from __future__ import annotations

from dataclasses import dataclass

from modgraph.diagnostics import Span
from modgraph.elaboration.apply import apply_op
from modgraph.elaboration.entities import POISON, OpUse, Poison, Tensor, several
from modgraph.elaboration.site import Site
from modgraph.ir import Graph, Result
from modgraph.ops import Op
from modgraph.ops.arithmetic import Multiply
from modgraph.ops.compared import Where
from modgraph.types import Misfit, TensorType

MOST_OPS = 100  # of one formula


@dataclass(frozen=True)
class Formula:
    """A result of a graph, or the result at `index` of an op on formulas. `size` counts the ops."""

    type: TensorType
    source: Result | Op
    operands: tuple[Formula, ...] = ()
    index: int = 0
    size: int = 0


def formula_of(result: Result, graph: Graph) -> Formula:
    """The formula without ops for a result."""
    return Formula(graph.type_of(result), result)


def apply_to(op: Op, *operands: Formula | None, index: int = 0) -> Formula | None:
    """An op applied to formulas; None if one of them is None, if the op does not fit them, or beyond `MOST_OPS`."""
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
    """Ones of the shape of a formula."""
    return apply_to(Where(then=1.0, otherwise=1.0), formula)


def broadcast_to(formula: Formula, place: int, operands: tuple[Formula, ...], type_: TensorType) -> Formula | None:
    """A formula in place of one of an op's operands, broadcast as the op broadcasts them to its result."""
    if formula.type.shape == type_.shape:
        return formula
    found: Formula | None = None
    for at, other in enumerate(operands):
        each = formula if at == place else ones_like(other)
        found = each if at == 0 else apply_to(Multiply(left=None, right=None), found, each)
    return found if found is not None and found.type.shape == type_.shape else None


def compute(formula: Formula, span: Span | None, site: Site) -> Tensor | Poison:
    """Add the ops of a formula to the graph."""
    if isinstance(formula.source, Result):
        return Tensor(formula.source, formula.type, span)
    operands = tuple(compute(each, span, site) for each in formula.operands)
    if any(isinstance(each, Poison) for each in operands):
        return POISON
    results = apply_op(OpUse(formula.source), operands, span, site)  # type: ignore[arg-type]
    found: Tensor | Poison = several(results)[formula.index]
    return found
