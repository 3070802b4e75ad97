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
from modgraph.ir import Graph, InputNode, OpNode, Result
from modgraph.ir.analysis.learnt import ruled_states
from modgraph.ops.array import Constant, NextState, State
from modgraph.ops.parameter import Parameter
from modgraph.syntax import ast
from modgraph.types import TensorType

Declared = ast.WeightOf | ast.ConstantOf | ast.StateOf


def declare_array(statement: Declared, site: Site) -> None:
    """An array that is learned, one that is given, or one that a rule moves."""
    if is_taken(statement.name, statement.span, site):
        return
    use = _use_of(statement, site)
    found = POISON if isinstance(use, Poison) else _array(use, statement, site)
    site.scope.declare(statement.name, found)


def _use_of(statement: Declared, site: Site) -> OpUse | Poison:
    """The op of an array, with its axes and its numbers or how it starts."""
    type_ = _type_of(statement, site, "a weight" if isinstance(statement, ast.WeightOf) else "an array")
    if isinstance(statement, ast.ConstantOf):
        start = site.constant(statement.value, "a constant array")
    else:
        start = initial_of(statement.start, site)
    outside = not (isinstance(statement, ast.StateOf) and _in_scan(statement, "a state that training moves", site))
    if isinstance(type_, Poison) or isinstance(start, Poison) or not outside:
        return POISON
    names = tuple(axis.name for axis in type_.shape)
    axes: dict[str, Any] = {"sizes": sizes(type_.shape), "names": names if any(names) else ()}
    if not isinstance(statement, ast.ConstantOf):
        op: Any = State if isinstance(statement, ast.StateOf) else Parameter
        return OpUse(op(**axes), statement.name, start)
    problem = _problem(start, axes["sizes"])
    if problem is not None:
        return site.tell(errors.NoSuchArray(span=statement.value.span, type=str(type_), problem=problem))
    return OpUse(Constant(**axes, numbers=tuple(map(float, _flat(start)))), statement.name)


def elaborate_next(statement: ast.Next, site: Site) -> None:
    """What a state is after a step of training."""
    if _in_scan(statement, "the next value of a state", site):
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
    owner = _owner(state, site.graph)
    if owner is None or not isinstance(state, Tensor):
        found = "not declared" if state is None else described(state)
        site.tell(errors.NoState(span=statement.name_span, name=statement.name, found=found))
        return
    if owner in {state.owner for _, state in ruled_states(site.graph)}:
        site.tell(errors.TwoNexts(span=statement.span, name=owner))
        return
    apply_op(OpUse(NextState()), (state, value), statement.span, inside)


def _in_scan(statement: ast.Statement, what: str, site: Site) -> bool:
    return stands_in_scan(statement, what, "declare it before the scan, and move it after", site)


def _type_of(statement: Declared, site: Site, what: str) -> TensorType | Poison:
    """The type of an array: numbers, of a fixed length along each axis."""
    type_ = elaborate_type(statement.type, site)
    if isinstance(type_, Poison) or (type_.dtype == "float" and not type_.padded):
        return type_
    problem = f"{what} has numbers of a fixed length along each axis, and this is {type_}"
    return site.tell(errors.BadAxis(span=statement.type.span, problem=problem, way_out="for example: float[expert, 8]"))


def _array(use: OpUse, statement: Declared, site: Site) -> Any:
    """The value of an array; poison after a told mistake."""
    like = next((node for node in site.graph.of_kind(InputNode) if node.types[0].dtype != "length"), None)
    if like is None:
        reason, advice = "there is no input yet", "declare it behind the inputs"
        return site.tell(errors.DoesNotFit(span=statement.span, who=statement.name, reason=reason, way_out=advice))
    operand = Tensor(Result(like.name), like.types[0], statement.span)
    return apply_op(use, (operand,), statement.span, named_after(statement.name, site))


def _problem(value: Any, lengths: tuple[int, ...]) -> str | None:
    """What is wrong with the numbers of an array, or None."""
    level, ragged = [value], "its lists are not as long as each other"
    for length in lengths if isinstance(value, tuple) else ():
        if not all(isinstance(each, tuple) for each in level):
            return f"it has lists of fewer than {len(lengths)} axes"
        if any(len(each) != length for each in level):
            found = {len(each) for each in level}
            return f"a list of {found.pop()} stands where {length} are meant" if len(found) == 1 else ragged
        level = [item for each in level for item in each]
    numbers = all(type(each) in (int, float) for each in level)
    return None if numbers and (len(level) == prod(lengths) or level == [value]) else "it has what is no number"


def _flat(value: Any) -> list[Any]:
    level = [value]
    while any(isinstance(each, tuple) for each in level):
        level = [item for each in level for item in each]
    return level


def _owner(value: Any, graph: Graph) -> str | None:
    """What the weight of a state is called after, if a value is one."""
    node = graph[value.result.node] if isinstance(value, Tensor) and value.result.node in graph else None
    return node.owner if isinstance(node, OpNode) and isinstance(node.op, State) else None
