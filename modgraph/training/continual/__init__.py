"""Continual training: tasks one after another, on a model that grows where its modules do not fit. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping

from modgraph.declare import setting
from modgraph.recipes.schema import Section
from modgraph.training.algorithms import Backprop
from modgraph.training.algorithms.algorithm import Curriculum, Setup

NEVER, WHEN_NOVEL, ALWAYS = "never", "when_novel", "always"


class PhaseOfTask(Section):
    """One of the phases of each task, with the losses that it minimises."""

    losses: tuple[str, ...] = setting(doc="names of losses, with * for any letters: cross_entropy, novelty.*")
    epochs: int | None = setting(None, min=1, doc="passes over the task's data; train.epochs if not given")
    lr: float | None = setting(None, min=0, doc="largest learning rate; the optimizer's if not given")

    def contradiction(self) -> str | None:
        return None if self.losses else "names no losses"


class Continual(Backprop, name="continual"):
    """Gradient descent on one task after another, each the examples of a group of the data.

    After the first task all weights are frozen. Each later task first adds the classes that its labels need. Then its
    batches are scanned, in evaluation mode, for one at which a `grow … when` of the spec holds. The first such pool in
    the graph grows, at most once in a task. The new module learns, phase after phase, and is frozen. This repeats until
    a scan of the whole task adds nothing. Where nothing was added, only the rows of new classes learn.
    """

    one_phase = False

    by: str = setting("task", doc="the grouping of the data with the tasks")
    expand: str = setting(WHEN_NOVEL, choices=(WHEN_NOVEL, NEVER, ALWAYS), doc="when pools that may grow do so")
    phases: Mapping[str, PhaseOfTask] | None = setting(
        None, doc="the phases by name, in order; one with all losses if not given"
    )
    mask_old: bool = setting(True, doc="leave classes of earlier tasks out of cross-entropies in training")
    learns: tuple[str, ...] = setting((), doc="names of weights, with *, that keep learning in every task")

    def curriculum(self, setup: Setup) -> Curriculum:
        from modgraph.training.continual.curriculum import ContinualCurriculum

        return ContinualCurriculum.build(self, setup)
