"""Checks a finished graph for probable mistakes, and reads the names that have moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from itertools import accumulate
from typing import Any

from modgraph import ir
from modgraph.diagnostics import Note, Report, Span, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.context import Declared
from modgraph.elaboration.learning import find_unlearned, is_in_prelude
from modgraph.elaboration.scope import join
from modgraph.ir import (
    DecisionNode,
    Graph,
    Needed,
    OpNode,
    OutputNode,
    Part,
    PoolNode,
    Result,
    RouteNode,
    ScanNode,
    find_batch_statistics,
    find_dependencies,
)
from modgraph.ir.analysis.independence import find_padding_readers
from modgraph.ir.analysis.slots import Builder, read_slots
from modgraph.ir.analysis.storable import find_obstacle, list_routes_of
from modgraph.ops.along_axis import Softmax
from modgraph.ops.choice import MaskedSoftmax
from modgraph.ops.elementwise import MaskPadding, Sigmoid
from modgraph.ops.zeros import ANYWHERE
from modgraph.routers import IdChoice
from modgraph.syntax import ast

NORMALISE = Softmax | MaskedSoftmax


def find_weaknesses(graph: Graph, declared: Mapping[str, Declared], growing: Set[str], report: Report) -> None:
    """Warn of weights without effect or training, of probabilities used as logits, of unbalanced routers, and of
    outputs that depend on the batch.

    `declared` holds the declarations of routers by path. Modules along the `growing` axes join one after another and do
    not compete, so they need no balance.
    """
    outputs, losses = set(graph.outputs.values()), set(graph.losses.values())
    dead = _find_dead(find_needed(outputs | losses, graph))
    for name, span in dead.items():
        report.add(errors.Dead(span=span, name=name))
    _find_probabilities(graph, report)
    _find_outputs_of_batch(graph, report)
    _find_padding_readers(graph, report)
    find_unlearned(graph, dead, report)
    _find_large_pools(graph, report)
    if graph.losses:
        _find_unbalanced(graph, declared, growing, report)


def _find_large_pools(graph: Graph, report: Report) -> None:
    """Report large pools that cannot be stored, and warn of routes that weight each of their modules."""
    inner = [pool for _, region in graph.modules() for pool in region.graph.nodes_of(PoolNode) if pool.is_large]
    reasons = [(pool, find_obstacle(pool, graph)) for pool in graph.pools().values() if pool.is_large]
    reasons += [(pool, "it stands in a module of another pool") for pool in inner]
    for pool, reason in reasons:
        if reason:
            report.add(errors.LargePool(span=pool.span, pool=pool.name, size=pool.size, reason=reason))
        for part, route in list_routes_of(pool, graph) if not reason else ():
            router, weights = part.graph.declaration_of(route), part.graph.inputs(route.name).get("weights")
            builder = Builder(part.graph, f"{route.name}~")
            if isinstance(router, IdChoice) or (weights and read_slots(weights, pool.axis, builder, by_scores=False)):
                continue
            report.add(errors.LargeRoute(span=route.span, pool=pool.name, size=pool.size))


def _find_outputs_of_batch(graph: Graph, report: Report) -> None:
    """Warn of outputs that no bundle can have."""
    statistics = find_batch_statistics(graph)
    for node in graph.nodes_of(OutputNode):
        statistic = statistics.get(node.name)
        if isinstance(statistic, OpNode | ScanNode):
            op = statistic.op.name if isinstance(statistic, OpNode) else statistic.name
            notes = (Note(text="computed here", span=statistic.span),)
            report.add(errors.OutputOfBatch(span=node.span, notes=notes, output=node.label or node.name, op=op))


def _find_padding_readers(graph: Graph, report: Report) -> None:
    """Warn of ops of other packages that read padding; tests hold those of the vocabulary."""
    own = (type(node.op) for part in graph.parts() for node in part.graph.nodes_of(OpNode))
    if any(not each.__module__.startswith("modgraph.") for each in own):
        for node in find_padding_readers(graph):
            report.add(errors.ReadsPadding(span=node.span, op=node.op.name))


def find_needed(ends: set[Result], graph: Graph) -> list[Needed]:
    """Return the dependencies of some results in the graph and in the regions of its scans."""
    whole = find_dependencies(graph, ends)
    stacked: dict[str, set[Result]] = {scan.name: set() for scan in graph.nodes_of(ScanNode)}
    for result in whole.results:
        if isinstance(scan := graph[result.node], ScanNode):
            stacked[scan.name] |= {scan.stacked[result.index], *scan.steering}
    inside = (find_needed(stacked[scan.name], scan.region.graph) for scan in graph.nodes_of(ScanNode))
    return [whole, *(each for parts in inside for each in parts)]


def _find_dead(parts: list[Needed]) -> dict[str, Span | None]:
    """Find the unused owners of weights, each with the first place that uses it: an op, a pool or a router.

    Weights in the text of a built-in router belong to the router of the spec.
    """
    used, live, dead = list[tuple[Span | None, list[str]]](), set[str](), dict[str, Span | None]()
    for part in parts:
        graph = part.graph
        with_weights = [node for node in graph.nodes_of(OpNode) if node.op.all_weights()]
        owners = {node.name: [node.owner] for node in with_weights if not is_in_prelude(node)}
        texts = {
            head for node in with_weights if is_in_prelude(node) for head in accumulate(node.owner.split("."), join)
        }
        routes: list[RouteNode | DecisionNode] = [*graph.nodes_of(RouteNode), *graph.nodes_of(DecisionNode)]
        for node in (each for each in routes if not is_in_prelude(each)):
            pool, router = graph.pool_of(node), graph.router_of(node)
            in_pool = any(each.op.all_weights() for region in pool.graphs() for each in region.nodes_of(OpNode))
            in_router = isinstance(node, RouteNode) and graph.declaration_of(node).all_weights()
            owners[node.name] = [pool.name] * in_pool + [router.name] * bool(in_router or router.name in texts)
        used += [(each.span, owners[each.name]) for each in graph if each.name in owners]
        live |= {owner for name in owners if name in part.nodes for owner in owners[name]}
    for span, each in used:
        first = next((owner for owner in each if owner not in live), None)
        if first is not None:
            dead.setdefault(first, span)
    return dead


def _find_unbalanced(graph: Graph, declared: Mapping[str, Declared], growing: Set[str], report: Report) -> None:
    """Warn of routers that need a balance loss but have none: no loss depends on their records."""
    decisions = graph.decisions()
    routers = dict.fromkeys(each.router.name for each in decisions if each.facts.balanced)
    if not routers:
        return
    balanced = {*_read_records(find_needed(set(graph.losses.values()), graph)), *_find_ruled(graph)}
    balanced |= {each.router.name for each in decisions if each.pool.axis.name in growing}
    balanced |= {*_find_even(graph)}
    wanting: dict[Declared, list[str]] = {}
    for router in routers:
        if router not in balanced:
            wanting.setdefault(declared[router], []).append(router)
    for first, names in wanting.items():
        where = "the model" if first.block is None else f'block "{first.block}"'
        way_out = f"add at the end of {where}: loss 0.01 * importance({first.name})"
        if first.in_scan:
            way_out = f'declare it outside of block "{first.block}", in the body of the scan, where a loss can name it'
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        report.add(errors.NoBalance(span=first.span, router=names[0], others=others, way_out=way_out))


def _read_records(parts: list[Needed]) -> Iterator[str]:
    """Iterate over the routers whose records are read outside of their own text."""
    for part in parts:
        records: dict[Result, list[ir.Decision]] = {}
        for each in Part(part.graph).decisions():
            for result in each.inside.values():
                records.setdefault(result, []).append(each)
        for name in part.nodes:
            calls = part.graph[name].calls
            for each in (each for read in part.graph.inputs(name).values() for each in records.get(read, ())):
                text = each.node.within if isinstance(each.node, DecisionNode) else None
                if text is None or not any(call is text for call in calls):
                    yield each.router.name
        yield from (each.router.name for result in part.ends for each in records.get(result, ()))


def _find_ruled(graph: Graph) -> Iterator[str]:
    """Iterate over the routers that depend on a state whose update depends on their decisions, masked or not."""
    rules = ir.find_moved_states(graph)
    needed = find_dependencies(graph, set(rules.values())).results
    fed = graph.descendants(graph.inputs(rule.node)["state"].node for rule in rules.values())
    for each in Part(graph).decisions() if rules else ():
        made = {result for slot, result in graph.inputs(each.name).items() if slot != "tokens"}
        for node in [graph[result.node] for result in made]:
            if isinstance(node, OpNode) and isinstance(node.op, MaskPadding):
                made.add(graph.inputs(node.name)["x"])
        if made & needed and each.name in fed:
            yield each.router.name


def _find_even(graph: Graph) -> Iterator[str]:
    """Iterate over the routers with an op in their text that evens out the use of modules."""
    for part in graph.parts():
        texts = {id(call) for node in part.graph.nodes_of(OpNode) if node.op.balances for call in node.calls}
        for each in Part(part.graph).decisions():
            if isinstance(each.node, DecisionNode) and id(each.node.within) in texts:
                yield each.router.name


def find_leaks(graph: Graph, report: Report) -> None:
    """Report outputs that depend on a target in inference, which has none."""
    leaks = ir.paths_from_targets(graph)
    if not leaks:
        return
    ops = {node.name: node.op.name for part in graph.parts() for node in part.graph.nodes_of(OpNode)}
    spans = {node.label: node.span for node in graph.nodes_of(ir.OutputNode)}
    for output, path in leaks.items():
        facts: Any = {"output": output, "target": path[0], "path": " -> ".join(path)}
        swapped = next((name for name in path if ops.get(name) == "training_or_inference"), None)
        if swapped is not None:
            facts["way_out"] = f"in inference {swapped} is its second value: put the target first"
        report.add(errors.OutputReadsTarget(span=spans[output], **facts))


def _find_probabilities(graph: Graph, report: Report) -> None:
    """Warn of losses and softmax ops that need logits but get numbers between zero and one."""
    for part in graph.parts():
        inside = (region.graph for pool in part.graph.nodes_of(PoolNode) for region in pool.regions)
        for each in (part.graph, *inside):
            for node in each.nodes_of(OpNode):
                made = _find_bounded(node, each)
                if made is not None and not is_in_prelude(node):
                    fits = isinstance(made.op, NORMALISE) and not (node.op.compares and node.op.compares.binary)
                    way_out = f"leave {made.op.name} out" + ", or write log_softmax" * fits
                    facts: Any = {"notes": (Note(text="made here", span=made.span),), "way_out": way_out}
                    report.add(errors.NoLogits(span=node.span, op=node.op.name, made=made.op.name, **facts))


def _find_bounded(node: OpNode, graph: Graph) -> OpNode | None:
    """Find the op that computes the logits of another op if it yields probabilities or numbers between zero and one.

    Ops that only move axes or drop elements are skipped.
    """
    logits = graph.inputs(node.name).get(node.op.takes_logits)
    if logits is None:
        return None
    made = graph[logits.node]
    while isinstance(made, OpNode) and not isinstance(made.op, NORMALISE | Sigmoid):
        inputs = [*graph.inputs(made.name).values()]
        moves = len(inputs) == 1 and made.op.propagate_choices(graph.signature(made), (ANYWHERE,)) is not None
        if not (moves or made.op.narrows or made.op.name in ("identity", "dropout", "drop_path")):
            return None
        made = graph[inputs[0].node]
    if not isinstance(made, OpNode):
        return None
    if isinstance(made.op, Sigmoid):
        return made if node.op.objective else None
    along = [
        graph.type_of(result).shape[graph.signature(op).axes.bound.get("position", -1)]
        for op, result in ((node, logits), (made, Result(made.name)))
    ]
    return made if along[0] == along[1] else None


def find_moves(file: ast.File) -> dict[str, str]:
    """Return the renames of a file's model (`moved old -> new`), new names by old ones."""
    return {each.before.name: each.after.name for model in file.models[:1] for each in _list_moves(model.body)}


def check_moves(body: ast.Body, graph: Graph, report: Report) -> None:
    """Report names that move twice, and new names that the graph does not have."""
    before: dict[str, ast.Move] = {}
    after: dict[str, ast.Move] = {}
    for each in _list_moves(body):
        for path, known in ((each.before, before), (each.after, after)):
            if known.setdefault(path.name, each) is not each:
                report.add(errors.MovedTwice(span=path.span, name=path.name))
    if not before:
        return
    nodes = [node for part in graph.parts() for node in part.graph]
    whole = {name for node in nodes for name in (node.name, node.owner if isinstance(node, OpNode) else node.name)}
    names = {above for name in whole for above in accumulate(name.split("."), join)}
    for name, each in after.items():
        if name not in names and name not in before:  # else the name exists or moves on
            suggestion = did_you_mean(name, names, "for the names, run: modgraph show")
            report.add(errors.MovedNowhere(span=each.after.span, name=name, suggestion=suggestion))


def _list_moves(body: ast.Body) -> list[ast.Move]:
    return [each for each in body.statements if isinstance(each, ast.Move)]
