"""Adds nodes to the graph of an elaborator, within limits, and captures results of the graph around a scan."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from modgraph.declare import Signature
from modgraph.diagnostics import Diagnostic, Span
from modgraph.elaboration import errors
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import DeclaredEntity, describe
from modgraph.elaboration.scope import join
from modgraph.frozen import replace_fields
from modgraph.ir import InputNode, Node, PoolNode, Result, RouterNode, free_length_name
from modgraph.types import TensorType

MOST_AXES = 16
MOST_NUMBERS = 2**50  # in a value of one example, so that sizes of batches stay below 2**63


def add_node(
    elaborator: Elaborator,
    node: Node,
    span: Span,
    inputs: dict[str, Result] | None = None,
    uses: dict[str, str] | None = None,
    padded: Iterable[str] = (),
    known: Signature | None = None,
) -> bool:
    """Add a node to the graph and the current call; report and return False if that is not possible.

    A pool or a router belongs to the call that declares it. `padded` names axes whose lengths the node needs.
    `known` is the signature of an op or a route.
    """
    context, graph = elaborator.context, elaborator.graph
    if node.within is not context.call and not isinstance(node, PoolNode | RouterNode):
        node = replace_fields(node, within=context.call)
    problem = _find_problem(elaborator, node, inputs or {}, padded, span)
    if problem is not None:
        elaborator.report(problem)
        return False
    context.count("nodes", 1, span)
    context.spend(len(node.name), span)
    captured = {slot: capture(result, span, elaborator) for slot, result in (inputs or {}).items()}
    for axis in padded:  # the graph itself has an input with the lengths
        capture(_require_lengths(axis, span, elaborator), span, elaborator)
    graph.add(node, captured, uses, known)
    if not elaborator.region:
        context.named[node.name] = node
    return True


def _find_problem(
    elaborator: Elaborator, node: Node, inputs: dict[str, Result], padded: Iterable[str], span: Span
) -> Diagnostic | None:
    """Find the reason why the graph cannot have a node."""
    if node.name in elaborator.graph or (not elaborator.region and node.name in elaborator.context.named):
        return errors.DuplicateName(span=span, name=node.name, way_out='give it a name of its own: name="…"')
    if elaborator.region and any(result.node not in elaborator.graph for result in inputs.values()):
        return errors.NotInRegion(span=span, what="a value from outside")
    if elaborator.region and padded:
        what = f'an op that needs the padding of "{next(iter(padded))}"'
        return errors.NotInRegion(span=span, what=what, way_out="apply it to the value before or after the pool")
    for type_ in node.types:
        if len(type_.shape) > MOST_AXES:
            return errors.TooLarge(span=span, what="the value has too many axes", limit=MOST_AXES)
        if prod([axis.size or 1 for axis in type_.shape]) > MOST_NUMBERS:
            return errors.TooLarge(span=span, what="the value has too many numbers", limit=MOST_NUMBERS)
    return None


def capture(result: Result, span: Span, elaborator: Elaborator) -> Result:
    """Return a result of this graph, or inside a scan the input that passes in a result of the outer graph."""
    scan, graph, context = elaborator.scan, elaborator.graph, elaborator.context
    if scan is None or result.node in graph:
        return result
    result = capture(result, span, scan.outer)  # through the steps of scans around this one
    if result not in scan.captures:
        name = f"outer.{result.node}" + (f".{result.index}" if result.index else "")
        while name in graph or name in context.named:
            name += "_"
        context.count("nodes", 1, span)
        types = (scan.outer.graph.type_of(result),)
        context.named[name] = InputNode(name=name, types=types, span=span, within=scan.call)
        graph.add(context.named[name])
        scan.captures[result] = name
    return Result(scan.captures[result])


def adopt_node(name: str, elaborator: Elaborator) -> bool:
    """Add a pool or router of the graph around a scan, or of a scan, to this graph; return whether it has it now."""
    node, graph = elaborator.context.named.get(name), elaborator.graph
    if not elaborator.region and isinstance(node, PoolNode | RouterNode) and name not in graph:
        graph.add(node)
    return name in graph if elaborator.region else isinstance(node, PoolNode | RouterNode)


def find_node(name: str, elaborator: Elaborator) -> Node | None:
    """Find a pool or router by its path, and adopt it where another graph has it."""
    return elaborator.graph[name] if adopt_node(name, elaborator) else None


def _require_lengths(axis: str, span: Span, elaborator: Elaborator) -> Result:
    """Return the input with the lengths of examples along an axis; create it at the first need.

    It is called after the axis, with an underscore where the user has something of that name.
    """
    context = elaborator.context
    if elaborator.scan is not None:
        return _require_lengths(axis, span, elaborator.scan.outer)
    if axis not in context.lengths:
        name = free_length_name(axis, lambda name: name in context.given or name in context.named)
        with context.enter_call(None):
            add_node(elaborator, InputNode(name=name, types=(TensorType("length", of=axis),), span=span), span)
        context.lengths[axis] = name
    return Result(context.lengths[axis])


def is_own(entity: DeclaredEntity, span: Span, elaborator: Elaborator) -> bool:
    """Whether the current module of a pool, or the model outside of pools, declares an entity; report it if not."""
    elaborator.context.used[join(entity.inside, entity.path)] = None
    if entity.inside != elaborator.region:
        advice = "declare it in the block of the pool's modules, so that each has its own"
        what = describe(entity).replace("the ", "the shared ", 1)
        elaborator.report(errors.NotInRegion(span=span, what=what, way_out=advice))
    return entity.inside == elaborator.region
