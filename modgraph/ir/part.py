"""Regions; parts of a model (the graph, a scan's step, a pool's module); decisions in a part."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from modgraph.declare import CHOICES, DISTRIBUTION, Record, Role, Signature, record_as
from modgraph.ir.node import DecisionNode, Node, OpNode, PoolNode, Result, RouteNode, RouterNode, ScanNode
from modgraph.routers import Lowering, PoolFacts, PoolTypes, Router, RouterFacts
from modgraph.types import Axis, Misfit, Shape, TensorType, shapes_meet

if TYPE_CHECKING:
    from modgraph.ir.graph import Graph


@dataclass(frozen=True)
class Region:
    """A graph that a node runs: `arguments` are names of its inputs, `results` values of its nodes, both in order."""

    graph: Graph
    arguments: tuple[str, ...]
    results: tuple[Result, ...]

    @property
    def argument_types(self) -> tuple[TensorType, ...]:
        return tuple(self.graph[name].types[0] for name in self.arguments)

    @property
    def result_types(self) -> tuple[TensorType, ...]:
        return tuple(map(self.graph.type_of, self.results))


def regions_of(node: Node) -> tuple[Region, ...]:
    return node.regions if isinstance(node, PoolNode) else (node.region,) if isinstance(node, ScanNode) else ()


def with_regions(node: Node, regions: tuple[Region, ...]) -> Node:
    if isinstance(node, PoolNode):
        return replace(node, regions=regions)
    return replace(node, region=regions[0]) if isinstance(node, ScanNode) else node


def infer_scan_types(scan: ScanNode, time: Axis) -> tuple[TensorType, ...]:
    """Infer the types of a scan's results over a time axis. Raises `Misfit` if a state's next value changes its type,
    or if a state or a final result lacks an axis of the entries that end by themselves."""
    region = scan.region
    for state, following in zip(scan.states, scan.following, strict=True):
        before, after = region.graph[state].types[0], region.graph.type_of(following)
        if not before.meets(after):
            raise Misfit(f'state "{state}" is {before}, and its next value would be {after}')
    steps = [*map(region.graph.type_of, scan.stacked)]
    if scan.going is not None:
        axes = region.graph.type_of(scan.going).shape
        for each in (*map(Result, scan.states), *scan.stacked[: scan.final]):
            type_ = region.graph.type_of(each)
            if not shapes_meet(type_.shape[: len(axes)], axes):
                raise Misfit(f"{each} is {type_}, and does not begin with the axes of what ends by itself")
    stacked = (step.with_shape((time, *step.shape)) for step in steps[scan.final :])
    return (*steps[: scan.final], *stacked)


@dataclass(frozen=True)
class Part:
    """A graph, and the scan whose region it is, if any, in the part `outer`.

    `place` prefixes places in a pool's module: `pool/0/`.
    """

    graph: Graph
    scan: ScanNode | None = None
    place: str = ""
    outer: Part | None = None

    def outside(self, inside: Result) -> Result:
        """Find the outermost result for a result of a region; each scan around it has one that stacks it."""
        if self.scan is None:
            return inside
        found = Result(self.scan.name, self.scan.stacked.index(inside, self.scan.final))
        return found if self.outer is None else self.outer.outside(found)

    @property
    def steps(self) -> Shape:
        """The axes of steps that results of this part have outside, the outermost scan's first."""
        around = () if self.outer is None else self.outer.steps
        return around if self.scan is None else (*around, *self.scan.steps)

    @property
    def outermost(self) -> ScanNode | None:
        """The outermost scan around this part."""
        found = None if self.outer is None else self.outer.outermost
        return found or self.scan

    def inner(self) -> list[Part]:
        """The regions of the scans in this part, those of scans in them last."""
        found = [self]
        for part in found:
            scans = part.graph.nodes_of(ScanNode)
            found += [Part(scan.region.graph, scan, self.place, part) for scan in scans]
        return found[1:]

    def decisions(self, router: str | None = None) -> list[Decision]:
        """The decisions in this graph, of all routers or of one."""
        routes, texts = self.graph.nodes_of(RouteNode), self.graph.nodes_of(DecisionNode)
        if router is None and not (routes and texts):  # the nodes of one kind are in order
            return [Decision(self, node) for node in routes or texts]
        nodes = self.graph if router is None else self.graph.users_of(router)
        return [Decision(self, node) for node in nodes if isinstance(node, RouteNode | DecisionNode)]

    def facts_of(self, route: RouteNode) -> PoolFacts:
        """The facts that a router may know about the pool of a route."""
        return facts_of(self.graph.pool_of(route), in_scan=self.scan is not None)

    def lowering_of(self, route: RouteNode) -> Lowering:
        """Find the lowering of a route; its definition if the router offers none of that name."""
        router = self.graph.declaration_of(route)
        found = (each for each in router.lowerings(self.facts_of(route)) if each.name == route.lowering)
        return next(found, router.reference_lowering)


def bind_route(router: Router, pool: PoolNode, tokens: TensorType, *others: TensorType) -> Signature:
    """Bind a router to a pool and to the types of tokens and other operands. Raises `Misfit`."""
    return router.bind_pool(find_pool_types(pool), tokens, *others)


def find_pool_types(pool: PoolNode) -> PoolTypes:
    """The types of a pool that a router binds to."""
    return PoolTypes(pool.name, pool.axis, pool.message, pool.result, pool.over_batch)


def facts_of(pool: PoolNode, in_scan: bool = False) -> PoolFacts:
    """The facts that a router may know about a pool."""
    ops = [node.op for region in pool.regions for node in region.graph.nodes_of(OpNode)]
    plain = not pool.has_pools
    return PoolFacts(
        size=pool.size,
        affine=plain and all(op.affine for op in ops),
        axis=pool.axis.name,
        gathers=plain and pool.is_homogeneous and all(op.gathers or not op.all_weights() for op in ops),
        weights=_weights(pool.region(0).graph),
        in_scan=in_scan,
        over_batch=pool.over_batch,
    )


def _weights(region: Graph) -> int:
    nodes: list[OpNode | RouteNode] = [*region.nodes_of(OpNode), *region.nodes_of(RouteNode)]
    shapes = [shape for node in nodes for shape in region.signature(node).weight_shapes.values()]
    inner = sum(_weights(pool.region(at).graph) for pool in region.nodes_of(PoolNode) for at in range(pool.size))
    return sum(map(math.prod, shapes)) + inner


@dataclass(frozen=True)
class Decision:
    """The decision of a router at a route, or at a use of a router text."""

    part: Part
    node: RouteNode | DecisionNode

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def label(self) -> str:
        """Its name for users."""
        return self.node.label or self.node.name

    @property
    def pool(self) -> PoolNode:
        return self.part.graph.pool_of(self.node)

    @property
    def router(self) -> RouterNode:
        return self.part.graph.router_of(self.node)

    @property
    def tokens(self) -> Result:
        """The tokens of the route."""
        return self.part.graph.inputs(self.name)["tokens"]

    @property
    def facts(self) -> RouterFacts:
        """The facts of the router."""
        node = self.node
        return node.facts if isinstance(node, DecisionNode) else self.part.graph.declaration_of(node).facts

    @property
    def declared(self) -> tuple[Record, ...]:
        """The declared records, with their roles."""
        node = self.node
        return node.records if isinstance(node, DecisionNode) else self.part.graph.declaration_of(node).records

    def record_as(self, *roles: Role) -> str | None:
        """The name of the record in the first of these roles that has one."""
        found = record_as(self.declared, *roles)
        return None if found is None else found.name

    @property
    def rounds(self) -> dict[str, tuple[Result, ...]]:
        """Each record after each round, by name, in the graph of the decision."""
        node = self.node
        if isinstance(node, RouteNode):
            return {each.name: (Result(node.name, at),) for at, each in enumerate(self.declared, start=1)}
        inputs, rounds = self.part.graph.inputs(node.name), range(1, node.rounds + 1)
        return {each.name: tuple(inputs[node.slot(each.name, at)] for at in rounds) for each in node.records}

    @property
    def inside(self) -> dict[str, Result]:
        """Each record after the last round, by name, in the graph of the decision."""
        return {name: results[-1] for name, results in self.rounds.items()}

    @property
    def results(self) -> dict[str, Result]:
        """Each record after the last round, by name, in the model's graph; of a scan, stacked over its steps."""
        return {name: self.part.outside(result) for name, result in self.inside.items()}

    @property
    def sampled(self) -> tuple[Result, Result] | None:
        """The distribution and the choice, in the model's graph; None unless the router records both."""
        distribution, choice = self.record_as(*DISTRIBUTION), self.record_as(*CHOICES)
        return None if distribution is None or choice is None else (self.results[distribution], self.results[choice])

    @property
    def value(self) -> Result:
        """The value of the route."""
        return Result(self.name) if isinstance(self.node, RouteNode) else self.part.graph.inputs(self.name)["value"]

    @property
    def token_axes(self) -> Shape:
        """The axes of gates and choices before the axis of modules, with the names that they have outside the router.

        They are the axes of tokens before a message, or one of length 1 without any; in a scan, its steps come first.
        """
        graph, steps = self.part.graph, self.part.steps
        if isinstance(self.node, RouteNode):
            gates = self.record_as(Role.GATES, *CHOICES)
            return () if gates is None else (*steps, *graph.type_of(self.inside[gates]).shape[:-1])
        tokens, own = graph.type_of(self.tokens).shape, self.pool.axis
        outer = tokens[: len(tokens) - len(self.pool.message.shape)] or (Axis(1),)
        return (*steps, *(Axis(axis.size) if axis == own else axis for axis in outer))
