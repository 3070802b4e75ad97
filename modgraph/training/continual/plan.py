"""What a recipe plans for every task of a continual training, held against the spec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph, weights_of
from modgraph.training.algorithms.algorithm import CourseSetup
from modgraph.training.continual.classes import labels_of
from modgraph.training.continual.errors import NoSuchLoss, NoSuchWeight
from modgraph.training.continual.masking import PREFIX, losses_called
from modgraph.training.continual.section import NEVER, Continual


@dataclass(frozen=True)
class PlannedPhase:
    """What is learnt at one time in every task: some losses, for so many epochs, at a rate, or the optimizer's."""

    name: str
    losses: tuple[str, ...]
    epochs: int
    lr: float | None


def planned_phases(settings: Continual, setup: CourseSetup) -> Iterator[PlannedPhase]:
    """The phases of every task. Raises `ModgraphError` where one names no loss of the spec."""
    if not settings.phases:
        yield PlannedPhase("all", ("*",), setup.epochs, None)
        return
    for name, phase in settings.phases.items():
        for pattern in phase.losses:
            if not losses_called(setup.graph, [pattern]):
                known = [loss.removeprefix(PREFIX) for loss in setup.graph.losses]
                suggestion = did_you_mean(pattern, known, "its losses are called: {known}")
                raise ModgraphError([NoSuchLoss(phase=name, pattern=pattern, suggestion=suggestion)])
        yield PlannedPhase(name, phase.losses, phase.epochs or setup.epochs, phase.lr)


def notes_of(settings: Continual, graph: Graph) -> Iterator[str]:
    """What of a continual training a spec leaves out."""
    if settings.expand != NEVER and not graph.growths():
        yield "note: the spec has no grow … when, so that no pool grows"
    for target in labels_of(graph):
        axis = graph.target_types[target].classes
        if axis is not None and not axis.name:
            yield (
                f"note: the classes of {target} have no name, so that none are added, and rows of old ones learn with"
                f" the new where train.algorithm.learns names them; or declare {target}: class[kind={axis.size}]"
            )


def check_names(learns: Sequence[str], graph: Graph) -> None:
    """Raises `ModgraphError` where a pattern names no weight of a graph."""
    known = [weight.name for weight in weights_of(graph)]
    for pattern in learns:
        if not any(fnmatchcase(name, pattern) for name in known):
            suggestion = did_you_mean(pattern, known, "its weights are called: {known}")
            raise ModgraphError([NoSuchWeight(pattern=pattern, suggestion=suggestion)])
