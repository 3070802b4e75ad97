"""What a training is at one moment, made by one function from a graph and, if there is one, a checkpoint.

So a training goes on with another graph as it goes on with the same: a weight that the checkpoint has is taken over
with its optimizer state, one that it lacks starts as a function of the seed and its name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.torch import Model, build
from modgraph.backends.torch.construct import resolve
from modgraph.data.batches import Batch
from modgraph.data.known_classes import refuse_labels_beyond
from modgraph.diagnostics import ModgraphError, listed
from modgraph.ir import Graph, Result, learnt_weights
from modgraph.metrics.evaluation import results_of
from modgraph.metrics.metrics import Metrics
from modgraph.store.checkpoint import Checkpoint, OptimizerState, optimizer_state, restore_optimizer
from modgraph.store.errors import BadCheckpoint
from modgraph.training.algorithms.algorithm import Learner, LearnerSetup
from modgraph.training.compiled import Compiled, CompiledBlocks
from modgraph.training.course import Phase
from modgraph.training.divided import divided_as, whole
from modgraph.training.errors import CannotDivide, DoesNotCarryOver, NothingToLearn
from modgraph.training.processes import Processes
from modgraph.training.scheduled import ScheduledState, scheduled_states
from modgraph.training.sections import BLOCKS, Train
from modgraph.training.stages import (
    Staged,
    in_parts,
    shapes_of,
    staged,
    states_along_modules,
    take_weights,
    trained_weights,
    whole_weights,
)
from modgraph.training.without_compiler import without_compiler

STEPS = "step"  # of a weight, which torch's optimizers keep as one number whatever its shape


class Objective(nn.Module):
    """What a step differentiates: a batch's losses; beside them, what its metrics and its algorithm want."""

    def __init__(self, model: Model, wanted: list[Any]) -> None:
        super().__init__()
        self.model = model
        self.wanted = wanted
        self.losses = model.graph.losses
        model.prepare((*wanted, *self.losses.values()))

    def forward(self, batch: Batch) -> tuple[list[Tensor], dict[str, Tensor]]:
        return results_of(self.model, batch, self.wanted, self.losses)


@dataclass(frozen=True)
class TrainState:
    """The graph, the model that is made of it, its optimizer, what carries out the algorithm, and what is measured.

    `objective` is the model as the processes of the training run it.
    """

    graph: Graph
    model: Model
    optimizer: torch.optim.Optimizer
    learner: Learner
    metrics: Metrics
    objective: Any
    staged: Staged
    scheduled: tuple[ScheduledState, ...]

    @cached_property
    def named(self) -> dict[str, nn.Parameter]:
        """The weights that are trained, by name, in the order of the optimizer; one that has grown in its parts."""
        return trained_weights(self.model, self.staged)

    @property
    def moved(self) -> Mapping[str, Result]:
        """What the states that a rule moves become, by the names of their weights."""
        return self.model.moved_states.results

    def move(self, values: Sequence[Tensor]) -> None:
        """Give the states that a rule moves their next values."""
        self.model.moved_states.move(self.model, dict(zip(self.moved, values, strict=True)))

    def schedule(self, step: int, steps: int, steps_per_epoch: int) -> None:
        """Give the states that the recipe moves their values at a step of a phase, of so many in all."""
        for state in self.scheduled:
            state.move(self.model, step, steps, steps_per_epoch)

    def settings(self) -> dict[str, float]:
        """What the states that the recipe moves are now, by the names that metrics have."""
        return {f"state.{state.name}": state.value(self.model) for state in self.scheduled}

    @property
    def weights(self) -> dict[str, Tensor]:
        """All weights by name, each whole."""
        return whole_weights(self.model, self.staged)

    @property
    def stages(self) -> dict[str, list[int]]:
        """How many modules each stage of growth has, by weight."""
        return {name: each.stages for name, each in self.staged.items()}

    @property
    def optimizer_state(self) -> OptimizerState:
        """The optimizer's state by weight and field, each whole."""
        found = optimizer_state(self.optimizer, list(self.named))
        shapes = shapes_of(self.model)
        return {
            name: {key: whole(each, shapes.get(name)) for key, each in fields.items()} for name, fields in found.items()
        }


def train_state(
    graph: Graph,
    train: Train,
    phase: Phase,
    processes: Processes,
    checkpoint: Checkpoint | None = None,
    same_phase: bool = True,
) -> TrainState:
    """The state in which a graph is trained in a phase: that of a checkpoint, as far as it has it.

    What an algorithm keeps is of the examples of a phase: in another it begins afresh. Raises `ModgraphError`.
    """
    refuse_labels_beyond(phase.data, graph)
    setup = LearnerSetup(phase.learnt_from(graph), phase.data, train.seed, train.batch, processes.size)
    learner = train.algorithm.learner(setup)
    model = build(learner.graph, seed=train.seed, asked=learner.wanted)
    scheduled = scheduled_states(model, graph, train.states or {})
    cut = staged(model, graph) if checkpoint is None else _cut(model, graph, checkpoint)
    learnt = learnt_weights(learner.graph, (*learner.graph.losses.values(), *learner.wanted))
    trained = _trained(model, cut, learnt)
    if not graph.losses:
        raise ModgraphError([NothingToLearn(reason="the spec declares no loss")])
    if not trained and phase.epochs:
        raise ModgraphError([NothingToLearn(reason="its losses are computed from no weights that are not frozen")])
    metrics = Metrics(setup.graph)
    if cut and processes.divides:
        raise ModgraphError([CannotDivide(weights=listed(sorted(cut)))])

    def optimizer_of() -> torch.optim.Optimizer:
        moved = [each for each in trained_weights(model, cut).values() if each.requires_grad]
        found: torch.optim.Optimizer = without_compiler(resolve(train.optimizer.torch))(
            [{"params": moved}], **train.optimizer.arguments()
        )
        return found

    wanted = [*metrics.wanted, *learner.wanted, *model.moved_states.results.values()]
    made = _objective(model, wanted, train.compile, processes)
    objective, optimizer = processes.setup(made, optimizer_of)
    state = TrainState(graph, model, optimizer, learner, metrics, objective, cut, scheduled)
    if checkpoint is not None:
        _take_up(state, checkpoint, same_phase, goes_on=same_phase or phase.goes_on)
    return state


def _objective(model: Model, wanted: list[Any], compiles: bool | str, processes: Processes) -> nn.Module:
    """What a step differentiates, as the recipe has it computed."""
    objective = Objective(model, wanted)
    if not compiles:
        return objective
    log = sys.stderr if processes.is_rank_zero else None
    return CompiledBlocks(objective, model, log) if compiles == BLOCKS else Compiled(objective, log)


def _trained(model: Model, cut: Staged, learnt: Set[str]) -> list[nn.Parameter]:
    """The parameters of the weights that are learnt, in the model's order; no other one is given a gradient."""
    found = trained_weights(model, cut)
    for name, parameter in found.items():
        parameter.requires_grad_(name.partition("[")[0] in learnt)
    return [parameter for parameter in found.values() if parameter.requires_grad]


def _cut(model: Model, graph: Graph, checkpoint: Checkpoint) -> Staged:
    with refusing_damage(checkpoint):
        return staged(model, graph, checkpoint)


def _take_up(state: TrainState, checkpoint: Checkpoint, same_phase: bool, goes_on: bool) -> None:
    """Put what a checkpoint holds into a fresh state. Raises `ModgraphError`."""
    same_graph, own = checkpoint.graph == state.graph, state.weights
    if same_graph:
        _refuse_other_weights(own, checkpoint)
    else:
        _refuse_other_shapes(own, checkpoint.weights, but={*state.staged, *states_along_modules(state.graph)})
    taken = {name: each for name, each in checkpoint.weights.items() if name in own}
    take_weights(state.model, state.staged, taken)
    with refusing_damage(checkpoint):
        if goes_on:
            kept = in_parts(checkpoint.optimizer, state.staged)
            own_parts = {
                name: {
                    key: each if key == STEPS else divided_as(each, state.named[name]) for key, each in fields.items()
                }
                for name, fields in kept.items()
                if name in state.named
            }
            restore_optimizer(state.optimizer, list(state.named), own_parts)
        if same_phase:
            state.learner.restore(checkpoint.state, checkpoint.facts["algorithm"], complete=same_graph)


@contextmanager
def refusing_damage(checkpoint: Checkpoint) -> Iterator[None]:
    """Raises `ModgraphError` where what a checkpoint tells cannot be."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"its record is damaged: {error}"
        raise ModgraphError([BadCheckpoint(path=checkpoint.path, reason=reason)]) from error


def load_weights(model: Model, checkpoint: Checkpoint) -> None:
    """Put a checkpoint's weights into a model of its graph. Raises `ModgraphError` naming what does not fit."""
    _refuse_other_weights(model.state_dict(), checkpoint)
    model.load_state_dict(checkpoint.weights)


def _refuse_other_weights(own: Mapping[str, Tensor], checkpoint: Checkpoint) -> None:
    """Raises `ModgraphError` unless a checkpoint's weights have the same names and shapes."""
    expected, found = _shapes(own), _shapes(checkpoint.weights)
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        reason = f"it is of another model: {listed(wrong)} differ"
        raise ModgraphError([BadCheckpoint(path=checkpoint.path, reason=reason)])


def _refuse_other_shapes(own: Mapping[str, Tensor], weights: Mapping[str, Tensor], but: Set[str]) -> None:
    """Raises `ModgraphError` where weights of a name have another shape, but for those that have grown."""
    expected, found = _shapes(own), _shapes(weights)
    shared = found.keys() & expected.keys() - but
    unlike = sorted(name for name in shared if found[name] != expected[name])
    if unlike:
        raise ModgraphError([DoesNotCarryOver(weights=listed(unlike))])


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}
