"""REINFORCE (Williams, 1992) on the decisions, gradient descent on the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from modgraph.nn import whole_batch_sum
from modgraph.training.algorithms.algorithm import Learner, Tensors
from modgraph.training.algorithms.decisions import DecisionLikelihood


class ScoreFunction(Learner):
    """The average so far, and of how many steps it is."""

    def __init__(self, likelihood: DecisionLikelihood, memory: float) -> None:
        super().__init__(likelihood.graph, likelihood.wanted)
        self.likelihood = likelihood
        self.memory = memory
        self.average: Tensor | float = 0.0
        self.steps = 0

    def objective(self, losses: Tensors, found: Sequence[Tensor], examples: int) -> Tensors:
        log_y, log_a = self.likelihood.log_likelihood(found), self.likelihood.log_probability(found)
        mean = whole_batch_sum(log_y.detach().sum()).double() / examples  # as all here, on the device
        advantage = log_y.detach() - self._baseline(mean)
        self.average = self.memory * self.average + (1 - self.memory) * mean
        self.steps += 1
        return self.likelihood.objective(losses, -log_y - advantage * log_a)

    def _baseline(self, mean: Tensor) -> Tensor | float:
        """The moving average, corrected for its start at zero; at the first step the batch's own mean."""
        return self.average / (1 - self.memory**self.steps) if self.steps else mean

    def facts(self) -> dict[str, Any]:
        return {"average": float(self.average), "steps": self.steps}

    def restore(self, tensors: Tensors, facts: Mapping[str, Any], complete: bool = True) -> None:
        self.average, self.steps = float(facts["average"]), int(facts["steps"])
