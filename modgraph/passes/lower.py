"""Choose a lowering for each route, and for each op that sends along edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from modgraph.diagnostics import list_names
from modgraph.frozen import change_fields, replace_fields
from modgraph.ir import RECURRENCE, Graph, Node, OpNode, Part, RouteNode, ScanNode, rewrite_graph
from modgraph.ops.edges import LOWERINGS, SCATTER, EdgeRoute
from modgraph.passes.infrastructure import Pass
from modgraph.passes.scans import STEPS
from modgraph.passes.split import sends_messages, split_routes
from modgraph.routers import DEFINITION, MASKED, Lowering


class NoSuchLowering(ValueError):
    """No route has a lowering of that name; `offered` maps the lowerings that routers offer to their routes."""

    def __init__(self, lowering: str, offered: Mapping[tuple[str, ...], Sequence[str]]) -> None:
        self.lowering, self.offered = lowering, offered
        known = "; ".join(f"{list_names(routes)}: {', '.join(names)}" for names, routes in offered.items())
        super().__init__(f'no route has the lowering "{lowering}"; lowerings by route: {known or "none"}')


@dataclass(frozen=True)
class Lower(Pass):
    """Give every route the requested lowering, or its router's best if it offers none of that name.

    An op that sends along edges keeps its own unless another is requested; exported, it scatters. `exportable` leaves
    out lowerings that are for training only. Raises `NoSuchLowering` if no route offers the requested one. Some names
    are always accepted: `masked`, since routes without it run every module anyway, those of scans for a graph with
    scans, and for a graph without routes the definition.
    """

    name: ClassVar[str] = "lower"

    lowering: str | None = None
    exportable: bool = False

    def __call__(self, graph: Graph) -> Graph:
        of_scans = (STEPS, RECURRENCE) if graph.nodes_of(ScanNode) else ()
        if self.lowering is not None and self.lowering not in (MASKED, *of_scans):
            offered: dict[tuple[str, ...], list[str]] = {}
            for node in list_edge_routes(graph):
                offered.setdefault(tuple(LOWERINGS), []).append(node.name)
            for path, route in list_routes_by_path(graph).items():
                offered.setdefault(tuple(each.name for each in self.offers(*route)), []).append(path)
            if self.lowering not in ({name for names in offered for name in names} if offered else {DEFINITION}):
                raise NoSuchLowering(self.lowering, offered)

        def rule(node: Node, part: Part) -> Node:
            if isinstance(node, OpNode) and isinstance(node.op, EdgeRoute):
                return _with_lowering(node, self.choose_for_edges(node.op))
            return change_fields(node, lowering=self.choice(part, node).name) if isinstance(node, RouteNode) else node

        return rewrite_graph(graph, rule)

    def choose_for_edges(self, op: EdgeRoute) -> str:
        """The lowering that this pass gives an op that sends along edges."""
        own: str = vars(op)["lowering"]
        asked = self.lowering if self.lowering in LOWERINGS else own
        return SCATTER if self.exportable else asked

    def offers(self, part: Part, route: RouteNode) -> list[Lowering]:
        """The lowerings that a route may have, best first."""
        lowerings = part.graph.declaration_of(route).lowerings(part.facts_of(route))
        return [each for each in lowerings if each.exportable or not self.exportable]

    def choice(self, part: Part, route: RouteNode) -> Lowering:
        """The lowering that this pass gives a route."""
        lowerings = self.offers(part, route)
        return next((each for each in lowerings if each.name == self.lowering), lowerings[0])


def _with_lowering(node: OpNode, lowering: str) -> OpNode:
    return change_fields(node, op=change_fields(node.op, lowering=lowering))


def scatter_edges(graph: Graph) -> Graph:
    """Lower all ops that send along edges to torch alone."""

    def rule(node: Node, part: Part) -> Node:
        of_edges = isinstance(node, OpNode) and isinstance(node.op, EdgeRoute)
        return _with_lowering(node, SCATTER) if of_edges else node  # type: ignore[arg-type]

    return rewrite_graph(graph, rule) if list_edge_routes(graph) else graph


def list_edge_routes(graph: Graph) -> list[OpNode]:
    """List the ops that send along edges, in scans too."""
    return [node for part in graph.parts() for node in part.graph.nodes_of(OpNode) if isinstance(node.op, EdgeRoute)]


def edge_lowerings(graph: Graph) -> dict[str, str]:
    """The lowering of each op of a lowered graph that sends along edges, with the reason, by name."""
    found = {node.name: str(vars(node.op)["lowering"]) for node in list_edge_routes(graph)}
    return {name: f"{lowering}; {LOWERINGS[lowering]}" for name, lowering in found.items()}


def list_routes_by_path(graph: Graph) -> dict[str, tuple[Part, RouteNode]]:
    """Find every route by its path, routes in modules of pools below theirs; without routes that only compute
    messages."""
    parts = [("", part) for part in graph.parts()]
    parts += [(f"{path}.", Part(region.graph)) for path, region in graph.modules()]
    routes = ((path, part, route) for path, part in parts for route in part.graph.nodes_of(RouteNode))
    return {path + route.name: (part, route) for path, part, route in routes if not sends_messages(route, part.graph)}


def choices(graph: Graph) -> dict[str, Lowering]:
    """The lowering of each route of a lowered graph, by path."""
    found = dict[str, Lowering]()
    for path, (part, route) in list_routes_by_path(graph).items():
        assert route.lowering is not None, f"{route.name} is not lowered"
        lowering, shared = Lower(route.lowering).choice(part, route), len(split_routes(route, part.graph))
        is_shared = shared > 1 and lowering.name == "dense"
        reason = f"; the messages are computed once for {shared} routes" if is_shared else ""
        found[path] = replace_fields(lowering, reason=lowering.reason + reason)
    return found
