"""What can be seen to be odd in a finished graph, though it is no mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from modgraph.diagnostics import Note, Report, Span
from modgraph.elaboration import errors
from modgraph.elaboration.context import Declared
from modgraph.elaboration.learning import above, find_unlearned
from modgraph.ir import (
    Decision,
    DecisionNode,
    Graph,
    Needed,
    Node,
    OpNode,
    OutputNode,
    Part,
    PoolNode,
    Result,
    RouteNode,
    ScanNode,
    moved_states,
    needed_in,
    paths_from_targets,
)
from modgraph.ops.activation import Sigmoid
from modgraph.ops.along_axis import Softmax
from modgraph.ops.choice import MaskedSoftmax
from modgraph.ops.padding import MaskPadding
from modgraph.ops.zeros import ANYWHERE
from modgraph.routers.prelude import is_prelude
from modgraph.types import Axis


def find_weaknesses(graph: Graph, declared: Mapping[str, Declared], growing: Set[str], report: Report) -> None:
    """Warn of weights that no output and no loss depends on, or that nothing trains, of probabilities where an op takes
    logits, and of routers that may come to use few modules.

    `declared` says where routers are declared, by path. Modules along the `growing` axes, by name, come one after
    another, each to be learned alone: they compete with none.
    """
    outputs, losses = set(graph.outputs.values()), set(graph.losses.values())
    dead = _dead(needed_by(outputs | losses, graph))
    for name, span in dead.items():
        report.add(errors.Dead(span=span, name=name))
    find_probabilities(graph, report)
    find_unlearned(graph, dead, report)
    if graph.losses:
        _find_unbalanced(graph, declared, growing, report)


def _dead(parts: list[Needed]) -> dict[str, Span | None]:
    """The owners of weights that nothing needs, each with the first place that uses it."""
    used = [(part, node, owners) for part in parts for node, owners in _find_owners(part.graph)]
    live = {owner for part, node, owners in used if node.name in part.nodes for owner in owners}
    dead: dict[str, Span | None] = {}
    for _, node, owners in used:
        first = next((owner for owner in owners if owner not in live), None)
        if first is not None:
            dead.setdefault(first, node.span)
    return dead


def _find_owners(graph: Graph) -> Iterator[tuple[Node, list[str]]]:
    """The nodes that compute with weights, each with what has them."""
    texts = {
        name for op in graph.of_kind(OpNode) if _stands_in_text(op) and op.op.all_weights() for name in above(op.owner)
    }
    for node in graph:
        owners = [] if _stands_in_text(node) else [*_owners(node, graph, texts)]
        if owners:
            yield node, owners


def _stands_in_text(node: Node) -> bool:
    """Whether a node stands in the text of a router of the vocabulary: its weights are of that router, which a route
    of the spec uses."""
    return node.span is not None and is_prelude(node.span.source)


def _owners(node: Node, graph: Graph, texts: Set[str]) -> Iterator[str]:
    """What has the weights that a node computes with: an op by its name, a pool, a router. The `texts` of some routers
    have weights."""
    if isinstance(node, OpNode) and node.op.all_weights():
        yield node.owner
    if isinstance(node, RouteNode | DecisionNode):
        pool, router = graph.pool_of(node), graph.router_of(node)
        if _has_weights(pool):
            yield pool.name
        if router.name in texts or (isinstance(node, RouteNode) and graph.declaration_of(node).all_weights()):
            yield router.name


def _has_weights(pool: PoolNode) -> bool:
    return any(node.op.all_weights() for graph in pool.graphs() for node in graph.of_kind(OpNode))


def _find_unbalanced(graph: Graph, declared: Mapping[str, Declared], growing: Set[str], report: Report) -> None:
    """Warn of routers that want a balance loss and have none: no loss depends on what they record."""
    routers = dict.fromkeys(each.router.name for each in graph.decisions() if each.facts.balanced)
    if not routers:
        return
    needed = needed_by(set(graph.losses.values()), graph)
    balanced = {*_read_records(needed), *_ruled(graph), *_along(growing, graph)}
    wanting: dict[Declared, list[str]] = {}
    for router in routers:
        if router not in balanced:
            wanting.setdefault(declared[router], []).append(router)
    for first, names in wanting.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        report.add(errors.NoBalance(span=first.span, router=names[0], others=others, way_out=_balance_for(first)))


def _read_records(parts: list[Needed]) -> Iterator[str]:
    """The routers whose records are read outside of their own text."""
    for part in parts:
        records: dict[Result, list[Decision]] = {}
        for each in Part(part.graph).decisions():
            for result in each.inside.values():
                records.setdefault(result, []).append(each)
        for name in part.nodes:
            for result in part.graph.inputs(name).values():
                yield from (each.router.name for each in records.get(result, ()) if not _holds(each, part.graph[name]))
        yield from (each.router.name for result in part.ends for each in records.get(result, ()))


def _holds(decision: Decision, node: Node) -> bool:
    """Whether a node stands in the text of the router that decides, at the same use."""
    text = decision.node.within if isinstance(decision.node, DecisionNode) else None
    return node.within is not None and text is not None and any(each is text for each in node.within.chain())


def _ruled(graph: Graph) -> Iterator[str]:
    """The routers that a state decides on which moves by what they decided."""
    rules = moved_states(graph)
    needed = needed_in(graph, set(rules.values())).results
    fed = graph.descendants(graph.inputs(rule.node)["state"].node for rule in rules.values())
    for each in Part(graph).decisions() if rules else ():
        inputs = (result for slot, result in graph.inputs(each.name).items() if slot != "tokens")
        made = {result for value in inputs for result in _unmasked(value, graph)}
        if made & needed and each.name in fed:
            yield each.router.name


def _unmasked(value: Result, graph: Graph) -> Iterator[Result]:
    """A value of a decision, and what it is before its padding is masked."""
    yield value
    node = graph[value.node]
    if isinstance(node, OpNode) and isinstance(node.op, MaskPadding):
        yield graph.inputs(node.name)["x"]


def _along(axes: Set[str], graph: Graph) -> Iterator[str]:
    """The routers that decide for modules along some axes."""
    yield from (each.router.name for each in graph.decisions() if each.pool.axis.name in axes)


def _balance_for(router: Declared) -> str:
    if router.in_scan:
        return f'declare it outside of block "{router.block}", in the body of the scan, where a loss can name it'
    where = "the model" if router.block is None else f'block "{router.block}"'
    return f"add at the end of {where}: loss 0.01 * importance({router.name})"


def needed_by(ends: set[Result], graph: Graph) -> list[Needed]:
    """The dependencies of some results, in the graph and in the regions of its scans."""
    whole = needed_in(graph, ends)
    found = [whole]
    read: dict[str, list[int]] = {}
    for result in whole.results:
        read.setdefault(result.node, []).append(result.index)
    for scan in graph.of_kind(ScanNode):
        stacked = {scan.stacked[index] for index in read.get(scan.name, ())}
        found.append(needed_in(scan.region.graph, stacked | set(scan.following) if stacked else set()))
    return found


def find_leaks(graph: Graph, report: Report) -> None:
    """Report outputs that depend on a target in inference, which has none."""
    leaks = paths_from_targets(graph)
    if not leaks:
        return
    ops = {node.name: node.op.name for part in graph.parts() for node in part.graph.of_kind(OpNode)}
    spans = {node.label: node.span for node in graph.of_kind(OutputNode)}
    for output, path in leaks.items():
        facts: Any = {"output": output, "target": path[0], "path": " -> ".join(path)}
        swapped = next((name for name in path if ops.get(name) == "training_or_inference"), None)
        if swapped is not None:
            facts["way_out"] = f"in inference {swapped} is its second value: put the target first"
        report.add(errors.OutputReadsTarget(span=spans[output], **facts))


NORMALISE = Softmax | MaskedSoftmax


def find_probabilities(graph: Graph, report: Report) -> None:
    """Warn of ops that apply a softmax to probabilities, and of losses of logits that get numbers between zero and
    one."""
    for each in _graphs(graph):
        for node in each.of_kind(OpNode):
            made = _find_bounded(node, each)
            if made is not None and not (node.span is not None and is_prelude(node.span.source)):
                notes = (Note(text="made here", span=made.span),)
                way_out = f"leave {made.op.name} out" + ", or write log_softmax" * isinstance(made.op, NORMALISE)
                facts = {"op": node.op.name, "made": made.op.name, "way_out": way_out}
                report.add(errors.NoLogits(span=node.span, notes=notes, **facts))


def _graphs(graph: Graph) -> Iterator[Graph]:
    """A graph, and those of its scans and pools."""
    for part in graph.parts():
        yield part.graph
        for pool in part.graph.of_kind(PoolNode):
            yield from (region.graph for region in pool.regions)


def _find_bounded(node: OpNode, graph: Graph) -> OpNode | None:
    """The op that computes the logits of another op, if it gives probabilities or numbers between zero and one."""
    inputs = graph.inputs(node.name)
    if not node.op.takes_logits or node.op.takes_logits not in inputs:
        return None
    result = inputs[node.op.takes_logits]
    axis = graph.type_of(result).shape[_position(node, graph)]
    made = _find_source(result, graph)
    if made is None:
        return None
    if isinstance(made.op, NORMALISE):
        return made if graph.type_of(Result(made.name)).shape[_position(made, graph)] == axis else None
    return made if node.op.objective else None


def _position(node: OpNode, graph: Graph) -> int:
    """The place of the axis of an op's softmax."""
    bound: dict[str, int | Axis] = graph.signature(node).axes.bound
    place = bound.get("position", -1)
    return place if isinstance(place, int) else -1


def _find_source(result: Result, graph: Graph) -> OpNode | None:
    """The op that bounds or normalises a value, behind ops that only move axes or drop numbers."""
    node = graph[result.node]
    while isinstance(node, OpNode) and not isinstance(node.op, NORMALISE | Sigmoid):
        inputs = [*graph.inputs(node.name).values()]
        moves = len(inputs) == 1 and node.op.propagate_choices(graph.signature(node), (ANYWHERE,)) is not None
        if not (moves or node.op.narrows or node.op.name in ("identity", "dropout")):
            return None
        node = graph[inputs[0].node]
    return node if isinstance(node, OpNode) else None
