"""Discrete routing decisions: which modules were chosen, and how close the call was.

A router that is not soft records `selected` [B, ..., N, M], not zero where sender n's message goes to module m, and
may record the `scores` of the same shape that it chose by, the larger the sooner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from modgraph.backends.onnx.examples import Examples, Lengths
from modgraph.backends.torch import Model
from modgraph.ir import Graph, PoolNode, RouteNode

CLOSE = 1e-5  # a gap between scores below which rounding may decide
ROUNDS = 4  # of replacing close calls; what is still close then is compared all the same


def discrete_routes(graph: Graph) -> list[RouteNode]:
    """The routes whose decisions can be compared."""
    routers = ((route, graph.router_of(route).router) for route in graph.of_kind(RouteNode))
    return [route for route, router in routers if not router.soft and "selected" in router.records]


@dataclass
class Decisions:
    """What the routers of a model decided on the examples of a verification."""

    model: Model
    replaced: int = 0
    reached: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.model.graph
        self.routes = discrete_routes(graph)
        self.reached = {pool.name: set() for pool in graph.of_kind(PoolNode)}
        for route in graph.of_kind(RouteNode):
            if graph.router_of(route).router.soft:
                pool = graph.pool_of(route)
                self.reached[pool.name].update(range(pool.size))

    def clear_calls(self, examples: Examples, size: int, lengths: Lengths) -> dict[str, Tensor]:
        """A batch of examples whose decisions hang on no rounding; others are replaced, and counted."""
        batch = examples.draw(0, size, lengths)
        drawn = size
        for _ in range(ROUNDS if self.routes else 0):
            close = self._close(batch)
            count = int(close.sum())
            if count == 0:
                break
            fresh = examples.draw(drawn, count, lengths)
            drawn += count
            self.replaced += count
            for name, values in fresh.items():
                batch[name] = batch[name].clone()
                batch[name][close] = values
        return batch

    def see(self, routing: Mapping[str, Tensor]) -> None:
        """Note the modules that a batch reached."""
        for route in self.routes:
            selected = routing[f"{route.name}.selected"]
            modules = selected.bool().flatten(0, -2).any(0).nonzero().flatten().tolist()
            self.reached[self.model.graph.pool_of(route).name].update(modules)

    def unreached(self) -> dict[str, list[int]]:
        """The modules of each pool that no example reached."""
        pools = self.model.graph.of_kind(PoolNode)
        return {pool.name: sorted(set(range(pool.size)) - self.reached[pool.name]) for pool in pools}

    def _close(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Which examples have a close call: [B]."""
        routing = self.model.compute(batch, losses=False, routing=True).routing
        scored = [route.name for route in self.routes if f"{route.name}.scores" in routing]
        gaps = [gap(routing[f"{name}.selected"], routing[f"{name}.scores"]) for name in scored]
        size = len(next(iter(batch.values())))
        return smallest(gaps, size) < CLOSE


def gap(selected: Tensor, scores: Tensor) -> Tensor:
    """How far each example's least selected score lies above its largest other one: [B] from [B, ..., N, M]."""
    chosen = selected.bool()
    least = scores.masked_fill(~chosen, torch.inf).amin(-1)
    other = scores.masked_fill(chosen, -torch.inf).amax(-1)
    return (least - other).flatten(1).amin(1)


def smallest(gaps: Iterable[Tensor], size: int) -> Tensor:
    """The smallest gap of each example over all routes: [B]."""
    return torch.stack([torch.full((size,), torch.inf), *gaps]).amin(0)
