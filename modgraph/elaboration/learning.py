"""Finds weights that training leaves unchanged, and weights that the task depends on but does not train."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modgraph.declare import DISTRIBUTION
from modgraph.diagnostics import Note, Report, Span
from modgraph.elaboration import errors
from modgraph.elaboration.gradients import Reach, Stop
from modgraph.ir import Graph, Node, OpNode, PoolNode, Result, RouteNode, RouterNode, ScanNode, TargetNode
from modgraph.ops import Op
from modgraph.routers.prelude import is_prelude

CHOOSE_MORE = "let it choose more modules, or use a router whose weights are shares of all modules, such as linear(k=1)"
SHARES = "weigh the chosen module by its share of all: (scores -> softmax) * chosen"
STRAIGHT = "pass a gradient through it: (soft, hard) -> straight_through"
NO_LOSS = "add a loss that depends on it, or declare it in: frozen { … }"


@dataclass
class Owner:
    """An op, a pool, or a router with the ops in its body, that has weights to learn."""

    name: str
    kind: str
    span: Span | None
    nodes: set[str]


def find_unlearned(graph: Graph, dead: Iterable[str], report: Report) -> None:
    """Warn of weights that no gradient of a loss reaches, and of those that no gradient of the task reaches. Routers
    that draw are left out: an algorithm trains them."""
    if not graph.losses:
        return
    logits = list(_find_logits_of_draws(graph))
    every = Reach(graph).go_back([*graph.losses.values(), *logits])
    compared = _find_compared(graph)
    task = {name: result for name, result in graph.losses.items() if result in compared}
    of_task = every if task == graph.losses else Reach(graph).go_back([*task.values(), *logits])
    found: dict[tuple[str, Span | None], list[tuple[Owner, Stop | None]]] = {}
    for owner in _owners(graph):
        if owner.name in dead:
            continue
        if not owner.nodes & every.nodes:
            stop = _stop_before(owner, every)
            if stop is not None or task:  # without a task the model is not finished
                found.setdefault(("none", owner.span), []).append((owner, stop))
        elif not owner.nodes & of_task.nodes:
            stop = _stop_before(owner, of_task)
            if stop is not None:
                found.setdefault(("task", owner.span), []).append((owner, stop))
    for path, region in graph.modules():
        if not region.graph.of_kind(RouteNode):  # all that is in it is learned as its pool is
            continue
        reach = Reach(region.graph).go_back(region.results)
        for owner in _owners_in(path, region.graph):
            stop = None if owner.nodes & reach.nodes else _stop_before(owner, reach)
            if stop is not None:
                found.setdefault(("none", owner.span), []).append((owner, stop))
    for (kind, _), owners in found.items():
        _warn(kind, owners, report)


def _find_logits_of_draws(graph: Graph) -> Iterator[Result]:
    """The recorded distributions of routers that draw, from which an algorithm trains them."""
    for decision in graph.decisions():
        if decision.facts.draws:
            yield from (decision.results[each.name] for each in decision.declared if each.role in DISTRIBUTION)


def _find_compared(graph: Graph) -> set[Result]:
    """The results that depend on a target, or on an op that compares values."""
    found: set[Result] = set()
    for node in graph:
        compares = isinstance(node, TargetNode) or (isinstance(node, OpNode) and node.op.compares is not None)
        if compares or not found.isdisjoint(graph.inputs(node.name).values()):
            found.update([Result(node.name, index) for index in range(len(node.types))])
        elif isinstance(node, ScanNode):
            inside = _find_compared(node.region.graph)
            stacked = enumerate(node.stacked)
            found.update(Result(node.name, index) for index, each in stacked if inside & {each, *node.following})
    return found


def _owners(graph: Graph) -> Iterator[Owner]:
    """Everything with weights that are not frozen, in the order of the graph."""
    routers = {router.name: router for part in graph.parts() for router in part.graph.of_kind(RouterNode)}
    found: dict[str, Owner] = {}
    for part in graph.parts():
        for node in part.graph:
            if not _learns(node):
                continue
            name = node.owner if isinstance(node, OpNode) else node.name
            router = next((routers[each] for each in above(name) if each in routers), None)
            kind = "router" if router is not None else "pool" if isinstance(node, PoolNode) else "weights of"
            span = node.span if router is None else router.span
            name = name if router is None else router.name
            found.setdefault(name, Owner(name, kind, span, set())).nodes.add(node.name)
    yield from found.values()


def _owners_in(path: str, graph: Graph) -> Iterator[Owner]:
    """The same of the ops of a pool's module with routes, whose names stand below a path."""
    found: dict[str, Owner] = {}
    for node in graph.of_kind(OpNode):
        calls = node.within.chain() if node.within is not None else ()
        router = next((each for each in calls if each.kind == "router"), None)
        if _learns(node):
            kind, name = ("weights of", node.owner) if router is None else ("router", router.weights)
            span = node.span if router is None else router.span
            found.setdefault(name, Owner(f"{path}.{name}", kind, span, set())).nodes.add(node.name)
    yield from found.values()


def _learns(node: Node) -> bool:
    match node:
        case OpNode():
            return not node.frozen and _has_weights(node.op)
        case PoolNode():
            ops = (each for graph in node.graphs() for each in graph.of_kind(OpNode))
            return any(_has_weights(each.op) and not each.frozen for each in ops)
        case _:
            return False


def _has_weights(op: Op) -> bool:
    return any(not weight.buffer for weight in op.all_weights())


def above(name: str) -> Iterator[str]:
    """The names that a dotted name stands below, the longest first."""
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))


def _stop_before(owner: Owner, reach: Reach) -> Stop | None:
    """A stop of gradients between the losses and an owner, if there is one; first one that weighs by a constant."""
    behind = [stop for graph, stop in reach.stops if owner.nodes & graph.ancestors(each.node for each in stop.operands)]
    return next((stop for stop in behind if stop.constant), behind[0] if behind else None)


def _warn(kind: str, owners: list[tuple[Owner, Stop | None]], report: Report) -> None:
    (owner, stop), others = owners[0], len(owners) - 1
    what = f'{owner.kind} "{owner.name}"' + (f" and {others} more" if others else "")
    why, way_out, notes = "", NO_LOSS, tuple[Note, ...]()
    if stop is not None:
        by = f'"{stop.node.op.name}"'
        why = f": {by} of a single choice is one, whatever its score" if stop.constant else f": none passes {by}"
        prelude = stop.node.span is not None and is_prelude(stop.node.span.source)
        way_out = (CHOOSE_MORE if prelude else SHARES) if stop.constant else STRAIGHT
        notes = () if prelude else (Note(text="it ends here", span=stop.node.span),)
    caution = errors.NotLearned if kind == "none" else errors.NotTaught
    report.add(caution(span=owner.span, notes=notes, what=what, why=why, way_out=way_out))
