"""Generalised Viterbi EM (Kirsch et al., Modular Networks, NeurIPS 2018, algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from modgraph_runtime.files import refuse_beyond_memory
from torch import Tensor

from modgraph.backends.torch import Model, generator_for
from modgraph.data.batches import RandomOrder, batch_of
from modgraph.ir import Graph
from modgraph.metrics.evaluation import placed
from modgraph.nn import DRAW
from modgraph.training.algorithms.algorithm import Learner, LearnerSetup, Tensors
from modgraph.training.algorithms.built_in import EM
from modgraph.training.algorithms.decisions import DecisionLikelihood, DrawnRoute

ROWS = 4096


class ViterbiEM(Learner):
    """The table of assignments: for each route the module in every slot, [examples, ..., K]."""

    def __init__(self, likelihood: DecisionLikelihood, settings: EM, setup: LearnerSetup) -> None:
        super().__init__(likelihood.graph, likelihood.wanted)
        self.likelihood = likelihood
        self.settings = settings
        self.setup = setup
        batch = min(settings.batch or setup.batch, len(setup.data))
        self.order = RandomOrder(setup.data, batch, use="order of expectation")
        self.modules = {route.name: route.modules for route in likelihood.routes}
        self.table = {route.name: self._start(route) for route in likelihood.routes}

    def _start(self, route: DrawnRoute) -> Tensor:
        """Uniformly random assignments, in as few bytes as they need."""
        shape = self._shape(route, self.setup.data.values)
        generator = generator_for(self.setup.seed, "assignments", route.name)
        kind = _narrowest(route.modules)
        refuse_beyond_memory(len(self.setup.data) * math.prod(shape) * kind.itemsize)
        table = torch.empty(len(self.setup.data), *shape, dtype=kind)
        for at in range(0, len(table), ROWS):  # in parts, since each number is drawn in eight bytes
            rows = table[at : at + ROWS]
            rows.copy_(torch.randint(route.modules, rows.shape, generator=generator))
        return table

    def _shape(self, route: DrawnRoute, arrays: Mapping[str, Any]) -> list[int]:
        """The shape of an example's choices, where inputs are as long as some arrays [B, …] of them."""
        return [
            _length(axis.name, self.setup.graph, arrays) if axis.size is None else axis.size for axis in route.shape
        ]

    def _rows(self, indices: Tensor, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What is kept of some examples by route, as long as a batch of them is."""
        shapes = {route.name: self._shape(route, batch) for route in self.likelihood.routes}
        return {name: table[indices][_within(shapes[name])] for name, table in self.table.items()}

    def prepare(self, model: Model, step: int) -> None:
        if step % self.settings.m_steps == 0:
            self.expectation(model, step // self.settings.m_steps)

    @torch.no_grad()
    def expectation(self, model: Model, at: int) -> None:
        """The E-step number `at`, all candidates of a batch in one pass."""
        model.eval()
        indices = self._indices(at)
        torch.manual_seed(generator_for(self.setup.seed, "expectation", at).initial_seed())
        rows = 1 + self.settings.samples  # first what is kept: of equal candidates argmax takes the first
        once = batch_of(self.setup.data, indices.numpy())
        batch = {name: array.repeat(rows, *[1] * (array.dim() - 1)) for name, array in once.items()}
        batch |= self._named({name: self._candidates(kept) for name, kept in self._rows(indices, once).items()})
        found = model.results(placed(batch, model), self.likelihood.wanted)
        value = self.likelihood.log_likelihood(found) + self.likelihood.log_probability(found)
        best_B = value.reshape(rows, -1).argmax(0).cpu()
        for name, chosen in self.likelihood.chosen(found).items():
            table = self.table[name]
            candidates = chosen.cpu().to(table.dtype).reshape(rows, len(indices), *chosen.shape[1:])
            kept = table[indices]
            kept[_within(chosen.shape[1:])] = candidates[best_B, torch.arange(len(indices))]
            table[indices] = kept

    def _candidates(self, kept: Tensor) -> Tensor:
        kept = kept.to(torch.int64)
        return torch.cat([kept, torch.full_like(kept, DRAW).repeat(self.settings.samples, *[1] * (kept.dim() - 1))])

    def _indices(self, at: int) -> Tensor:
        """The examples of an E-step: one batch after another of an order that is drawn for every pass over the data."""
        passes, step = divmod(at, self.order.steps)
        return next(self.order.draw(self.setup.seed, passes, since=step))

    def told(self, indices: Tensor, batch: Tensors) -> Tensors:
        return self._named({name: kept.to(torch.int64) for name, kept in self._rows(indices, batch).items()})

    def _named(self, choices: Tensors) -> Tensors:
        """Choices of routes, by the names under which a batch tells them."""
        return {route.told: choices[route.name] for route in self.likelihood.routes}

    def objective(self, losses: Tensors, found: Sequence[Tensor], examples: int) -> Tensors:
        joint = self.likelihood.log_likelihood(found) + self.likelihood.log_probability(found)
        return self.likelihood.objective(losses, -joint)

    def describe(self) -> str:
        size = sum(table.nbytes for table in self.table.values())
        decisions = sum(table[0].numel() for table in self.table.values())
        return f"em keeps {decisions:,} decisions for each of {len(self.setup.data):,} examples: {size / 1e6:,.2f} MB"

    def tensors(self) -> Tensors:
        return {f"assignments.{name}": table for name, table in self.table.items()}

    def restore(self, tensors: Tensors, facts: Mapping[str, Any], complete: bool = True) -> None:
        for name, table in self.table.items():
            kept = tensors.get(f"assignments.{name}")
            if kept is None and not complete:
                continue
            if kept is None or kept.shape != table.shape or kept.is_floating_point():
                raise ValueError(f"it has no assignments of {name} for these examples")
            if kept.numel() and not 0 <= kept.min() <= kept.max() < self.modules[name]:
                raise ValueError(f"its assignments of {name} are to modules that there are not")
            table.copy_(kept)


def _length(axis: str, graph: Graph, arrays: Mapping[str, Any]) -> int:
    """How long an axis of any length is in arrays [B, …] of a graph's inputs."""
    places = ((name, type_.position(axis)) for name, type_ in graph.input_types.items())
    return next(int(arrays[name].shape[1 + at]) for name, at in places if at is not None)


def _within(shape: Sequence[int]) -> tuple[slice, ...]:
    """The places of rows [B, …] that an example of a shape has."""
    return slice(None), *map(slice, shape)


def _narrowest(modules: int) -> torch.dtype:
    """The smallest type that holds the number of every module."""
    types = (torch.uint8, torch.int16, torch.int32)
    return next(each for each in types if modules - 1 <= torch.iinfo(each).max)
