"""Looking at batches of a task for one that is novel: where a `grow … when` of the graph says yes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from modgraph.backends.torch import Model
from modgraph.data import Arrays
from modgraph.data.batches import RandomOrder, batch_of
from modgraph.declare import Role
from modgraph.ir import Graph, GrowthNode, Result, padding_of
from modgraph.metrics.evaluation import placed
from modgraph.nn.padding import cleared, valid_along

Novelty = list[list[float]]  # [batches, modules]: the mean of a batch


@dataclass(frozen=True)
class Look:
    """What a look at batches found: the growth node that says yes first, at which batch, and of each pool that may grow
    how novel the batches were to its modules, where its router records that."""

    grows: str | None
    batch: int | None
    novelty: Mapping[str, Novelty]

    def records(self) -> Iterator[dict[str, Any]]:
        """A line for each growth node; `batch` is that at which its pool grows."""
        for growth, novelty in self.novelty.items():
            yield {"growth": growth, "batch": self.batch if growth == self.grows else None, "novelty": novelty}


def look(
    model: Model, arrays: Arrays, growths: Sequence[str], batch: int, seed: int, number: int, always: bool = False
) -> Look:
    """Look at random batches of some examples, the last where it is whole, until a growth node says yes; `always`: at
    the first."""
    nodes = [node for node in model.graph.growths() if node.name in growths]
    novelty: dict[str, Novelty] = {node.name: [] for node in nodes}
    for at, indices in enumerate(_batches(arrays, batch, seed, number)):
        values = placed(batch_of(arrays, indices.numpy()), model)
        says, found = _of_batch(model, nodes, values)
        for name, each in found.items():
            novelty[name].append(each)
        grows = next((node.name for node in nodes if always or says[node.name]), None)
        if grows is not None:
            return Look(grows, at, novelty)
    return Look(None, None, novelty)


def _batches(arrays: Arrays, batch: int, seed: int, number: int) -> Iterator[Tensor]:
    """Batches of equal size in an order of the look's own: a few examples alone are novel by chance."""
    order = RandomOrder(arrays, batch, use="detection")
    for indices in order.draw(seed, number):
        if len(indices) == min(batch, len(arrays)):
            yield indices


@torch.no_grad()
def _of_batch(
    model: Model, nodes: Sequence[GrowthNode], values: Mapping[str, Tensor]
) -> tuple[dict[str, bool], dict[str, list[float]]]:
    """Which growth nodes say yes of a batch, and how novel it is to the modules of each."""
    whens = [model.graph.inputs(node.name)["when"] for node in nodes]
    records = [novelty_records(model.graph, node) for node in nodes]
    found = model.eval().results(values, (*whens, *(each for several in records for each in several)))
    left = iter(found[len(nodes) :])
    says = {node.name: bool(value.flatten()[0] != 0) for node, value in zip(nodes, found, strict=False)}
    means = {
        node.name: _mean([_over_batch(model.graph, each, next(left), values) for each in several])
        for node, several in zip(nodes, records, strict=True)
        if several
    }
    return says, means


def novelty_records(graph: Graph, growth: GrowthNode) -> Collection[Result]:
    """What the router of a growth node records of novelty, by each of its routes."""
    decisions = graph.decisions(graph.router_of(growth).name)
    return [each.results[name] for each in decisions if (name := each.record_as(Role.NOVELTY)) is not None]


def _over_batch(graph: Graph, record: Result, value: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """The mean of each module over a batch and its senders, padding left out: [M]."""
    told = {at: batch[name] for at, name in padding_of(graph, graph.type_of(record)) if name in batch}
    real = valid_along(value, told)
    counted = torch.ones_like(value) if real is None else real.expand_as(value)
    every = tuple(range(value.dim() - 1))
    return cleared(value.double(), real).sum(every) / counted.sum(every)


def _mean(values: Sequence[Tensor]) -> list[float]:
    """The mean of each module over the routes of a router."""
    return [float(each) for each in torch.stack(list(values)).mean(0)]
