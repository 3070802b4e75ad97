"""The course of a continual training: task after task, look after look, phase after phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, learnt_weights
from modgraph.ir.edits.edit import Edit, Freeze, Grow, replayed
from modgraph.store.journal import Journal
from modgraph.store.records import json_text
from modgraph.training.algorithms.algorithm import CourseSetup
from modgraph.training.continual.accuracies import average_accuracy, forgetting, last_accuracy
from modgraph.training.continual.classes import first_of_task, growth_of_classes, labels_of, merge
from modgraph.training.continual.detection import Look, look
from modgraph.training.continual.errors import NoLossLeft
from modgraph.training.continual.evaluation import examples, measured, modules, record_of, shown
from modgraph.training.continual.grown_spec import grown_parameters
from modgraph.training.continual.masking import learnt_from, losses_called
from modgraph.training.continual.plan import PlannedPhase, check_names, notes_of, planned_phases
from modgraph.training.continual.position import DETECT, DONE, LEARN, Position
from modgraph.training.continual.section import ALWAYS, NEVER, Continual
from modgraph.training.continual.tasks import Tasks
from modgraph.training.course import Course, Facts, Phase, Training, Turn


@dataclass(frozen=True)
class ContinualCourse(Course):
    """Each turn is one of three: a phase of a task, a look at its batches, the end. What leads to the next, edits of
    the graph above all, is decided in `after`, of the graph and the weights alone."""

    settings: Continual
    tasks: Tasks
    planned: tuple[PlannedPhase, ...]
    batch: int
    seed: int
    notes: tuple[str, ...] = ()  # of what will not happen, though one may expect it

    @classmethod
    def of(cls, settings: Continual, setup: CourseSetup) -> ContinualCourse:
        """Raises `ModgraphError` where the spec or the data are not for it."""
        tasks = Tasks.of(setup.splits, settings.by, list(labels_of(setup.graph)))
        check_names(settings.learns, setup.graph)
        planned = tuple(planned_phases(settings, setup))
        return cls(settings, tasks, planned, setup.batch, setup.seed, tuple(notes_of(settings, setup.graph)))

    # ------------------------------------------------------------ turns

    def begin(self, graph: Graph) -> Turn:
        turn = self._learning(graph, Position())
        if turn is None:
            raise ModgraphError([NoLossLeft()])
        return turn

    def phase(self, at: Facts, graph: Graph) -> Phase:
        here = Position.read(at, len(self.tasks), len(self.planned))
        splits = self.tasks.learnt(here.task)
        if here.doing != LEARN:
            return Phase(splits, epochs=0)
        planned = self.planned[here.phase]
        view = partial(self._learnt_from, planned, here.task)
        told = {"task": self.tasks.names[here.task], "phase": planned.name}
        return Phase(splits, planned.epochs, view, planned.lr, told=told)

    def _turn(self, graph: Graph, here: Position) -> Turn:
        return Turn(self.phase(here.facts(), graph), graph, here.facts())

    def _learnt_from(self, planned: PlannedPhase, task: int, graph: Graph) -> Graph:
        since = first_of_task(graph, self.tasks, task) if self.settings.mask_old else {}
        return learnt_from(graph, losses_called(graph, planned.losses), since)

    def _learning(self, graph: Graph, here: Position) -> Turn | None:
        """The first phase, from the one of a position on, that has anything to learn."""
        for number in range(here.phase, len(self.planned)):
            view = self._learnt_from(self.planned[number], here.task, graph)
            if learnt_weights(view, view.losses.values()):
                return self._turn(graph, replace(here, doing=LEARN, phase=number))
        return None

    # ------------------------------------------------------------ what comes next

    def after(self, training: Training) -> Turn | None:
        here = self._position(training)
        if here.doing == DONE:
            return None
        if here.doing == DETECT:
            return self._after_look(training, here)
        following = self._learning(training.graph, replace(here, phase=here.phase + 1))
        if following is not None:
            return following
        if here.expanded:
            return self._edited(training, here, merge(training.graph, self.settings.learns), DETECT)
        return self._next_task(training, here)

    def _named(self, here: Position) -> dict[str, Any]:
        """The task at work, by its name and its number."""
        return {"task": self.tasks.names[here.task], "number": here.task}

    def _position(self, training: Training) -> Position:
        return Position.read(training.at, len(self.tasks), len(self.planned))

    def _after_look(self, training: Training, here: Position) -> Turn:
        """Grow where a look finds what is new; else learn the new classes alone, or end the task."""
        may_grow = [node.name for node in training.graph.growths() if node.name not in here.expanded]
        if self.settings.expand != NEVER and may_grow:
            found = training.on_rank_zero(partial(self._look, training, here, may_grow))
            here = replace(here, looks=here.looks + 1)
            if found.grows is not None:
                return self._expanded(training, here, found, found.grows)
        learning = None if here.expanded else self._learning(training.graph, replace(here, phase=0))
        return learning or self._next_task(training, here)

    def _look(self, training: Training, here: Position, may_grow: Sequence[str]) -> Look:
        """Look at batches of the task at work, and write down what is found."""
        data, always = self.tasks.learnt(here.task)["train"], self.settings.expand == ALWAYS
        found = look(training.model_now(), data, may_grow, self.batch, self.seed, here.looks, always)
        where = {**self._named(here), "scan": here.looks}
        graph = training.graph
        pools = {node.name: graph.pool_of(node).name for node in graph.growths()}
        lines = ({**where, "pool": pools[each["growth"]], **each} for each in found.records())
        Journal(training.directory.detections).add(*lines)
        return found

    def _expanded(self, training: Training, here: Position, found: Look, growth: str) -> Turn:
        """A pool grows by a module, and learns what is new."""
        node = next(each for each in training.graph.growths() if each.name == growth)
        pool = training.graph.pool_of(node)
        where = f"task {self.tasks.names[here.task]}, batch {found.batch}"
        training.say(f"{where}: {pool.name} grows to {pool.size + 1} modules")
        novelty = found.novelty[growth][-1] if found.novelty[growth] else None
        told = {"pool": pool.name, "module": pool.size, "growth": growth, "batch": found.batch, "novelty": novelty}
        here = replace(here, expanded=(*here.expanded, growth))
        return self._edited(training, here, (Grow(pool.axis.name),), LEARN, told)

    def _next_task(self, training: Training, here: Position) -> Turn:
        """What a task has come to is measured, and all is frozen; the next begins, with as many classes as it needs."""
        row = measured(training, self.tasks, here.task)
        if training.is_rank_zero:
            where = {"epoch": training.epoch, "step": training.step}
            Journal(training.directory.tasks).add({**record_of(self.tasks, here.task, row, training.graph), **where})
        training.say(shown(self.tasks, here.task, row, training.graph))
        here = replace(here, accuracies=(*here.accuracies, row))
        freeze = Freeze(self.settings.learns)
        if here.task + 1 == len(self.tasks):
            return self._edited(training, here, (freeze,), DONE)
        here = replace(here, task=here.task + 1, expanded=())
        classes = growth_of_classes(training.graph, self.tasks, here.task)
        return self._edited(training, here, (freeze, *classes), DETECT)

    def _edited(
        self, training: Training, here: Position, edits: Sequence[Edit], doing: str, told: Facts | None = None
    ) -> Turn:
        """Go on with an edited graph, to learn where there is anything to learn; the edits are written down."""
        graph = replayed(training.graph, edits)
        here = replace(here, phase=0)
        if graph != training.graph:
            where, when = {"edit": here.edits, **self._named(here)}, {"epoch": training.epoch, "step": training.step}
            done = {"edits": [edit.as_json() for edit in edits], "hash": graph.hash()}
            if training.is_rank_zero:
                Journal(training.directory.growth).add({**where, **(told or {}), **when, **done})
            here = replace(here, edits=here.edits + 1)
        learning = self._learning(graph, here) if doing == LEARN else None
        return learning or self._turn(graph, replace(here, doing=DONE if doing == DONE else DETECT))

    # ------------------------------------------------------------ leaving and taking up, the end

    def take_up(self, training: Training) -> None:
        here = self._position(training)
        Journal(training.directory.growth).cut("edit", here.edits)
        Journal(training.directory.detections).cut("scan", here.looks)
        Journal(training.directory.tasks).cut("number", len(here.accuracies))

    def results(self, training: Training) -> dict[str, Any]:
        found, counts = self._position(training).accuracies, examples(self.tasks)
        grown = {f"modules.{name}": size for name, size in modules(training.graph).items()}
        if not all(found):
            return grown
        right = {"average_accuracy": average_accuracy(found, counts), "last_accuracy": last_accuracy(found, counts)}
        return {**right, "forgetting": forgetting(found), **grown}

    def record(self, training: Training) -> dict[str, Any]:
        began = training.directory.read_graph()
        found = grown_parameters(training.directory, began, training.graph)
        if found:
            values = " ".join(f"-s {name}={json_text(value, separators=(',', ':'))}" for name, value in found.items())
            training.say(f"the grown model is this spec with {values}")
        return {"grown": found}

    def describe(self) -> str:
        return "\n".join((str(self.tasks), *self.notes))
