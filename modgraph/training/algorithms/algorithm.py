"""What the engine knows of an algorithm, the phases of a training and what a step does, and the algorithms of this
package, as sections of a recipe. Their learners are imported at use: they need torch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from modgraph.declare import Registry, setting
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, Result
from modgraph.recipes.schema import Named
from modgraph.training.errors import NeedsOneProcess, NoGradient

if TYPE_CHECKING:
    from torch import Tensor

    from modgraph.backends.torch import Model
    from modgraph.data import Arrays
    from modgraph.store.run_directory import RunDirectory

T = TypeVar("T")
Tensors = Mapping[str, "Tensor"]
Facts = Mapping[str, Any]  # plain values, as a checkpoint keeps them
NextPhase = tuple[Graph, Facts]  # the graph that the next phase trains, and where in its course the training then is


@dataclass(frozen=True)
class Phase:
    """One part of a training. `learnt_from` makes, of its graph, the one whose losses a step descends on. The learning
    rate's schedule, the best epoch and an early stop are each phase's own. The state of the optimizer `goes_on` from
    the phase before, or begins afresh. `told` stands in each line of its metrics."""

    splits: Mapping[str, Arrays]
    epochs: int
    learnt_from: Callable[[Graph], Graph] = lambda graph: graph
    lr: float | None = None
    goes_on: bool = False
    tags: Facts = field(default_factory=dict)

    @property
    def data(self) -> Arrays:
        return self.splits["train"]


@dataclass(frozen=True)
class Place:
    """Epochs and steps done in all, and where in its course a training is."""

    epoch: int = 0
    step: int = 0
    at: Facts = field(default_factory=dict)


class Training(Protocol):
    """What a course may know of the training that it decides about."""

    directory: RunDirectory

    @property
    def graph(self) -> Graph: ...
    @property
    def progress(self) -> Place: ...
    def model_now(self) -> Model: ...
    def measure(self, model: Model, arrays: Arrays) -> dict[str, float]: ...
    def on_rank_zero(self, compute: Callable[[], T]) -> T: ...
    def say(self, text: str) -> None: ...


class Curriculum:
    """Which phases a training has; this one has a single one. Where in it a training is stands in its checkpoints, and
    what comes next is a function of that, of the graph, the weights and the data."""

    def __init__(self, whole: Phase) -> None:
        self.whole = whole

    def begin(self, graph: Graph) -> NextPhase:
        """What comes first. Raises `ModgraphError`."""
        return graph, {"phase": 0}

    def phase(self, at: Facts, graph: Graph) -> Phase:
        """The phase of a training that is there. Raises `ValueError` or `TypeError` where there is no such place."""
        if at["phase"] != 0:
            raise ValueError(f"it is of phase {at['phase']}, of 1")
        return self.whole

    def next_phase(self, training: Training) -> NextPhase | None:
        """What comes after the phase at work, when it has ended; None where the training has. Raises
        `ModgraphError`."""
        return None

    def describe(self) -> str:
        """A line for the user when a training begins, or nothing."""
        return ""

    def results(self, training: Training) -> dict[str, Any]:
        """What a training that has ended has come to, by name, beside the metrics of its model."""
        return {}

    def record(self, training: Training) -> dict[str, Any]:
        """What else the record of the run keeps of the end."""
        return {}


@dataclass(frozen=True)
class Setup:
    """What a course is made for, or a learner in a phase: a graph, splits, and what the recipe says of steps."""

    graph: Graph
    splits: Mapping[str, Arrays]
    seed: int
    batch: int
    epochs: int
    processes: int = 1

    @property
    def data(self) -> Arrays:
        return self.splits["train"]


class Algorithm(Named):
    """How weights are learnt from a spec's losses."""

    registry: ClassVar[Registry[Algorithm]] = Registry("algorithm")
    one_phase: ClassVar[bool] = True  # of which there can be a best epoch, and an early stop

    def count_trials(self, batch: int) -> int:
        """How many examples it runs at once, beside the steps of so many, without gradients."""
        return 0

    def curriculum(self, setup: Setup) -> Curriculum:
        """The phases of a training by it. Raises `ModgraphError` if the spec or the data are not for it."""
        return Curriculum(Phase(setup.splits, setup.epochs))

    @abstractmethod
    def learner(self, setup: Setup) -> Learner:
        """What carries it out in one training. Raises `ModgraphError` if the spec is not for it."""


class Learner:
    """An algorithm at work. This one minimises the declared losses; others change what a step does. `graph` is what the
    model is made from, `wanted` are results that `objective` takes besides the losses."""

    def __init__(self, graph: Graph, wanted: tuple[Result, ...] = ()) -> None:
        self.graph = graph
        self.wanted = wanted

    def prepare(self, model: Model, step: int) -> None:
        """What is to be done before a step."""

    def force_choices(self, indices: Tensor, batch: Tensors) -> Tensors:
        """What draws are to take for some examples of the training data, as long as their batch is, by the names under
        which it tells them."""
        return {}

    def objective(self, losses: Tensors, found: Sequence[Tensor], examples: int) -> Tensors:
        """What a step differentiates: [B] of one per example, or one number over the batch of so many examples."""
        return losses

    def describe(self) -> str:
        """A line for the user when a training begins, or nothing."""
        return ""

    def tensors(self) -> Tensors:
        """What a checkpoint keeps besides weights, in tensors."""
        return {}

    def facts(self) -> dict[str, Any]:
        """What a checkpoint keeps, in numbers."""
        return {}

    def restore(self, tensors: Tensors, facts: Mapping[str, Any], complete: bool = True) -> None:
        """Take up what a checkpoint kept; one that is not `complete` is of another graph, and may lack what is new.
        Raises `ValueError` or `TypeError` if it is not of this training."""


class Backprop(Algorithm, name="backprop"):
    """Gradient descent on the declared losses."""

    def learner(self, setup: Setup) -> Learner:
        from modgraph.training.algorithms.decisions import find_sampled_routes

        for route in find_sampled_routes(setup.graph):
            if not (router := route.decision.router).frozen:
                raise ModgraphError([NoGradient(router=router.name)])
        return Learner(setup.graph)


class EM(Algorithm, name="em"):
    """Keep the best decisions found for every example, and learn to make them and to do well with them.

    The E-step, once before every `m_steps` steps, takes a batch of its own: for each example `samples` decisions are
    drawn, all routes and steps of one together, and the best by log p(y|x, a) + log p(a|x) replaces the one that is
    kept; if several are equal, that one stays. Each step descends on −mean[log p(y|x, a*) + log p(a*|x)] and the other
    losses, a* what is kept. At the start, decisions are drawn uniformly.
    """

    samples: int = setting(10, min=1, max=10_000, doc="decisions drawn for each example in an E-step")
    m_steps: int = setting(9, min=1, doc="steps of gradient descent between E-steps")
    batch: int | None = setting(None, min=1, doc="examples in an E-step; by default those of a step")

    def count_trials(self, batch: int) -> int:
        return (1 + self.samples) * (self.batch or batch)

    def learner(self, setup: Setup) -> Learner:
        from modgraph.training.algorithms.decisions import DecisionLikelihood, ViterbiEM

        if setup.processes > 1:
            raise ModgraphError([NeedsOneProcess(algorithm=self.name)])
        return ViterbiEM(DecisionLikelihood.build(setup.graph, self.name), self, setup)


class Reinforce(Algorithm, name="reinforce"):
    """Draw decisions, and make those more probable that did better than usual.

    −mean[log p(y|x, a) + (log p(y|x, a) − b) log p(a|x)], the bracket's factor without gradient; b is the exponential
    moving average of log p(y|x, a) over the steps before. Both are summed over an example's positions.
    """

    memory: float = setting(0.99, min=0, below=1, doc="share of the moving average b that is kept at each step")

    def learner(self, setup: Setup) -> Learner:
        from modgraph.training.algorithms.decisions import DecisionLikelihood, ScoreFunction

        return ScoreFunction(DecisionLikelihood.build(setup.graph, self.name), self.memory)
