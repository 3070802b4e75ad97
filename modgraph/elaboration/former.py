"""Stored graphs of versions whose routers were no texts yet: the texts are put in where the routes stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from modgraph.diagnostics import Report, Source, Span
from modgraph.elaboration.blocks import use_block
from modgraph.elaboration.calls import CallArgument
from modgraph.elaboration.context import Context
from modgraph.elaboration.defined import Sent, decided
from modgraph.elaboration.entities import Poison, PoolEntity, RouterEntity, RouterUse, Tensor
from modgraph.elaboration.language import RULES
from modgraph.elaboration.prelude import prelude_router
from modgraph.elaboration.scope import Naming, Scope
from modgraph.elaboration.site import Site
from modgraph.ir import (
    Change,
    Expanded,
    Graph,
    Node,
    Part,
    PoolNode,
    Result,
    RouteNode,
    RouterNode,
    from_json,
    rewritten,
)
from modgraph.routers.former import Former
from modgraph.types import Misfit

NOWHERE = Span(Source("a stored graph", ""), 0, 0)


def stored_graph(record: Any) -> Graph:
    """The graph that a record of any version describes. Raises `UnreadableGraph`."""
    return from_json(record, lambda graph: rewritten(graph, _Texts()))


class _OfRoute(Naming):
    """Names for the body of a router whose route has its name already."""

    def __init__(self, route: str, router: str) -> None:
        super().__init__(route, router, Scope())

    def next(self, word: str, label: str | None = None) -> tuple[str, str]:
        return self.node, self.owner


@dataclass(frozen=True)
class _Texts:
    """What takes the place of former routers, which is none, and of the routes by them."""

    context: Context = field(default_factory=lambda: Context(Report()))

    def __call__(self, node: Node, part: Part) -> Change:
        if isinstance(node, RouterNode) and isinstance(node.router, Former):
            return None
        if isinstance(node, RouteNode) and isinstance(part.graph.router_of(node).router, Former):
            return Expanded(partial(self._put_in, node, part))
        return node

    def _put_in(
        self, route: RouteNode, part: Part, graph: Graph, inputs: Mapping[str, Result], lengths: Mapping[str, Result]
    ) -> tuple[Result, ...]:
        """Add the body of a route's router, and a route of its name that shows what it decides. Raises `Misfit`."""
        known = {node.name: node for node in graph}
        self.context.named |= {name: each for name, each in known.items() if isinstance(each, PoolNode | RouterNode)}
        self.context.lengths = {**graph.length_inputs(), **{axis: each.node for axis, each in lengths.items()}}
        router = part.graph.router_of(route)
        site = Site(self.context, RULES, graph, Scope(), _OfRoute(route.name, router.name))
        tokens, *others = (Tensor(each, graph.type_of(each), NOWHERE) for each in inputs.values())
        use = _use(router, site)
        found = None
        if use is not None:
            entity = RouterEntity(router.name, use, router.frozen, NOWHERE)
            found = decided((_pool(part, route),), entity, Sent(tokens, tuple(others), NOWHERE), site)
        if not isinstance(found, Tensor):
            told = self.context.report.errors
            raise Misfit(f'"{router.name}" is a text now, and {told[0].text() if told else "does not fit"}')
        for node in [node for node in graph if node.name not in known]:
            graph.replace(_as_stored(node, route, Part(graph, part.scan)))
        return tuple(Result(route.name, index) for index in range(len(route.types)))


def _use(router: RouterNode, site: Site) -> RouterUse | None:
    former = router.router
    assert isinstance(former, Former)
    definition = prelude_router(former.definition)
    assert definition is not None
    given = [CallArgument(name, value, NOWHERE) for name, value in former.given]
    use = use_block(definition, given, site, NOWHERE)
    return None if isinstance(use, Poison) else RouterUse(use.block, use.parameters, defaults=use.defaults)


def _pool(part: Part, route: RouteNode) -> PoolEntity:
    node = part.graph.pool_of(route)
    word = node.name.rpartition(".")[2]
    return PoolEntity(node.name, node.size, (), False, NOWHERE, node.grown, node.shares, word=word)


def _as_stored(node: Node, route: RouteNode, part: Part) -> Node:
    """A node without a place; of a lowered graph a route in the form of the former one, or the best there is."""
    node = replace(node, span=None)
    if not isinstance(node, RouteNode) or route.lowering is None:
        return node
    router = part.graph.router_of(node).router
    forms = [each.form for each in (*router.lowerings(part.facts_of(node)), router.reference_form)]
    return replace(node, lowering=route.lowering if route.lowering in forms else forms[0])
