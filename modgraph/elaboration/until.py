"""Elaborates loops that end by a value: the numbers of rounds, states of any length, and the condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modgraph.diagnostics import Span
from modgraph.elaboration import errors
from modgraph.elaboration.apply import apply_op
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import OpUse, Poison, Tensor, describe
from modgraph.ir import Graph, InputNode, OpNode, PoolNode, Result
from modgraph.ops.array import Constant
from modgraph.ops.axes import Expand
from modgraph.ops.compared import Equal
from modgraph.ops.elementwise import MaskPadding
from modgraph.syntax import ast
from modgraph.types import TensorType, shapes_meet

MOST_ROUNDS = 4096
STEPS = "scan a value with an axis, such as float[time, 8], or a range: scan 0..8 as n"


def elaborate_sequence(expression: ast.Expression, elaborator: Elaborator) -> Tensor | Poison:
    """Elaborate what a scan runs over: a value with an axis of steps, or a range, whose numbers are its rounds."""
    value, span = elaborator.evaluate(expression), expression.span
    if isinstance(value, range):
        return _number_rounds(value, span, elaborator)
    if not isinstance(value, Tensor | Poison):
        facts: Any = {"what": "the operand of a scan", "found": describe(value), "way_out": STEPS}
        return elaborator.report(errors.NotValue(**elaborator.locate(expression), **facts))
    if isinstance(value, Tensor) and (not value.type.shape or value.type.per == "batch"):
        return elaborator.report(errors.NoTimeAxis(span=span, found=str(value.type), way_out=STEPS))
    return value if isinstance(value, Poison) else Tensor(value.result, value.type, span)


def _number_rounds(rounds: range, span: Span, elaborator: Elaborator) -> Tensor | Poison:
    like = next(iter(_list_inputs(elaborator)), None)
    if not 0 < rounds.stop - rounds.start <= MOST_ROUNDS:  # `len` has a limit
        if rounds.stop <= rounds.start:
            way_out = "count from 0 to the number of rounds: 0..8"
            return elaborator.report(errors.Arithmetic(span=span, problem="a scan of no rounds", way_out=way_out))
        return elaborator.report(errors.TooLarge(span=span, what="too many rounds of a scan", limit=MOST_ROUNDS))
    if like is None:
        facts: Any = {"reason": "there is no input yet", "way_out": "write it after the inputs"}
        return elaborator.report(errors.DoesNotFit(span=span, who="a scan", **facts))
    op = Constant(sizes=(len(rounds),), names=(), numbers=tuple(map(float, rounds)), ids=None)
    found: Tensor | Poison = apply_op(OpUse(op), (like,), span, elaborator)
    return found


def _list_inputs(elaborator: Elaborator) -> list[Tensor]:
    """List the inputs of the graph that have numbers or ids."""
    nodes = elaborator.graph.nodes_of(InputNode)
    return [Tensor(Result(node.name), node.types[0]) for node in nodes if node.types[0].dtype != "length"]


def start_at_zero(type_: TensorType, known: Sequence[Tensor], span: Span, elaborator: Elaborator) -> Tensor | None:
    """Make zeros for a state with axes of any length, as long as those of a known value; None without such a value."""
    likes = [*known, *_list_inputs(elaborator)]
    fixed = [axis for axis in type_.shape if not axis.is_padded]
    names = tuple(axis.name for axis in fixed)
    named = names if any(names) else ()
    zeros = Constant(sizes=tuple(axis.size or 0 for axis in fixed), names=named, numbers=(0.0,), ids=None)
    found: Any = None
    for at, axis in enumerate(type_.shape):
        if axis.is_padded:
            like = next((each for each in likes if axis in each.type.shape), None)
            if like is None:
                return None
            if found is None:
                found = apply_op(OpUse(zeros), (like,), span, elaborator)
            place = -1 - sum(not after.is_padded for after in type_.shape[at:])
            found = apply_op(OpUse(Expand(axis=axis.name, at=place)), (found, like), span, elaborator)
    return found if isinstance(found, Tensor) else None


def elaborate_condition(
    condition: ast.Expression, changing: Sequence[str], final: Sequence[tuple[str, Tensor]], inside: Elaborator
) -> Result | None:
    """Elaborate the condition of a loop to the value that is zero for entries that end with a round.

    `changing` are the arguments of the region that change from round to round, `final` what keeps its last value, by
    name. Returns None after a reported mistake. Padding ends with the first round.
    """
    at = inside.with_naming(inside.scope.next_binding("until"))
    value = at.evaluate_tensor(condition, "the condition of until")
    if isinstance(value, Poison):
        return None
    problem = _find_problem(value, changing, final, inside)
    if problem is not None:
        inside.report(errors.BadCondition(span=condition.span, problem=problem[0], way_out=problem[1]))
        return None
    span = condition.span
    going: Any = apply_op(OpUse(Equal(right=0.0)), (value,), span, at)
    if isinstance(going, Tensor) and going.type.padded:
        going = apply_op(OpUse(MaskPadding()), (going,), span, at)
    return going.result if isinstance(going, Tensor) else None


def find_mixing_op(graph: Graph) -> str:
    """Name an op or a pool in the step of a loop whose results depend on other examples; "" without one."""
    for part in graph.parts():
        for node in part.graph:
            if isinstance(node, OpNode) and node.op.over_batch:
                return node.op.name
            if isinstance(node, PoolNode) and node.over_batch:
                return f'pool "{node.name}"'
    return ""


def _find_problem(
    value: Tensor, changing: Sequence[str], final: Sequence[tuple[str, Tensor]], inside: Elaborator
) -> tuple[str, str] | None:
    """What is wrong with a condition, and the way out."""
    if value.type.dtype != "float":
        return f"is {value.type}", "compare it: until (word == 2)"
    if value.type.per == "batch":
        return f"is {value.type}, so examples would end together", "give each example its own: without batch_mean"
    if not {*changing} & inside.graph.ancestors([value.result.node]):
        return "is the same in every round", "read a state, the step or what the body computes: until total > 0.99"
    axes = value.type.shape
    for name, each in final:
        if not shapes_meet(axes, each.type.shape[: len(axes)]):
            reason = f"is {value.type}, and {name} is {each.type}, which does not begin with its axes"
            return (
                reason,
                f"give {name} the axes of the condition first, or reduce these: until (total -> min(axis=-1)) > 0.99",
            )
    return None
