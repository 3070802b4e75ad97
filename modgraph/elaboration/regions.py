"""A pool's modules: what they are made of, elaborated in graphs of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from modgraph.elaboration import errors
from modgraph.elaboration.entities import POISON, Poison, PoolEntity, Tensor, several
from modgraph.elaboration.messages import as_one, taken_apart
from modgraph.elaboration.scope import Naming, Scope
from modgraph.elaboration.site import Site
from modgraph.ir import Graph, InputNode, Node, OpNode, Part, Region, Result, rewritten
from modgraph.types import TensorType


def elaborate_module(pool: PoolEntity, at: int, message: TensorType, site: Site) -> Region | Poison:
    """One module of a pool, of the template at a place."""
    graph, span = Graph(pool.path), pool.span
    scope = Scope(outer=site.scope, frozen=pool.frozen)
    path = pool.whole_path if len(pool.templates) == 1 else f"{pool.whole_path}.{at}"
    inside = Site(site.context, site.rules, graph, scope, Naming("", "", scope), region=path)

    def beside(word: str) -> Site:  # the module's own ops: where what lays values side by side stands
        return inside.under(Naming(word, word, scope))

    inside.add(InputNode(name="x", types=(message,), span=span), span)
    value, parts = Tensor(Result("x"), message), site.context.messages[pool.whole_path]
    taken = (value,) if len(parts) < 2 else taken_apart(value, parts, span, beside("sent"))
    yielded = several(POISON if isinstance(taken, Poison) else inside.apply(pool.templates[at], taken, span))
    if not all(isinstance(each, Tensor) for each in yielded):
        if not any(isinstance(each, Tensor | Poison) for each in yielded):
            reason = "its modules must yield values"
            site.tell(errors.DoesNotFit(span=span, who=f'pool "{pool.path}"', reason=reason))
        return POISON
    types = tuple(each.type for each in yielded)
    first = site.context.yields.setdefault(pool.whole_path, types)
    if len(first) != len(types) or (len(types) > 1 and not all(map(TensorType.meets, types, first))):
        shown = " and ".join(map(str, types)), " and ".join(map(str, first))
        reason = f"a module yields {shown[0]}, and module 0 yields {shown[1]}"
        facts: Any = {"who": f'pool "{pool.path}"', "reason": reason, "way_out": "give all the same types of results"}
        return site.tell(errors.DoesNotFit(span=span, **facts))
    whole = as_one(yielded, span, beside("yielded"))
    return POISON if isinstance(whole, Poison) else _without_records(Region(graph, ("x",), (whole.result,)))


def _without_records(region: Region) -> Region:
    """A module without what only records of its routers need, which nothing reads; what has weights stays."""
    graph = region.graph

    def only_records(node: Node) -> bool:
        calls = node.within.chain() if node.within is not None else ()
        in_router = any(each.kind == "router" for each in calls)
        return isinstance(node, OpNode) and not node.op.all_weights() and in_router

    ends = [node.name for node in graph if not only_records(node)]
    kept = graph.ancestors([*ends, *(result.node for result in region.results)])

    def rule(node: Node, part: Part) -> Node | None:
        return node if part.graph is not graph or node.name in kept else None

    return region if len(kept) == len(graph) else replace(region, graph=rewritten(graph, rule))
