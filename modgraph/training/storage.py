"""Which pools of a training are stored, and the optimizer's state by the names of their modules' weights.

torch's optimizers keep one number of steps for each parameter. So modules that have taken different numbers of steps,
or of which only some learn, are not stored together.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

import torch
from torch import Tensor, nn

from modgraph.backends.torch.stored import list_stored
from modgraph.frozen import replace_fields
from modgraph.ir import Graph, weights_of
from modgraph.ir.analysis.division import list_divided_pools
from modgraph.nn import Group
from modgraph.passes import STORED, Store
from modgraph.store.checkpoint import OptimizerState

DIVIDED = "several processes divide its modules"
STEPS = "step"  # a field that torch's optimizers keep as one number for each weight


def choose_storage(
    asked: str,
    device: torch.device,
    graph: Graph,
    learnt: Set[str],
    kept: OptimizerState,
    group: Group | None = None,
) -> Store:
    """Choose which pools to store, for the weights that learn and the state of the optimizer that goes on. Those that
    the processes of a group divide are not."""
    divided = {pool.name for pool in list_divided_pools(graph, 1 if group is None else group.size)}
    apart = (
        (name, DIVIDED if name in divided else _find_difference(name, graph, learnt, kept)) for name in graph.pools()
    )
    return Store(asked, accelerated=device.type == "cuda", apart=tuple((name, why) for name, why in apart if why))


def explain_apart(store: Store, graph: Graph) -> list[str]:
    """Explain which pools this training does not store, though they are asked for, or though it would pay."""
    plain = replace_fields(store, apart=()).decide(graph)
    return [
        f"pool {name} is not stored: {reason}"
        for name, (stored, reason) in store.decide(graph).items()
        if not stored and (plain[name][0] or store.asked == STORED)
    ]


def _find_difference(pool: str, graph: Graph, learnt: Set[str], kept: OptimizerState) -> str:
    """The reason why the modules of a pool cannot have one optimizer state; empty if they can."""
    rows: dict[str, list[str]] = {}  # by the path of a weight in its module
    for weight in weights_of(graph):
        module, _, path = weight.name.removeprefix(f"{pool}.").partition(".")
        if weight.name.startswith(f"{pool}.") and module.isdecimal():
            rows.setdefault(path, []).append(weight.name)
    for names in rows.values():
        if 0 < sum(name in learnt for name in names) < len(names):
            return "only some of its modules learn"
        if len({_read_steps(kept.get(name)) for name in names}) > 1:
            return "its modules have taken different numbers of steps"
    return ""


def _read_steps(fields: Mapping[str, Tensor] | None) -> str | None:
    """The number of steps of a weight, as text; None without any state."""
    return None if fields is None else str(fields[STEPS].tolist() if STEPS in fields else "")


def split_state(state: OptimizerState, model: nn.Module) -> OptimizerState:
    """The state of an optimizer by the names of modules' weights, where it is by stored weights."""
    found = dict(state)
    for stored in list_stored(model):
        fields = found.pop(stored.name, {})
        parts = {key: [x.clone() for _ in stored.rows] if key == STEPS else x.unbind(0) for key, x in fields.items()}
        found |= {row: {key: each[j] for key, each in parts.items()} for j, row in enumerate(stored.rows) if fields}
    return found


def join_state(state: OptimizerState, model: nn.Module) -> OptimizerState:
    """The state of an optimizer by stored weights, where it is by the names of modules' weights."""
    found = dict(state)
    for stored in list_stored(model):
        rows = [found.pop(row) for row in stored.rows if row in found]
        shapes = {(key, x.shape) for fields in rows for key, x in fields.items()}
        if len(shapes) > len({key for key, _ in shapes}):
            raise ValueError(f"the state of {stored.name} has rows of several shapes")
        if rows:
            found[stored.name] = {
                key: x if key == STEPS else torch.stack([each[key] for each in rows]) for key, x in rows[0].items()
            }
    return found
