"""Sampled decisions, their likelihood and that of targets, and the algorithms that learn from both: REINFORCE
(Williams, 1992), and generalised Viterbi EM (Kirsch et al., Modular Networks, NeurIPS 2018, algorithm 1).

Shape suffixes: B examples, K slots, M modules; `...` time, tokens, and other axes of a route.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from modgraph_runtime.files import refuse_beyond_memory
from torch import Tensor

from modgraph.backends.torch import Model, make_generator
from modgraph.data.batches import RandomOrder, batch_of
from modgraph.declare import CHOICES, Role
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Decision, Graph, Result, find_draw, make_forced_key, with_missing_labels
from modgraph.metrics.metrics import move_to_model
from modgraph.nn import DRAW, whole_batch_sum
from modgraph.nn.device import seed_draws
from modgraph.passes.likelihoods import with_likelihoods
from modgraph.training.algorithms.algorithm import EM, Learner, Setup, Tensors
from modgraph.training.errors import LabelsAreMissing, NoDistribution, NoLikelihood, NothingSampled
from modgraph.types import Axis

ROWS = 4096
JOINT = "joint:"  # the objective that replaces the likelihoods; no name in a spec has a colon


@dataclass(frozen=True)
class SampledRoute:
    """A route whose router samples. `shape` is that of an example's choices, [..., K]; `key` is the name of a forced
    choice in a batch."""

    decision: Decision
    distribution: Result
    choice: Result
    shape: tuple[Axis, ...]
    key: str

    @property
    def name(self) -> str:
        return self.decision.name

    @property
    def modules(self) -> int:
        return self.decision.pool.size


def find_sampled_routes(graph: Graph) -> list[SampledRoute]:
    """Return the routes of a graph whose routers sample, in scans too. Raises `ModgraphError` for a router that does
    not record its distribution."""
    found = []
    for decision in (each for each in graph.decisions() if each.facts.draws):
        router, record = decision.router.name, decision.record_as(*CHOICES)
        assert record is not None, f"{router} samples without a record"
        if decision.sampled is None:
            raise ModgraphError([NoDistribution(router=router)])
        distribution, choice = decision.sampled
        draw = find_draw(decision.inside[record], decision.part.graph)
        assert draw is not None, f"{router} samples without a distribution"
        shape = tuple(graph.type_of(choice).shape[:-1])
        found.append(SampledRoute(decision, distribution, choice, shape, make_forced_key(draw.name)))
    return found


@dataclass(frozen=True)
class DecisionLikelihood:
    """A graph with the likelihoods of targets and decisions. `likelihoods` are results by the loss that they replace:
    −log p(y|x, a) summed over an example's positions."""

    graph: Graph
    likelihoods: dict[str, Result]
    routes: list[SampledRoute]

    @classmethod
    def build(cls, graph: Graph, algorithm: str) -> DecisionLikelihood:
        """Build the likelihoods. Raises `ModgraphError` if the graph has no sampled decision, or no likelihood to judge
        it by."""
        routes = find_sampled_routes(graph)
        if not routes:
            raise ModgraphError([NothingSampled(algorithm=algorithm)])
        for target in sorted(with_missing_labels(graph)):
            raise ModgraphError([LabelsAreMissing(algorithm=algorithm, target=target)])
        copy, likelihoods = with_likelihoods(graph)
        if not likelihoods:
            raise ModgraphError([NoLikelihood(algorithm=algorithm)])
        return cls(copy, likelihoods, routes)

    @property
    def wanted(self) -> tuple[Result, ...]:
        """The results that `log_likelihood`, `log_probability` and `choices` read, in this order."""
        records = [result for route in self.routes for result in (route.distribution, route.choice)]
        return (*self.likelihoods.values(), *records)

    def log_likelihood(self, found: Sequence[Tensor]) -> Tensor:
        """Return log p(y|x, a): [B]."""
        return -torch.stack(list(found[: len(self.likelihoods)])).sum(0)

    def log_probability(self, found: Sequence[Tensor]) -> Tensor:
        """Return log p(a|x) of the choices, summed over all routes, steps, tokens and slots; padding adds
        nothing: [B]."""
        parts = []
        for route, distribution, choice in self._records(found):
            is_logits = route.decision.record_as(Role.LOGITS) is not None
            log_p = distribution.log_softmax(-1) if is_logits else distribution  # of all modules, [B, ..., K, M]
            parts.append((log_p * choice).flatten(1).sum(1))
        return torch.stack(parts).sum(0)

    def objective(self, losses: Mapping[str, Tensor], joint: Tensor) -> dict[str, Tensor]:
        """Replace the likelihoods among the losses by a joint one: [B]."""
        return {**{name: loss for name, loss in losses.items() if name not in self.likelihoods}, JOINT: joint}

    def choices(self, found: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return the modules that each route chose: [B, ..., K]."""
        return {route.name: choice.argmax(-1) for route, _, choice in self._records(found)}

    def _records(self, found: Sequence[Tensor]) -> Iterator[tuple[SampledRoute, Tensor, Tensor]]:
        """Yield each route with its recorded distribution and choice."""
        records = found[len(self.likelihoods) :]
        return zip(self.routes, records[::2], records[1::2], strict=True)


class ScoreFunction(Learner):
    """REINFORCE: keeps the moving average and its number of steps."""

    def __init__(self, likelihood: DecisionLikelihood, memory: float) -> None:
        super().__init__(likelihood.graph, likelihood.wanted)
        self.likelihood = likelihood
        self.memory = memory
        self.average: Tensor | float = 0.0
        self.steps = 0

    def objective(self, losses: Tensors, found: Sequence[Tensor], examples: int) -> Tensors:
        log_y, log_a = self.likelihood.log_likelihood(found), self.likelihood.log_probability(found)
        mean = whole_batch_sum(log_y.detach().sum()).double() / examples  # stays on the device
        # corrects the moving average for its start at zero; the first step uses the batch's own mean
        baseline = self.average / (1 - self.memory**self.steps) if self.steps else mean
        advantage = log_y.detach() - baseline
        self.average = self.memory * self.average + (1 - self.memory) * mean
        self.steps += 1
        return self.likelihood.objective(losses, -log_y - advantage * log_a)

    def facts(self) -> dict[str, Any]:
        return {"average": float(self.average), "steps": self.steps}

    def restore(self, tensors: Tensors, facts: Mapping[str, Any], complete: bool = True) -> None:
        self.average, self.steps = float(facts["average"]), int(facts["steps"])


class ViterbiEM(Learner):
    """Viterbi EM: keeps a table of assignments, for each route the module in every slot, [examples, ..., K]."""

    def __init__(self, likelihood: DecisionLikelihood, settings: EM, setup: Setup) -> None:
        super().__init__(likelihood.graph, likelihood.wanted)
        self.likelihood = likelihood
        self.settings = settings
        self.setup = setup
        batch = min(settings.batch or setup.batch, len(setup.data))
        self.order = RandomOrder(setup.data, batch, use="order of expectation")
        self.table = {route.name: self._start(route) for route in likelihood.routes}

    def _start(self, route: SampledRoute) -> Tensor:
        """Return uniformly random assignments, in the smallest integer type for the number of modules."""
        examples, shape = len(self.setup.data), self._shape(route, self.setup.data.values)
        generator = make_generator(self.setup.seed, "assignments", route.name)
        types = (torch.uint8, torch.int16, torch.int32)
        kind = next(each for each in types if route.modules - 1 <= torch.iinfo(each).max)
        refuse_beyond_memory(examples * math.prod(shape) * kind.itemsize)
        table = torch.empty(examples, *shape, dtype=kind)
        for rows in torch.split(table, ROWS):  # in parts, since torch samples eight bytes for each number
            rows.copy_(torch.randint(route.modules, rows.shape, generator=generator))
        return table

    def _shape(self, route: SampledRoute, arrays: Mapping[str, Any]) -> list[int]:
        """Return the shape of an example's choices, given arrays [B, …] with the lengths of inputs."""
        inputs = self.setup.graph.input_types.items()
        lengths = {
            axis.lengths: int(arrays[name].shape[1 + at])
            for axis in route.shape
            for name, type_ in reversed(inputs)
            if axis.size is None and (at := type_.find_length(axis.lengths)) is not None
        }
        return [lengths[axis.lengths] if axis.size is None else axis.size for axis in route.shape]

    def force_choices(self, indices: Tensor, batch: Tensors) -> dict[str, Tensor]:
        kept = {}
        for route in self.likelihood.routes:
            rows = self.table[route.name][indices]
            kept[route.key] = rows[_leading_part(self._shape(route, batch))].to(torch.int64)
        return kept

    def prepare(self, model: Model, step: int) -> None:
        if step % self.settings.m_steps == 0:
            self.expectation(model, step // self.settings.m_steps)

    @torch.no_grad()
    def expectation(self, model: Model, at: int) -> None:
        """Run the E-step number `at`, all candidates of a batch in one pass."""
        model.eval()
        indices = self._indices(at)
        seed_draws(make_generator(self.setup.seed, "expectation", at).initial_seed())
        rows = 1 + self.settings.samples  # the kept decision comes first: on a tie argmax takes it
        once = batch_of(self.setup.data, indices.numpy())
        batch = {name: array.repeat(rows, *[1] * (array.dim() - 1)) for name, array in once.items()}
        batch |= {name: self._candidates(kept) for name, kept in self.force_choices(indices, once).items()}
        found = model.results(move_to_model(batch, model), self.likelihood.wanted)
        value = self.likelihood.log_likelihood(found) + self.likelihood.log_probability(found)
        best_B = value.reshape(rows, -1).argmax(0).cpu()
        for name, choice in self.likelihood.choices(found).items():
            table = self.table[name]
            candidates = choice.cpu().to(table.dtype).reshape(rows, len(indices), *choice.shape[1:])
            kept = table[indices]
            kept[_leading_part(choice.shape[1:])] = candidates[best_B, torch.arange(len(indices))]
            table[indices] = kept

    def _candidates(self, kept: Tensor) -> Tensor:
        return torch.cat([kept, torch.full_like(kept, DRAW).repeat(self.settings.samples, *[1] * (kept.dim() - 1))])

    def _indices(self, at: int) -> Tensor:
        """Return the examples of an E-step: batches of an order that is sampled for every pass over the data."""
        passes, step = divmod(at, self.order.steps)
        return next(self.order.draw(self.setup.seed, passes, since=step))

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
        for route in self.likelihood.routes:
            name, table, kept = route.name, self.table[route.name], tensors.get(f"assignments.{route.name}")
            if kept is None and not complete:
                continue
            if kept is None or kept.shape != table.shape or kept.is_floating_point():
                raise ValueError(f"it has no assignments of {name} for these examples")
            if kept.numel() and not 0 <= kept.min() <= kept.max() < route.modules:
                raise ValueError(f"its assignments of {name} are to modules that there are not")
            table.copy_(kept)


def _leading_part(shape: Sequence[int]) -> tuple[slice, ...]:
    """Return the index of the leading part of rows [B, …] with an example's shape."""
    return slice(None), *map(slice, shape)
