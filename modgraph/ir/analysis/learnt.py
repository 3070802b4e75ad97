"""What training moves: the weights that losses are computed from, the states whose rules go with these losses, and the
axes along which weights grow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from modgraph.ir.graph import Graph
from modgraph.ir.node import LossNode, Node, OpNode, PoolNode, Result, ScanNode, TargetNode
from modgraph.ir.part import Part
from modgraph.ir.rewrite import rewrite_graph
from modgraph.ir.weights import join_name, node_weights, weights_of
from modgraph.ops.array import NextState, State
from modgraph.ops.situation import StopGradient


def weights_behind(graph: Graph, results: Iterable[Result]) -> set[str]:
    """The names of the weights that results are computed from, as far as a gradient may flow."""
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


def find_moved_states(graph: Graph) -> dict[str, Result]:
    """What each state that a rule moves is after a step of training, by the name of its weight.

    A frozen one moves where it has grown, and only in the places that are new.
    """
    rules = [*find_ruled_states(graph)]
    axes, found = module_axes(graph) if any(state.frozen for _, state in rules) else {}, {}
    for rule, state in rules:
        (weight,) = state.op.all_weights()
        name = join_name(state.owner, weight.name)
        if not state.frozen or (name in axes and axes[name].grown):
            found[name] = Result(rule.name)
    return found


def find_ruled_states(graph: Graph) -> Iterator[tuple[OpNode, OpNode]]:
    """The rules that move states of this very graph, each with its state."""
    for rule in graph.nodes_of(OpNode):
        if isinstance(rule.op, NextState):
            state = graph[graph.inputs(rule.name)["state"].node]
            assert isinstance(state, OpNode) and isinstance(state.op, State), f"{rule.name} moves what is no state"
            yield rule, state


def with_losses(graph: Graph, losses: Collection[str]) -> Graph:
    """The graph with some of its losses alone.

    Of its states those move whose rules read a weight that these losses read, or no weight at all.
    """
    behind = weights_behind(graph, [result for name, result in graph.losses.items() if name in losses])

    def keep_node(node: Node, part: Part) -> Node | None:
        if isinstance(node, LossNode):
            return node if node.name in losses else None
        if isinstance(node, OpNode) and isinstance(node.op, NextState):
            read = weights_behind(graph, [graph.inputs(node.name)["value"]])
            return node if not read or read & behind else None
        return node

    return rewrite_graph(graph, keep_node)


@dataclass(frozen=True)
class ModuleAxis:
    """The place of an axis of modules or classes in a weight, what it is called, the pools along it, and the targets
    whose labels are its places. `others` are such axes of the weight besides this one, along which it cannot grow."""

    axis: int
    name: str
    pools: tuple[PoolNode, ...] = ()
    targets: tuple[TargetNode, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def old(self) -> int:
        """How many places there were before the first was added to any of the pools or targets."""
        targets = ((target.types[0].size or 0) - target.grown for target in self.targets)
        return min((*(pool.size - pool.grown for pool in self.pools), *targets))

    @property
    def grown(self) -> int:
        """How many were added since."""
        return max((*(pool.grown for pool in self.pools), *(target.grown for target in self.targets)))


def module_axes(graph: Graph) -> dict[str, ModuleAxis]:
    """The weights that have an axis that can grow, by name, in scans and in the modules of pools too."""
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
