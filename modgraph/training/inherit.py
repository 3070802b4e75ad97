"""Starting from a trained run: weights are taken over by name, what is new starts afresh, and a report says which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError
from modgraph.ir import weights_of
from modgraph.training.errors import CannotStart
from modgraph.training.run_directory import RunDirectory

SHOWN = 4


@dataclass(frozen=True)
class Inherited:
    """Names of tensors: taken over unchanged, started afresh, and left behind in the run."""

    run: str
    taken: tuple[str, ...]
    fresh: tuple[str, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{len(self.taken)} tensors are those of {self.run}"]
        parts += [f"new: {_listed(self.fresh)}"] if self.fresh else []
        parts += [f"left behind: {_listed(self.left)}"] if self.left else []
        return "; ".join(parts)


@torch.no_grad()
def inherit(model: Model, path: str) -> Inherited:
    """Give a model the weights of a run, by name. Raises `ModgraphError` where they do not fit."""
    from modgraph.training.run import load_run

    if not RunDirectory(Path(path)).record.exists():
        way_out = "train it first, or name another: -s start.run=DIR"
        raise ModgraphError([CannotStart(path=path, reason="there is no run", way_out=way_out)])
    found = load_run(path).checkpoint().weights
    own = model.state_dict()
    inherited = Inherited(
        run=path,
        taken=tuple(name for name in own if name in found),
        fresh=tuple(name for name in own if name not in found),
        left=tuple(sorted(found.keys() - own.keys())),
    )
    frozen = {weight.name for weight in weights_of(model.graph) if weight.frozen}
    _check(inherited, {name: (own[name].shape, found[name].shape) for name in inherited.taken}, frozen)
    for name in inherited.taken:
        own[name].copy_(found[name])
    return inherited


def _check(inherited: Inherited, shapes: dict[str, tuple[Sequence[int], Sequence[int]]], frozen: set[str]) -> None:
    """Raises `ModgraphError` for the first thing that makes the weights useless here."""
    unlike = {name: pair for name, pair in shapes.items() if pair[0] != pair[1]}
    unset = [name for name in inherited.fresh if name in frozen]
    if not inherited.taken:
        reason = f"no tensor has a name of this spec's; the run has {_listed(inherited.left)}"
        way_out = "give values and modules the names they have in the run's spec"
    elif unlike:
        each = (f"{name} is {list(own)} here and {list(found)} there" for name, (own, found) in unlike.items())
        reason = ", ".join(islice(each, SHOWN))
        way_out = "make the shapes equal, or give what is to start afresh another name"
    elif unset:
        reason = f"frozen weights would stay random: {_listed(unset)} of this spec are not in the run"
        way_out = "take them out of frozen { … }, or start from a run that has them"
    else:
        return
    raise ModgraphError([CannotStart(path=inherited.run, reason=reason, way_out=way_out)])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
