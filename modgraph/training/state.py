"""The state of a training, which one function builds from a graph and, if there is one, a checkpoint.

So a training continues with another graph as with the same. A weight of the checkpoint is taken over with its optimizer
state; a new one starts as a function of the seed and its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.torch import Model, build
from modgraph.backends.torch.construct import resolve
from modgraph.backends.torch.large import LargePool
from modgraph.backends.torch.stored import list_stored
from modgraph.data.batches import Batch
from modgraph.data.declaration import refuse_labels_beyond
from modgraph.diagnostics import ModgraphError, list_names
from modgraph.ir import Graph, find_learnt_weights
from modgraph.ir.analysis.division import find_holders
from modgraph.metrics.metrics import Metrics, results_of
from modgraph.passes.gradients import drop_sparse_gradients
from modgraph.recipes.optimizers import Optimizer
from modgraph.store.checkpoint import Checkpoint, OptimizerState, optimizer_state, restore_optimizer
from modgraph.store.errors import BadCheckpoint
from modgraph.training import stages
from modgraph.training.algorithms.algorithm import Learner, Phase, Setup
from modgraph.training.compiled import compile_blocks, compile_step
from modgraph.training.errors import CannotDivide, DoesNotCarryOver, NothingToLearn
from modgraph.training.experts import select
from modgraph.training.named_parts import ScheduledState, find_scheduled_states
from modgraph.training.processes import Processes, divide_like, whole
from modgraph.training.samples import find_loads, sum_load
from modgraph.training.sections import BLOCKS, Train
from modgraph.training.stages import Staged
from modgraph.training.storage import STEPS, choose_storage, explain_apart, join_state, split_state

WRAPPED = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")  # torch excludes them from compilation


class Objective(nn.Module):
    """The module of a step: returns the results for metrics and algorithm, the losses of a batch, and where it is
    sampled the sums of choices [M] by route."""

    def __init__(self, model: Model, wanted: list[Any]) -> None:
        super().__init__()
        self.model = model
        self.wanted = wanted
        self.losses = model.graph.losses
        self.loads = find_loads(model.graph)
        model.prepare((*wanted, *self.losses.values()))

    def forward(self, batch: Batch, sampled: bool = False) -> tuple[list[Tensor], dict[str, Tensor], dict[str, Tensor]]:
        if not sampled:
            return *results_of(self.model, batch, self.wanted, self.losses), {}
        found, losses = results_of(self.model, batch, [*self.wanted, *self.loads.values()], self.losses)
        known = len(self.wanted)
        return found[:known], losses, dict(zip(self.loads, map(sum_load, found[known:]), strict=True))


@dataclass(frozen=True)
class TrainState:
    """The graph, its model, the optimizer, the learner and the metrics. `objective` is the model as the processes of
    the training run it. Of divided pools, the model has the modules that this process holds."""

    graph: Graph
    model: Model
    optimizer: torch.optim.Optimizer
    learner: Learner
    metrics: Metrics
    objective: Any
    staged: Staged
    scheduled: list[ScheduledState]
    processes: Processes
    of_modules: Set[str]  # the names of the weights of modules that not every process holds

    @cached_property
    def named(self) -> dict[str, nn.Parameter]:
        """The trained weights by name, in the order of the optimizer; one that has grown in its parts."""
        own, common = select(stages.find_trained_weights(self.model, self.staged), self.of_modules)
        return common | own

    @property
    def weights(self) -> dict[str, Tensor]:
        """All weights by name, each whole; all processes gather them together."""
        return self.gather_weights()

    def gather_weights(self, keep: bool = True) -> dict[str, Tensor]:
        """Gather the weights. A process that does not `keep` them gets none of modules that it does not hold."""
        return self._with_others(stages.whole_weights(self.model, self.staged), keep)

    def read_ruled_states(self) -> dict[str, float]:
        """The numbers of the spec that a rule moves, by their name in a log."""
        states = {name.rpartition(".")[0]: self.model.lookup(name) for name in self.model.moved_states.results}
        return {f"state.{name}": float(value) for name, value in states.items() if value.dim() == 0}

    def gather_optimizer_state(self, keep: bool = True) -> OptimizerState:
        """Gather the optimizer's state by weight and field, each whole, as `gather_weights` does."""
        state, shapes = optimizer_state(self.optimizer, list(self.named)), stages.shapes_of(self.model)
        kept = {name: {key: whole(x, shapes.get(name)) for key, x in each.items()} for name, each in state.items()}
        kept = split_state(kept, self.model)
        own = {f"{name}/{key}": x for name, each in kept.items() for key, x in each.items()}
        found: OptimizerState = {}
        for path, each in self._with_others(own, keep).items():
            name, _, key = path.rpartition("/")
            found.setdefault(name, {})[key] = each
        return found

    @property
    def stages(self) -> dict[str, list[int]]:
        """The numbers of positions of the stages of each weight in parts; all processes gather them together."""
        return self.processes.merge({name: each.stages for name, each in self.staged.items()})

    def _with_others(self, own: dict[str, Tensor], keep: bool) -> dict[str, Tensor]:
        """Add the tensors of the modules that other processes hold."""
        experts = self.processes.experts
        if experts is None:
            return own
        names = {name for name in own if name.partition("/")[0].partition("[")[0] in self.of_modules}
        here, common = select(own, names)
        return common | experts.gather(here, self.processes.device, keep)


def train_state(
    graph: Graph,
    train: Train,
    phase: Phase,
    processes: Processes,
    checkpoint: Checkpoint | None = None,
    same_phase: bool = True,
) -> TrainState:
    """Build the state of a phase, from a checkpoint as far as it has it. The state of an algorithm belongs to the
    examples of a phase: in another it begins afresh. Raises `ModgraphError`."""
    refuse_labels_beyond(phase.data, graph)
    setup = Setup(phase.learnt_from(graph), phase.splits, train.seed, train.batch, phase.epochs, processes.size)
    learner = train.algorithm.learner(setup)
    dense = not train.optimizer.takes_sparse or processes.size > 1 or train.clip is not None or bool(train.compile)
    computed = drop_sparse_gradients(learner.graph) if dense else learner.graph
    learnt = find_learnt_weights(learner.graph, (*learner.graph.losses.values(), *learner.wanted))
    kept = checkpoint.optimizer if checkpoint is not None and (same_phase or phase.goes_on) else {}
    store, say = choose_storage(train.pools, processes.device, graph, learnt, kept, processes.pool_group), processes.say
    for line in explain_apart(store, computed):
        say(line)
    model = build(computed, seed=train.seed, asked=learner.wanted, store=store, group=processes.pool_group)
    for pool in model.modules():
        if isinstance(pool, LargePool):
            pool.sparse = not dense
    scheduled = find_scheduled_states(model, graph, train.states or {})
    with nullcontext() if checkpoint is None else refusing_damage(checkpoint):
        cut = stages.cut_weights(model, graph, checkpoint)
    learnt |= {stored.name for stored in list_stored(model) if stored.rows[0] in learnt}
    for name, parameter in stages.find_trained_weights(model, cut).items():  # no other parameter gets a gradient
        parameter.requires_grad_(name.partition("[")[0] in learnt)
    if not graph.losses:
        raise ModgraphError([NothingToLearn(reason="the spec declares no loss")])
    if phase.epochs and not processes.any(bool(stages.find_trained_weights(model, cut))):
        raise ModgraphError([NothingToLearn(reason="its losses depend on frozen weights only")])
    metrics = Metrics(setup.graph)
    if cut and processes.divides:
        raise ModgraphError([CannotDivide(weights=list_names(sorted(cut)))])
    wanted = [*metrics.wanted, *learner.wanted, *model.moved_states.results.values()]
    objective = Objective(model, wanted)
    if train.compile == BLOCKS:
        compile_blocks(objective, model, say)
    elif train.compile:
        compile_step(objective, say)
    of_modules = {*find_holders(graph, 1 if model.group is None else model.group.size)}

    def make_optimizer() -> torch.optim.Optimizer:
        own, common = select(stages.find_trained_weights(model, cut), of_modules)
        return optimizer_of(train.optimizer, [*common.values()], *([[*own.values()]] if own else []))

    ready, optimizer = processes.setup(objective, make_optimizer)
    state = TrainState(graph, model, optimizer, learner, metrics, ready, cut, scheduled, processes, of_modules)
    if checkpoint is not None:
        _take_up(state, checkpoint, same_phase, goes_on=same_phase or phase.goes_on)
    return state


def optimizer_of(settings: Optimizer, *groups: list[nn.Parameter]) -> torch.optim.Optimizer:
    """Return torch's optimizer of groups of weights, without the methods that it wraps for its compiler: importing that
    takes as long as importing torch. FSDP divides all weights of a group, or none."""
    kind: Any = resolve(settings.torch)
    if kind.__module__.startswith("torch.optim."):
        methods = {name: inspect.unwrap(getattr(kind, name)) for name in WRAPPED}
        kind = type(kind.__name__, (kind,), {**methods, "step": torch.no_grad()(inspect.unwrap(kind.step))})
    found: torch.optim.Optimizer = kind([{"params": each} for each in groups], **settings.arguments())
    return found


def _take_up(state: TrainState, checkpoint: Checkpoint, same_phase: bool, goes_on: bool) -> None:
    """Restore a checkpoint into a fresh state. Raises `ModgraphError`."""
    same_graph, own = checkpoint.graph == state.graph, stages.whole_weights(state.model, state.staged)
    if same_graph:
        refuse_other_weights(own, checkpoint, state.of_modules - own.keys())
    taken = {name: each for name, each in checkpoint.weights.items() if name in own}
    grown = {*state.staged, *stages.states_along_modules(state.graph)}
    unlike = sorted(name for name in taken.keys() - grown if taken[name].shape != own[name].shape)
    if unlike:
        raise ModgraphError([DoesNotCarryOver(weights=list_names(unlike))])
    stages.take_weights(state.model, state.staged, taken)
    with refusing_damage(checkpoint):
        if goes_on:
            first = {name: stages.part_name(name, *each.places[0]) for name, each in state.staged.items()}
            kept = {first.get(name, name): fields for name, fields in checkpoint.optimizer.items()}  # cut since
            kept = join_state(kept, state.model)
            own_parts = {
                name: {key: x if key == STEPS else divide_like(x, state.named[name]) for key, x in fields.items()}
                for name, fields in kept.items()
                if name in state.named
            }
            restore_optimizer(state.optimizer, list(state.named), own_parts)
        if same_phase:
            state.learner.restore(checkpoint.state, checkpoint.facts["algorithm"], complete=same_graph)


@contextmanager
def refusing_damage(checkpoint: Checkpoint) -> Iterator[None]:
    """Raises `ModgraphError` where a checkpoint has invalid content."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"its record is damaged: {error}"
        raise ModgraphError([BadCheckpoint(path=checkpoint.path, reason=reason)]) from error


def refuse_other_weights(own: Mapping[str, Tensor], checkpoint: Checkpoint, others: Set[str] = frozenset()) -> None:
    """Raises `ModgraphError` unless a checkpoint's weights have the same names and shapes, but for those of `others`,
    which this process does not hold."""
    expected, found = ({name: each.shape for name, each in tensors.items()} for tensors in (own, checkpoint.weights))
    wrong = sorted(name for name in (expected.keys() | found.keys()) - others if expected.get(name) != found.get(name))
    if wrong:
        reason = f"it belongs to another model: {list_names(wrong)} differ"
        raise ModgraphError([BadCheckpoint(path=checkpoint.path, reason=reason)])
