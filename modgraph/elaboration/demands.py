"""Elaborates the demand that a value reads no later tokens, `require causal(logits, words)`, and checks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modgraph.declare import format_briefly, format_count, position_of
from modgraph.diagnostics import Span, closest
from modgraph.elaboration import constants, errors
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, Poison, Tensor
from modgraph.elaboration.later_reads import LaterReadsFinder
from modgraph.ir import Graph
from modgraph.ir.analysis.causality import Tokens, find_token_axis, list_between
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


def elaborate_demand(condition: ast.Expression, elaborator: Elaborator) -> bool:
    """Record the demand of a requirement `causal(value, tokens, axis=…)`; return False for one of constants.

    A demand that is misspelt or part of a condition is reported.
    """
    for tree in ast.walk(condition):
        name = _name_callee(tree)
        if name == CAUSAL and isinstance(condition, ast.Call):
            _record(condition, elaborator)
        elif name == CAUSAL:
            way_out = f"require {tree.span.text}"
            elaborator.refuse(tree.span, "a requirement of its own", "a part of a condition", way_out)
        elif name and name not in constants.FUNCTIONS and closest(name, [CAUSAL]):
            elaborator.report(errors.UnknownName(span=tree.span, name=name, suggestion=f'did you mean "{CAUSAL}"?'))
        else:
            continue
        return True
    return False


def _name_callee(tree: ast.Tree) -> str:
    """The name that a call calls; "" for any other tree."""
    return tree.callee.name if isinstance(tree, ast.Call) and isinstance(tree.callee, ast.Name) else ""


def _record(call: ast.Call, elaborator: Elaborator) -> None:
    """Record the demand of a call, to be checked in the finished graph."""
    given = {argument.name or str(at): argument for at, argument in enumerate(call.arguments)}
    if not {"0", "1"} <= {*given} <= {"0", "1", "2", "axis"} or len(given) > 3:
        found = format_count(len(given), "argument")
        elaborator.refuse(call.span, "a value and the tokens that it reads, perhaps their axis", found, WAY_OUT)
        return
    for each in (given["0"].value, given["1"].value):
        if isinstance(each, ast.Pipeline | ast.Binary):
            elaborator.refuse(each.span, "the name of a value", "an expression", "bind it to a name first: y = …")
            return
    value, tokens = (elaborator.evaluate_tensor(given[at].value, f"an argument of {CAUSAL}") for at in "01")
    if isinstance(value, Poison) or isinstance(tokens, Poison):
        return
    axis = given.get("axis", given.get("2"))
    place = _find_place(None if axis is None else axis.value, tokens, call, elaborator)
    if place is not None:
        words = (given["0"].value.span.text, given["1"].value.span.text)
        demand = Demand(value, Tokens(tokens.result, place), words, call.span, elaborator)
        if value.result.node in elaborator.graph and tokens.result.node in elaborator.graph:
            elaborator.context.demands.append(demand)
        else:
            advice = "write it before or after the scan, of the sequence and the result"
            elaborator.refuse(call.span, "values of a step of the scan", "a value from outside", advice)


def _find_place(axis: ast.Expression | None, tokens: Tensor, call: ast.Call, elaborator: Elaborator) -> int | None:
    """Find the place of the axis of tokens; None after a reported mistake."""
    try:
        if axis is not None:
            word = axis.name if isinstance(axis, ast.Name) else ""
            known = elaborator.axes.get(word)
            named: Any = word if known is None else known.name
            if not named or tokens.type.position(named) is None:
                named = elaborator.evaluate_constant(axis, "an axis")
            if named is POISON:
                return None
            if not isinstance(named, str) and (type(named) is not int or named >= 0):
                raise Misfit(f"{format_briefly(named)} is no axis", "name it, or count from the last: axis=-1")
            return position_of(named, tokens.type, CAUSAL)
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
    finders = {id(demand.graph): LaterReadsFinder(demand.graph) for demand in demands}
    for demand in demands:
        value, tokens = demand.words
        if demand.tokens.value.node not in list_between(demand.graph, demand.tokens.value, demand.value.result):
            demand.elaborator.report(errors.EmptyDemand(span=demand.span, value=value, tokens=tokens))
            continue
        found = finders[id(demand.graph)].find(demand.value.result, demand.tokens)
        if found is not None:
            demand.elaborator.report(errors.NotCausal(span=demand.span, value=value, tokens=tokens, **vars(found)))
