"""Choose how each route is computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.ir import Graph, Node, Part, RouteNode, ScanNode
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
        return self._lowered(Part(graph))

    def _lowered(self, part: Part) -> Graph:
        def chosen(node: Node) -> Node:
            match node:
                case RouteNode():
                    return replace(node, lowering=self.choice(part, node).form)
                case ScanNode():
                    return replace(node, region=self._lowered(Part(node.region, node)))
                case _:
                    return node

        return rebuilt(part.graph, chosen)

    def choice(self, part: Part, route: RouteNode) -> Lowering:
        """The form of a route."""
        offered = part.graph.router_of(route).router.lowerings(part.facts_of(route))
        forms = [form for form in offered if form.exportable or not self.exportable]
        for form in forms:
            if self.form in (None, form.form):
                return form
        known = ", ".join(form.form for form in forms)
        raise NoSuchLowering(f'route "{route.name}" has no form "{self.form}"; it has: {known}')


def choices(graph: Graph) -> dict[str, Lowering]:
    """The form that each route of a lowered graph has, by the route's name."""
    return {
        route.name: Lower(route.lowering).choice(part, route)
        for part in graph.parts()
        for route in part.graph.of_kind(RouteNode)
    }
