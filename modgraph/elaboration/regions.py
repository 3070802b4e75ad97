"""A pool's modules: what they are made of, elaborated in graphs of their own."""

from __future__ import annotations

from modgraph.elaboration import errors
from modgraph.elaboration.entities import POISON, Poison, PoolEntity, Tensor, several
from modgraph.elaboration.messages import as_one, taken_apart
from modgraph.elaboration.scope import Naming, Scope
from modgraph.elaboration.site import Site
from modgraph.ir import Graph, InputNode, Node, OpNode, Part, Region, Result, rewritten
from modgraph.types import TensorType


def elaborate_module(pool: PoolEntity, at: int, message: TensorType, site: Site) -> Region | Poison:
    """One module of a pool, of the template at a place."""
    graph, template, path = Graph(pool.path), pool.templates[at], pool.whole_path
    scope = Scope(outer=site.scope, frozen=pool.frozen)
    path = path if len(pool.templates) == 1 else f"{path}.{at}"
    inside = Site(site.context, site.rules, graph, scope, Naming("", "", scope), region=path)
    inside.add(InputNode(name="x", types=(message,), span=pool.span), pool.span)
    value, parts = Tensor(Result("x"), message), site.context.messages[pool.whole_path]
    taken = (value,) if len(parts) < 2 else taken_apart(value, parts, pool.span, _beside("sent", inside))
    result = POISON if isinstance(taken, Poison) else inside.apply(template, taken, pool.span)
    yielded = several(result)
    if all(isinstance(each, Tensor) for each in yielded) and _yields_alike(yielded, pool, site):
        whole = as_one(yielded, pool.span, _beside("yielded", inside))
        return POISON if isinstance(whole, Poison) else _without_records(Region(graph, ("x",), (whole.result,)))
    if not any(isinstance(each, Tensor | Poison) for each in yielded):
        reason = "its modules must yield values"
        site.tell(errors.DoesNotFit(span=pool.span, who=f'pool "{pool.path}"', reason=reason))
    return POISON


def _beside(word: str, site: Site) -> Site:
    """Where what lays values side by side stands in a module: beside the module's own ops."""
    return site.under(Naming(word, word, site.scope))


def _yields_alike(values: tuple[Tensor, ...], pool: PoolEntity, site: Site) -> bool:
    """Whether a module yields as many values as the first did, and of these types where they are several."""
    types = tuple(each.type for each in values)
    first = site.context.yields.setdefault(pool.whole_path, types)
    if len(first) == len(types) and (len(types) == 1 or all(map(TensorType.meets, types, first))):
        return True
    shown = " and ".join(map(str, types)), " and ".join(map(str, first))
    reason, advice = f"a module yields {shown[0]}, and module 0 yields {shown[1]}", "give all the same types of results"
    site.tell(errors.DoesNotFit(span=pool.span, who=f'pool "{pool.path}"', reason=reason, way_out=advice))
    return False


def _without_records(region: Region) -> Region:
    """A module without what only records of its routers need, which nothing reads; what has weights stays."""
    graph = region.graph
    ends = [node.name for node in graph if not _is_of_router(node)]
    kept = graph.ancestors([*ends, *(result.node for result in region.results)])
    if len(kept) == len(graph):
        return region

    def rule(node: Node, part: Part) -> Node | None:
        return node if part.graph is not graph or node.name in kept else None

    return Region(rewritten(graph, rule), region.arguments, region.results)


def _is_of_router(node: Node) -> bool:
    """Whether an op without weights stands in the text of a router."""
    calls = node.within.chain() if node.within is not None else ()
    return isinstance(node, OpNode) and not node.op.all_weights() and any(each.kind == "router" for each in calls)
