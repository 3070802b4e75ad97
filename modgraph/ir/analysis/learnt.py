"""The weights and states that training updates, and the axes along which weights grow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from modgraph.ir.graph import Graph, compute_once
from modgraph.ir.node import LossNode, Node, OpNode, PoolNode, Result, ScanNode, TargetNode
from modgraph.ir.part import Part
from modgraph.ir.rewrite import rewrite_graph
from modgraph.ir.weights import join_name, list_node_weights, weights_of
from modgraph.ops.array import NextState, State
from modgraph.ops.situation import StopGradient


def find_weights_behind(graph: Graph, results: Iterable[Result]) -> set[str]:
    """Find the names of the weights that get a gradient from some results."""
    pending = list(results)
    seen, nodes, found = set(pending), set[str](), set[str]()
    while pending:
        node = graph[pending.pop().node]
        nodes |= {node.name, *graph.uses(node.name).values()}
        if not (isinstance(node, OpNode) and (node.op.is_array or isinstance(node.op, StopGradient | State))):
            new = {*graph.inputs(node.name).values()} - seen
            seen |= new
            pending += new
    for node in map(graph.__getitem__, nodes):
        if isinstance(node, ScanNode):
            found |= find_weights_behind(node.region.graph, node.region.results)
        else:
            found |= {weight.name for weight in list_node_weights(graph, node) if not weight.buffer}
    return found


def find_learnt_weights(graph: Graph, results: Iterable[Result]) -> set[str]:
    """Find the weights that training updates to minimise results: those with a gradient that are not wholly frozen."""
    axes, behind = find_module_axes(graph), find_weights_behind(graph, results)
    learns = (each for each in weights_of(graph) if each.name in behind)
    return {each.name for each in learns if not each.frozen or (each.name in axes and axes[each.name].grown)}


def find_moved_states(graph: Graph) -> dict[str, Result]:
    """Find the next value of each state that a rule updates, by the name of its weight.

    A frozen state changes only if it has grown, and only in its new places.
    """
    rules = [*find_ruled_states(graph)]
    axes, found = find_module_axes(graph) if any(state.frozen for _, state in rules) else {}, {}
    for rule, state in rules:
        (weight,) = state.op.all_weights()
        name = join_name(state.owner, weight.name)
        if not state.frozen or (name in axes and axes[name].grown):
            found[name] = Result(rule.name)
    return found


def find_ruled_states(graph: Graph) -> Iterator[tuple[OpNode, OpNode]]:
    """Find the update rules in this graph, without regions, each with its state."""
    for rule in graph.nodes_of(OpNode):
        if isinstance(rule.op, NextState):
            state = graph[graph.inputs(rule.name)["state"].node]
            assert isinstance(state, OpNode) and isinstance(state.op, State), f"{rule.name} moves what is no state"
            yield rule, state


def with_losses(graph: Graph, losses: Collection[str]) -> Graph:
    """Keep only some losses of a graph, and the rules that read one of their weights, or no weight at all."""
    behind = find_weights_behind(graph, [result for name, result in graph.losses.items() if name in losses])

    def keep_node(node: Node, part: Part) -> Node | None:
        if isinstance(node, LossNode):
            return node if node.name in losses else None
        if isinstance(node, OpNode) and isinstance(node.op, NextState):
            read = find_weights_behind(graph, [graph.inputs(node.name)["value"]])
            return node if not read or read & behind else None
        return node

    return rewrite_graph(graph, keep_node)


@dataclass(frozen=True)
class ModuleAxis:
    """The axis of a weight that is an axis of modules or classes: its place and name, its pools and targets.

    `others` are further axes of modules or classes of the weight, along which it cannot grow.
    """

    axis: int
    name: str
    pools: tuple[PoolNode, ...] = ()
    targets: tuple[TargetNode, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def old(self) -> int:
        """The size before any place was added to its pools and targets."""
        targets = ((target.types[0].size or 0) - target.grown for target in self.targets)
        return min((*(pool.size - pool.grown for pool in self.pools), *targets))

    @property
    def grown(self) -> int:
        """The number of places that were added."""
        return max((*(pool.grown for pool in self.pools), *(target.grown for target in self.targets)))


@compute_once
def find_module_axes(graph: Graph) -> Mapping[str, ModuleAxis]:
    """The growable axis of each weight that has one, by name, in scans and pools too."""
    along: dict[str, ModuleAxis] = {}
    for pool in graph.pools().values():
        known = along.setdefault(pool.axis.name, ModuleAxis(0, pool.axis.name))
        along[known.name] = replace(known, pools=(*known.pools, pool))
    for target in graph.nodes_of(TargetNode):
        classes = target.types[0].classes
        if classes is not None and classes.name:
            known = along.setdefault(classes.name, ModuleAxis(0, classes.name))
            along[known.name] = replace(known, targets=(*known.targets, target))
    found: dict[str, ModuleAxis] = {}
    for weight in weights_of(graph) if along else ():
        names = [axis.name for axis in weight.axes]
        first, *others = [name for name in names if name in along] or [""]
        if first:
            found[weight.name] = replace(along[first], axis=names.index(first), others=tuple(others))
    return found
