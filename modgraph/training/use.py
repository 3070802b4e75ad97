"""How much each module of each route is used while a model trains."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from modgraph.ir import Graph, Result
from modgraph.training.metrics import Means

USE = "use."  # begins the names of these metrics: use.blocks.8.x2.expert.0


def records_of_use(graph: Graph) -> dict[str, Result]:
    """By route, what its router selected, or the gates where it selects nothing: [..., modules]."""
    records = graph.records()
    routes = dict.fromkeys(name.rpartition(".")[0] for name in records)
    chosen = {route: records.get(f"{route}.selected", records.get(f"{route}.gates")) for route in routes}
    return {route: result for route, result in chosen.items() if result is not None}


def add_use(means: Means, found: Mapping[str, Tensor]) -> None:
    """Add a batch: each module's share of what was selected in its route."""
    for route, chosen in found.items():
        sums = chosen.detach().flatten(0, -2).sum(0).tolist()
        for module, count in enumerate(sums):
            means.add(f"{USE}{route}.{module}", count, sum(sums))
