"""What routers record of novelty, in inference: outputs of the model, or left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.declare import Role
from modgraph.ir import Change, Graph, Narrowed, Node, OutputNode, Part, Result, RouteNode, RouterNode, rewritten
from modgraph.passes.inference import InferenceOnly
from modgraph.passes.infrastructure import Pass
from modgraph.routers import Router
from modgraph.routers.defined import Defined


@dataclass(frozen=True)
class NoveltyAsOutputs(Pass):
    """Make every record of novelty an output, called as it is and after its route: `novelty.blocks.9.x.adapter`."""

    name: ClassVar[str] = "novelty_as_outputs"

    def __call__(self, graph: Graph) -> Graph:
        found = rewritten(graph)
        for label, result in self._missing(graph).items():
            found.add(OutputNode(name=f"output.{label}", label=label), {"x": result})
        return found

    def ensures(self, graph: Graph) -> bool:
        return not self._missing(graph)

    def _missing(self, graph: Graph) -> dict[str, Result]:
        return {label: result for label, result in novelties(graph).items() if label not in graph.outputs}


@dataclass(frozen=True)
class WithoutNovelty(Pass):
    """Leave out records of novelty that nothing reads, and what only they need. In a scan they stay."""

    name: ClassVar[str] = "without_novelty"

    def __call__(self, graph: Graph) -> Graph:
        left_out = _unread(graph)
        return InferenceOnly()(rewritten(graph, _Without(left_out))) if left_out else graph

    def ensures(self, graph: Graph) -> bool:
        return not _unread(graph)


def novelties(graph: Graph) -> dict[str, Result]:
    """The records of novelty, by `record.route`; of a route inside a scan, those of all steps."""
    found: dict[str, Result] = {}
    for part in graph.parts():
        for route in part.graph.of_kind(RouteNode):
            names, records = _names(part.graph.router_of(route).router), part.graph.recorded(route)
            found |= {f"{name}.{route.name}": part.outside(records[name]) for name in names}
    return found


def _names(router: Router) -> list[str]:
    return [record.name for record in router.records if record.role is Role.NOVELTY]


def _unread(graph: Graph) -> frozenset[str]:
    """The routers whose records of novelty nothing reads, in any of their routes."""
    read = {result for node in graph for result in graph.inputs(node.name).values()}
    routes = [(part, route) for part in graph.parts() for route in part.graph.of_kind(RouteNode)]
    kept = set()
    for part, route in routes:
        router, records = part.graph.router_of(route), part.graph.recorded(route)
        names = _names(router.router)
        if part.graph is not graph or not names or any(records[name] in read for name in names):
            kept.add(router.name)
    return frozenset({part.graph.router_of(route).name for part, route in routes} - kept)


@dataclass(frozen=True)
class _Without:
    """The rule that takes the records of novelty from some routers and their routes."""

    routers: frozenset[str]

    def __call__(self, node: Node, part: Part) -> Change:
        if isinstance(node, RouterNode) and node.name in self.routers:
            return replace(node, router=_without(node.router))
        if isinstance(node, RouteNode) and (router := part.graph.router_of(node)).name in self.routers:
            roles = [record.role for record in router.router.records]
            kept = (0, *(at for at, role in enumerate(roles, start=1) if role is not Role.NOVELTY))
            return Narrowed(replace(node, types=tuple(node.types[at] for at in kept)), kept)
        return node


def _without(router: Router) -> Router:
    assert isinstance(router, Defined), "novelty is recorded by routers in the language"
    pairs = zip(router.recorded[::2], router.recorded[1::2], strict=True)
    kept = (each for name, role in pairs if role != Role.NOVELTY.name.lower() for each in (name, role))
    return replace(router, recorded=tuple(kept))
