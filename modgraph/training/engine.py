"""Gradient descent on the declared losses, with state that can be left and taken up again.

Nothing random is carried along: the order of an epoch is a function of (seed, epoch), a step's noise of (seed, step),
a weight's start of (seed, name). So a training that was interrupted and resumed equals one that was not, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from modgraph.backends.torch import Model, build, generator_for
from modgraph.backends.torch.construct import resolve
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.training.checkpoint import (
    Checkpoint,
    newest_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    write_checkpoint,
)
from modgraph.training.data import TRAIN, Arrays
from modgraph.training.errors import BadCheckpoint, Diverged, NothingToLearn
from modgraph.training.logs import Log, progress
from modgraph.training.metrics import Means, accuracies
from modgraph.training.recipe import Train
from modgraph.training.run_directory import RunDirectory

Batch = dict[str, Tensor]


class Engine:
    """One training: a model, its optimizer, and how far it has come."""

    def __init__(self, graph: Graph, train: Train, data: Arrays, directory: RunDirectory) -> None:
        self.train = train
        self.data = {name: torch.from_numpy(array) for name, array in data.values.items()}
        self.examples = len(data)
        self.directory = directory
        self.model = build(graph, seed=train.seed)
        self.accuracies = accuracies(graph)
        self.named = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        if not graph.losses:
            raise ModgraphError([NothingToLearn(reason="the spec declares no loss")])
        if not self.named:
            raise ModgraphError([NothingToLearn(reason="the spec has no weights that are not frozen")])
        optimizer = resolve(train.optimizer.torch)
        self.optimizer: Any = optimizer(list(self.named.values()), **train.optimizer.arguments())
        self.steps_per_epoch = math.ceil(self.examples / train.batch)
        self.epoch = 0
        self.step = 0
        self.enough = False

    def restore(self) -> None:
        """Take up the newest checkpoint, if there is one. Raises `ModgraphError`."""
        checkpoint = newest_checkpoint(self.directory.checkpoints)
        if checkpoint is None:
            return
        load_weights(self.model, checkpoint, str(self.directory.path))
        restore_optimizer(self.optimizer, list(self.named), checkpoint.optimizer)
        self.epoch, self.step = checkpoint.epoch, checkpoint.step
        self.enough = bool(checkpoint.facts["enough"])

    def run(self) -> None:
        """Train to the end, a checkpoint after every epoch. Raises `ModgraphError` if the loss diverges."""
        log = Log(self.directory, since=self.step)
        try:
            while self.epoch < self.train.epochs and not self.enough:
                values = self._epoch()
                self.epoch += 1
                stop = self.train.early_stop
                self.enough = stop is not None and values.get(stop.metric, -math.inf) >= stop.at
                log.write(TRAIN, self.epoch, self.step, values)
                write_checkpoint(self.directory.checkpoints, self._checkpoint())
        finally:
            log.close()

    def _epoch(self) -> dict[str, float]:
        """One pass over the data; the running means of its metrics."""
        self.model.train()
        means = Means()
        title = f"epoch {self.epoch + 1}/{self.train.epochs}"
        for places in progress(self._order(), title):
            batch = {name: array[places] for name, array in self.data.items()}
            self._step(batch, means)
        return means.values()

    def _order(self) -> list[Tensor]:
        """The examples of each step of this epoch."""
        generator = generator_for(self.train.seed, "order", self.epoch)
        return list(torch.split(torch.randperm(self.examples, generator=generator), self.train.batch))

    def _step(self, batch: Batch, means: Means) -> None:
        torch.manual_seed(generator_for(self.train.seed, "noise", self.step).initial_seed())
        for group in self.optimizer.param_groups:
            group["lr"] = self.train.optimizer.arguments()["lr"] * self._share_of_rate()
        self.optimizer.zero_grad(set_to_none=True)
        results, losses = evaluate_batch(self.model, batch, [each.logits for each in self.accuracies])
        loss = torch.stack(list(losses.values())).sum()
        if not math.isfinite(loss.item()):
            raise ModgraphError([Diverged(value=loss.item(), step=self.step)])
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.step += 1
        gather(means, self.accuracies, batch, results, losses)

    def _share_of_rate(self) -> float:
        """Of the learning rate at this step: constant, or half a cosine down to zero over all steps."""
        if self.train.schedule == "constant":
            return 1.0
        done = self.step / (self.steps_per_epoch * self.train.epochs)
        return 0.5 * (1 + math.cos(math.pi * done))

    def _checkpoint(self) -> Checkpoint:
        state = optimizer_tensors(self.optimizer, list(self.named))
        facts = {"enough": self.enough}
        return Checkpoint(self.epoch, self.step, dict(self.model.state_dict()), state, facts)


def load_weights(model: Model, checkpoint: Checkpoint, path: str) -> None:
    """Put a checkpoint's weights into a model. Raises `ModgraphError` naming what does not fit."""
    expected = {name: tensor.shape for name, tensor in model.state_dict().items()}
    found = {name: tensor.shape for name, tensor in checkpoint.weights.items()}
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        reason = f"it is of another model: {', '.join(wrong[:5])}{' …' if len(wrong) > 5 else ''} differ"
        raise ModgraphError([BadCheckpoint(path=path, reason=reason)])
    model.load_state_dict(checkpoint.weights)


def evaluate_batch(model: Model, batch: Batch, wanted: list[Any]) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Some results of a batch, and its losses, each one number."""
    losses = model.graph.losses
    results = model.results(batch, (*wanted, *losses.values()))
    values = {name: value.mean() for name, value in zip(losses, results[len(wanted) :], strict=True)}
    return results[: len(wanted)], values


def gather(means: Means, found: list[Any], batch: Batch, logits: list[Tensor], losses: dict[str, Tensor]) -> None:
    """Add a batch's losses and accuracies to the means."""
    examples = len(next(iter(batch.values())))
    means.add_losses({name: value.detach() for name, value in losses.items()}, examples)
    for accuracy, each in zip(found, logits, strict=True):
        length = None if accuracy.length is None else batch.get(accuracy.length)
        means.add(accuracy.name, *accuracy.count(each.detach(), batch[accuracy.target], length))


@torch.no_grad()
def evaluate(model: Model, arrays: Arrays, batch: int = 256) -> dict[str, float]:
    """Losses and accuracies of a model over a split, in evaluation mode."""
    model.eval()
    means, found = Means(), accuracies(model.graph)
    for part in _parts(arrays, batch):
        logits, losses = evaluate_batch(model, part, [each.logits for each in found])
        gather(means, found, part, logits, losses)
    return means.values()


def _parts(arrays: Arrays, size: int) -> Iterator[Batch]:
    for start in range(0, len(arrays), size):
        yield {name: torch.from_numpy(array[start : start + size]) for name, array in arrays.values.items()}
