"""Elaborates declarations of modules, pools, routers, arrays and states."""

from __future__ import annotations

from math import prod
from typing import Any

from modgraph.declare import sizes
from modgraph.elaboration import entities, errors
from modgraph.elaboration.apply import apply_op
from modgraph.elaboration.bindings import enter_binding, is_taken
from modgraph.elaboration.blocks import use_block
from modgraph.elaboration.calls import CallArgument, bind_settings, evaluate_arguments, read_initial
from modgraph.elaboration.context import Declared
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, ModuleEntity, OpUse, Poison, PoolEntity, Template, Tensor, describe
from modgraph.elaboration.imports import find_prelude_router
from modgraph.elaboration.scans import refuse_in_scan
from modgraph.elaboration.typing import elaborate_type
from modgraph.ir import MOST_MODULES, InputNode, OpNode, Result
from modgraph.ir.analysis.learnt import find_ruled_states
from modgraph.ops.array import Constant, NextState, Parameter, State
from modgraph.routers import Router
from modgraph.syntax import ast
from modgraph.types import Axis
from modgraph.vocabulary import find_router, suggest_router

WHERE_STATES_STAND = "declare it before the scan, and move it after"


def declare_module(statement: ast.Module, elaborator: Elaborator) -> None:
    value = elaborator.evaluate(statement.value)
    template = _require_template(value, statement.value, f'{statement.keyword} "{statement.name}"', elaborator)
    _declare(statement, ModuleEntity, elaborator, template=template)


def declare_pool(statement: ast.Pool, elaborator: Elaborator) -> None:
    """Declare a pool of modules of one kind, or of a literal or given list; `pool q[p] = …` shares the axis of p."""
    value, size = statement.value, statement.size
    known = elaborator.scope.find(value.name) if isinstance(value, ast.Name) else None
    if isinstance(value, ast.ListOf):
        listed = [(elaborator.evaluate(item), item) for item in value.items]
    else:
        listed = [(each, value) for each in known] if isinstance(known, tuple) else []
    is_list = bool(listed) or isinstance(value, ast.ListOf)
    made_of = listed if is_list else [(elaborator.evaluate(value), value)]
    templates = tuple(
        _require_template(each, written, f'pool "{statement.name}"', elaborator) for each, written in made_of
    )
    axis = elaborator.scope.find(size.name) if isinstance(size, ast.Name) and not is_list else None
    facts: dict[str, Any] = {"has_literal_size": isinstance(size, ast.Literal)}
    if size is None or not isinstance(axis, entities.WithAxis):
        facts["size"] = _evaluate_size(statement, len(listed) if is_list else None, elaborator)
    elif elaborator.region and not (isinstance(axis, PoolEntity) and axis.inside == elaborator.region):
        advice = f"give it a size: pool {statement.name}[len({size.span.text})] = …"
        what = f'a pool along the axis "{axis.path}"'
        facts["size"] = elaborator.report(errors.NotInRegion(span=size.span, what=what, way_out=advice))
    else:
        facts |= {"size": axis.size, "shares": axis.path}
        if isinstance(axis, PoolEntity):
            facts |= {
                "has_literal_size": axis.has_literal_size,
                "grown": axis.grown,
                "shares": axis.shares or axis.path,
            }
    _declare(statement, PoolEntity, elaborator, templates=POISON if POISON in templates else templates, **facts)


def _evaluate_size(statement: ast.Pool, listed: int | None, elaborator: Elaborator) -> int | Poison:
    """Return the number of modules of a pool: the length of its list, or the number in brackets."""
    if statement.size is None:
        return listed or elaborator.report(errors.PoolWithoutSize(span=statement.span, name=statement.name))
    size, span = elaborator.evaluate(statement.size), statement.size.span
    if isinstance(size, Poison):
        return POISON
    if isinstance(size, entities.Entity):
        advice = "write a number, or a pool that shares its axis: pool q[p] = linear(4)"
        if isinstance(size, PoolEntity):
            advice = "give both pools one kind of modules: pool q[p] = linear(4)"
        found = describe(size)
        return elaborator.report(errors.NotConstant(span=span, what="the size of a pool", found=found, way_out=advice))
    if type(size) is int and 1 <= size <= MOST_MODULES and listed in (None, size):
        return size
    advice = f"write a whole number from 1 to {MOST_MODULES}"
    if listed is not None:
        advice = f"leave the number out: the list has {listed} modules"
    what = "the pool cannot have this size"
    return elaborator.report(errors.TooLarge(span=span, what=what, limit=MOST_MODULES, way_out=advice))


def _require_template(value: Any, expression: ast.Expression, what: str, elaborator: Elaborator) -> Any:
    """Return a template for a module or the modules of a pool; report anything else."""
    if isinstance(value, Template | ModuleEntity | Poison):
        return value
    needed = f"a pipeline that begins with an op, for {what},"
    way_out = "begin with an op, for example: linear(64) -> relu"
    return elaborator.refuse(expression, needed, describe(value), way_out)


def declare_router(statement: ast.Router, elaborator: Elaborator) -> None:
    _declare(statement, entities.RouterEntity, elaborator, router=_resolve_router(statement.value, (), elaborator))


def _resolve_router(
    value: ast.Expression, further: tuple[CallArgument, ...], elaborator: Elaborator
) -> Router | entities.RouterUse | Poison:
    """Resolve a kind of router with its arguments, and `further` ones for a router that was passed as an argument."""
    callee = value.callee if isinstance(value, ast.Call) else value
    if not isinstance(callee, ast.Name):
        return elaborator.refuse(value.span, "the name of a router", "an expression")
    passed = elaborator.scope.find(callee.name, lambda found: isinstance(found, Template))
    if passed is not None:
        arguments = (*evaluate_arguments(value, elaborator, of_op=False), *further)
        if passed.term is not None:
            with elaborator.context.enter_application(passed.span, value.span):
                return _resolve_router(passed.term, arguments, elaborator.enter_template(passed))
        way_out = "give a kind of router, for example: agreement(2)"
        return elaborator.refuse(callee, "a kind of router", "a pipeline", way_out)
    defined = elaborator.scope.find_router(callee.name) or find_prelude_router(callee.name)
    if defined is not None:
        use = use_block(
            defined, [*evaluate_arguments(value, elaborator, of_op=False), *further], elaborator, value.span
        )
        if isinstance(use, Poison):
            return use
        return entities.RouterUse(use.block, use.parameters, spans=use.spans, defaults=use.defaults)
    declaration = find_router(callee.name)
    if declaration is not None:
        settled = bind_settings(declaration, [*evaluate_arguments(value, elaborator), *further], elaborator, value.span)
        return settled if isinstance(settled, Poison) else settled.op
    known = elaborator.scope.find(callee.name)
    if isinstance(known, Poison):
        return POISON
    if known is None or elaborator.find_argument(callee) is None:
        suggestion = suggest_router(callee.name, [name for scope in elaborator.scope.chain() for name in scope.routers])
        return elaborator.report(
            errors.UnknownOp(span=callee.span, name=callee.name, kind="router", suggestion=suggestion)
        )
    way_out = f"give a kind of router, for example: {callee.name}=agreement(2)"
    if isinstance(known, entities.RouterEntity):
        way_out = f"use the declared router directly: x -> pool by {callee.name}"
    return elaborator.refuse(callee, "a kind of router", describe(known), way_out)


def _declare(statement: Any, kind: Any, elaborator: Elaborator, **facts: Any) -> None:
    name, span = statement.name, statement.span
    if is_taken(name, span, elaborator):
        return
    path = elaborator.scope.weight_path(name)
    block = elaborator.call.name if elaborator.call is not None else None
    declared = Declared(name, span, block, block is not None and elaborator.scan is not None)
    sound = not any(isinstance(fact, Poison) for fact in facts.values())
    if not elaborator.region and elaborator.context.declared.setdefault(path, declared) != declared:
        elaborator.report(errors.DuplicateName(span=span, name=path))
        sound = False
    facts |= {"path": path, "word": name, "frozen": elaborator.scope.frozen, "span": span}
    facts |= {"inside": elaborator.region, "within": elaborator.context.call}
    elaborator.scope.declare(name, kind(**facts) if sound else POISON)


def declare_array(statement: ast.Array, elaborator: Elaborator) -> None:
    """Declare an array: a learned weight, a constant, or a state."""
    if is_taken(statement.name, statement.span, elaborator):
        return
    use, found = _make_array_op(statement, elaborator), POISON
    like = next((node for node in elaborator.graph.nodes_of(InputNode) if node.types[0].dtype != "length"), None)
    if isinstance(use, OpUse) and like is not None:
        operand = Tensor(Result(like.name), like.types[0], statement.span)
        found = apply_op(use, (operand,), statement.span, enter_binding(statement.name, elaborator))
    elif isinstance(use, OpUse):
        reason, advice = "there is no input yet", "declare it after the inputs"
        elaborator.report(errors.DoesNotFit(span=statement.span, who=statement.name, reason=reason, way_out=advice))
    elaborator.scope.declare(statement.name, found)


def _make_array_op(statement: ast.Array, elaborator: Elaborator) -> OpUse | Poison:
    """Return the op of an array, with its axes and its numbers or initialiser."""
    keyword, value = statement.keyword, statement.value
    if keyword == "constant" and statement.type.dtype == "edge":
        return _make_edges(statement, elaborator)
    type_: Any = elaborate_type(statement.type, elaborator)
    dtypes = ("float", "token") if keyword == "constant" else ("float",)
    if not isinstance(type_, Poison) and elaborator.context.without_use and {*type_.padded} & elaborator.axes.keys():
        type_ = POISON  # a use may have a fixed length along it
    if not isinstance(type_, Poison) and (type_.dtype not in dtypes or type_.padded):
        what = "a weight" if keyword == "weight" else "an array"
        kinds = type_.dtype if type_.dtype in dtypes else " or ".join(dtypes)
        problem = f"{what} must be {kinds} with fixed lengths, not {type_}"
        way_out = "for example: float[expert, 8]"
        type_ = elaborator.report(errors.BadAxis(span=statement.type.span, problem=problem, way_out=way_out))
    start: Any = (
        elaborator.evaluate_constant(value, "a constant array")
        if keyword == "constant"
        else read_initial(value, elaborator)
    )
    in_scan = keyword == "state" and refuse_in_scan(
        statement, "a state that training moves", WHERE_STATES_STAND, elaborator
    )
    if isinstance(type_, Poison) or isinstance(start, Poison) or in_scan:
        return POISON
    names = tuple(axis.name for axis in type_.shape)
    axes: dict[str, Any] = {"sizes": sizes(type_.shape), "names": names if any(names) else ()}
    if keyword != "constant":
        return OpUse((State if keyword == "state" else Parameter)(**axes), statement.name, start)
    numbers = _flatten_numbers(start, axes["sizes"])
    if isinstance(numbers, str):
        return elaborator.report(errors.NoSuchArray(span=value.span, type=str(type_), problem=numbers))
    return OpUse(Constant(**axes, numbers=tuple(map(float, numbers)), ids=type_.size), statement.name)


def _make_edges(statement: ast.Array, elaborator: Elaborator) -> OpUse | Poison:
    """Return the op of constant edges, a list of pairs; the length of their axis is that of the list."""
    value = elaborator.evaluate_constant(statement.value, "constant edges")
    if isinstance(value, Poison):
        return POISON
    count = len(value) if isinstance(value, tuple) else 0
    axis = Axis(max(1, count), elaborator.scope.weight_path(statement.name))
    type_ = elaborate_type(statement.type, elaborator, edges=axis)
    if isinstance(type_, Poison):
        return POISON
    if type_.has_padded_ends:
        problem = f"constant edges join axes with a length, not {type_}"
        way_out = "name a pool or an axis with a length: constant link: edge[expert, expert] = [[0, 1]]"
        return elaborator.report(errors.BadAxis(span=statement.type.span, problem=problem, way_out=way_out))
    numbers = _flatten_numbers(value, (count, 2)) if count else "expected a list of pairs, such as [[0, 1], [1, 2]]"
    if isinstance(numbers, str):
        facts: dict[str, Any] = {"type": str(type_), "problem": numbers}
        return elaborator.report(errors.NoSuchArray(span=statement.value.span, **facts))
    ends: dict[str, Any] = {
        "ends": tuple(end.name for end in type_.ends),
        "counts": tuple(end.size for end in type_.ends),
    }
    array: Any = Constant
    return OpUse(
        array(sizes=(count, 2), names=(axis.name, ""), numbers=tuple(map(float, numbers)), **ends), statement.name
    )


def _flatten_numbers(value: Any, lengths: tuple[int, ...]) -> list[float] | str:
    """Flatten the numbers of an array, a single number for all places; or explain what is wrong with them."""
    level = [value]
    for length in lengths if isinstance(value, tuple) else ():
        if not all(isinstance(each, tuple) for each in level):
            return f"expected lists nested {len(lengths)} deep, found fewer levels"
        found = {len(each) for each in level}
        if found - {length}:
            ragged = "its lists differ in length"
            return ragged if len(found) > 1 else f"expected a list of {length}, found {found.pop()}"
        level = [item for each in level for item in each]
    sound = all(type(each) in (int, float) for each in level) and (len(level) == prod(lengths) or level == [value])
    return level if sound else "expected numbers only"


def elaborate_next(statement: ast.Next, elaborator: Elaborator) -> None:
    """Elaborate the value of a state after a step of training."""
    if refuse_in_scan(statement, "the next value of a state", WHERE_STATES_STAND, elaborator):
        return
    if elaborator.region:
        advice = "declare it outside of the pool, with an axis for its modules: state s: float[POOL, 8] = zeros"
        elaborator.report(errors.NotInRegion(span=statement.span, what="the next value of a state", way_out=advice))
        return
    inside = enter_binding(f"next_{statement.name}", elaborator)
    value = inside.evaluate_tensor(statement.value, "the next value of a state")
    state = elaborator.scope.find(statement.name)
    if isinstance(value, Poison) or isinstance(state, Poison):
        return
    node = (
        elaborator.graph[state.result.node]
        if isinstance(state, Tensor) and state.result.node in elaborator.graph
        else None
    )
    if not (isinstance(state, Tensor) and isinstance(node, OpNode) and isinstance(node.op, State)):
        found = "an undeclared name" if state is None else describe(state)
        elaborator.report(errors.NoState(span=statement.name_span, name=statement.name, found=found))
    elif node.owner in {state.owner for _, state in find_ruled_states(elaborator.graph)}:
        elaborator.report(errors.TwoNexts(span=statement.span, name=node.owner))
    else:
        apply_op(OpUse(NextState()), (state, value), statement.span, inside)
