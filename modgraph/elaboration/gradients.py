"""How far the gradients of losses reach: which weights are learned, and what keeps others from being."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from modgraph.elaboration.sparsity import support_of
from modgraph.ir import Graph, OpNode, Result, RouteNode, ScanNode
from modgraph.ops import Op
from modgraph.ops.along_axis import Sum
from modgraph.ops.arithmetic import Add, Divide
from modgraph.ops.axes import Expand, NewAxis
from modgraph.ops.choice import MaskedSoftmax
from modgraph.routers.chosen import Chosen


@dataclass(frozen=True)
class Stop:
    """An op past which no gradient flows to some operands; `constant` says that it weighs the only one of its axis."""

    node: OpNode
    operands: tuple[Result, ...]
    constant: bool


@dataclass
class Reach:
    """What gradients of some results reach in a graph: nodes, those inside of scans by their own names too, and where
    they stop."""

    graph: Graph
    nodes: set[str] = field(default_factory=set)
    stops: list[tuple[Graph, Stop]] = field(default_factory=list)

    def go_back(self, results: Iterable[Result]) -> Reach:
        """Follow gradients from results to all that they reach."""
        pending = [*results]
        seen = set(pending)
        while pending:
            result = pending.pop()
            self.nodes |= {result.node, *_computes_with(result, self.graph)}
            new = {each for each in self._before(result) if each not in seen}
            seen |= new
            pending += new
        return self

    def _before(self, result: Result) -> Iterable[Result]:
        """The operands that a gradient flows on to."""
        node = self.graph[result.node]
        if isinstance(node, OpNode):
            return self._before_op(node)
        if isinstance(node, RouteNode):
            return _before_route(node, result.index, self.graph)
        if isinstance(node, ScanNode):
            inside = Reach(node.region.graph).go_back([node.stacked[result.index], *node.following])
            self.nodes |= inside.nodes
            self.stops += inside.stops
        return self.graph.inputs(node.name).values()

    def _before_op(self, node: OpNode) -> Iterable[Result]:
        inputs = self.graph.inputs(node.name)
        constant = _is_constant(node, self.graph)
        chosen = type(node.op).chosen is not Op.chosen
        if node.op.is_array:
            return ()
        stopped = {slot for slot in inputs if constant or chosen or slot in node.op.without_gradient}
        if stopped:
            self.stops.append((self.graph, Stop(node, tuple(inputs[slot] for slot in stopped), constant)))
        return [each for slot, each in inputs.items() if slot not in stopped]


def _computes_with(result: Result, graph: Graph) -> Iterable[str]:
    """The pool and the router whose weights a result of a route is computed with."""
    node = graph[result.node]
    if isinstance(node, RouteNode) and (result.index or not graph.router_of(node).router.computes):
        return ()
    return graph.uses(result.node).values()


def _before_route(node: RouteNode, index: int, graph: Graph) -> Iterable[Result]:
    """Of a route by a choice its weights alone, beside what is sent, and of one that only shows values the one."""
    inputs, router = graph.inputs(node.name), graph.router_of(node).router
    if not router.computes:
        return (inputs[("value", *router.record_names)[index]],)
    if isinstance(router, Chosen):
        return (inputs["tokens"], inputs["weights"]) if index == 0 else (inputs["weights"],) if index == 1 else ()
    return inputs.values()


def _is_constant(node: OpNode, graph: Graph) -> bool:
    """Whether it weighs the only one that is chosen along an axis, which makes one of anything: a softmax among one, or
    one chosen weight divided by the sum of all. An axis of one place may grow."""
    op, operands = node.op, [*graph.inputs(node.name).values()]
    if isinstance(op, MaskedSoftmax):
        return _chooses_one(operands[1], graph.signature(node).axes["position"], graph)
    if isinstance(op, Divide) and len(operands) == 2:
        return any(_chooses_one(operands[0], place, graph) for place in _summed_along(operands[1], operands[0], graph))
    return False


def _chooses_one(result: Result, place: int, graph: Graph) -> bool:
    support = support_of(result, graph)
    return support is not None and support.bound.place == place and support.bound.k == 1


def _summed_along(result: Result, terms: Result, graph: Graph) -> Iterator[int]:
    """The axis along which a value is the sum of others, by its place in these, if it is; repeated perhaps."""
    node = graph[result.node]
    while isinstance(node, OpNode) and (isinstance(node.op, NewAxis | Expand) or _adds_constant(node)):
        result = next(iter(graph.inputs(node.name).values()))
        node = graph[result.node]
    if isinstance(node, OpNode) and isinstance(node.op, Sum) and [*graph.inputs(node.name).values()] == [terms]:
        yield graph.signature(node).axes["position"]


def _adds_constant(node: OpNode) -> bool:
    return isinstance(node.op, Add) and None in node.op.constants and node.op.constants != (None, None)
