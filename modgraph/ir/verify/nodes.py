"""Checks a graph against its declarations: after every reading, and in tests after every pass."""

from __future__ import annotations

from modgraph.ir import node as kinds
from modgraph.ir.analysis.reach import paths_from_targets
from modgraph.ir.analysis.values import is_computed_once, varies_with_sources
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, ask
from modgraph.ir.node import Node
from modgraph.ir.part import Part
from modgraph.ir.stored.nodes import SLOTS
from modgraph.ir.verify.regions import list_owners, verify_owners, verify_pool, verify_scan
from modgraph.ops import Op
from modgraph.ops.array import NextState, State
from modgraph.routers import GATHERED, IdChoice, Router, RouterText
from modgraph.types import Axis, Misfit, TensorType

NOT_IN_STEPS = {"target": "a step has no target", "growth": "a step has no growth"}
NOT_IN_STEPS |= dict.fromkeys(("output", "loss"), "a step has no outputs and losses")
NO_TYPES = {"router": "it has no value", "pool": "it has no value"}
NO_TYPES |= dict.fromkeys(("decision", "output", "loss", "growth"), "nothing comes out of it")


def verify(graph: Graph) -> None:
    """Check types, slots, references, regions and weights of a graph against its declarations.

    Raises `InvalidGraph`, which names the node and the field at fault.
    """
    for node in graph:
        verify_node(Part(graph), node)
    _names(graph)
    _growths(graph)
    for label, path in paths_from_targets(graph).items():
        ask(False, f"the output {label} reads it in inference", path[0], "users")


def _edges(part: Part, node: Node) -> None:
    """Check the results, operands and uses of a node against its kind."""
    graph, kind, name = part.graph, node.kind, node.name
    inputs = graph.inputs(name)
    ask(part.scan is None or kind not in NOT_IN_STEPS, NOT_IN_STEPS.get(kind, ""), name, "kind")
    if isinstance(node, kinds.RouteNode | kinds.DecisionNode | kinds.GrowthNode):
        uses = graph.uses(name)
        ask({*uses} == {"pool", "router"}, f"a {node.kind} uses a pool and a router", name, "uses")
        for role, used in (("pool", kinds.PoolNode), ("router", kinds.RouterNode)):
            ask(isinstance(graph[uses[role]], used), f"{uses[role]} is no {role}", name, "uses")
    else:
        ask(not graph.uses(name), "only a route, a decision or a growth uses a pool and a router", name, "uses")
    if isinstance(node, kinds.InputNode | kinds.TargetNode | kinds.RouterNode | kinds.PoolNode):
        ask(not inputs, "nothing flows into it", name, "inputs")
    if kind in SLOTS:
        ask([*inputs] == [SLOTS[kind]], f"one value flows into it, in the slot {SLOTS[kind]}", name, "inputs")
    ask(not node.types or kind not in NO_TYPES, NO_TYPES.get(kind, ""), name, "types")


def verify_node(part: Part, node: Node) -> None:
    graph, name = part.graph, node.name
    _edges(part, node)
    match node:
        case kinds.InputNode() | kinds.TargetNode():
            if part.scan is None:
                _from_outside(graph, node)
        case kinds.LossNode():
            type_ = graph.type_of(graph.inputs(name)["x"])
            ask(type_.dtype == "float" and not type_.shape, f"a loss is a number, not {type_}", name, "inputs")
        case kinds.OpNode():
            _axes_named(node.op, name)
            _signature(graph, node, node.op)
            weighty = node.initial is None or bool(node.op.all_weights())
            ask(weighty, f"{node.op.name} has no weight that could start so", name, "initial")
            if isinstance(node.op, NextState):
                ask(part.scan is None, "a state moves outside of scans", name, "kind")
                state = graph[graph.inputs(name)["state"].node]
                moves = isinstance(state, kinds.OpNode) and isinstance(state.op, State)
                ask(moves, f"{state.name} is no state", name, "inputs")
            _once(part, node)
        case kinds.RouteNode():
            ask(isinstance(graph.router_of(node).router, Router), "its router is a text", name, "uses")
            router = graph.declaration_of(node)
            _signature(graph, node, router)
            offered = dict.fromkeys([each.name for each in router.lowerings(part.facts_of(node))])
            known = node.lowering is None or node.lowering in offered
            ask(known, f"its forms are {', '.join(offered)}", name, "lowering")
            _once(part, node)
        case kinds.RouterNode(router=Router() as router):
            _axes_named(router, name)
        case kinds.PoolNode():
            if node.shares in graph:  # an equally large pool with an axis of its own; it may be gone
                other = graph[node.shares]
                if not isinstance(other, kinds.PoolNode):
                    raise InvalidGraph(f"{node.shares} is no pool", name, "shares")
                ask(other.axis == node.axis, "its axis is another", name, "shares")
            verify_pool(node, verify_node)
        case kinds.DecisionNode():
            _decision(graph, node)
        case kinds.ScanNode():
            verify_scan(graph, node, verify_node)
    axes = graph.list_masked_axes(name)
    ask({*axes} <= graph.length_inputs.keys(), f"nothing tells the lengths of {', '.join(axes)}", name, "inputs")


def _once(part: Part, node: kinds.OpNode | kinds.RouteNode) -> None:
    """Check that a node marked `once` is batch-invariant; in a scan, that it is a route whose weights are stacked."""
    if not node.once:
        return
    if node.once == "scan":
        stacks = isinstance(node, kinds.RouteNode) and node.lowering == GATHERED and part.scan is not None
        ask(stacks, "it has no weights to stack before the steps of a scan", node.name, "once")
        return
    sources = [part.graph[each.node] for each in part.graph.inputs(node.name).values()]
    sound = bool(sources) and all(map(is_computed_once, sources)) and varies_with_sources(node, part.graph)
    ask(sound, "it is computed once, and examples or steps change it", node.name, "once")


def _axes_named(declared: Op | Router, name: str) -> None:
    for word, setting in declared.settings().items():
        problem = setting.problem(getattr(declared, word)) if setting.names_axis else None
        ask(not problem, f'setting "{word}" {problem}', name, "settings")


def _from_outside(graph: Graph, node: kinds.InputNode | kinds.TargetNode) -> None:
    """Check that an input or target has one type, per example."""
    (type_,) = node.types
    ask(type_.per == "example", f"{type_} is not of each example", node.name, "types")
    ask(not type_.ends or isinstance(node, kinds.InputNode), "a target is no edges", node.name, "types")
    if type_.dtype == "length":
        ask(isinstance(node, kinds.InputNode), "a target is no length", node.name, "types")
        ask(type_ == TensorType("length", of=type_.of), f"a length is one number, not {type_}", node.name, "types")
        length = graph.length_inputs[type_.of]
        ask(length == node.name, f"{length} tells the lengths along {type_.of} too", node.name, "types")


def _signature(graph: Graph, node: kinds.OpNode | kinds.RouteNode, declared: Op | Router) -> None:
    """Check the operands of an op or a route against its declaration, and its types against the inferred ones."""
    slots = tuple(graph.inputs(node.name))
    known = declared.slots_of(len(slots))
    ask(slots == known, f"it takes {', '.join(known)}, in this order", node.name, "inputs")
    try:
        signature = graph.signature(node)
        signature.weight_axes()
        if isinstance(node, kinds.OpNode) and node.initial is not None and declared.all_weights():
            signature.compute_scale(declared.all_weights()[0], node.initial)
    except Misfit as misfit:
        raise InvalidGraph(misfit.reason, node.name, "inputs") from misfit
    follow = ", ".join(map(str, signature.results))
    ask(signature.results == node.types, f"what it reads gives {follow}", node.name, "types")


def _decision(graph: Graph, node: kinds.DecisionNode) -> None:
    """Check the operands of a decision: tokens, value, and the records of each round, which are float and per
    example."""
    router = graph.router_of(node).router
    ask(isinstance(router, RouterText | IdChoice), "its router has no text", node.name, "uses")
    ask(len({each.name for each in node.records}) == len(node.records), "a record has a name", node.name, "records")
    inputs = graph.inputs(node.name)
    ask((*inputs,) == node.slots, f"it takes {', '.join(node.slots)}, in this order", node.name, "inputs")
    made = [graph.type_of(result) for slot, result in inputs.items() if slot != "tokens"]
    of_each = all(type_.dtype == "float" and type_.per == "example" for type_ in made)
    ask(of_each, "its value and its records are float, of each example", node.name, "inputs")


def _growths(graph: Graph) -> None:
    """Check growth nodes: a condition is one number for the batch, the router sends through the pool, and modules along
    one axis grow by one condition."""
    growths = graph.growths()
    used = {(each.pool.axis.name, each.router.name) for each in graph.decisions()} if growths else set()
    unlike = {pool.axis for pool in graph.pools().values() if not pool.is_homogeneous} if growths else set()
    first: dict[str, str] = {}
    for node in growths:
        pool, router = graph.pool_of(node), graph.router_of(node)
        type_ = graph.type_of(graph.inputs(node.name)["when"])
        one = type_ == TensorType("float", per="batch")
        ask(one, f"it is decided by a number for the batch, not {type_}", node.name, "inputs")
        ask(pool.axis not in unlike, "only a pool of modules of one kind grows", node.name, "uses")
        by = (pool.axis.name, router.name) in used
        ask(by, f"{router.name} routes nothing through {pool.name}", node.name, "uses")
        other = first.setdefault(pool.axis.name, node.name)
        ask(other == node.name, f"{other} is of the same modules", node.name, "uses")


def _names(graph: Graph) -> None:
    """Check that equal names mean equal things, in the regions of scans too."""
    known: dict[str, Node] = {}
    for node in (node for part in graph.parts() for node in part.graph):
        shared = isinstance(node, kinds.PoolNode | kinds.RouterNode)
        same = known.setdefault(node.name, node) is node or (shared and known[node.name] == node)
        ask(same, f"{node.name} is two things", node.name, "name")
    for pool in graph.pools().values():
        ask(not pool.inside, "it stands in no other pool", pool.name, "inside")
    labels: dict[str, str] = {}
    for end in graph.nodes_of(kinds.OutputNode):
        first = labels.setdefault(end.label, end.name)
        ask(first == end.name, f"another output is called {end.label}", end.name, "label")
    sizes: dict[str, int] = {}  # of named axes, which are equal everywhere
    for node in graph:
        axes: tuple[Axis | None, ...] = (node.axis,) if isinstance(node, kinds.PoolNode) else ()
        if isinstance(node, kinds.InputNode | kinds.TargetNode):
            axes = (*node.types[0].shape, node.types[0].classes)
        for axis in axes:
            if axis is not None and axis.name and axis.size is not None:
                size = sizes.setdefault(axis.name, axis.size)
                field = "size" if isinstance(node, kinds.PoolNode) else "types"
                ask(size == axis.size, f"{axis.name} is {size} elsewhere, not {axis.size}", node.name, field)
    verify_owners(owner for part in graph.parts() for owner in list_owners(part))
