"""What a page must know of each route to show what it decides: which outputs tell it, and of what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from modgraph_runtime.ports import Port

from modgraph.declare import Role
from modgraph.ir import Decision, Graph
from modgraph.trace.places import Places, places_of_tokens
from modgraph.trace.trace import routes_with_gates


@dataclass(frozen=True)
class ShownRoute:
    """A route, its node, and the bundle's outputs with its gates, and its choice or slots where it selects modules.

    Senders are the `places` of an image, or one for each of the tokens of the input `words`, where they are either.
    """

    name: str
    node: str
    pool: str
    router: str
    decides: str
    modules: int
    gates: str
    choice: str | None
    slots: str | None
    places: Places | None
    words: str | None


def shown_routes(graph: Graph, outputs: Mapping[str, Port]) -> list[ShownRoute]:
    """The routes of a bundle's graph whose gates are among its outputs, in the order of work."""
    places = places_of_tokens(graph)
    found = [_describe(route, graph, outputs, places) for route in routes_with_gates(graph)]
    return [route for route in found if route.gates in outputs]


def _describe(route: Decision, graph: Graph, outputs: Mapping[str, Port], places: Mapping[str, Places]) -> ShownRoute:
    def output(role: Role) -> str | None:
        name = route.record_as(role)
        return None if name is None else f"{route.label}.{name}"

    gates = str(output(Role.GATES))
    senders = outputs[gates].shape[:-1] if gates in outputs else ()
    place = places.get(route.tokens.node)
    one_of_tokens = place is not None and senders == (place.tokens,) and route.part.scan is None
    along = [axis for axis in senders if axis != 1]
    types = graph.input_types.items()
    return ShownRoute(
        route.label,
        route.name,
        route.pool.name,
        route.router.name,
        str(route.router.router),
        route.pool.size,
        gates,
        output(Role.CHOICE),
        output(Role.SLOTS),
        place if one_of_tokens else None,
        next((name for name, type_ in types if type_.dtype == "token" and [*type_.dimensions] == along), None),
    )
