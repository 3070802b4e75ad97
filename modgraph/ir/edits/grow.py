"""More modules for a pool, or classes for a label: every old weight stays under its name."""

from __future__ import annotations

from dataclasses import replace

from modgraph.ir.analysis.module_axes import module_axes
from modgraph.ir.graph import Graph
from modgraph.ir.node import InputNode, Node, OpNode, PoolNode, TargetNode
from modgraph.ir.part import Part
from modgraph.ir.rewrite import rewritten
from modgraph.ops import Op
from modgraph.types import Axis, Misfit


def grow(graph: Graph, axis: str, by: int) -> Graph:
    """The graph whose pool, or axis of classes, has `by` places more (or fewer, where negative), and so have all pools
    along it; types downstream follow.

    Raises `Misfit` where something downstream fits the old number only, `KeyError` if there is no such axis.
    """
    before = growing_axis(graph, axis)
    assert before.size is not None and before.size + by >= 1, f"nothing would be left of {before}"
    longer = Axis(before.size + by, before.name)
    for each in graph.pools().values():
        assert each.alike or each.axis != before, f"the modules of {each.name} are unlike: none says what a new one is"

    for name, along in module_axes(graph).items():
        if along.name != before.name and before.name in along.others:
            raise Misfit(f"{name} lies along {along.name} and {before.name}, and can grow along the first alone")

    def grown(node: Node, part: Part) -> Node:
        match node:
            case PoolNode() if node.axis == before:
                return replace(node, size=node.size + by, grown=max(0, node.grown + by))
            case OpNode():
                op = node.op.with_extent(before.name, longer.size)
                return replace(node, op=_weighing(op, node, part, before, by))
            case InputNode() | TargetNode():
                (type_,) = node.types
                type_ = type_.with_shape([longer if a == before else a for a in type_.shape])
                if isinstance(node, TargetNode) and type_.classes == before:
                    type_, node = replace(type_, size=longer.size), replace(node, grown=max(0, node.grown + by))
                return replace(node, types=(type_,))
            case _:
                return node

    return rewritten(graph, grown)


def _weighing(op: Op, node: OpNode, part: Part, classes: Axis, by: int) -> Op:
    """A comparison of labels whose classes have weights: those that are added count 1."""
    setting = op.compares.class_weights if op.compares is not None else None
    given: tuple[float, ...] = getattr(op, setting) if setting is not None else ()
    if op.compares is None or setting is None or not given:
        return op
    label = part.graph.type_of(part.graph.inputs(node.name)[op.compares.target])
    if label.classes != classes:
        return op
    if any(weight != 1 for weight in given[len(given) + min(0, by) :]):
        raise Misfit(f"{node.name} weighs the classes that would be lost")
    return replace(op, **{setting: (*given, *[1.0] * by)[: len(given) + by]})


def growing_axis(graph: Graph, name: str) -> Axis:
    """The axis that a name means: that of a pool's modules, or of a label's classes. Raises `KeyError`."""
    pools = graph.pools()
    if name in pools:
        return pools[name].axis
    return class_axes(graph)[name]


def class_axes(graph: Graph) -> dict[str, Axis]:
    """The axes of labels' classes that have a name, by it."""
    axes = (type_.classes for type_ in graph.target_types.values())
    return {axis.name: axis for axis in axes if axis is not None and axis.name}


def grown_along(graph: Graph, axis: Axis) -> int:
    """How many places of an axis were added to a model that had been trained before, at most."""
    pools = (pool.grown for pool in graph.pools().values() if pool.axis == axis)
    targets = (target.grown for target in graph.of_kind(TargetNode) if target.types[0].classes == axis)
    return max((*pools, *targets), default=0)
