"""Gradient descent on the declared losses, with state that can be left and taken up again.

Nothing random is carried along: the order of an epoch is a function of (seed, epoch), a step's noise of (seed, step),
a weight's start of (seed, name). So a training that was interrupted and resumed equals one that was not, bit for bit.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.torch import Model, build, generator_for
from modgraph.backends.torch.construct import resolve
from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.metrics.evaluation import Batch, evaluate, metrics_of, results_of
from modgraph.metrics.means import Means
from modgraph.metrics.metrics import Metrics
from modgraph.nn import choosing
from modgraph.store.checkpoint import (
    Checkpoint,
    newest_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    tidy,
    write_checkpoint,
)
from modgraph.store.errors import BadCheckpoint
from modgraph.store.run_directory import RunDirectory
from modgraph.training.algorithms.algorithm import Given
from modgraph.training.augment import DRAWS, augmented
from modgraph.training.divergence import check_gradients, check_loss, first_not_finite
from modgraph.training.errors import Diverged, NothingToLearn
from modgraph.training.groups import Order
from modgraph.training.logs import Log, progress
from modgraph.training.processes import Processes
from modgraph.training.progress import Progress
from modgraph.training.recipe import Train


class _Objective(nn.Module):
    """What a step differentiates: a batch's losses; beside them, what its metrics want."""

    def __init__(self, model: Model, wanted: list[Any]) -> None:
        super().__init__()
        self.model = model
        self.wanted = wanted

    def forward(self, batch: Batch) -> tuple[list[Tensor], dict[str, Tensor]]:
        return results_of(self.model, batch, self.wanted)


class Engine:
    """One training: a model, its optimizer, and how far it has come."""

    def __init__(
        self, graph: Graph, train: Train, splits: dict[str, Arrays], directory: RunDirectory, processes: Processes
    ) -> None:
        self.train = train
        self.data = splits[TRAIN]
        self.validation = splits.get(VALIDATION)
        self.directory = directory
        self.processes = processes
        given = Given(graph, self.data, train.seed, train.batch, processes.size)
        self.learner = train.algorithm.learner(given)
        self.model = build(self.learner.graph, seed=train.seed)
        self.metrics = Metrics(graph)
        self.named = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        if not graph.losses:
            raise ModgraphError([NothingToLearn(reason="the spec declares no loss")])
        if not self.named:
            raise ModgraphError([NothingToLearn(reason="the spec has no weights that are not frozen")])
        self.optimizer: Any = resolve(train.optimizer.torch)(list(self.named.values()), **train.optimizer.arguments())
        objective = _Objective(self.model, [*self.metrics.wanted, *self.learner.wanted])
        self.objective, self.stepper = processes.setup(objective, self.optimizer)
        self.order = Order(self.data, train)
        self.steps_per_epoch = self.order.steps
        self.progress = Progress()
        self.means = Means()

    # ------------------------------------------------------------ leaving and taking up

    def save(self) -> None:
        """Write a checkpoint of this very moment. Raises `ModgraphError`, also for a state that is no finite number."""
        weights = dict(self.model.state_dict())
        state = optimizer_tensors(self.optimizer, list(self.named))
        wrong = first_not_finite(weights) or first_not_finite(state)
        parts = self.processes.gather((self.means, wrong))
        for wrong in filter(None, (found for _, found in parts)):  # all processes stop, or none
            raise ModgraphError([Diverged(what=f"{wrong} is not finite", step=self.progress.step)])
        if self.processes.leads:
            means = Means.joined(part for part, _ in parts)
            facts = {**self.progress.facts(), "means": means.facts(), "algorithm": self.learner.facts()}
            kept = self.learner.tensors()
            checkpoint = Checkpoint(self.progress.epoch, self.progress.step, weights, state, facts, kept)
            write_checkpoint(self.directory.checkpoints, checkpoint, self.train.keep, self.progress.best_step)

    def restore(self) -> None:
        """Take up the newest checkpoint, if there is one. Raises `ModgraphError`."""
        checkpoint = newest_checkpoint(self.directory.checkpoints)
        if checkpoint is None:
            return
        load_weights(self.model, checkpoint, str(self.directory.path))
        try:
            restore_optimizer(self.optimizer, list(self.named), checkpoint.optimizer)
            self.progress = Progress.read(checkpoint)
            means = Means.read(checkpoint.facts.get("means", {}))
            self.learner.restore(checkpoint.state, checkpoint.facts.get("algorithm", {}))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"its record is damaged: {error}"
            raise ModgraphError([BadCheckpoint(path=str(self.directory.checkpoints), reason=reason)]) from error
        self.means = means if self.processes.leads else Means()
        if self.processes.leads:  # what was cut off may have been this
            tidy(self.directory.checkpoints, self.train.keep, self.progress.best_step)

    def say(self, text: str) -> None:
        """A line for the user, from one process."""
        if self.processes.leads:
            print(text, file=sys.stderr)

    # ------------------------------------------------------------ training

    def run(self) -> None:
        """Train to the end, a checkpoint after every epoch. Raises `ModgraphError` if the loss diverges."""
        if self.learner.describe():
            self.say(self.learner.describe())
        log = Log(self.directory, since=self.progress.step) if self.processes.leads else None
        try:
            while self.progress.epoch < self.train.epochs and not self.progress.enough:
                self._epoch()
                self._judge(log)
                self.means = Means()
                self.save()
        finally:
            if log is not None:
                log.close()

    def _epoch(self) -> None:
        """The steps of this epoch that are left."""
        done = self.progress.step - self.progress.epoch * self.steps_per_epoch
        order = self.order.draw(self.train.seed, self.progress.epoch, since=done)
        title = f"epoch {self.progress.epoch + 1}/{self.train.epochs}"
        every = self.train.checkpoint_every
        for places in progress(order, self.steps_per_epoch - done, title, quiet=not self.processes.leads):
            self._step(places)
            ended = self.progress.step % self.steps_per_epoch == 0
            if every is not None and self.progress.step % every == 0 and not ended:
                self.save()

    def _judge(self, log: Log | None) -> None:
        """Close an epoch: log its metrics, and see whether it was the best, and whether it is enough."""
        values = {TRAIN: self.metrics.values(Means.joined(self.processes.gather(self.means)))}
        if self.validation is not None:
            values[VALIDATION] = self.measured(self.model, self.validation)
        self.progress = self.progress.after_epoch(self.train, values)
        if log is not None:
            for split, found in values.items():
                log.write(split, self.progress.epoch, self.progress.step, found)

    def measured(self, model: Model, arrays: Arrays) -> dict[str, float]:
        """The metrics of a model on a split, each process measuring a part."""
        part = evaluate(model, arrays, self.processes.rank, self.processes.size, self.train.by)
        metrics = metrics_of(model.graph, arrays, self.train.by)
        return metrics.values(Means.joined(self.processes.gather(part)))

    def _step(self, places: Tensor) -> None:
        step = self.progress.step
        self.learner.prepare(self.model, step)
        self.model.train()
        torch.manual_seed(generator_for(self.train.seed, "noise", step).initial_seed())
        share = self.train.schedule.share(step, self.steps_per_epoch * self.train.epochs, self.steps_per_epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = self.train.optimizer.arguments()["lr"] * share
        self.optimizer.zero_grad(set_to_none=True)
        with self.processes.shard(places, self.train.seed, step) as own, choosing(self._choices(own)):
            rows = self.data.read(own.numpy())
            batch = {name: self.processes.placed(torch.from_numpy(array)) for name, array in rows.items()}
            found, losses = self.objective(self._augmented(batch, places, step))
            measured = len(self.metrics.wanted)
            objective = self.learner.objective(losses, found[measured:], len(places))
        self._descend(objective, len(places))
        self.progress = self.progress.after_step()
        self.metrics.gather(self.means, batch, found[:measured], losses)

    def _choices(self, places: Tensor) -> dict[str, Tensor]:
        return {route: self.processes.placed(choice) for route, choice in self.learner.choices(places).items()}

    def _augmented(self, batch: Batch, places: Tensor, step: int) -> Batch:
        """This process's part of a batch, its images moved as they would be in one process."""
        if not self.train.augment:
            return batch
        noise = torch.rand(len(places), DRAWS, generator=generator_for(self.train.seed, "augment", step))
        return augmented(batch, self.train.augment, noise[slice(*self.processes.own(places))])

    def _descend(self, losses: Mapping[str, Tensor], examples: int) -> None:
        """One move of the weights. Raises `ModgraphError` if the loss or a gradient is no finite number."""
        loss = torch.stack([self._part(value, examples) for value in losses.values()]).sum()
        check_loss(self.processes.mean(loss), self.progress.step)
        self.processes.fabric.backward(loss)
        check_gradients(self.named, self.progress.step, self.train.clip)
        self.stepper.step()

    def _part(self, loss: Tensor, examples: int) -> Tensor:
        """This process's part of a loss, such that the parts' mean is the loss of the batch: a loss per example is
        summed over the part; one over the batch is the same in every process."""
        return loss.sum() * (self.processes.size / examples) if loss.dim() else loss


def load_weights(model: Model, checkpoint: Checkpoint, path: str) -> None:
    """Put a checkpoint's weights into a model. Raises `ModgraphError` naming what does not fit."""
    expected = {name: tensor.shape for name, tensor in model.state_dict().items()}
    found = {name: tensor.shape for name, tensor in checkpoint.weights.items()}
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        reason = f"it is of another model: {', '.join(wrong[:5])}{' …' if len(wrong) > 5 else ''} differ"
        raise ModgraphError([BadCheckpoint(path=path, reason=reason)])
    model.load_state_dict(checkpoint.weights)
