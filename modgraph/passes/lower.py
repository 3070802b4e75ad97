"""Choose how each route is computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.ir import Graph, Node, Part, RouteNode, rewritten
from modgraph.passes.infrastructure import Pass
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
        return rewritten(graph, self._lowered)

    def _lowered(self, node: Node, part: Part) -> Node:
        return replace(node, lowering=self.choice(part, node).form) if isinstance(node, RouteNode) else node

    def ensures(self, graph: Graph) -> bool:
        """Every route has the asked form, or one that is offered."""
        routes = [(part, route) for part in graph.parts() for route in part.graph.of_kind(RouteNode)]
        return all(self.choice(part, route).form == route.lowering for part, route in routes)

    def choice(self, part: Part, route: RouteNode) -> Lowering:
        """The form of a route."""
        offered = part.graph.router_of(route).router.lowerings(part.facts_of(route))
        forms = [form for form in offered if form.exportable or not self.exportable]
        if not part.graph.router_of(route).router.computes:
            return forms[0]
        for form in forms:
            if self.form in (None, form.form):
                return form
        known = ", ".join(form.form for form in forms)
        raise NoSuchLowering(f'route "{route.name}" has no form "{self.form}"; it has: {known}')


def choices(graph: Graph) -> dict[str, Lowering]:
    """The form that each route of a lowered graph has, by the route's name."""
    return {
        route.name: Lower(_form_of(route)).choice(part, route)
        for part in graph.parts()
        for route in part.graph.of_kind(RouteNode)
    }


def _form_of(route: RouteNode) -> str:
    assert route.lowering is not None, f"{route.name} is not lowered"
    return route.lowering
