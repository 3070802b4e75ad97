"""Holds a graph against its declarations: after every reading, and in tests after every pass."""

from __future__ import annotations

from collections.abc import Iterable

from modgraph.ir.analysis.targets import paths_from_targets
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, ask
from modgraph.ir.node import (
    DecisionNode,
    GrowthNode,
    InputNode,
    LossNode,
    Node,
    OpNode,
    OutputNode,
    PoolNode,
    RouteNode,
    RouterNode,
    ScanNode,
    TargetNode,
)
from modgraph.ir.part import Part
from modgraph.ir.verify.names import verify_names
from modgraph.ir.verify.regions import verify_lengths, verify_pool, verify_scan
from modgraph.ops import Op
from modgraph.ops.array import NextState, State
from modgraph.routers import Router, RouterText
from modgraph.types import Misfit, TensorType


def verify(graph: Graph) -> None:
    """Types, slots, references, regions and weights of a graph are those that its declarations say.

    Raises `InvalidGraph`, which names the node and the field that are not.
    """
    for node in graph:
        verify_node(Part(graph), node)
    verify_names(graph)
    _verify_growths(graph)
    for label, path in paths_from_targets(graph).items():
        ask(False, f"the output {label} reads it in inference", path[0], "users")


def verify_node(part: Part, node: Node) -> None:
    graph = part.graph
    if not isinstance(node, RouteNode | DecisionNode | GrowthNode):
        reason = "only a route, a decision or a growth uses a pool and a router"
        ask(not graph.uses(node.name), reason, node.name, "uses")
    _axes_named(node)
    match node:
        case InputNode() | TargetNode():
            _from_outside(part, node)
        case OutputNode() | LossNode():
            _end(part, node)
        case OpNode() | RouteNode():
            if isinstance(node, RouteNode):
                _uses(graph, node)
            _signature(graph, node)
            if isinstance(node, OpNode):
                _start(node)
                _moves(part, node)
            else:
                _lowering(part, node)
        case RouterNode():
            _holds_nothing(graph, node)
        case PoolNode():
            _holds_nothing(graph, node)
            _shares(graph, node)
            verify_pool(node, verify_node)
        case DecisionNode():
            _uses(graph, node)
            _decision(graph, node)
        case GrowthNode():
            ask(part.scan is None, "a step has no growth", node.name, "kind")
            _uses(graph, node)
        case ScanNode():
            ask(part.scan is None, "a scan stands in a scan", node.name, "kind")
            verify_scan(graph, node, verify_node)


def _axes_named(node: Node) -> None:
    """What settings call axes are names."""
    declared = node.op if isinstance(node, OpNode) else node.router if isinstance(node, RouterNode) else None
    declared = declared if isinstance(declared, Op | Router) else None
    for name, setting in declared.settings().items() if declared is not None else ():
        problem = setting.problem(getattr(declared, name)) if setting.names_axis else None
        ask(not problem, f'setting "{name}" {problem}', node.name, "settings")


def _from_outside(part: Part, node: InputNode | TargetNode) -> None:
    """An input or target has one type, of each example; a scan's region has inputs that are its arguments."""
    ask(not part.graph.inputs(node.name), "nothing flows into it", node.name, "inputs")
    (type_,) = node.types
    if part.scan is not None:
        ask(isinstance(node, InputNode), "a step has no target", node.name, "kind")
        return
    ask(type_.per == "example", f"{type_} is not of each example", node.name, "types")
    if type_.dtype == "length":
        ask(isinstance(node, InputNode), "a target is no length", node.name, "types")
        ask(type_ == TensorType("length", of=type_.of), f"a length is one number, not {type_}", node.name, "types")
        length = part.graph.length_inputs()[type_.of]
        ask(length == node.name, f"{length} tells the lengths along {type_.of} too", node.name, "types")


def _end(part: Part, node: OutputNode | LossNode) -> None:
    ask(part.scan is None, "a step has no outputs and losses", node.name, "kind")
    inputs = part.graph.inputs(node.name)
    ask([*inputs] == ["x"], "one value flows into it, in the slot x", node.name, "inputs")
    ask(not node.types, "nothing comes out of it", node.name, "types")
    if isinstance(node, LossNode):
        type_ = part.graph.type_of(inputs["x"])
        ask(type_.dtype == "float" and not type_.shape, f"a loss is a number, not {type_}", node.name, "inputs")


def _holds_nothing(graph: Graph, node: Node) -> None:
    ask(not graph.inputs(node.name), "nothing flows into it", node.name, "inputs")
    ask(not node.types, "it has no value", node.name, "types")


def _shares(graph: Graph, pool: PoolNode) -> None:
    """The pool whose axis this one has too is one with an axis of its own, of as many modules; it may be gone."""
    if pool.shares in graph:
        other = graph[pool.shares]
        ask(isinstance(other, PoolNode), f"{pool.shares} is no pool", pool.name, "shares")
        ask(isinstance(other, PoolNode) and other.axis == pool.axis, "its axis is another", pool.name, "shares")


def _decision(graph: Graph, node: DecisionNode) -> None:
    """A decision takes what is routed, the value and the records of each round, which are float and of each example."""
    ask(not node.types, "nothing comes out of it", node.name, "types")
    ask(isinstance(graph.router_of(node).router, RouterText), "its router has no text", node.name, "uses")
    ask(not graph.lengths(node.name), "it is told the lengths of nothing", node.name, "lengths")
    ask(len({each.name for each in node.records}) == len(node.records), "a record has a name", node.name, "records")
    slots = tuple(graph.inputs(node.name))
    ask(slots == node.slots, f"it takes {', '.join(node.slots)}, in this order", node.name, "inputs")
    made = [graph.type_of(result) for slot, result in graph.inputs(node.name).items() if slot != "tokens"]
    of_each = all(type_.dtype == "float" and type_.per == "example" for type_ in made)
    ask(of_each, "its value and its records are float, of each example", node.name, "inputs")


def _uses(graph: Graph, route: RouteNode | DecisionNode | GrowthNode) -> None:
    """A route, a decision or a growth uses a pool and a router."""
    uses = graph.uses(route.name)
    ask({*uses} == {"pool", "router"}, f"a {route.kind} uses a pool and a router", route.name, "uses")
    for role, kind in (("pool", PoolNode), ("router", RouterNode)):
        ask(isinstance(graph[uses[role]], kind), f"{uses[role]} is no {role}", route.name, "uses")


def _signature(graph: Graph, node: OpNode | RouteNode) -> None:
    """What flows into an op or a route fits its declaration, and its types follow."""
    if isinstance(node, RouteNode):
        ask(isinstance(graph.router_of(node).router, Router), "its router is a text", node.name, "uses")
    declaration: Op | Router = node.op if isinstance(node, OpNode) else graph.declaration_of(node)
    slots = tuple(graph.inputs(node.name))
    known = declaration.slots_of(len(slots))
    ask(slots == known, f"it takes {', '.join(known)}, in this order", node.name, "inputs")
    try:
        signature = graph.signature(node)
        signature.weight_shapes()
    except Misfit as misfit:
        raise InvalidGraph(misfit.reason, node.name, "inputs") from misfit
    follow = ", ".join(map(str, signature.results))
    ask(signature.results == node.types, f"what it reads gives {follow}", node.name, "types")
    verify_lengths(graph, node, signature.padded())


def _start(node: OpNode) -> None:
    weighty = bool(node.op.all_weights())
    ask(node.initial is None or weighty, f"{node.op.name} has no weight that could start so", node.name, "initial")


def _moves(part: Part, node: OpNode) -> None:
    """The rule of a state is told the state, outside of any step of a scan."""
    if isinstance(node.op, NextState):
        ask(part.scan is None, "a state moves outside of scans", node.name, "kind")
        state = part.graph[part.graph.inputs(node.name)["state"].node]
        ask(isinstance(state, OpNode) and isinstance(state.op, State), f"{state.name} is no state", node.name, "inputs")


def _lowering(part: Part, route: RouteNode) -> None:
    """The form of a route, if it has one yet, is one that its router offers for its pool."""
    offered = _forms(part, route)
    known = ", ".join(offered)
    ask(route.lowering is None or route.lowering in offered, f"its forms are {known}", route.name, "lowering")


def _forms(part: Part, route: RouteNode) -> list[str]:
    forms: Iterable[str] = (each.form for each in part.graph.declaration_of(route).lowerings(part.facts_of(route)))
    return list(dict.fromkeys(forms))


def _verify_growths(graph: Graph) -> None:
    """What decides is one number for the batch, the router is one that the modules are used by, and modules along one
    axis grow by one condition. Raises `InvalidGraph`."""
    growths = graph.growths()
    used = _used(graph) if growths else set()
    unlike = {pool.axis for pool in graph.pools().values() if not pool.alike} if growths else set()
    first: dict[str, str] = {}
    for node in growths:
        pool, router = graph.pool_of(node), graph.router_of(node)
        _condition(graph, node)
        ask(pool.axis not in unlike, "only a pool of modules of one kind grows", node.name, "uses")
        by = (pool.axis.name, router.name) in used
        ask(by, f"{router.name} routes nothing through {pool.name}", node.name, "uses")
        other = first.setdefault(pool.axis.name, node.name)
        ask(other == node.name, f"{other} is of the same modules", node.name, "uses")


def _used(graph: Graph) -> set[tuple[str, str]]:
    """The axes of modules that routers send along, in scans too, by their names."""
    return {(each.pool.axis.name, each.router.name) for each in graph.decisions()}


def _condition(graph: Graph, node: GrowthNode) -> None:
    inputs = graph.inputs(node.name)
    ask([*inputs] == ["when"], "one value flows into it, in the slot when", node.name, "inputs")
    ask(not node.types, "nothing comes out of it", node.name, "types")
    type_ = graph.type_of(inputs["when"])
    one = type_ == TensorType("float", per="batch")
    ask(one, f"it is decided by a number for the batch, not {type_}", node.name, "inputs")
