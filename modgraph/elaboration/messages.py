"""Infers the shape of the messages that a pool's modules take, and packs several values into one message.

Several values that a pool takes or yields are concatenated into one vector, so routers, edges and lowerings handle a
single message.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from modgraph.declare import Declaration
from modgraph.diagnostics import Span
from modgraph.elaboration import entities
from modgraph.elaboration.apply import apply_op, report_misfit
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, BlockEntity, BlockUse, OpUse, Poison, PoolEntity, Template, Tensor
from modgraph.elaboration.scope import Naming, Scope
from modgraph.ops import Op
from modgraph.ops.along_axis import Sum
from modgraph.ops.axes import Expand, Merge, NewAxis, Unmerge
from modgraph.ops.shape import Concat, Rename, Split
from modgraph.syntax import ast
from modgraph.types import Axis, Misfit, Shape, TensorType, format_shape
from modgraph.vocabulary import find_op

Types = tuple[TensorType, ...]


def infer_message_ranks(template: Any, count: int, elaborator: Elaborator) -> tuple[int, ...]:
    """Infer the number of trailing axes that modules take of each value.

    The first op or block decides, or, behind ops that keep all axes, the first op that needs several.
    """
    terms: list[Any] = [template]
    seen: set[str] = set()
    said = False
    while terms:
        term = terms.pop(0)
        if isinstance(term, OpUse):
            rank, stays = term.op.message_rank, _keeps_rank(type(term.op))
            if rank is not None and (rank > 1 or not (said or stays)):
                return (int(rank),) * count
            if said and not stays:
                break
            said = said or rank is not None
        if isinstance(term, Template):
            inside = elaborator.enter_template(term)
            terms = [inside.resolve_callable(stage.term) for stage in term.stages] + terms
        if isinstance(term, entities.ModuleEntity) and term.path not in seen:
            seen.add(term.path)
            terms.insert(0, term.template)
        if isinstance(term, BlockUse):
            found = tuple(max(int(said), each) for each in _infer_input_ranks(term))
            return found[:count] if len(found) >= count else (1,) * count
    return (1,) * count


def _infer_input_ranks(use: BlockUse) -> Iterator[int]:
    """Infer the number of axes of each input of a block.

    Outer named axes are token axes, unless the body names axes of its inputs; the last axis, and axes that the first op
    on the input needs, belong to the message.
    """
    body, is_whole = use.block.definition.body, bool(use.block.definition.named_axes)
    scope = Scope(outer=use.block.scope, names=dict(use.parameters), arguments=dict(use.spans))
    for each in (statement for statement in body.statements if isinstance(statement, ast.Input)):
        axes = each.type.axes
        named = [isinstance(axis, ast.Name) and axis.name not in use.parameters and not is_whole for axis in axes]
        outer = next((at for at, is_name in enumerate(named[:-1]) if not is_name), max(0, len(axes) - 1))
        lines = (
            line for line in body.pipelines if isinstance(line.head, ast.Name) and line.head.name == each.reference.name
        )
        needed = max((_count_needed_axes(line.stages, scope)[0] for line in lines), default=1)
        yield max(len(axes) - outer, min(len(axes), needed))


def _count_needed_axes(stages: tuple[ast.Stage, ...], scope: Scope) -> tuple[int, bool]:
    """Count the axes that the stages need, and return whether all stages keep the axes of their operand.

    The first stage decides, or, behind stages that keep all axes, the first that needs several; 1 if unknown.
    """
    for stage in stages:
        callee = stage.term.callee if isinstance(stage.term, ast.Call) else stage.term
        if stage.by is not None or not isinstance(callee, ast.Name):
            return 1, False
        known = scope.find(callee.name)
        op = find_op(callee.name) if known is None else type(known.op) if isinstance(known, OpUse) else None
        needed, stays = 1, False
        if op is not None:
            needed = max(1, sum(axis != "..." for axis in op.operands[0].axes.split()))
            stays = _keeps_rank(op)
        elif isinstance(known, BlockEntity):
            needed = _count_input_axes(known.definition)
        elif isinstance(known, Template):
            needed, stays = _count_needed_axes(known.stages, known.scope)
        if needed > 1 or not stays:
            return needed, stays
    return 1, True


def _count_input_axes(definition: ast.Definition) -> int:
    """Count the axes of a block's first input if the body names axes of its inputs; else 1."""
    inputs = (each for each in definition.body.statements if isinstance(each, ast.Input))
    return next((len(each.type.axes) for each in inputs if definition.named_axes), 1)


def _keeps_rank(op: type[Op]) -> bool:
    """Whether an op keeps the rank of its operand under any settings."""
    same = len(op.results[0].split()) == len(op.operands[0].axes.split())
    return same and op.infer is Declaration.infer and not op.along


def pack_message(pool: PoolEntity, tensors: tuple[Tensor, ...], span: Span, elaborator: Elaborator) -> Any:
    """Pack the operands of a pool into one value; report those that its modules do not take.

    A value that lacks a token axis of the others is broadcast. Inside a router the operand is packed already.
    """
    known = elaborator.context.messages.get(pool.whole_path)
    if len(tensors) == 1 and (known is None or len(known) == 1 or elaborator.decision is not None):
        return tensors[0]
    if known is not None and len(known) != len(tensors):
        name, several = pool.path.rpartition(".")[2], f"{len(known)} values together"
        reason = f"its modules take {'one value' if len(known) == 1 else several}, not {len(tensors)}"
        way_out = f"send one: x -> {name}" if len(known) == 1 else f"send them together: (x, h, …) -> {name}"
        return refuse(pool, Misfit(reason, way_out), span, elaborator, tensors)
    if known is not None:
        ranks = [len(each.shape) for each in known]
    else:
        found = [infer_message_ranks(template, len(tensors), elaborator) for template in pool.templates]
        ranks = [max(each) for each in zip(*found, strict=True)]
    for at, (tensor, rank) in enumerate(zip(tensors, ranks, strict=True)):
        problem = _explain_unpackable(tensor.type, rank)
        if problem is None and known is not None and not _cut_message(tensor.type, rank).meets(known[at]):
            reason = f"its modules take {known[at]} there, not {tensor.type}"
            problem = Misfit(reason, f"send {', '.join(map(str, known))}, in this order")
        if problem is not None:
            return refuse(pool, problem, span, elaborator, (tensor,))
    elaborator.context.messages[pool.whole_path] = tuple(map(_cut_message, (each.type for each in tensors), ranks))
    return _concatenate(pool, tensors, ranks, span, elaborator)


def _explain_unpackable(type_: TensorType, rank: int) -> Misfit | None:
    """Explain why a value cannot be packed with others, and what could be; None if it can."""
    if type_.dtype == "edge":
        advice = "send along them before or after the pool: (x, link) -> aggregate -> p by w"
        return Misfit(f"its modules take no edges, and this is {type_}", advice)
    if type_.dtype != "float" or type_.per == "batch":
        way_out = "send a value of each example" if type_.per == "batch" else "make it float first: -> embedding(8)"
        return Misfit(f"values sent together must be float of each example, not {type_}", way_out)
    if len(type_.shape) < rank:
        return Misfit(f"its modules take {rank} axes of this value, which is {type_}", "give the value these axes")
    if (axis := next((each for each in _cut_message(type_, rank).shape if each.size is None), None)) is not None:
        reason = f'values sent together need fixed lengths, and "{axis}" has none'
        return Misfit(reason, f'reduce it first: -> mean(axis="{axis}")')
    return None


def _cut_message(type_: TensorType, rank: int) -> TensorType:
    return type_.with_shape(type_.shape[len(type_.shape) - rank :])


def refuse(
    pool: PoolEntity, misfit: Misfit, span: Span, elaborator: Elaborator, tensors: tuple[Tensor, ...] = ()
) -> Poison:
    """Report a misfit of a pool's modules, with notes on the origins of the `tensors`."""
    return report_misfit(misfit, f'pool "{pool.path}"', tensors, span, elaborator)


def _concatenate(
    pool: PoolEntity, tensors: tuple[Tensor, ...], ranks: list[int], span: Span, elaborator: Elaborator
) -> Any:
    """Concatenate values to one vector for each token."""
    inside = elaborator.with_naming(Naming(*elaborator.naming.next("sent"), elaborator.scope))
    outer = [each.type.shape[: len(each.type.shape) - rank] for each, rank in zip(tensors, ranks, strict=True)]
    token_axes = max(outer, key=len)
    like = tensors[outer.index(token_axes)]
    vectors = []
    for at, (tensor, rank) in enumerate(zip(tensors, ranks, strict=True)):
        spread = broadcast_to_tokens(tensor, rank, like, token_axes, span, inside)
        if spread is None:
            found = format_shape(outer[at])
            reason = f"one value has the token axes {format_shape(token_axes)}, another {found}"
            way_out = "give both the same token axes"
            return refuse(pool, Misfit(reason, way_out), span, elaborator, tensors)
        vectors.append(_merge_axes(spread, rank, span, inside))
    return POISON if POISON in vectors else apply_op(OpUse(Concat()), tuple(vectors), span, inside)


def _merge_axes(value: Tensor | Poison, rank: int, span: Span, elaborator: Elaborator) -> Any:
    """Merge the last `rank` axes of a value into one."""
    if rank == 1 or isinstance(value, Poison):
        return value
    op: Any = Merge(axes=tuple(range(-rank, 0)), into="") if rank else NewAxis(length=1, axis="", at=-1)
    return apply_op(OpUse(op), (value,), span, elaborator)


def pack_results(values: tuple[Tensor, ...], span: Span, elaborator: Elaborator) -> Any:
    """Pack the values that one module yields into one vector."""
    if len(values) == 1:
        return values[0]
    vectors = tuple(_merge_axes(each, len(each.type.shape), span, elaborator) for each in values)
    return POISON if POISON in vectors else apply_op(OpUse(Concat()), vectors, span, elaborator)


def unpack_results(pool: PoolEntity, value: Any, span: Span, elaborator: Elaborator) -> Any:
    """Unpack the result of a route into the values that a module yields; inside a router it stays packed."""
    yields = elaborator.context.yields.get(pool.whole_path, ())
    if len(yields) < 2 or elaborator.decision is not None or not isinstance(value, Tensor):
        return value
    found = unpack_message(
        value, yields, span, elaborator.with_naming(Naming(*elaborator.naming.next("yielded"), elaborator.scope))
    )
    return POISON if isinstance(found, Poison) else entities.TensorTuple(found)


def unpack_message(value: Tensor, types: Types, span: Span, elaborator: Elaborator) -> tuple[Tensor, ...] | Poison:
    """Split a vector into the values packed in it, each of its type behind the outer axes of the vector."""
    lengths = tuple(prod(axis.size or 1 for axis in each.shape) for each in types)
    parts = apply_op(OpUse(Split(parts=lengths)), (value,), span, elaborator)
    if isinstance(parts, Poison):
        return POISON
    found: list[Any] = []
    for part, shape, length in zip(parts.tensors, [each.shape for each in types], lengths, strict=True):
        if shape != (Axis(length),):  # unless it was a plain vector before packing
            op: Any = Unmerge(sizes=tuple(axis.size or 1 for axis in shape), into=tuple(axis.name for axis in shape))
            if len(shape) < 2:
                op = Rename(names=("-1", shape[0].name)) if shape else Sum(axis=-1)
            part = apply_op(OpUse(op), (part,), span, elaborator)
        found.append(part)
    return POISON if POISON in found else tuple(found)


def broadcast_to_tokens(
    value: Tensor, rank: int, like: Tensor, token_axes: Shape, span: Span | None, elaborator: Elaborator
) -> Any:
    """Broadcast a value to all token axes, which `like` has; its last `rank` axes are those of a message.

    Return None if its outer axes are others or in another order.
    """
    left = [*value.type.shape[: len(value.type.shape) - rank]]
    for behind, axis in enumerate(reversed(token_axes)):
        if left and left[-1] == axis:
            left.pop()
            continue
        at = -rank - behind - 1
        fixed = axis.size is not None
        op: Op = NewAxis(length=axis.size or 1, axis=axis.name, at=at) if fixed else Expand(axis=axis.name, at=at)
        value = apply_op(OpUse(op), (value,) if fixed else (value, like), span, elaborator)
        if isinstance(value, Poison):
            return value
    return None if left else value
