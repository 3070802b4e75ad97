"""The interfaces of algorithms, phases and steps, and this package's algorithms as sections of a recipe. Learners need
torch and are imported at use."""

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
Facts = Mapping[str, Any]  # plain values, for checkpoints
NextPhase = tuple[Graph, Facts]  # the graph of the next phase, and its position in the curriculum


@dataclass(frozen=True)
class Phase:
    """One phase of a training.

    `learnt_from` maps its graph to the graph whose losses a step minimises. The learning rate's schedule, the best
    epoch and early stopping belong to each phase. With `goes_on` the optimizer's state continues from the phase before;
    otherwise it is fresh. `tags` precede the metrics in each line of the log.
    """

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
    """The total numbers of epochs and steps so far, and the position in the curriculum."""

    epoch: int = 0
    step: int = 0
    at: Facts = field(default_factory=dict)


class Training(Protocol):
    """The training as a curriculum sees it: its folder and its progress."""

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
    """The phases of a training; this one has a single phase.

    Checkpoints keep the position in it. The next phase is a function of the position, the graph, the weights and the
    data.
    """

    def __init__(self, whole: Phase) -> None:
        self.whole = whole

    def begin(self, graph: Graph) -> NextPhase:
        """Return the first graph and position. Raises `ModgraphError`."""
        return graph, {"phase": 0}

    def phase(self, at: Facts, graph: Graph) -> Phase:
        """Return the phase at a position. Raises `ValueError` or `TypeError` if the position does not exist."""
        if at["phase"] != 0:
            raise ValueError(f"it is of phase {at['phase']}, of 1")
        return self.whole

    def next_phase(self, training: Training) -> NextPhase | None:
        """Return the graph and the position after the phase that has ended; None at the end of the training. Raises
        `ModgraphError`."""
        return None

    def describe(self) -> str:
        """Return a line for the user at the beginning of a training, or ""."""
        return ""

    def results(self, training: Training) -> dict[str, Any]:
        """Return the results of a finished training by name, in addition to the metrics of its model."""
        return {}

    def record(self, training: Training) -> dict[str, Any]:
        """Return more fields for the record of the finished run."""
        return {}


@dataclass(frozen=True)
class Setup:
    """The inputs of a curriculum, or of a learner in a phase: a graph, splits, and the recipe's numbers."""

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
    """Base of algorithms: how weights are learnt from a spec's losses."""

    registry: ClassVar[Registry[Algorithm]] = Registry("algorithm")
    one_phase: ClassVar[bool] = True  # allows a best epoch and early stopping
    one_process: ClassVar[bool] = False

    def count_trials(self, batch: int) -> int:
        """Return how many examples it runs at once without gradients, in addition to steps of `batch` examples."""
        return 0

    def curriculum(self, setup: Setup) -> Curriculum:
        """Return the phases of a training. Raises `ModgraphError` for a spec or data that it cannot train."""
        return Curriculum(Phase(setup.splits, setup.epochs))

    @abstractmethod
    def learner(self, setup: Setup) -> Learner:
        """Return the learner of one training. Raises `ModgraphError` for a spec that it cannot train."""


class Learner:
    """Executes an algorithm. This one minimises the declared losses; others change the objective of a step.

    The model is built from `graph`. `wanted` are results that `objective` reads in addition to the losses.
    """

    def __init__(self, graph: Graph, wanted: tuple[Result, ...] = ()) -> None:
        self.graph = graph
        self.wanted = wanted

    def prepare(self, model: Model, step: int) -> None:
        """Do work before a step."""

    def force_choices(self, indices: Tensor, batch: Tensors) -> Tensors:
        """Return forced choices for some examples of the training data, by the key of each draw; as long as their
        batch."""
        return {}

    def objective(self, losses: Tensors, found: Sequence[Tensor], examples: int) -> Tensors:
        """Return the losses to differentiate: [B] for a loss per example, a scalar for one over the batch of so many
        examples."""
        return losses

    def describe(self) -> str:
        """Return a line for the user at the beginning of a training, or ""."""
        return ""

    def tensors(self) -> Tensors:
        """Return the tensors that a checkpoint keeps in addition to weights."""
        return {}

    def facts(self) -> dict[str, Any]:
        """Return the numbers that a checkpoint keeps."""
        return {}

    def restore(self, tensors: Tensors, facts: Mapping[str, Any], complete: bool = True) -> None:
        """Restore the state of a checkpoint; one that is not `complete` belongs to another graph and may lack new
        entries. Raises `ValueError` or `TypeError` if it is not of this training."""


class Backprop(Algorithm, name="backprop"):
    """Gradient descent on the declared losses."""

    def learner(self, setup: Setup) -> Learner:
        from modgraph.training.algorithms.decisions import find_sampled_routes

        for route in find_sampled_routes(setup.graph):
            if not (router := route.decision.router).frozen:
                raise ModgraphError([NoGradient(router=router.name)])
        return Learner(setup.graph)


class EM(Algorithm, name="em"):
    """Expectation maximisation: keeps the best decisions found for every example, and trains routers and modules on
    them.

    An E-step, before every `m_steps` steps, takes a batch of its own. For each example it samples `samples` decisions,
    jointly over all routes and steps. The best by log p(y|x, a) + log p(a|x) replaces the kept one; on a tie the kept
    one stays. Each step minimises −mean[log p(y|x, a*) + log p(a*|x)] and the other losses, where a* is the kept
    decision. Initial decisions are uniformly random.
    """

    one_process = True

    samples: int = setting(10, min=1, max=10_000, doc="decisions sampled for each example in an E-step")
    m_steps: int = setting(9, min=1, doc="gradient steps between E-steps")
    batch: int | None = setting(None, min=1, doc="examples per E-step; those of a step if not given")

    def count_trials(self, batch: int) -> int:
        return (1 + self.samples) * (self.batch or batch)

    def learner(self, setup: Setup) -> Learner:
        from modgraph.training.algorithms.decisions import DecisionLikelihood, ViterbiEM

        if setup.processes > 1:
            raise ModgraphError([NeedsOneProcess(algorithm=self.name)])
        return ViterbiEM(DecisionLikelihood.build(setup.graph, self.name), self, setup)


class Reinforce(Algorithm, name="reinforce"):
    """Policy gradient: samples decisions, and raises the probability of those that did better than average.

    Minimises −mean[log p(y|x, a) + (log p(y|x, a) − b) log p(a|x)], without gradient through the bracket. The baseline
    b is the exponential moving average of log p(y|x, a) over earlier steps. Both terms are summed over an example's
    positions.
    """

    memory: float = setting(0.99, min=0, below=1, doc="decay of the moving average b: the share kept at each step")

    def learner(self, setup: Setup) -> Learner:
        from modgraph.training.algorithms.decisions import DecisionLikelihood, ScoreFunction

        return ScoreFunction(DecisionLikelihood.build(setup.graph, self.name), self.memory)
