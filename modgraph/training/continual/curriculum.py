"""The curriculum of a continual training: tasks, scans and phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph, TargetNode, find_learnt_weights, weights_of
from modgraph.ir.edits import Edit, Freeze, Grow, replay_edits
from modgraph.store.journal import Journal
from modgraph.store.records import json_text
from modgraph.training.algorithms.algorithm import Curriculum, Facts, NextPhase, Phase, Setup, Training
from modgraph.training.continual import ALWAYS, NEVER, Continual, PhaseOfTask, evaluation
from modgraph.training.continual.evaluation import Scan, find_grown_parameters, scan_batches
from modgraph.training.continual.task_incremental import measure_task_incremental
from modgraph.training.continual.tasks import Tasks, find_first_class, find_growth_of_classes, labels_of
from modgraph.training.errors import NoLossLeft, NoSuchLoss, NoSuchWeight
from modgraph.training.losses import find_losses, learnt_from, suggest_loss

LEARN, DETECT, DONE = "learn", "detect", "done"


@dataclass(frozen=True)
class Position:
    """The position in a continual training: the task, what it is doing, and the phase; growth nodes that fired
    in this task; the numbers of scans and of lines of edits so far; and after each finished task the accuracies
    on all so far."""

    task: int = 0
    doing: str = LEARN
    phase: int = 0
    expanded: tuple[str, ...] = ()
    scans: int = 0
    edits: int = 0
    accuracies: tuple[tuple[float, ...], ...] = ()

    def facts(self) -> Facts:
        """Return the position as a checkpoint keeps it."""
        return asdict(self)


@dataclass(frozen=True)
class ContinualCurriculum(Curriculum):
    """A curriculum of phases of a task, scans of its batches, and the end. `next_phase` decides what follows, above all
    edits of the graph, from the graph and the weights alone."""

    settings: Continual
    setup: Setup
    tasks: Tasks
    phases: tuple[tuple[str, PhaseOfTask], ...]

    @classmethod
    def build(cls, settings: Continual, setup: Setup) -> ContinualCurriculum:
        """Raises `ModgraphError` for a spec or data that it cannot train."""
        graph = setup.graph
        tasks = Tasks.from_splits(setup.splits, settings.by, list(labels_of(graph)))
        weights = [weight.name for weight in weights_of(graph)]
        for pattern in settings.learns:
            if not any(fnmatchcase(name, pattern) for name in weights):
                suggestion = did_you_mean(pattern, weights, "its weights are called: {known}")
                raise ModgraphError([NoSuchWeight(pattern=pattern, suggestion=suggestion)])
        for name, phase in (settings.phases or {}).items():
            for pattern in phase.losses:
                if not find_losses(graph, [pattern]):
                    suggestion = suggest_loss(graph, pattern)
                    raise ModgraphError([NoSuchLoss(phase=name, pattern=pattern, suggestion=suggestion)])
        whole = PhaseOfTask(losses=("*",), epochs=None, lr=None)
        return cls(settings, setup, tasks, tuple((settings.phases or {"all": whole}).items()))

    def describe(self) -> str:
        lines, graph = [str(self.tasks)], self.setup.graph
        if self.settings.expand != NEVER and not graph.growths():
            lines.append("note: no pool grows, since the spec has no grow … when")
        for target in labels_of(graph):
            axis = graph.target_types[target].classes
            if axis is not None and not axis.name:
                lines.append(
                    f"note: the classes of {target} have no name, so that none are added, and rows of old ones learn"
                    " with the new where train.algorithm.learns names them; or declare"
                    f" {target}: class[kind={axis.size}]"
                )
        return "\n".join(lines)

    # ------------------------------------------------------------ turns

    def begin(self, graph: Graph) -> NextPhase:
        first = self._learning(graph, Position())
        if first is None:
            raise ModgraphError([NoLossLeft()])
        return first

    def phase(self, at: Facts, graph: Graph) -> Phase:
        here = self._position(at)
        splits = self.tasks.training_data(here.task)
        if here.doing != LEARN:
            return Phase(splits, epochs=0)
        name, planned = self.phases[here.phase]
        tags = {"task": self.tasks.names[here.task], "phase": name}
        view = partial(self._learnt_from, here)
        return Phase(splits, planned.epochs or self.setup.epochs, view, planned.lr, tags=tags)

    def _position(self, at: Facts) -> Position:
        """Read a position from a checkpoint. Raises `KeyError`, `TypeError` or `ValueError` if it is invalid."""
        facts = dict(at)
        rows = tuple(tuple(float(each) for each in row) for row in facts.pop("accuracies"))
        expanded = tuple(facts.pop("expanded"))
        here = Position(**facts, expanded=expanded, accuracies=rows)
        tasks, phases = len(self.tasks), len(self.phases)
        if not (0 <= here.task < tasks and 0 <= here.phase < phases and here.doing in (LEARN, DETECT, DONE)):
            raise ValueError(f"it is at {facts}, but there are {tasks} tasks with {phases} phases")
        return here

    def _learnt_from(self, here: Position, graph: Graph) -> Graph:
        since = find_first_class(graph, self.tasks, here.task) if self.settings.mask_old else {}
        return learnt_from(graph, find_losses(graph, self.phases[here.phase][1].losses), since)

    def _learning(self, graph: Graph, here: Position) -> NextPhase | None:
        """Return the first phase, from that of a position on, that has weights to train."""
        for number in range(here.phase, len(self.phases)):
            there = replace(here, doing=LEARN, phase=number)
            view = self._learnt_from(there, graph)
            if find_learnt_weights(view, view.losses.values()):
                return (graph, there.facts())
        return None

    # ------------------------------------------------------------ what comes next

    def next_phase(self, training: Training) -> NextPhase | None:
        here, graph = self._position(training.progress.at), training.graph
        if here.doing == DONE:
            return None
        if here.doing == DETECT:  # grow where a scan finds novelty; else learn the new classes, or end the task
            may_grow = [node.name for node in graph.growths() if node.name not in here.expanded]
            if self.settings.expand != NEVER and may_grow:
                model = training.model_now()  # all processes gather its weights
                found = training.on_rank_zero(partial(self._scan, training, model, here, may_grow))
                here = replace(here, scans=here.scans + 1)
                if found.grows is not None:
                    return self._grow(training, here, found, found.grows)
            learning = None if here.expanded else self._learning(graph, replace(here, phase=0))
            return learning or self._next_task(training, here)
        following = self._learning(graph, replace(here, phase=here.phase + 1))
        if following is not None:
            return following
        if not here.expanded:
            return self._next_task(training, here)
        grown = tuple(target.name for target in graph.nodes_of(TargetNode) if target.grown)
        return self._edit_graph(training, here, [Freeze(self.settings.learns, keeps=grown)], DETECT)

    def _scan(self, training: Training, model: Model, here: Position, may_grow: Sequence[str]) -> Scan:
        """Scan batches of the current task, and log the result."""
        data, always = self.tasks.training_data(here.task)["train"], self.settings.expand == ALWAYS
        setup, graph = self.setup, training.graph
        found = scan_batches(model, data, may_grow, setup.batch, setup.seed, here.scans, always)
        lines = []
        for node in graph.growths():
            if node.name in found.novelty:
                where = {"scan": here.scans, "pool": graph.pool_of(node).name, "growth": node.name}
                batch = found.batch if node.name == found.grows else None
                lines.append({**self._task_facts(here), **where, "batch": batch, "novelty": found.novelty[node.name]})
        Journal(training.directory.detections).add(*lines)
        return found

    def _task_facts(self, here: Position) -> dict[str, Any]:
        return {"task": self.tasks.names[here.task], "number": here.task}

    def _grow(self, training: Training, here: Position, found: Scan, growth: str) -> NextPhase:
        """Grow a pool by a module, and train it."""
        node = next(each for each in training.graph.growths() if each.name == growth)
        pool = training.graph.pool_of(node)
        where = f"task {self.tasks.names[here.task]}, batch {found.batch}"
        training.say(f"{where}: {pool.name} grows to {pool.size + 1} modules")
        novelty = found.novelty[growth][-1] if found.novelty[growth] else None
        tags = {"pool": pool.name, "module": pool.size, "growth": growth, "batch": found.batch, "novelty": novelty}
        here = replace(here, expanded=(*here.expanded, growth))
        return self._edit_graph(training, here, [Grow(pool.axis.name)], LEARN, tags)

    def _next_task(self, training: Training, here: Position) -> NextPhase:
        """Measure the finished task and freeze all weights; begin the next, with as many classes as it needs."""
        task, graph = here.task, training.graph
        row = evaluation.measure_tasks(training, self.tasks, task)
        record = {
            **self._task_facts(here),
            **({"accuracy": evaluation.overall(row, self.tasks.tests)} if row else {}),
            "accuracies": dict(zip(self.tasks.names, row, strict=False)),
            "modules": evaluation.modules(graph),
            "classes": evaluation.classes(graph),
            "epoch": training.progress.epoch,
            "step": training.progress.step,
        }
        training.on_rank_zero(partial(Journal(training.directory.tasks).add, record))
        training.say(evaluation.describe_task(self.tasks, task, row, graph))
        here = replace(here, accuracies=(*here.accuracies, row))
        freeze = Freeze(self.settings.learns)
        if task + 1 == len(self.tasks):
            return self._edit_graph(training, here, [freeze], DONE)
        classes = find_growth_of_classes(graph, self.tasks, task + 1)
        return self._edit_graph(training, replace(here, task=task + 1, expanded=()), [freeze, *classes], DETECT)

    def _edit_graph(
        self, training: Training, here: Position, edits: Sequence[Edit], doing: str, tags: Facts | None = None
    ) -> NextPhase:
        """Apply and log edits of the graph. Train if there are weights to train."""
        graph = replay_edits(training.graph, edits)
        here = replace(here, phase=0)
        if graph != training.graph:
            when = {**(tags or {}), "epoch": training.progress.epoch, "step": training.progress.step}
            done = {"edits": [edit.as_json() for edit in edits], "hash": graph.hash()}
            line = {"edit": here.edits, **self._task_facts(here), **when, **done}
            training.on_rank_zero(partial(Journal(training.directory.growth).add, line))
            here = replace(here, edits=here.edits + 1)
        learning = self._learning(graph, here) if doing == LEARN else None
        return learning or (graph, replace(here, doing=DONE if doing == DONE else DETECT).facts())

    # ------------------------------------------------------------ the end

    def results(self, training: Training) -> dict[str, Any]:
        found, counts = self._position(training.progress.at).accuracies, self.tasks.tests
        grown = {f"modules.{name}": size for name, size in evaluation.modules(training.graph).items()}
        if not all(found):
            return grown
        model = training.model_now()
        known = training.on_rank_zero(lambda: measure_task_incremental(model, self.tasks))
        return {**evaluation.summary(found, counts), **known, **grown}

    def record(self, training: Training) -> dict[str, Any]:
        found = find_grown_parameters(training.directory, training.directory.read_graph(), training.graph)
        if found:
            values = " ".join(f"-s {name}={json_text(value, separators=(',', ':'))}" for name, value in found.items())
            training.say(f"the grown model is this spec with {values}")
        return {"grown": found}
