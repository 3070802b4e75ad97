"""Looking at batches of a task for one that is novel: where a `grow … when` of the graph says yes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from modgraph.backends.torch import Model
from modgraph.data import Arrays
from modgraph.data.batches import RandomOrder, batch_of
from modgraph.declare import Role
from modgraph.ir import Graph, GrowthNode, Result, padding_of
from modgraph.metrics.evaluation import placed
from modgraph.nn.padding import cleared, valid_along


@dataclass(frozen=True)
class Look:
    """What a look at batches found: the growth node that says yes first, at which batch, and for each growth node how
    novel the batches were to the modules of its pool, [batches, modules], where its router records that."""

    grows: str | None
    batch: int | None
    novelty: Mapping[str, list[list[float]]]


@torch.no_grad()
def look(
    model: Model, arrays: Arrays, growths: Sequence[str], batch: int, seed: int, number: int, always: bool = False
) -> Look:
    """Look at random batches of some examples, all of equal size, since a few examples are novel by chance, until a
    growth node says yes; `always`: at the first."""
    graph = model.eval().graph
    nodes = [node for node in graph.growths() if node.name in growths]
    records = {node.name: _novelty_records(graph, node) for node in nodes}
    whens = {node.name: graph.inputs(node.name)["when"] for node in nodes}
    wanted = (*whens.values(), *(each for several in records.values() for each in several))
    novelty: dict[str, list[list[float]]] = {name: [] for name in whens}
    for at, indices in enumerate(RandomOrder(arrays, batch, use="detection").draw(seed, number)):
        if len(indices) < min(batch, len(arrays)):
            continue
        values = placed(batch_of(arrays, indices.numpy()), model)
        found = iter(model.results(values, wanted))
        grows = [name for name in whens if bool(next(found).flatten()[0] != 0) or always]
        for name, several in records.items():
            if several:
                means = [_mean_over_batch(graph, each, next(found), values) for each in several]
                novelty[name].append([float(each) for each in torch.stack(means).mean(0)])
        if grows:
            return Look(grows[0], at, novelty)
    return Look(None, None, novelty)


def _novelty_records(graph: Graph, growth: GrowthNode) -> list[Result]:
    """What the router of a growth node records of novelty, by each of its routes."""
    decisions = graph.decisions(graph.router_of(growth).name)
    return [each.results[name] for each in decisions if (name := each.record_as(Role.NOVELTY)) is not None]


def _mean_over_batch(graph: Graph, record: Result, value: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """The mean of each module over a batch and its senders, padding left out: [M]."""
    lengths = {at: batch[name] for at, name in padding_of(graph, graph.type_of(record)) if name in batch}
    real = valid_along(value, lengths)
    counted = torch.ones_like(value) if real is None else real.expand_as(value)
    every = tuple(range(value.dim() - 1))
    return cleared(value.double(), real).sum(every) / counted.sum(every)
