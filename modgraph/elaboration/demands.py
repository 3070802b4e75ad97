"""Elaborates the demand that a value reads no later tokens, `require causal(logits, words)`, and checks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modgraph.declare import position_of
from modgraph.diagnostics import Span
from modgraph.elaboration import errors
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, Poison, Tensor
from modgraph.elaboration.later_reads import explain_later_reads
from modgraph.ir import Graph
from modgraph.ir.analysis.causality import Tokens, find_token_axis
from modgraph.syntax import ast
from modgraph.types import Misfit

CAUSAL = "causal"
WAY_OUT = "write which value and which tokens: require causal(logits, words)"


@dataclass(frozen=True)
class Demand:
    """A value that must not read later tokens of another, by the words of the spec, demanded at `span`."""

    value: Tensor
    tokens: Tokens
    words: tuple[str, str]
    span: Span
    elaborator: Elaborator

    @property
    def graph(self) -> Graph:
        return self.elaborator.graph


def is_demand(condition: ast.Expression) -> bool:
    """Whether a requirement is one of values, `causal(y, x)`."""
    return (
        isinstance(condition, ast.Call) and isinstance(condition.callee, ast.Name) and condition.callee.name == CAUSAL
    )


def elaborate_demand(call: ast.Call, elaborator: Elaborator) -> None:
    """Record the demand of a call `causal(value, tokens, axis=…)`, to be checked in the finished graph."""
    given = {argument.name or str(at): argument for at, argument in enumerate(call.arguments)}
    if not {"0", "1"} <= {*given} <= {"0", "1", "2", "axis"} or len(given) > 3:
        elaborator.refuse(call.span, "a value and the tokens that it reads", f"{len(given)} arguments", WAY_OUT)
        return
    value, tokens = (elaborator.evaluate_tensor(given[at].value, f"an argument of {CAUSAL}") for at in "01")
    if isinstance(value, Poison) or isinstance(tokens, Poison):
        return
    axis = given.get("axis", given.get("2"))
    place = _find_place(None if axis is None else axis.value, tokens, call, elaborator)
    if place is not None:
        words = (given["0"].value.span.text, given["1"].value.span.text)
        demand = Demand(value, Tokens(tokens.result, place), words, call.span, elaborator)
        elaborator.context.demands.append(demand)


def _find_place(axis: ast.Expression | None, tokens: Tensor, call: ast.Call, elaborator: Elaborator) -> int | None:
    """Find the place of the axis of tokens; None after a reported mistake."""
    try:
        if axis is not None:
            known = elaborator.axes.get(axis.name) if isinstance(axis, ast.Name) else None
            named = known.name if known is not None else elaborator.evaluate_constant(axis, "an axis")
            return None if named is POISON else position_of(named, tokens.type, CAUSAL)
        place = find_token_axis(tokens.type)
        if place is None:
            raise Misfit(f"{tokens.type} has no axis of tokens", "say which it is: causal(y, x, axis=-1)")
    except Misfit as found:
        facts: Any = {"who": CAUSAL, "reason": found.reason, "way_out": found.help}
        elaborator.report(errors.DoesNotFit(span=call.span, **facts))
        return None
    return place


def check_demands(demands: list[Demand]) -> None:
    """Report the demands that do not hold."""
    for demand in demands:
        found = explain_later_reads(demand.graph, demand.value.result, demand.tokens)
        if found is not None:
            value, tokens = demand.words
            demand.elaborator.report(errors.NotCausal(span=demand.span, value=value, tokens=tokens, **vars(found)))
