"""Finds weights that training leaves unchanged, and weights that the task depends on but does not train.

The gradients of losses are followed back to the nodes that they reach, and to the ops at which they stop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from modgraph.declare import DISTRIBUTION
from modgraph.diagnostics import Caution, Note, Report, Span
from modgraph.elaboration import errors
from modgraph.elaboration.sparsity import find_support
from modgraph.ir import Graph, Node, OpNode, PoolNode, Result, RouteNode, RouterNode, ScanNode, TargetNode
from modgraph.ops import Op
from modgraph.ops.along_axis import Sum
from modgraph.ops.arithmetic import Add, Divide
from modgraph.ops.axes import Expand, NewAxis
from modgraph.ops.choice import MaskedSoftmax
from modgraph.prelude import is_prelude
from modgraph.routers.choice import TokenChoice

CHOOSE_MORE = "let it choose more modules, or use a router whose weights are shares of all modules, such as linear(k=1)"
SHARES = "weigh the chosen module by its share of all: (scores -> softmax) * chosen"
STRAIGHT = "pass a gradient through it: (soft, hard) -> straight_through"
NO_LOSS = "add a loss that depends on it, or declare it in: frozen { … }"


@dataclass(frozen=True)
class Stop:
    """An op that passes no gradient to some operands; `constant` marks a weight that is always one."""

    node: OpNode
    operands: tuple[Result, ...]
    constant: bool


class Reach:
    """The nodes that gradients of some results reach in a graph and its scans, and where gradients stop.

    Both include those of `others`.
    """

    def __init__(self, graph: Graph, results: Iterable[Result], others: Reach | None = None) -> None:
        self.graph = graph
        self.nodes: set[str] = {*others.nodes} if others else set()
        self.stops: list[tuple[Graph, Stop]] = [*others.stops] if others else []
        self.results: set[Result] = {*others.results} if others else set()
        pending = [each for each in results if each not in self.results]
        self.results.update(pending)
        while pending:
            for read in self._go_back(pending.pop()):
                if read not in self.results:
                    self.results.add(read)
                    pending.append(read)

    def _go_back(self, result: Result) -> Iterable[Result]:
        """Record the node of a result, and return the operands that its gradient flows to."""
        node, inputs = self.graph[result.node], self.graph.inputs(result.node)
        self.nodes.add(node.name)
        if not isinstance(node, RouteNode) or not result.index:
            self.nodes.update(self.graph.uses(node.name).values())  # the pool and the router with the weights
        if isinstance(node, OpNode) and node.op.is_array:
            return ()
        if isinstance(node, OpNode):
            constant = _is_constant(node, self.graph)
            every = constant or type(node.op).choice_bound is not Op.choice_bound
            stopped = [slot for slot in inputs if every or slot in node.op.nondifferentiable]
            if not stopped:
                return inputs.values()
            self.stops.append((self.graph, Stop(node, tuple(inputs[slot] for slot in stopped), constant)))
            return [each for slot, each in inputs.items() if slot not in stopped]
        if isinstance(node, RouteNode) and isinstance(self.graph.declaration_of(node), TokenChoice):
            return [inputs[slot] for slot in {0: ("tokens", "weights"), 1: ("weights",)}.get(result.index, ())]
        if isinstance(node, ScanNode):
            inside = Reach(node.region.graph, [node.stacked[result.index], *node.steering])
            self.nodes |= inside.nodes
            self.stops += inside.stops
        return inputs.values()


def _is_constant(node: OpNode, graph: Graph) -> bool:
    """Whether an op yields one for a single choice along an axis, whatever its score.

    Such an op is a masked softmax over one place, or the weight of one choice divided by the sum of all. An axis of
    size one does not count, since it may grow.
    """
    if not isinstance(node.op, MaskedSoftmax | Divide):
        return False
    operands = [*graph.inputs(node.name).values()]
    if isinstance(node.op, MaskedSoftmax):
        choice, place = operands[1], graph.signature(node).axes["position"]
        if len(operands) > 2 or len(graph.type_of(choice).shape) != len(node.types[0].shape):
            return False
    elif len(operands) == 2:
        choice, place = operands[0], _find_sum_axis(operands[1], operands[0], graph)
    else:
        return False
    support = None if place is None else find_support(choice, graph)
    return support is not None and support.bound.place == place and support.bound.k == 1


def _find_sum_axis(result: Result, terms: Result, graph: Graph) -> int | None:
    """Find the place of the axis over which a value sums some terms, if it does.

    The sum may be broadcast or have a constant added to it.
    """
    node = graph[result.node]
    while isinstance(node, OpNode):
        read = [*graph.inputs(node.name).values()]
        if isinstance(node.op, Sum) and read == [terms]:
            place: int = graph.signature(node).axes["position"]
            return place
        if not isinstance(node.op, NewAxis | Expand) and not (isinstance(node.op, Add) and len(read) == 1):
            return None
        node = graph[read[0].node]
    return None


@dataclass(frozen=True)
class Owner:
    """An op, a pool, or a router with the ops in its body, that has weights to learn."""

    name: str
    kind: str
    span: Span | None
    nodes: set[str]

    def stop_in(self, reach: Reach) -> Stop | None:
        """Find a stop of gradients on the way to the owner if they do not reach it; prefer a constant one."""
        if self.nodes & reach.nodes:
            return None
        ends = ((stop, graph.ancestors(each.node for each in stop.operands)) for graph, stop in reach.stops)
        behind = [stop for stop, nodes in ends if self.nodes & nodes]
        return next((stop for stop in behind if stop.constant), behind[0] if behind else None)


def find_unlearned(graph: Graph, dead: Collection[str], report: Report) -> None:
    """Warn of weights that no gradient of a loss reaches, and of weights that no gradient of the task reaches.

    Routers that sample are left out, since an algorithm trains them from the distributions that they record.
    """
    if not graph.losses:
        return
    sampling = (each for each in graph.decisions() if each.facts.draws)
    logits = [each.results[record.name] for each in sampling for record in each.declared if record.role in DISTRIBUTION]
    compared = _find_compared(graph)
    task = {name: result for name, result in graph.losses.items() if result in compared}
    of_task = Reach(graph, [*task.values(), *logits])
    every = of_task if task == graph.losses else Reach(graph, graph.losses.values(), of_task)
    found: dict[tuple[type[Caution], Span | None], list[tuple[Owner, Stop | None]]] = {}
    parts = [part.graph for part in graph.parts()]
    for owner in _list_owners(parts, {router.name: router for each in parts for router in each.nodes_of(RouterNode)}):
        taught = bool(owner.nodes & every.nodes)
        stop = None if owner.name in dead else owner.stop_in(of_task if taught else every)
        if owner.name not in dead and (stop is not None or (task and not taught)):  # without a task: unfinished
            found.setdefault((errors.NotTaught if taught else errors.NotLearned, owner.span), []).append((owner, stop))
    for path, region in graph.modules():
        if region.graph.nodes_of(RouteNode):  # else its pool covers everything in it
            reach = Reach(region.graph, region.results)
            for owner in _list_owners([region.graph], {}, f"{path}."):
                if (stop := owner.stop_in(reach)) is not None:
                    found.setdefault((errors.NotLearned, owner.span), []).append((owner, stop))
    for (caution, span), owners in found.items():
        (owner, stop), others = owners[0], len(owners) - 1
        what = f'{owner.kind} "{owner.name}"' + (f" and {others} more" if others else "")
        report.add(caution(span=span, what=what, **_explain(stop)))


def _explain(stop: Stop | None) -> dict[str, Any]:
    """Explain why no gradient reaches some weights, with the way out and the place where it stops."""
    if stop is None:
        return {"why": "", "way_out": NO_LOSS}
    by, prelude = f'"{stop.node.op.name}"', is_in_prelude(stop.node)
    why = f": {by} of a single choice is always one" if stop.constant else f": none passes {by}"
    way_out = (CHOOSE_MORE if prelude else SHARES) if stop.constant else STRAIGHT
    notes = () if prelude else (Note(text="it ends here", span=stop.node.span),)
    return {"why": why, "way_out": way_out, "notes": notes}


def is_in_prelude(node: Node) -> bool:
    """Whether a node belongs to the text of a built-in router."""
    return node.span is not None and is_prelude(node.span.source)


def _find_compared(graph: Graph) -> set[Result]:
    """Find the results that depend on a target, or on an op that compares values."""
    found: set[Result] = set()
    for node in graph:
        compares = isinstance(node, TargetNode) or (isinstance(node, OpNode) and node.op.compares is not None)
        if compares or not found.isdisjoint(graph.inputs(node.name).values()):
            found.update([Result(node.name, index) for index in range(len(node.types))])
        elif isinstance(node, ScanNode):
            inside = _find_compared(node.region.graph)
            stacked = enumerate(node.stacked)
            found.update(Result(node.name, index) for index, each in stacked if inside & {each, *node.steering})
    return found


def _list_owners(graphs: list[Graph], routers: Mapping[str, RouterNode], path: str = "") -> list[Owner]:
    """List everything with trainable weights in the order of the graphs: routers, pools and other ops.

    With a `path`, the graphs are regions of a pool's module: names start with the path, and pools are left out.
    """
    found: dict[str, Owner] = {}
    for graph in graphs:
        for node in graph:
            ops = [node] if isinstance(node, OpNode) else []
            if isinstance(node, PoolNode) and not path:
                ops = [each for region in node.graphs() for each in region.nodes_of(OpNode)]
            if all(each.frozen or all(weight.buffer for weight in each.op.all_weights()) for each in ops):
                continue
            calls = () if isinstance(node, PoolNode) else node.calls
            router = next((each for each in calls if each.kind == "router"), None)
            name, span = node.owner if isinstance(node, OpNode) else node.name, node.span
            kind = "pool" if isinstance(node, PoolNode) else "weights of"
            if router is not None:
                kind, name, span = "router", router.weights, router.span
                span = routers[name].span if name in routers else span
            found.setdefault(name, Owner(path + name, kind, span, set())).nodes.add(node.name)
    return [*found.values()]
