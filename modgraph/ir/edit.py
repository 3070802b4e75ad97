"""Edits of a graph: the same architecture with more in it, every old weight under its old name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from modgraph.ir.graph import Graph
from modgraph.ir.node import InputNode, Node, OpNode, PoolNode, RouteNode, ScanNode
from modgraph.types import Misfit, TensorType


def grow(graph: Graph, pool: str, by: int) -> Graph:
    """The graph whose pool has `by` modules more; types downstream follow.

    Raises `Misfit` where something downstream fits the old number only, `KeyError` if there is no such pool.
    """
    node = graph.pools()[pool]
    assert node.alike, f"the modules of {pool} are unlike: none says what a new one is"
    return _with_pool(graph, replace(node, size=node.size + by, grown=node.grown + by), {})


def _with_pool(graph: Graph, pool: PoolNode, inputs: Mapping[str, TensorType]) -> Graph:
    """The graph with a pool in the place of that of its name, and with other types of inputs."""
    copy = Graph(graph.name, graph.parameters)
    for each in graph:
        node = pool if each.name == pool.name else each
        copy.add(node, graph.inputs(each.name), graph.uses(each.name), graph.lengths(each.name))
        match each:
            case InputNode() if each.name in inputs:
                copy.replace(replace(each, types=(inputs[each.name],)))
            case OpNode() | RouteNode():
                copy.replace(replace(each, types=copy.signature(each).results))
            case ScanNode():
                copy.replace(_rescanned(copy, each, pool))
    return copy


def _rescanned(graph: Graph, scan: ScanNode, pool: PoolNode) -> Node:
    """A scan whose region has the pool; what flows in may have got other types."""
    given = {slot: graph.type_of(result) for slot, result in graph.inputs(scan.name).items()}
    axis, *step = given["sequence"].shape
    region = _with_pool(scan.region, pool, given | {scan.variable: given["sequence"].with_shape(tuple(step))})
    for state in scan.states:
        before, after = region[state].types[0], region.type_of(region.outputs[f"next.{state}"])
        if before != after:
            raise Misfit(f'state "{state}" is {before}, and its next value would be {after}')
    types = [region.type_of(region.outputs[name]) for name in scan.stacked]
    stacked = tuple(type_.with_shape((axis, *type_.shape)) for type_ in types)
    return replace(scan, region=region, types=stacked)
