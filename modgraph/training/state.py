"""What a training is at one moment, made by one function from a graph and, if there is one, a checkpoint.

So a training goes on with another graph as it goes on with the same: a weight that the checkpoint has is taken over
with its optimizer state, one that it lacks starts as a function of the seed and its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.torch import Model, build
from modgraph.backends.torch.construct import resolve
from modgraph.data import Arrays
from modgraph.data.batches import Batch
from modgraph.diagnostics import ModgraphError, listed
from modgraph.ir import Graph
from modgraph.metrics.evaluation import results_of
from modgraph.metrics.metrics import Metrics
from modgraph.store.checkpoint import Checkpoint, OptimizerState, optimizer_state, restore_optimizer
from modgraph.store.errors import BadCheckpoint
from modgraph.training.algorithms.algorithm import Given, Learner
from modgraph.training.errors import DoesNotCarryOver, NothingToLearn
from modgraph.training.processes import Processes
from modgraph.training.recipe import Train


class Objective(nn.Module):
    """What a step differentiates: a batch's losses; beside them, what its metrics and its algorithm want."""

    def __init__(self, model: Model, wanted: list[Any]) -> None:
        super().__init__()
        self.model = model
        self.wanted = wanted

    def forward(self, batch: Batch) -> tuple[list[Tensor], dict[str, Tensor]]:
        return results_of(self.model, batch, self.wanted)


@dataclass(frozen=True)
class TrainState:
    """The graph, the model that is made of it, its optimizer, what carries out the algorithm, and what is measured.

    `objective` and `stepper` are the model and the optimizer as the processes of the training run them.
    """

    graph: Graph
    model: Model
    optimizer: torch.optim.Optimizer
    learner: Learner
    metrics: Metrics
    objective: nn.Module
    stepper: Any

    @cached_property
    def named(self) -> dict[str, nn.Parameter]:
        """The weights that are trained, by name, in the order of the optimizer."""
        return _trained(self.model)

    @property
    def optimizer_state(self) -> OptimizerState:
        """The optimizer's state by weight and field."""
        return optimizer_state(self.optimizer, list(self.named))


def train_state(
    graph: Graph,
    train: Train,
    data: Arrays,
    processes: Processes,
    checkpoint: Checkpoint | None = None,
    same_data: bool = True,
) -> TrainState:
    """The state in which a graph is trained on: that of a checkpoint, as far as it has it. Raises `ModgraphError`.

    What an algorithm keeps is of its examples: with other data it begins afresh.
    """
    learner = train.algorithm.learner(Given(graph, data, train.seed, train.batch, processes.size))
    model = build(learner.graph, seed=train.seed)
    if not graph.losses:
        raise ModgraphError([NothingToLearn(reason="the spec declares no loss")])
    if not _trained(model):
        raise ModgraphError([NothingToLearn(reason="the spec has no weights that are not frozen")])
    metrics = Metrics(graph)
    optimizer = resolve(train.optimizer.torch)(list(_trained(model).values()), **train.optimizer.arguments())
    objective, stepper = processes.setup(Objective(model, [*metrics.wanted, *learner.wanted]), optimizer)
    state = TrainState(graph, model, optimizer, learner, metrics, objective, stepper)
    if checkpoint is not None:
        _take_up(state, checkpoint, same_data)
    return state


def _trained(model: Model) -> dict[str, nn.Parameter]:
    return {name: each for name, each in model.named_parameters() if each.requires_grad}


def _take_up(state: TrainState, checkpoint: Checkpoint, same_data: bool) -> None:
    """Put what a checkpoint holds into a fresh state. Raises `ModgraphError`."""
    same_graph = checkpoint.graph is None or checkpoint.graph == state.graph
    if same_graph:
        load_weights(state.model, checkpoint)
    else:
        _carry_over(state.model, checkpoint.weights)
    with refusing_damage(checkpoint):
        restore_optimizer(state.optimizer, list(state.named), checkpoint.optimizer)
        if same_data:
            state.learner.restore(checkpoint.state, checkpoint.facts.get("algorithm", {}), complete=same_graph)


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
    expected, found = _shapes(model.state_dict()), _shapes(checkpoint.weights)
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        reason = f"it is of another model: {listed(wrong)} differ"
        raise ModgraphError([BadCheckpoint(path=checkpoint.path, reason=reason)])
    model.load_state_dict(checkpoint.weights)


def _carry_over(model: Model, weights: Mapping[str, Tensor]) -> None:
    """Give a model the weights of another graph, by name. Raises `ModgraphError` where they have other shapes."""
    own = model.state_dict()
    shared = {name: tensor for name, tensor in weights.items() if name in own}
    unlike = [name for name, tensor in shared.items() if tensor.shape != own[name].shape]
    if unlike:
        raise ModgraphError([DoesNotCarryOver(weights=listed(unlike))])
    model.load_state_dict(shared, strict=False)


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}
