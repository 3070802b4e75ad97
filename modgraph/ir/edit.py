"""Edits of a graph: the same architecture with more in it, every old weight under its old name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from modgraph.ir.graph import Graph
from modgraph.ir.node import InputNode, Node, OpNode, PoolNode, RouteNode, ScanNode, TargetNode
from modgraph.types import Axis, Misfit, TensorType


def grow(graph: Graph, pool: str, by: int) -> Graph:
    """The graph whose pool has `by` modules more, and so have those that share its axis; types downstream follow.

    Raises `Misfit` where something downstream fits the old number only, `KeyError` if there is no such pool.
    """
    axis = graph.pools()[pool].axis
    longer = Axis(graph.pools()[pool].size + by, axis.name)
    for node in graph.pools().values():
        assert node.alike or node.axis != axis, f"the modules of {node.name} are unlike: none says what a new one is"
    return _regrown(graph, axis, longer, {})


def _regrown(graph: Graph, axis: Axis, longer: Axis, inputs: Mapping[str, TensorType]) -> Graph:
    """The graph with a longer axis of modules in the place of another, and with other types of some inputs."""
    copy = Graph(graph.name, graph.parameters)
    for each in graph:
        copy.add(each, graph.inputs(each.name), graph.uses(each.name), graph.lengths(each.name))
        match each:
            case InputNode() if each.name in inputs:
                copy.replace(replace(each, types=(inputs[each.name],)))
            case InputNode() | TargetNode():
                copy.replace(replace(each, types=(_along(each.types[0], axis, longer),)))
            case PoolNode():
                copy.replace(_with_modules(each, axis, longer))
            case OpNode() | RouteNode():
                copy.replace(replace(each, types=copy.signature(each).results))
            case ScanNode():
                copy.replace(_rescanned(copy, each, axis, longer))
    return copy


def _along(type_: TensorType, axis: Axis, longer: Axis) -> TensorType:
    return type_.with_shape([longer if each == axis else each for each in type_.shape])


def _with_modules(pool: PoolNode, axis: Axis, longer: Axis) -> PoolNode:
    """A pool that has as many modules as its axis is long now."""
    regions = tuple(_regrown(region, axis, longer, {}) for region in pool.regions)
    by = (longer.size or 0) - pool.size if pool.axis == axis else 0
    return replace(pool, size=pool.size + by, grown=pool.grown + by, regions=regions)


def _rescanned(graph: Graph, scan: ScanNode, axis: Axis, longer: Axis) -> Node:
    """A scan whose region has the longer axis; what flows in may have got other types."""
    given = {slot: graph.type_of(result) for slot, result in graph.inputs(scan.name).items()}
    steps, *step = given["sequence"].shape
    inputs = {name: type_ for name, type_ in given.items() if name not in scan.states}
    region = _regrown(scan.region, axis, longer, inputs | {scan.variable: given["sequence"].with_shape(step)})
    for state in scan.states:
        before, after = region[state].types[0], region.type_of(region.outputs[f"next.{state}"])
        if not before.meets(after):
            raise Misfit(f'state "{state}" is {before}, and its next value would be {after}')
    types = [region.type_of(region.outputs[name]) for name in scan.stacked]
    return replace(scan, region=region, types=tuple(type_.with_shape((steps, *type_.shape)) for type_ in types))
