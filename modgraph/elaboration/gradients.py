"""Which nodes the gradients of losses reach, and the ops at which they stop."""

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
    """An op that passes no gradient to some operands; `constant` says that it weighs a single choice, always by one."""

    node: OpNode
    operands: tuple[Result, ...]
    constant: bool


@dataclass
class Reach:
    """The nodes that gradients of some results reach in a graph and in its scans, and where the gradients stop."""

    graph: Graph
    nodes: set[str] = field(default_factory=set)
    stops: list[tuple[Graph, Stop]] = field(default_factory=list)

    def go_back(self, results: Iterable[Result]) -> Reach:
        """Follow gradients from results to all that they reach."""
        pending = [*results]
        seen = set(pending)
        while pending:
            result = pending.pop()
            self.nodes.add(result.node)
            self.nodes.update(_find_owners(result, self.graph))
            for each in self._find_operands(result):
                if each not in seen:
                    seen.add(each)
                    pending.append(each)
        return self

    def _find_operands(self, result: Result) -> Iterable[Result]:
        """The operands that the gradient of a result flows to."""
        node = self.graph[result.node]
        if isinstance(node, OpNode):
            return self._find_operands_of_op(node)
        if isinstance(node, RouteNode):
            return _find_operands_of_route(node, result.index, self.graph)
        if isinstance(node, ScanNode):
            inside = Reach(node.region.graph).go_back([node.stacked[result.index], *node.following])
            self.nodes |= inside.nodes
            self.stops += inside.stops
        return self.graph.inputs(node.name).values()

    def _find_operands_of_op(self, node: OpNode) -> Iterable[Result]:
        inputs = self.graph.inputs(node.name)
        if node.op.is_array:
            return ()
        constant = isinstance(node.op, MaskedSoftmax | Divide) and _is_constant(node, self.graph)
        chosen = type(node.op).chosen is not Op.chosen
        stopped = {slot for slot in inputs if constant or chosen or slot in node.op.nondifferentiable}
        if stopped:
            self.stops.append((self.graph, Stop(node, tuple(inputs[slot] for slot in stopped), constant)))
        return [each for slot, each in inputs.items() if slot not in stopped]


def _find_owners(result: Result, graph: Graph) -> Iterable[str]:
    """The pool and the router whose weights compute a result of a route."""
    node = graph[result.node]
    if isinstance(node, RouteNode) and result.index:
        return ()
    return graph.uses(result.node).values()


def _find_operands_of_route(node: RouteNode, index: int, graph: Graph) -> Iterable[Result]:
    """Tokens and weights, for a route by a choice."""
    inputs = graph.inputs(node.name)
    if isinstance(graph.declaration_of(node), Chosen):
        return (inputs["tokens"], inputs["weights"]) if index == 0 else (inputs["weights"],) if index == 1 else ()
    return inputs.values()


def _is_constant(node: OpNode, graph: Graph) -> bool:
    """Whether an op gives one for a single choice along an axis, whatever its score: a masked softmax over one place,
    or one chosen weight divided by the sum of all. An axis of length one does not count, since it may grow."""
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
    """The axis over which a value sums some terms, by its place in them, if it does; the sum may be broadcast."""
    node = graph[result.node]
    while isinstance(node, OpNode) and (isinstance(node.op, NewAxis | Expand) or _adds_constant(node)):
        result = next(iter(graph.inputs(node.name).values()))
        node = graph[result.node]
    if isinstance(node, OpNode) and isinstance(node.op, Sum) and [*graph.inputs(node.name).values()] == [terms]:
        yield graph.signature(node).axes["position"]


def _adds_constant(node: OpNode) -> bool:
    return isinstance(node.op, Add) and None in node.op.constants and node.op.constants != (None, None)
