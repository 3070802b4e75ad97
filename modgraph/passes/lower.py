"""Choose how each route is computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.ir import Graph, Node, RouteNode, facts_of
from modgraph.passes.infrastructure import Pass, rebuilt
from modgraph.routers import Lowering


class NoSuchLowering(ValueError):
    """No form of that name can compute a route; the message lists those that can."""


@dataclass(frozen=True)
class Lower(Pass):
    """Give every route the asked form, or by default the best its router offers for its pool.

    `exportable` leaves out forms that serve training alone. Raises `NoSuchLowering`.
    """

    name: ClassVar[str] = "lower"

    form: str | None = None
    exportable: bool = False

    def __call__(self, graph: Graph) -> Graph:
        def chosen(node: Node) -> Node:
            if not isinstance(node, RouteNode):
                return node
            return replace(node, lowering=self.choice(graph, node).form)

        return rebuilt(graph, chosen)

    def choice(self, graph: Graph, route: RouteNode) -> Lowering:
        offered = graph.router_of(route).router.lowerings(facts_of(graph.pool_of(route)))
        forms = [form for form in offered if form.exportable or not self.exportable]
        for form in forms:
            if self.form in (None, form.form):
                return form
        known = ", ".join(form.form for form in forms)
        raise NoSuchLowering(f'route "{route.name}" has no form "{self.form}"; it has: {known}')
