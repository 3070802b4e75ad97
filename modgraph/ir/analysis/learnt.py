"""What training moves: the weights that losses are computed from, and the states whose rules go with these losses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from modgraph.ir.analysis.module_axes import module_axes
from modgraph.ir.graph import Graph
from modgraph.ir.node import LossNode, Node, OpNode, Result, ScanNode
from modgraph.ir.part import Part
from modgraph.ir.rewrite import rewritten
from modgraph.ir.weights import below, node_weights, weights_of
from modgraph.ops.array import NextState, State
from modgraph.ops.situation import StopGradient


def weights_behind(graph: Graph, results: Iterable[Result]) -> set[str]:
    """The names of the weights that results are computed from, as far as a gradient may flow."""
    found: set[str] = set()
    for name in _behind(graph, results):
        node = graph[name]
        if isinstance(node, ScanNode):
            found |= weights_behind(node.region.graph, node.region.results)
        else:
            found |= {weight.name for weight in node_weights(graph, node) if not weight.buffer}
    return found


def learnt_weights(graph: Graph, results: Iterable[Result]) -> set[str]:
    """The weights that training moves to make results small: those behind them, all or some of whose places are not
    frozen."""
    axes, behind = module_axes(graph), weights_behind(graph, results)
    learns = (each for each in weights_of(graph) if each.name in behind)
    return {each.name for each in learns if not each.frozen or (each.name in axes and axes[each.name].grown)}


def moved_states(graph: Graph) -> dict[str, Result]:
    """What each state that a rule moves is after a step of training, by the name of its weight.

    A frozen one moves where it has grown, and only in the places that are new.
    """
    rules = [*ruled_states(graph)]
    axes, found = module_axes(graph) if any(state.frozen for _, state in rules) else {}, {}
    for rule, state in rules:
        (weight,) = state.op.all_weights()
        name = below(state.owner, weight.name)
        if not state.frozen or (name in axes and axes[name].grown):
            found[name] = Result(rule.name)
    return found


def ruled_states(graph: Graph) -> Iterator[tuple[OpNode, OpNode]]:
    """The rules that move states of this very graph, each with its state."""
    for rule in graph.of_kind(OpNode):
        if isinstance(rule.op, NextState):
            state = graph[graph.inputs(rule.name)["state"].node]
            assert isinstance(state, OpNode) and isinstance(state.op, State), f"{rule.name} moves what is no state"
            yield rule, state


def with_losses(graph: Graph, losses: Collection[str]) -> Graph:
    """The graph with some of its losses alone.

    Of its states those move whose rules read a weight that these losses read, or no weight at all.
    """
    behind = weights_behind(graph, [result for name, result in graph.losses.items() if name in losses])

    def kept(node: Node, part: Part) -> Node | None:
        if isinstance(node, LossNode):
            return node if node.name in losses else None
        if isinstance(node, OpNode) and isinstance(node.op, NextState):
            read = weights_behind(graph, [graph.inputs(node.name)["value"]])
            return node if not read or read & behind else None
        return node

    return rewritten(graph, kept)


def _behind(graph: Graph, results: Iterable[Result]) -> set[str]:
    """The nodes that a gradient may reach from some results, those that compute them included, and what they use."""
    pending = list(results)
    seen, found = set(pending), set[str]()
    while pending:
        result = pending.pop()
        node = graph[result.node]
        found |= {node.name, *graph.uses(node.name).values()}
        new = {source for source in _read(graph, node) if source not in seen}
        seen |= new
        pending += new
    return found


def _read(graph: Graph, node: Node) -> Iterable[Result]:
    if isinstance(node, OpNode) and (node.op.is_array or isinstance(node.op, StopGradient | State)):
        return ()
    return graph.inputs(node.name).values()
