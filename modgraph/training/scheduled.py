"""States that a recipe moves along a schedule, such as a temperature: numbers, each a function of the step alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch

from modgraph.backends.torch import Model
from modgraph.diagnostics import Diagnostic, did_you_mean
from modgraph.ir import Graph, OpNode, below
from modgraph.ir.analysis.learnt import ruled_states
from modgraph.ops.array import State
from modgraph.recipes.optimizers import Schedule
from modgraph.training.errors import NoSuchState, StateIsNoNumber, StateWithRule

DECLARE = "the spec has no state; declare one: state temperature: float = constant(100)"


@dataclass(frozen=True)
class ScheduledState:
    """A state, the weight that it is, where it starts, and how it moves."""

    name: str
    weight: str
    start: float
    schedule: Schedule

    @torch.no_grad()
    def move(self, model: Model, step: int, steps: int, steps_per_epoch: int) -> None:
        """Give it its value at a step, from 0, of so many in all."""
        model.lookup(self.weight).fill_(self.start * self.schedule.share(step, steps, steps_per_epoch))


def scheduled_states(fresh: Model, graph: Graph, schedules: Mapping[str, Schedule]) -> list[ScheduledState]:
    """The states that a recipe moves, which start as in a fresh model of their graph; of several patterns that name
    one, the last counts."""
    states = _states(graph)
    chosen = {name: each for pattern, each in schedules.items() for name in states if fnmatchcase(name, pattern)}
    weights = {name: below(name, states[name].op.all_weights()[0].name) for name in chosen}
    return [ScheduledState(name, at, float(fresh.lookup(at)), chosen[name]) for name, at in weights.items()]


def unfit_states(graph: Graph, schedules: Mapping[str, Schedule]) -> Iterator[tuple[str, Diagnostic]]:
    """Patterns that name no state, or one that has a rule of its own or is no number."""
    states, ruled = _states(graph), {state.owner for _, state in ruled_states(graph)}
    for pattern in schedules:
        named = [name for name in states if fnmatchcase(name, pattern)]
        if not named:
            suggestion = did_you_mean(pattern, states, "its states are called: {known}") if states else DECLARE
            yield pattern, NoSuchState(pattern=pattern, suggestion=suggestion)
        for name in named:
            if name in ruled:
                yield pattern, StateWithRule(pattern=pattern, state=name)
            elif states[name].types[0].shape:
                yield pattern, StateIsNoNumber(pattern=pattern, state=name, type=str(states[name].types[0]))


def _states(graph: Graph) -> dict[str, OpNode]:
    """The states of a graph by name, each module's of a pool too."""
    found = {node.owner: node for node in graph.of_kind(OpNode) if isinstance(node.op, State)}
    for pool in graph.pools().values():
        for at in range(pool.size):
            inside = _states(pool.region(at).graph)
            found |= {f"{pool.name}.{at}.{name}": node for name, node in inside.items()}
    return found
