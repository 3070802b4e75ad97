"""Continual training: tasks one after another, on a model that grows where what it has does not fit. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping

from modgraph.declare import setting
from modgraph.recipes.schema import Section
from modgraph.training.algorithms import Backprop
from modgraph.training.algorithms.algorithm import Curriculum, Setup

NEVER, WHEN_NOVEL, ALWAYS = "never", "when_novel", "always"


class PhaseOfTask(Section):
    """What is learnt of a task at one time: what some of the losses are computed from."""

    losses: tuple[str, ...] = setting(doc="names of losses, * standing for any letters: cross_entropy, novelty.*")
    epochs: int | None = setting(None, min=1, doc="passes over the task's data; by default train.epochs")
    lr: float | None = setting(None, min=0, doc="the largest learning rate; by default that of the optimizer")

    def contradiction(self) -> str | None:
        return None if self.losses else "names no losses"


class Continual(Backprop, name="continual"):
    """Gradient descent on one task after another, each the examples of a group of the data.

    After the first task all is frozen. In each later one the classes grow that its labels need. Then batches of it are
    looked at, in evaluation mode, for one at which a `grow … when` of the spec says yes; the first pool in the graph
    that it is said of grows, at most once in a task; what is new learns, phase after phase, and is frozen; so on, until
    a look at the whole task adds nothing. Where nothing was added, the rows of new classes learn alone.
    """

    one_phase = False

    by: str = setting("task", doc="the grouping of the data whose groups are the tasks")
    expand: str = setting(WHEN_NOVEL, choices=(WHEN_NOVEL, NEVER, ALWAYS), doc="when pools grow that may")
    phases: Mapping[str, PhaseOfTask] | None = setting(None, doc="each by its name, in order; by default one of all")
    mask_old: bool = setting(True, doc="in training, cross-entropies give classes of earlier tasks no share")
    learns: tuple[str, ...] = setting((), doc="names of weights, with *, that go on learning in every task")

    def curriculum(self, setup: Setup) -> Curriculum:
        from modgraph.training.continual.curriculum import ContinualCurriculum

        return ContinualCurriculum.build(self, setup)
