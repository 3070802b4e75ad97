"""What the engine knows of an algorithm."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from modgraph.declare import Registry
from modgraph.ir import Graph, Result
from modgraph.recipes.schema import Named
from modgraph.training.course import Course, Phase, Series

if TYPE_CHECKING:
    from torch import Tensor

    from modgraph.backends.torch import Model
    from modgraph.data import Arrays

Tensors = Mapping[str, "Tensor"]


@dataclass(frozen=True)
class LearnerSetup:
    """What a learner is made for: a graph, its training data, the seed, the batch, how many processes."""

    graph: Graph
    data: Arrays
    seed: int
    batch: int
    processes: int


@dataclass(frozen=True)
class CourseSetup:
    """What a course is made for: the graph that the run begins with, splits, and what the recipe says of steps."""

    graph: Graph
    splits: Mapping[str, Arrays]
    epochs: int
    batch: int
    seed: int


class Algorithm(Named):
    """How weights are learnt from a spec's losses."""

    registry: ClassVar[Registry[Algorithm]] = Registry("algorithm")
    one_phase: ClassVar[bool] = True  # of which there can be a best epoch, and an early stop

    def tried_at_once(self, batch: int) -> int:
        """How many examples it runs at once, beside the steps of so many, without gradients."""
        return 0

    def course(self, setup: CourseSetup) -> Course:
        """The phases of a training by it. Raises `ModgraphError` if the spec or the data are not for it."""
        return Series((Phase(setup.splits, setup.epochs),))

    @abstractmethod
    def learner(self, setup: LearnerSetup) -> Learner:
        """What carries it out in one training. Raises `ModgraphError` if the spec is not for it."""


class Learner:
    """An algorithm at work. This one minimises the declared losses; others change what a step does.

    `graph` is what the model is made from, `wanted` are results that `objective` takes besides the losses.
    """

    def __init__(self, graph: Graph, wanted: tuple[Result, ...] = ()) -> None:
        self.graph = graph
        self.wanted = wanted

    def prepare(self, model: Model, step: int) -> None:
        """What is to be done before a step."""

    def told(self, indices: Tensor, batch: Tensors) -> Tensors:
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

        Raises `ValueError` or `TypeError` if it is not of this training.
        """
