"""What can be seen to be odd in a finished graph, though it is no mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from modgraph.diagnostics import Report, Span
from modgraph.elaboration import errors
from modgraph.elaboration.context import Declared
from modgraph.elaboration.learning import above, find_unlearned
from modgraph.elaboration.logits import find_probabilities
from modgraph.elaboration.needs import needed_by
from modgraph.ir import (
    Decision,
    DecisionNode,
    Graph,
    Needed,
    Node,
    OpNode,
    Part,
    PoolNode,
    Result,
    RouteNode,
    moved_states,
    needed_in,
)
from modgraph.ops.padding import MaskPadding
from modgraph.routers.prelude import is_prelude


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
    needed = needed_by(set(graph.losses.values()), graph)
    balanced = {*_read_records(needed), *_ruled(graph), *_along(growing, graph)}
    routers = dict.fromkeys(each.router.name for each in graph.decisions() if each.facts.balanced)
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
