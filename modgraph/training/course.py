"""What a training does: phase after phase, each with its data, so many epochs of them, and what is learnt from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from modgraph.ir import Graph

if TYPE_CHECKING:
    from modgraph.backends.torch import Model
    from modgraph.data import Arrays
    from modgraph.store.run_directory import RunDirectory

T = TypeVar("T")
Facts = Mapping[str, Any]  # plain values, as a checkpoint keeps them
Turn = tuple[Graph, Facts]  # the graph that the next phase trains, and where in its course the training then is


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
    told: Facts = field(default_factory=dict)

    @property
    def data(self) -> Arrays:
        return self.splits["train"]


class Training(Protocol):
    """What a course may know of the training that it decides about."""

    directory: RunDirectory

    @property
    def graph(self) -> Graph: ...
    @property
    def at(self) -> Facts: ...
    @property
    def epoch(self) -> int: ...
    @property
    def step(self) -> int: ...
    def model_now(self) -> Model: ...
    def measured(self, model: Model, arrays: Arrays) -> dict[str, float]: ...
    def on_rank_zero(self, compute: Callable[[], T]) -> T: ...
    def say(self, text: str) -> None: ...


class Course(ABC):
    """Which phases a training has. A course is a value: where in it a training is stands in its checkpoints, and what
    comes next is a function of that, of the graph, the weights and the data."""

    @abstractmethod
    def begin(self, graph: Graph) -> Turn:
        """What comes first. Raises `ModgraphError`."""

    @abstractmethod
    def phase(self, at: Facts, graph: Graph) -> Phase:
        """The phase of a training that is there. Raises `ValueError` or `TypeError` where there is no such place."""

    @abstractmethod
    def after(self, training: Training) -> Turn | None:
        """What comes after the phase at work, when it has ended; None where the training has. Raises
        `ModgraphError`."""

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
class OnePhase(Course):
    """All of a training is one phase."""

    whole: Phase

    def begin(self, graph: Graph) -> Turn:
        return graph, {"phase": 0}

    def phase(self, at: Facts, graph: Graph) -> Phase:
        if at["phase"] != 0:
            raise ValueError(f"it is of phase {at['phase']}, of 1")
        return self.whole

    def after(self, training: Training) -> Turn | None:
        return None
