"""Choose how each route is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.diagnostics import list_names
from modgraph.ir import Graph, Node, Part, RouteNode, rewritten
from modgraph.passes.infrastructure import Pass
from modgraph.passes.split import sends_messages, split_routes
from modgraph.routers import DEFINITION, MASKED, Lowering


class NoSuchLowering(ValueError):
    """No form of that name can compute a route; `offered` has the routes by the forms that can."""

    def __init__(self, form: str, offered: Mapping[tuple[str, ...], Sequence[str]]) -> None:
        self.form, self.offered = form, offered
        known = "; ".join(f"{list_names(routes)}: {', '.join(forms)}" for forms, routes in offered.items())
        super().__init__(f'no route has the form "{form}"; there are, by route, {known or "none"}')


@dataclass(frozen=True)
class Lower(Pass):
    """Give every route the asked form, or the best where its router offers none of that name for its pool.

    `exportable` leaves out forms that serve training alone. Raises `NoSuchLowering` where no route can have the asked
    form; `masked` may be asked of any graph, since a route without it runs every module in the forms that it has, and
    the definition of a graph without routes.
    """

    name: ClassVar[str] = "lower"

    form: str | None = None
    exportable: bool = False

    def __call__(self, graph: Graph) -> Graph:
        if self.form is not None and self.form != MASKED:
            offered: dict[tuple[str, ...], list[str]] = {}
            for path, route in routes_by_path(graph).items():
                offered.setdefault(tuple(each.form for each in self.offered(*route)), []).append(path)
            if self.form not in ({form for forms in offered for form in forms} if offered else {DEFINITION}):
                raise NoSuchLowering(self.form, offered)

        def rule(node: Node, part: Part) -> Node:
            return replace(node, lowering=self.choice(part, node).form) if isinstance(node, RouteNode) else node

        return rewritten(graph, rule)

    def offered(self, part: Part, route: RouteNode) -> list[Lowering]:
        """The forms that a route may have, the best first."""
        forms = part.graph.declaration_of(route).lowerings(part.facts_of(route))
        return [form for form in forms if form.exportable or not self.exportable]

    def choice(self, part: Part, route: RouteNode) -> Lowering:
        """The form of a route."""
        forms = self.offered(part, route)
        return next((form for form in forms if form.form == self.form), forms[0])


def routes_by_path(graph: Graph) -> dict[str, tuple[Part, RouteNode]]:
    """Every route by its name, one in a pool's modules by its name below their path; without those that only compute
    messages for other routes."""
    parts = [("", part) for part in graph.parts()]
    parts += [(f"{path}.", Part(region.graph)) for path, region in graph.modules()]
    routes = ((path, part, route) for path, part in parts for route in part.graph.of_kind(RouteNode))
    return {path + route.name: (part, route) for path, part, route in routes if not sends_messages(route, part.graph)}


def choices(graph: Graph) -> dict[str, Lowering]:
    """The form that each route of a lowered graph has, by its path."""
    found = dict[str, Lowering]()
    for path, (part, route) in routes_by_path(graph).items():
        assert route.lowering is not None, f"{route.name} is not lowered"
        form, shared = Lower(route.lowering).choice(part, route), len(split_routes(route, part.graph))
        reason = f"; the messages are computed once for {shared} routes" if shared > 1 and form.form == "dense" else ""
        found[path] = replace(form, reason=form.reason + reason)
    return found
