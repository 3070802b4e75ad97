"""Carries a training over to another graph: weights and optimizer state.

A weight of another shape takes the values at the positions that both shapes have, counted from the first in every axis.
All others keep their initial values in the new graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from modgraph.inspect.diff import Fate, Weight
from modgraph.ir import Graph
from modgraph.ir.edits import Mark
from modgraph.store.checkpoint import Checkpoint, OptimizerState
from modgraph.training.progress import Progress
from modgraph.training.stages import FACT
from modgraph.training.start.inherit import Beginning


def freeze_as_before(graph: Graph, began: Graph, now: Graph, names: Mapping[str, str]) -> Graph:
    """Freeze in a graph what a training has frozen in its own since it began.

    `names` maps the names of nodes there to those here. Modules or classes beyond the old ones there count as added.
    """
    then, own = Mark.from_graph(now), Mark.from_graph(graph)
    places = [place.partition("/") for place in then.frozen - Mark.from_graph(began).frozen]  # such as pool/0/linear
    if not places:
        return graph
    since = {names.get(node, node) + slash + inside for node, slash, inside in places}
    grown, sizes = dict(then.grown), _sizes(graph)
    old = {names.get(name, name): size - grown.get(name, 0) for name, size in _sizes(now).items()}
    added = {name: sizes[name] - old[name] for name in sizes.keys() & old.keys() if sizes[name] > old[name]}
    return Mark(own.frozen | since, tuple(sorted({**dict(own.grown), **added}.items()))).apply(graph)


def _sizes(graph: Graph) -> dict[str, int]:
    """Return the number of modules of each pool, and of classes of each label."""
    labels = {name: type_.size for name, type_ in graph.target_types.items() if type_.classes is not None}
    return {name: pool.size for name, pool in graph.pools().items()} | {k: v for k, v in labels.items() if v}


@dataclass(frozen=True)
class Carried(Beginning):
    """The number of weights carried over by fate, and the number with optimizer state."""

    weights: Mapping[str, int]
    with_state: int
    forgotten: bool = False  # the algorithm's state belongs to other decisions
    restarted: bool = False  # the training begins at its first step

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {what}" for what, count in self.weights.items() if count)
        algorithm = "; the algorithm starts afresh" if self.forgotten else ""
        how = f"{self.with_state:,} with the state of their optimizer{algorithm}"
        return f"weights of {self.source}: {counts}; " + (
            "the training starts with them at epoch 0" if self.restarted else how
        )


def carry_over(
    checkpoint: Checkpoint,
    graph: Graph,
    weights: Sequence[Weight],
    fresh: Mapping[str, Tensor],
    source: str,
    same_optimizer: bool,
) -> tuple[Checkpoint, Carried]:
    """Return a checkpoint with all weights of another graph, which starts with the `fresh` ones, and a report.

    The best epoch is forgotten. Another optimizer has another state, which begins afresh.
    """
    after = {each.before.name: each.after.name for each in weights if each.before and each.after}
    taken = {new: checkpoint.weights[old] for old, new in after.items()}
    same = {new for new, value in taken.items() if value.shape == fresh[new].shape}
    state: OptimizerState = {}
    for key, fields in checkpoint.optimizer.items() if same_optimizer else ():
        weight, bracket, part = key.partition("[")
        name = after.get(weight)
        if name is not None and (name in same or not bracket):  # the state of a weight in parts belongs to the parts
            state[name + bracket + part] = {
                field: _overlay(torch.zeros_like(fresh[name]), value)
                if name not in same and value.shape == taken[name].shape
                else value
                for field, value in fields.items()
            }
    known = {new: checkpoint.facts[FACT].get(old) for old, new in after.items() if new in same}
    stages = {name: each for name, each in known.items() if each is not None}
    progress = replace(Progress.read(checkpoint), best=None, best_step=None, monitored=None, waited=0, enough=False)
    found = replace(
        checkpoint,
        weights={name: _overlay(own, taken[name]) if name in taken else own for name, own in fresh.items()},
        optimizer=state,
        facts={**progress.facts(), FACT: stages},
        state={},
        graph=graph,
    )
    counts = {str(fate): sum(each.fate is fate for each in weights) for fate in Fate}
    return found, Carried(source, counts, with_state=len({name.partition("[")[0] for name in state}))


def _overlay(own: Tensor, taken: Tensor) -> Tensor:
    """Return a copy of a tensor with the values of another at the positions that both have."""
    common = tuple(slice(min(sizes)) for sizes in zip(own.shape, taken.shape, strict=True))
    found = own.clone()
    found[common] = taken[common]
    return found


def rename_routes(state: Mapping[str, Tensor], routes: Mapping[str, str]) -> dict[str, Tensor]:
    """Rename the routes in an algorithm's state, `assignments.ROUTE`."""
    parts = [(*name.partition("."), value) for name, value in state.items()]
    return {what + dot + routes.get(route, route): value for what, dot, route, value in parts}
