"""Weights that training leaves as they are, or that a task does not teach, though it depends on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modgraph.declare import DISTRIBUTION
from modgraph.diagnostics import Note, Report, Span
from modgraph.elaboration import errors
from modgraph.elaboration.gradients import Reach, Stop
from modgraph.elaboration.needs import needed_by
from modgraph.ir import Graph, Node, OpNode, PoolNode, Result, RouteNode, RouterNode, TargetNode
from modgraph.ops import Op
from modgraph.routers.prelude import is_prelude

CHOOSE_MORE = "let it choose more modules, or take one that weighs by shares of all, such as linear(k=1)"
SHARES = "weigh what is chosen by its share of all: (scores -> softmax) * chosen"
STRAIGHT = "let one pass: (soft, hard) -> straight_through"
NO_LOSS = "add a loss that depends on it, or declare it in: frozen { … }"


@dataclass
class Owner:
    """What has weights that are to be learned: an op, a pool, or a router with the ops in its text."""

    name: str
    kind: str
    span: Span | None
    nodes: set[str]


def find_unlearned(graph: Graph, dead: Iterable[str], report: Report) -> None:
    """Warn of weights that no gradient of a loss reaches, and of those that none of the task does. What an algorithm
    teaches, a router that draws, is left out."""
    if not graph.losses:
        return
    drawn = list(_drawn(graph))
    every = Reach(graph).go_back([*graph.losses.values(), *drawn])
    task = {name: result for name, result in graph.losses.items() if _is_of_task(result, graph)}
    of_task = every if task == graph.losses else Reach(graph).go_back([*task.values(), *drawn])
    found: dict[tuple[str, Span | None], list[tuple[Owner, Stop | None]]] = {}
    for owner in _owners(graph):
        if owner.name in dead:
            continue
        if not owner.nodes & every.nodes:
            stop = _stop_before(owner, every)
            if stop is not None or task:  # a model that has no task yet is not whole
                found.setdefault(("none", owner.span), []).append((owner, stop))
        elif not owner.nodes & of_task.nodes:
            stop = _stop_before(owner, of_task)
            if stop is not None:
                found.setdefault(("task", owner.span), []).append((owner, stop))
    for (kind, _), owners in found.items():
        _tell(kind, owners, report)


def _drawn(graph: Graph) -> Iterator[Result]:
    """What routers that draw did so by, which algorithms judge."""
    records = graph.records()
    for part in graph.parts():
        for route in part.graph.of_kind(RouteNode):
            router = part.graph.router_of(route).router
            names = (f"{route.name}.{each.name}" for each in router.records if each.role in DISTRIBUTION)
            yield from (records[name] for name in names if router.draws and name in records)


def _is_of_task(loss: Result, graph: Graph) -> bool:
    """Whether a loss depends on a target, or compares something."""
    nodes = [part.graph[name] for part in needed_by({loss}, graph) for name in part.nodes]
    return any(
        isinstance(node, TargetNode) or (isinstance(node, OpNode) and node.op.compares is not None) for node in nodes
    )


def _owners(graph: Graph) -> Iterator[Owner]:
    """All that has weights that are not frozen, in the order of the graph."""
    routers = {router.name: router for part in graph.parts() for router in part.graph.of_kind(RouterNode)}
    found: dict[str, Owner] = {}
    for part in graph.parts():
        for node in part.graph:
            if not _learns(node):
                continue
            name = node.owner if isinstance(node, OpNode) else node.name
            router = next((routers[each] for each in _above(name) if each in routers), None)
            kind = "router" if router is not None else "pool" if isinstance(node, PoolNode) else "weights of"
            span = node.span if router is None else router.span
            name = name if router is None else router.name
            found.setdefault(name, Owner(name, kind, span, set())).nodes.add(node.name)
    yield from found.values()


def _learns(node: Node) -> bool:
    match node:
        case OpNode():
            return not node.frozen and _has_weights(node.op)
        case PoolNode():
            ops = (each for region in node.regions for each in region.graph.of_kind(OpNode))
            return any(_has_weights(each.op) and not each.frozen for each in ops)
        case _:
            return False


def _has_weights(op: Op) -> bool:
    return any(not weight.buffer for weight in op.all_weights())


def _above(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))


def _stop_before(owner: Owner, reach: Reach) -> Stop | None:
    """Where a gradient ends that would have reached it, of several one that weighs the only one of its axis."""
    behind = [stop for graph, stop in reach.stops if owner.nodes & graph.ancestors(each.node for each in stop.operands)]
    return next((stop for stop in behind if stop.constant), behind[0] if behind else None)


def _tell(kind: str, owners: list[tuple[Owner, Stop | None]], report: Report) -> None:
    (owner, stop), others = owners[0], len(owners) - 1
    what = f'{owner.kind} "{owner.name}"' + (f" and {others} more" if others else "")
    why, way_out, notes = "", NO_LOSS, tuple[Note, ...]()
    if stop is not None:
        by = f'"{stop.node.op.name}"'
        why = f": {by} among one chosen is one, whatever its score" if stop.constant else f": none passes {by}"
        prelude = stop.node.span is not None and is_prelude(stop.node.span.source)
        way_out = (CHOOSE_MORE if prelude else SHARES) if stop.constant else STRAIGHT
        notes = () if prelude else (Note(text="it ends here", span=stop.node.span),)
    caution = errors.NotLearned if kind == "none" else errors.NotTaught
    report.add(caution(span=owner.span, notes=notes, what=what, why=why, way_out=way_out))
