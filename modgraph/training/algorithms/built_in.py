"""The algorithms of this package, as sections of a recipe. Their learners are imported at use: they need torch."""

from __future__ import annotations

from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError
from modgraph.training.algorithms.algorithm import Algorithm, Learner, LearnerSetup
from modgraph.training.errors import NeedsOneProcess, NoGradient


class Backprop(Algorithm):
    """Gradient descent on the declared losses."""

    name = "backprop"

    def learner(self, setup: LearnerSetup) -> Learner:
        from modgraph.training.algorithms.decisions import drawn_routes

        for route in drawn_routes(setup.graph):
            if not route.frozen:
                raise ModgraphError([NoGradient(router=route.router)])
        return Learner(setup.graph)


class EM(Algorithm):
    """Keep the best decisions found for every example, and learn to make them and to do well with them.

    The E-step, once before every `m_steps` steps, takes a batch of its own: for each example `samples` decisions are
    drawn, all routes and steps of one together, and the best by log p(y|x, a) + log p(a|x) replaces the one that is
    kept; if several are equal, that one stays. Each step descends on −mean[log p(y|x, a*) + log p(a*|x)] and the other
    losses, a* what is kept. At the start, decisions are drawn uniformly.
    """

    name = "em"
    samples: int = setting(10, min=1, max=10_000, doc="decisions drawn for each example in an E-step")
    m_steps: int = setting(9, min=1, doc="steps of gradient descent between E-steps")
    batch: int | None = setting(None, min=1, doc="examples in an E-step; by default those of a step")

    def tried_at_once(self, batch: int) -> int:
        return (1 + self.samples) * (self.batch or batch)

    def learner(self, setup: LearnerSetup) -> Learner:
        from modgraph.training.algorithms.decisions import DecisionLikelihood
        from modgraph.training.algorithms.em import ViterbiEM

        if setup.processes > 1:
            raise ModgraphError([NeedsOneProcess(algorithm=self.name)])
        return ViterbiEM(DecisionLikelihood.of(setup.graph, self.name), self, setup)


class Reinforce(Algorithm):
    """Draw decisions, and make those more probable that did better than usual.

    −mean[log p(y|x, a) + (log p(y|x, a) − b) log p(a|x)], the bracket's factor without gradient; b is the exponential
    moving average of log p(y|x, a) over the steps before. Both are summed over an example's positions.
    """

    name = "reinforce"
    memory: float = setting(0.99, min=0, below=1, doc="share of the moving average b that is kept at each step")

    def learner(self, setup: LearnerSetup) -> Learner:
        from modgraph.training.algorithms.decisions import DecisionLikelihood
        from modgraph.training.algorithms.reinforce import ScoreFunction

        return ScoreFunction(DecisionLikelihood.of(setup.graph, self.name), self.memory)
