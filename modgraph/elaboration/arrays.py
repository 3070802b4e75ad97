"""Arrays that are learned, arrays that a spec gives, and states: arrays that a rule moves from step to step."""

from __future__ import annotations

from math import prod
from typing import Any

from modgraph.declare import sizes
from modgraph.elaboration import errors
from modgraph.elaboration.apply import apply_op
from modgraph.elaboration.bindings import is_taken, named_after
from modgraph.elaboration.calls import initial_of
from modgraph.elaboration.entities import POISON, OpUse, Poison, Tensor, described
from modgraph.elaboration.scans import stands_in_scan
from modgraph.elaboration.site import Site
from modgraph.elaboration.typing import elaborate_type
from modgraph.ir import InputNode, OpNode, Result
from modgraph.ir.analysis.learnt import ruled_states
from modgraph.ops.array import Constant, NextState, Parameter, State
from modgraph.syntax import ast

WHERE_STATES_STAND = "declare it before the scan, and move it after"


def declare_array(statement: ast.Array, site: Site) -> None:
    """An array that is learned, one that is given, or one that a rule moves."""
    if is_taken(statement.name, statement.span, site):
        return
    use, found = _use_of(statement, site), POISON
    like = next((node for node in site.graph.of_kind(InputNode) if node.types[0].dtype != "length"), None)
    if isinstance(use, OpUse) and like is not None:
        operand = Tensor(Result(like.name), like.types[0], statement.span)
        found = apply_op(use, (operand,), statement.span, named_after(statement.name, site))
    elif isinstance(use, OpUse):
        reason, advice = "there is no input yet", "declare it behind the inputs"
        site.tell(errors.DoesNotFit(span=statement.span, who=statement.name, reason=reason, way_out=advice))
    site.scope.declare(statement.name, found)


def _use_of(statement: ast.Array, site: Site) -> OpUse | Poison:
    """The op of an array, with its axes and its numbers or how it starts."""
    keyword, value = statement.keyword, statement.value
    type_: Any = elaborate_type(statement.type, site)
    if not isinstance(type_, Poison) and (type_.dtype != "float" or type_.padded):
        what = "a weight" if keyword == "weight" else "an array"
        problem = f"{what} has numbers of a fixed length along each axis, and this is {type_}"
        way_out = "for example: float[expert, 8]"
        type_ = site.tell(errors.BadAxis(span=statement.type.span, problem=problem, way_out=way_out))
    start: Any = site.constant(value, "a constant array") if keyword == "constant" else initial_of(value, site)
    in_scan = keyword == "state" and stands_in_scan(statement, "a state that training moves", WHERE_STATES_STAND, site)
    if isinstance(type_, Poison) or isinstance(start, Poison) or in_scan:
        return POISON
    names = tuple(axis.name for axis in type_.shape)
    axes: dict[str, Any] = {"sizes": sizes(type_.shape), "names": names if any(names) else ()}
    if keyword != "constant":
        return OpUse((State if keyword == "state" else Parameter)(**axes), statement.name, start)
    numbers = _numbers(start, axes["sizes"])
    if isinstance(numbers, str):
        return site.tell(errors.NoSuchArray(span=value.span, type=str(type_), problem=numbers))
    return OpUse(Constant(**axes, numbers=tuple(map(float, numbers))), statement.name)


def _numbers(value: Any, lengths: tuple[int, ...]) -> list[float] | str:
    """The numbers of an array in order, one where it is of one number; or what is wrong with them."""
    level = [value]
    for length in lengths if isinstance(value, tuple) else ():
        if not all(isinstance(each, tuple) for each in level):
            return f"it has lists of fewer than {len(lengths)} axes"
        found = {len(each) for each in level}
        if found - {length}:
            ragged = "its lists are not as long as each other"
            return ragged if len(found) > 1 else f"a list of {found.pop()} stands where {length} are meant"
        level = [item for each in level for item in each]
    sound = all(type(each) in (int, float) for each in level) and (len(level) == prod(lengths) or level == [value])
    return level if sound else "it has what is no number"


def elaborate_next(statement: ast.Next, site: Site) -> None:
    """What a state is after a step of training."""
    if stands_in_scan(statement, "the next value of a state", WHERE_STATES_STAND, site):
        return
    if site.region:
        advice = "declare the state outside of the pool, with its modules as an axis: state s: float[POOL, 8] = zeros"
        site.tell(errors.NotInRegion(span=statement.span, what="the next value of a state", way_out=advice))
        return
    inside = named_after(f"next_{statement.name}", site)
    value = inside.tensor(statement.value, "the next value of a state")
    state = site.scope.find(statement.name)
    if isinstance(value, Poison) or isinstance(state, Poison):
        return
    node = site.graph[state.result.node] if isinstance(state, Tensor) and state.result.node in site.graph else None
    if not (isinstance(state, Tensor) and isinstance(node, OpNode) and isinstance(node.op, State)):
        found = "not declared" if state is None else described(state)
        site.tell(errors.NoState(span=statement.name_span, name=statement.name, found=found))
    elif node.owner in {state.owner for _, state in ruled_states(site.graph)}:
        site.tell(errors.TwoNexts(span=statement.span, name=node.owner))
    else:
        apply_op(OpUse(NextState()), (state, value), statement.span, inside)
