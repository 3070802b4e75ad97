"""What each pass leaves behind: whether a graph is as a pass leaves every graph."""

from __future__ import annotations

from modgraph.ir import Graph, InputNode, OutputNode, Part, RouteNode, Rule, ScanNode, find_dependencies, rewrite_graph
from modgraph.passes import (
    ByIds,
    ComputeOnce,
    Determinize,
    Fold,
    Fuse,
    Hoist,
    InferenceOnly,
    Lower,
    LowerScans,
    Merge,
    NoveltyAsOutputs,
    Pass,
    Prune,
    Reassociate,
    Split,
    Store,
    WithoutNovelty,
    WithoutOutputs,
    images,
    list_routes_by_path,
    novelties,
)
from modgraph.passes.cache_names import is_cache
from modgraph.passes.determinize import deterministic
from modgraph.passes.fold import fold_node
from modgraph.passes.hoist import find_invariant_ops, mark_once
from modgraph.passes.incremental import Incremental
from modgraph.passes.inference import find_dead_nodes
from modgraph.passes.keep_less import Cut, KeepLess
from modgraph.passes.merge import find_equal_nodes
from modgraph.passes.outputs import find_unread_novelties
from modgraph.passes.sink import Sinker, SinkReadings
from modgraph.passes.split import is_whole
from modgraph.passes.unroll import UnrollRounds


def ensures(each: Pass, graph: Graph) -> bool:
    """Whether a graph is as this pass leaves every graph."""
    parts = [*graph.parts(), *(Part(region.graph) for _, region in graph.modules())]
    match each:
        case InferenceOnly():  # no losses, and nothing that is not an input and that no output needs
            needed = find_dependencies(graph, graph.outputs.values()).nodes
            return all(isinstance(node, InputNode | OutputNode) or node.name in needed for node in graph)
        case Determinize():
            return _stays(deterministic(), parts)
        case ByIds():
            return not any(each.find_all(part.graph) for part in parts)
        case Lower():  # every route has the asked form, or one that is offered
            routes = list_routes_by_path(graph).values()
            return all(each.choice(part, route).name == route.lowering for part, route in routes)
        case Split():
            return not any(is_whole(node, part.graph) for part in parts for node in part.graph.nodes_of(RouteNode))
        case Fold():
            return _stays(fold_node, graph.parts())
        case Merge():
            return not find_equal_nodes(graph)[0]
        case Reassociate():
            return not images(graph)
        case Fuse():  # no attention is left that has a better lowering
            return not any(choice.nodes for _, _, choices in each.choose(graph) for choice in choices.values())
        case Hoist():
            return not any(map(find_invariant_ops, graph.nodes_of(ScanNode)))
        case Prune():
            return not find_dead_nodes(graph, each.asked)
        case LowerScans():
            return _stays(each.lower, parts)
        case ComputeOnce():
            return _stays(mark_once(), parts)
        case Store():
            found = each.decide(graph)
            return all(pool.stored == found[name][0] for name, pool in graph.pools().items())
        case NoveltyAsOutputs():
            return novelties(graph).keys() <= graph.outputs.keys()
        case SinkReadings():  # every op that works on each token by itself does so on the first reading
            return rewrite_graph(graph, Sinker(graph).sink) is graph
        case UnrollRounds():  # no scan is left whose rounds can be written out
            return _stays(each.unroll, [Part(graph)])
        case KeepLess():  # no other values are smaller
            return not any(Cut(graph, each.axis, second).again for second in each.list_axes(graph))
        case Incremental():  # what a step takes from the one before is what it leaves for the next
            caches = {*filter(is_cache, graph.input_types)}
            return caches == {*filter(is_cache, graph.outputs)}
        case WithoutNovelty():
            return not find_unread_novelties(graph)
        case WithoutOutputs():
            return not each.labels & graph.outputs.keys()
    raise AssertionError(f"nothing says what {each.name} ensures")


def _stays(rule: Rule, parts: list[Part]) -> bool:
    return all(rule(node, part) == node for part in parts for node in part.graph)
