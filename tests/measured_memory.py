"""The memory of a training step, measured: what autograd keeps, and the most that tensors hold at once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from modgraph.backends.torch import Model, build
from modgraph.ir import Graph
from modgraph.training.algorithms.decisions import DecisionLikelihood, find_sampled_routes


@contextmanager
def kept(but: Iterable[Tensor]) -> Iterator[dict[int, int]]:
    """Bytes of each storage that autograd keeps within, but for those of some tensors."""
    left_out = {tensor.untyped_storage().data_ptr() for tensor in but}
    found: dict[int, int] = {}
    tensors = []  # kept alive, so that no two storages have one address

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in left_out:
            found[storage.data_ptr()] = storage.nbytes()
            tensors.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        yield found


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of the storages that are alive, and the most at once."""

    def __init__(self, known: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.live = self.most = 0
        self.seen: weakref.WeakSet[Any] = weakref.WeakSet()
        for tensor in known:
            self.note(tensor)

    def note(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        if storage in self.seen:
            return
        self.seen.add(storage)
        size = storage.nbytes()
        self.live += size
        self.most = max(self.most, self.live)
        weakref.finalize(storage, self._gone, size)

    def _gone(self, size: int) -> None:
        self.live -= size

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for each in tree_leaves(found):
            if isinstance(each, Tensor):
                self.note(each)
        return found


def largest_step(
    model: Model,
    optimizer: torch.optim.Optimizer,
    batch: Mapping[str, Tensor],
    loss: Callable[[Mapping[str, Tensor]], Tensor],
) -> int:
    """The most bytes at once in a step, the optimizer's state made by the step before it."""

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(batch).backward()
        optimizer.step()

    step()
    optimizer.zero_grad(set_to_none=True)
    state = [each for facts in optimizer.state.values() for each in facts.values() if isinstance(each, Tensor)]
    with LiveBytes([*model.parameters(), *model.buffers(), *batch.values(), *state]) as live:
        step()
    return live.most


@dataclass(frozen=True)
class MeasuredStep:
    """A model with the batch and the objective of a step."""

    graph: Graph
    model: Model
    decisions: DecisionLikelihood | None

    @classmethod
    def of(cls, graph: Graph) -> MeasuredStep:
        decisions = DecisionLikelihood.build(graph, "em") if find_sampled_routes(graph) else None
        model = build(graph) if decisions is None else build(decisions.graph, asked=decisions.wanted)
        return cls(graph, model.train(), decisions)

    def loss(self, batch: Mapping[str, Tensor]) -> Tensor:
        """What an algorithm differentiates: the losses, or where decisions are drawn, how likely all is."""
        losses = tuple(self.graph.losses.values())
        if self.decisions is None:
            return torch.stack([each.mean() for each in self.model.results(batch, losses)]).sum()
        found = self.model.results(batch, (*self.decisions.wanted, *losses))
        judged = found[: len(self.decisions.wanted)]
        return -(self.decisions.log_likelihood(judged) + self.decisions.log_probability(judged)).mean()

    def kept(self, batch: Mapping[str, Tensor]) -> int:
        with kept([*self.model.parameters(), *self.model.buffers(), *batch.values()]) as found:
            self.loss(batch)
        return sum(found.values())

    def peak(self, batch: Mapping[str, Tensor], optimizer: type[torch.optim.Optimizer], **settings: Any) -> int:
        trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        return largest_step(self.model, optimizer(trained, **settings), batch, self.loss)
