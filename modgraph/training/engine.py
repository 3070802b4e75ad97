"""The training engine: gradient descent on the declared losses, with state that can be saved and resumed.

No random state is carried along. The order of an epoch is a function of (seed, epoch), a step's noise of (seed, step),
a weight's start of (seed, name). So a training that was interrupted and resumed equals one that was not, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from modgraph.backends.torch import Model, build, make_generator
from modgraph.backends.torch.labelled import find_labelled
from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.data.batches import Batch, RandomOrder
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.metrics.accumulators import Accumulators
from modgraph.metrics.confusion import Confusion
from modgraph.metrics.metrics import evaluate, metrics_of
from modgraph.nn.device import Transfer, seed_draws, to_device
from modgraph.store.checkpoint import Checkpoint, read_newest_checkpoint, write_checkpoint
from modgraph.store.checkpoint_record import tidy
from modgraph.store.journal import LOGS, Journal, cut_logs, seal_logs
from modgraph.store.run_directory import RunDirectory
from modgraph.store.seconds import add_segment
from modgraph.training.algorithms.algorithm import Curriculum, Facts, Phase
from modgraph.training.callbacks import Epoch, Step, Watch
from modgraph.training.divergence import CHECK_EVERY, FiniteCheck, find_not_finite
from modgraph.training.errors import Diverged
from modgraph.training.interrupt import on_interrupt
from modgraph.training.named_parts import check_monitored, list_metrics
from modgraph.training.processes import Processes, unshard
from modgraph.training.progress import Log, Progress, StepMeter, Stopwatch
from modgraph.training.reading import BatchReader
from modgraph.training.samples import Sample, Sampler, merge_samples
from modgraph.training.sections import Train
from modgraph.training.stages import FACT
from modgraph.training.state import refusing_damage, train_state

T = TypeVar("T")


class Engine:
    """One training: its state and its progress. `graph` is the graph of the current phase."""

    def __init__(
        self,
        graph: Graph,
        train: Train,
        curriculum: Curriculum,
        directory: RunDirectory,
        processes: Processes,
        resume: bool = False,
        watch: Watch | None = None,
    ) -> None:
        self.train = train
        self.watch, self.stopped, self.interrupted = watch or Watch(), False, False
        self.parts: Mapping[str, Tensor] = {}  # of the loss of the last step
        self.curriculum = curriculum
        self.directory = directory
        self.processes = processes
        self.finite = FiniteCheck(1 if processes.device.type == "cpu" else CHECK_EVERY, processes.experts)
        self.reader = BatchReader(train, processes)
        self.origin = directory.origin() if resume else graph.hash()
        checkpoint = read_newest_checkpoint(directory.checkpoints, origin=self.origin) if resume else None
        self.accumulators, self.stopwatch = Accumulators(), Stopwatch()
        if checkpoint is None:
            graph, at = curriculum.begin(graph)
            phase, self.progress = curriculum.phase(at, graph), Progress(at=at)
        else:
            graph = checkpoint.graph
            with refusing_damage(checkpoint):
                self.progress = Progress.read(checkpoint)
                phase = curriculum.phase(self.progress.at, graph)
                accumulators = Accumulators.read(checkpoint.facts["accumulators"])
            if processes.is_rank_zero:
                self.accumulators = accumulators
                tidy(directory.checkpoints, train.keep, self.progress.best_step)  # deletion may have been interrupted
        self._enter(phase)
        self.state = train_state(graph, train, phase, processes, checkpoint)
        if resume and processes.is_rank_zero:
            cut_logs(directory, {} if checkpoint is None else checkpoint.facts[LOGS])

    def _enter(self, phase: Phase) -> None:
        train, self.phase = self.train, phase
        self.order = RandomOrder(phase.data, train.batch, train.by, train.steps_per_epoch, bucket=train.bucket)
        self.sampler = Sampler(phase.epochs * self.order.steps)

    # ------------------------------------------------------------ what a course may know

    @property
    def graph(self) -> Graph:
        return self.state.graph

    def model_now(self) -> Model:
        """Return a model of the current graph and weights, in evaluation mode."""
        model, weights = build(self.graph, self.train.seed), self.state.weights
        precision = next(each.dtype for each in weights.values() if each.is_floating_point())
        model.to(self.processes.device, precision).load_state_dict(weights)
        return model.eval()

    def measure(self, model: Model, arrays: Arrays, confusion: Confusion | None = None) -> dict[str, float]:
        """Return the metrics of a model on a split; each process measures a part. Those that divide its pools measure
        each batch together. `confusion` receives the confusion matrices of all."""
        own = None if confusion is None else Confusion()
        watch = None if own is None else own.add
        by, asked, processes = self.train.by, self.train.metrics, self.processes
        with unshard(self.state.objective):
            if model.group is None or processes.experts is None:
                part = evaluate(model, arrays, processes.rank, processes.size, by, asked, watch=watch)
            else:
                replicas = processes.experts.replicas
                part = evaluate(model, arrays, replicas.place, replicas.size, by, asked, processes.share, watch)
        if confusion is not None:
            confusion.matrices = Confusion.merge(filter(None, processes.gather(own))).matrices
        return metrics_of(model.graph, arrays, by, asked).values(Accumulators.merge(processes.gather(part)))

    def on_rank_zero(self, compute: Callable[[], T]) -> T:
        """Return to all processes what rank zero computes. Raises its `ModgraphError` in all of them."""
        return self.processes.on_rank_zero(compute)

    def say(self, text: str) -> None:
        """Log a line on rank zero."""
        self.processes.say(text)

    # ------------------------------------------------------------ leaving and taking up

    def checkpoint(self, keep: bool = True) -> Checkpoint:
        """Return the checkpoint of this step, which all processes gather together. It shares tensors with the training
        and has the metrics of one process, and only the modules of one that does not `keep` the others."""
        state = self.state
        kept = {"accumulators": self.accumulators.facts(), "algorithm": state.learner.facts(), FACT: state.stages}
        return Checkpoint(
            epoch=self.progress.epoch,
            step=self.progress.step,
            weights=state.gather_weights(keep),
            optimizer=state.gather_optimizer_state(keep),
            facts={**self.progress.facts(), **kept},
            state=state.learner.tensors(),
            graph=state.graph,
            origin=self.origin,
        )

    def save(self) -> None:
        """Write a checkpoint of this step. Raises `ModgraphError`, also for a state that is not finite."""
        self.finite.check()
        now = self.checkpoint(keep=self.processes.is_rank_zero)
        parts = self.processes.gather((self.accumulators, find_not_finite(now), self.sampler.fetch()))
        for wrong in filter(None, (found for _, found, _ in parts)):  # all processes stop, or none
            raise ModgraphError([Diverged(what=f"{wrong} is not finite", step=self.progress.step)])
        if self.processes.is_rank_zero:
            accumulators = Accumulators.merge(part for part, _, _ in parts)
            if samples := merge_samples(each for _, _, each in parts):
                Journal(self.directory.steps).add(*samples)
            now = replace(
                now, facts={**now.facts, "accumulators": accumulators.facts(), LOGS: seal_logs(self.directory)}
            )
            if (segment := self.stopwatch.take(self.progress.step)) is not None:
                add_segment(self.directory, segment)  # before the checkpoint: its steps are never without seconds
            write_checkpoint(self.directory.checkpoints, now, self.train.keep, self.progress.best_step)

    def begin_from(self, checkpoint: Checkpoint, kept: Mapping[str, Tensor], facts: Mapping[str, Any]) -> bool:
        """Continue where another training was, whose checkpoint has all weights of this graph.

        `kept` and `facts` are the state of its algorithm. Returns whether they fit these examples and decisions; if
        not, the algorithm begins afresh.
        """
        with refusing_damage(checkpoint):
            self.progress = Progress.read(checkpoint)
            phase = replace(self.curriculum.phase(self.progress.at, self.graph), goes_on=True)
        self._enter(phase)
        self.state = train_state(self.graph, self.train, phase, self.processes, checkpoint, same_phase=False)
        try:
            self.state.learner.restore(kept, facts, complete=False)
        except (KeyError, TypeError, ValueError):
            return False
        return True

    def _begin(self, graph: Graph, at: Facts) -> None:
        """Begin the next phase with its graph and data, and write its first checkpoint."""
        before = self.checkpoint()
        self._enter(self.curriculum.phase(at, graph))
        check_monitored(graph, self.train, self.phase.splits)
        self.state = train_state(graph, self.train, self.phase, self.processes, before, same_phase=False)
        done = self.progress
        self.progress = Progress(done.epoch, done.step, at, done.epoch, done.step)
        self.save()

    # ------------------------------------------------------------ training

    def run(self) -> None:
        """Train to the end, with a checkpoint after every epoch. Raises `ModgraphError` if the loss diverges, and
        `KeyboardInterrupt` after a Ctrl-C: of a single process when the step is done and kept."""
        for line in filter(None, (self.curriculum.describe(), self.state.learner.describe())):
            self.say(line)
        is_first, is_only = self.processes.is_rank_zero, self.processes.size == 1
        with (
            closing(Log(self.directory, self.progress.step)) if is_first else nullcontext() as writer,
            on_interrupt(self._stop) if is_only else nullcontext(),
        ):
            self._train(writer)
            while not self.stopped and (following := self.curriculum.next_phase(self)) is not None:
                self._begin(*following)
                self._train(writer)
        if self.interrupted:
            raise KeyboardInterrupt

    def _stop(self) -> None:
        self.stopped = self.interrupted = True

    def _train(self, writer: Log | None) -> None:
        """Run the remaining epochs of this phase."""
        total, done = self.phase.epochs * self.order.steps, self.progress.step_of_phase
        with closing(StepMeter(total, done, self.phase.epochs, quiet=not self.processes.is_rank_zero)) as meter:
            while self.progress.epoch_of_phase < self.phase.epochs and not (self.progress.enough or self.stopped):
                self.stopwatch.start(self.progress.step)
                self._epoch(meter)
                self.finite.check()  # waits for the device
                self.stopwatch.stop()
                if self.progress.step_of_phase % self.order.steps == 0:
                    self._close_epoch(writer)
                    self.accumulators = Accumulators()
                self.save()

    def _epoch(self, meter: StepMeter) -> None:
        """Run the remaining steps of this epoch."""
        steps, every = self.order.steps, self.train.checkpoint_every
        done = self.progress.step_of_phase - self.progress.epoch_of_phase * steps
        order = self.order.draw(self.train.seed, self.progress.epoch, since=done)
        epoch = self.progress.epoch_of_phase + 1
        with self.reader.reading(self.phase.data, order, self.progress.step) as examples:
            for indices, read in examples:
                self._step(indices, read)
                meter.advance(epoch, self._loss)
                ended = self.progress.step_of_phase % steps == 0
                if self.stopped:
                    break
                if every is not None and self.progress.step % every == 0 and not ended:
                    self.finite.check()
                    self.stopwatch.stop()
                    self.save()
                    self.stopwatch.start(self.progress.step)

    def _close_epoch(self, writer: Log | None) -> None:
        """Close an epoch: log its metrics, update the best value and early stopping, and call callbacks."""
        self.finite.check()
        gathered = Accumulators.merge(self.processes.gather(self.accumulators))
        state = self.state
        settings = {f"state.{each.name}": float(state.model.lookup(each.weight)) for each in state.scheduled}
        values = {TRAIN: {**state.metrics.values(gathered), **self.processes.merge(settings)}}
        if VALIDATION in self.phase.splits:
            values[VALIDATION] = self.measure(state.model, self.phase.splits[VALIDATION])
        improving = list_metrics(self.graph, self.train, self.phase.splits)
        self.progress = self.progress.close_epoch(self.train, values, improving)
        if writer is not None:
            ruled = state.read_ruled_states()
            for split, found in values.items():
                found = {**found, **ruled} if split == TRAIN else found
                writer.write(split, self.progress.epoch, self.progress.step, found, self.phase.tags)
        if self.watch.hears("on_epoch"):
            metrics = {f"{split}.{name}": value for split, found in values.items() for name, value in found.items()}
            epoch = Epoch(self.progress.epoch, self.progress.step, metrics)
            self.stopped |= self.on_rank_zero(lambda: self.watch.call("on_epoch", epoch))

    def _step(self, indices: Tensor, read: Transfer) -> None:
        state, step, seed, steps = self.state, self.progress.step, self.train.seed, self.order.steps
        states = state.model.moved_states  # states that a rule moves
        place = self.progress.step_of_phase, steps * self.phase.epochs, steps  # the arguments of schedules
        for each in state.scheduled:
            each.move(state.model, *place)
        state.learner.prepare(state.model, step)
        state.model.train()
        seed_draws(make_generator(seed, "noise", step).initial_seed())
        sampled = self.sampler.takes(place[0])
        full = self.train.optimizer.arguments()["lr"] if self.phase.lr is None else self.phase.lr
        for group in state.optimizer.param_groups:
            group["lr"] = full * self.train.schedule.share(*place)
        state.optimizer.zero_grad(set_to_none=True)
        with self.processes.shard(indices, seed, step) as own:
            batch, moved = self.reader.receive(read)
            forced = state.learner.force_choices(own, batch)
            forced = {name: to_device(each, self.processes.device) for name, each in forced.items()}
            with_loads = [True] if sampled and not self.train.compile else []  # each kind of call is compiled
            found, losses, loads = state.objective({**moved, **forced}, *with_loads)
            measure, known = len(state.metrics.wanted), len(found) - len(states.results)
            objective = state.learner.objective(losses, found[measure:known], len(indices))
        parts, loss, norm = self._descend(objective, batch, len(indices), sampled)
        if sampled:
            self.sampler.pending.append(Sample(step + 1, self.phase.tags, loss, norm, loads))
        self.parts = {name: part.detach() for name, part in parts.items()}
        states.move(state.model, dict(zip(states.results, found[known:], strict=True)))
        self.progress = replace(self.progress, step=step + 1)
        state.metrics.gather(self.accumulators, batch, found[:measure], losses)
        if self.watch.hears("on_step"):
            self._call_on_step(parts)

    def _loss(self) -> float:
        """Return the loss of the last step; with several processes that of this one's part of the batch."""
        return sum(float(part) for part in self.parts.values())

    def _call_on_step(self, parts: Mapping[str, Tensor]) -> None:
        losses = {name: float(self.processes.mean(part)) for name, part in parts.items()}
        step = Step(self.progress.epoch + 1, self.progress.step, losses, self.state.optimizer.param_groups[0]["lr"])
        self.stopped |= self.on_rank_zero(lambda: self.watch.call("on_step", step))

    def _descend(
        self, losses: Mapping[str, Tensor], batch: Batch, examples: int, needs_norm: bool
    ) -> tuple[dict[str, Tensor], Tensor, Tensor | None]:
        """Update the weights and return this process's part of each loss, the loss of the batch, and the norm of the
        gradient if it is known. Raises `ModgraphError` if the loss or a gradient is not finite."""
        counts = self.processes.totals(find_labelled(self.state.metrics.labels, batch))
        parts = {name: self.processes.part(value, counts.get(name, examples)) for name, value in losses.items()}
        loss = torch.stack([*parts.values()]).sum()
        mean = self.processes.mean(loss)
        self.finite.loss(mean, self.progress.step)
        loss.backward()  # type: ignore[no-untyped-call]
        self.processes.average(self.state.named, self.state.of_modules)
        norm = self.finite.gradients(
            self.state.named, self.progress.step, self.train.clip, self.state.of_modules, needs_norm
        )
        self.state.optimizer.step()
        return parts, mean, norm
