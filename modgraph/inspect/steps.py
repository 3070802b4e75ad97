"""A graph on the tape of a training step: each node writes what its declaration says of it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from modgraph.declare import CHOSEN, DISTRIBUTION, Signature, Use, numbers, product
from modgraph.inspect.cost import fixed, fixed_route_signature, fixed_signature
from modgraph.inspect.pool_steps import PoolOnTape
from modgraph.ir import (
    Decision,
    DecisionNode,
    Graph,
    InputNode,
    Node,
    OpNode,
    Part,
    Result,
    RouteNode,
    ScanNode,
    TargetNode,
    alike,
    below,
    weights_of,
)
from modgraph.tape import INDEX, Tape, Value

Values = dict[Result, Value]
STEPS = 64  # of a scan; a longer one is counted as so many that weigh more


@dataclass
class Writer:
    """Writes graphs on a tape; weights are those of the whole model, by their names.

    Where a router `draws`, an algorithm judges its decisions: `judged` is what it differentiates besides the losses,
    likelihoods and the log-probabilities of what was drawn.
    """

    tape: Tape
    lengths: Mapping[str, int]
    batch: int
    weights: dict[str, Value] = field(default_factory=dict)
    draws: bool = False
    judged: list[Value] = field(default_factory=list)
    common: dict[tuple[Any, ...], Value] = field(default_factory=dict)  # to routes of the graph that is written

    def graph(self, graph: Graph, values: Values, needed: set[str]) -> Values:
        """The values of all results, of the nodes that are needed."""
        once, self.common = alike(graph), {}
        for node in graph:
            if node.name in needed:
                results = self.node(graph, node, values, once)
                self.tape.hold(results)
                values.update({Result(node.name, index): value for index, value in enumerate(results)})
                if isinstance(node, RouteNode | DecisionNode):
                    self._judge(Decision(Part(graph), node), values)
        return values

    def node(self, graph: Graph, node: Node, values: Values, once: Set[str] = frozenset()) -> tuple[Value, ...]:
        if isinstance(node, DecisionNode):
            return ()
        operands = self._operands(graph, node, values, once)
        match node:
            case InputNode() | TargetNode():
                return (self._given(node),)
            case OpNode():
                signature = fixed_signature(graph.signature(node), self.lengths, node.name)
                use = self._use(graph, node, signature, node.owner)
                use = replace(use, rows=1) if node.name in once else use
                if self.draws and node.op.likelihood:  # an algorithm takes it summed over positions, besides
                    self.judged.extend(node.op.on_tape(use, *operands))
                return node.op.on_tape(use, *operands)
            case RouteNode():
                return self._route(graph, node, operands)
            case ScanNode():
                return self._scan(graph, node, values)
            case _:
                return ()

    def _operands(self, graph: Graph, node: Node, values: Values, once: Set[str]) -> list[Value]:
        """What flows into a node; what is the same for every example is repeated where it must stand for each."""
        sources = graph.inputs(node.name).values()
        if isinstance(node, OpNode) and (node.op.broadcasts or node.name in once):
            return [values[source] for source in sources]
        return [
            self.tape.view(values[source], values[source].count * self.batch, passes=False)
            if source.node in once
            else values[source]
            for source in sources
        ]

    def _use(self, graph: Graph, node: OpNode | RouteNode, signature: Signature, owner: str) -> Use:
        weights = {
            weight.name: self.weights[below(owner, weight.name)] for weight in signature.declaration.all_weights()
        }
        return Use(self.tape, signature, self.batch, weights, self._masks(graph, node))

    def _route(self, graph: Graph, route: RouteNode, operands: list[Value]) -> tuple[Value, ...]:
        pool, router = graph.pool_of(route), graph.router_of(route)
        assert route.lowering is not None, f"{route.name} is not lowered"
        use = self._use(graph, route, fixed_route_signature(graph, route, self.lengths), router.name)
        modules = PoolOnTape(pool, self.tape, self.weights, self.lengths, self.common)
        return graph.declaration_of(route).on_tape(use, modules, route.lowering, *operands)

    def _judge(self, decision: Decision, values: Values) -> None:
        """Where a router draws, an algorithm judges how probable what it draws is."""
        distribution, choice = decision.record_as(*DISTRIBUTION), decision.record_as(*CHOSEN)
        if decision.facts.draws and distribution is not None and choice is not None:
            records = {name: values[result] for name, result in decision.inside.items()}
            self.judged.append(self.tape.times(records[distribution].count, records[distribution], records[choice]))

    def _scan(self, graph: Graph, scan: ScanNode, values: Values) -> tuple[Value, ...]:
        """As many steps as there are, or fewer that weigh more; all that a step makes is given up after it, but for
        what is kept, its states and what is stacked."""
        flows = {slot: values[source] for slot, source in graph.inputs(scan.name).items()}
        steps = int(product(fixed(scan.types[0], self.lengths).shape[:1]))
        region, told = scan.region.graph, bool(graph.lengths(scan.name))
        sequence = flows[scan.variable]
        counts = [sequence.count / max(1, steps)] * min(steps, STEPS)
        slices = self.tape.parts(sequence, *counts, strided=len(region[scan.variable].types[0].shape) > 1)
        states = [flows[state] if state in flows else self._zeros(region[state]) for state in scan.states]
        found: list[list[Value]] = []
        for each in slices:
            known = {Result(name): flows[name] for name in scan.captured} | {Result(scan.variable): each}
            known |= {Result(name): value for name, value in zip(scan.states, states, strict=True)}
            with self.tape.repeated(max(1, steps / STEPS)), self.tape.nothing_held():
                inside = self.graph(region, known, {node.name for node in region} - {*scan.region.arguments})
                states = [self._masked(inside[result], told) for result in scan.following]
                found.append([self._masked(inside[result], told) for result in scan.stacked])
            self.tape.hold(found[-1])
        stacked = [numbers(fixed(type_, self.lengths), self.batch) for type_ in scan.types]
        return tuple(
            self.tape.make(count, *of_steps) for count, of_steps in zip(stacked, zip(*found, strict=True), strict=True)
        )

    def _zeros(self, state: Node) -> Value:
        return self.tape.drawn(numbers(fixed(state.types[0], self.lengths), self.batch))

    def _masked(self, x: Value, told: bool) -> Value:
        """A value of a step, that of an example which has ended replaced."""
        return self.tape.cleared(x, self.batch) if told else x

    def _given(self, node: Node) -> Value:
        type_ = fixed(node.types[0], self.lengths)
        return self.tape.given(numbers(type_, self.batch), None if type_.dtype == "float" else INDEX)

    def _masks(self, graph: Graph, node: OpNode | RouteNode) -> tuple[float, ...]:
        """How many truth values tell the padding of each operand."""
        if not graph.lengths(node.name):
            return ()
        axes = (each.values() for each in graph.signature(node).padding())
        return tuple(self.batch * prod(self.lengths.get(axis, 1) for axis in each) if each else 0 for each in axes)


def drawing(graph: Graph) -> list[str]:
    """The nodes that draw decisions, and scans in which one is."""
    return [(each.part.scan or each.node).name for each in graph.decisions() if each.facts.draws]


@dataclass(frozen=True)
class TapedStep:
    """A step's tape, what is differentiated, and the bytes of its batch."""

    tape: Tape
    objectives: list[Value]
    examples: float


def taped(
    graph: Graph, lengths: Mapping[str, int], batch: int, precision: str = "float32", learns: bool = True
) -> TapedStep:
    """A step of a lowered graph, as far as a loss or a drawn decision needs it; what has no loss is counted as if its
    outputs were learnt. Of a step that does not learn nothing is kept.
    """
    tape = Tape(8 if precision == "float64" else 4, half=precision == "bfloat16")
    weights = {
        each.name: tape.weight(each.count, learns=learns and not (each.frozen or each.buffer))
        for each in weights_of(graph)
    }
    drawn = drawing(graph)
    writer = Writer(tape, lengths, batch, weights, draws=bool(drawn))
    wanted = graph.losses or graph.outputs
    values = writer.graph(graph, {}, graph.ancestors({*drawn, *(result.node for result in wanted.values())}))
    given = [node.name for node in graph if isinstance(node, InputNode | TargetNode)]
    examples = sum(values[Result(name)].size for name in given if Result(name) in values)
    return TapedStep(tape, [*(values[result] for result in wanted.values()), *writer.judged], examples)
