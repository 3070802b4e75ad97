"""The memory of a training step, measured: the step runs on tensors that have shapes and no numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from modgraph.backends.errors import StepIsUnmeasured
from modgraph.backends.torch.live_bytes import PAGE, LiveBytes
from modgraph.backends.torch.model import empty_model
from modgraph.declare import CHOSEN, DISTRIBUTION
from modgraph.diagnostics import ModgraphError
from modgraph.inspect.cost import cost_of
from modgraph.inspect.memory import Memory, TrainingStep, last_below
from modgraph.ir import Decision, Graph, Result, ScanNode, weights_of
from modgraph.ops.recurrent import Recurrent
from modgraph.passes.likelihoods import with_likelihoods
from modgraph.types import TensorType

BYTES = {"float32": 4, "bfloat16": 4, "float64": 8}  # of a number of a weight: bfloat16 is of the arithmetic alone
LONG = 16  # steps of a loop beyond which a length is not measured but follows from shorter ones
SHORTER = (8, 12, 16)


def memory_of(graph: Graph, step: TrainingStep, lengths: Mapping[str, int] | None = None) -> Memory:
    """The memory of a training step, axes of any length taken at the given lengths (1 where none is given).

    Raises `ModgraphError` where a length does not fit, or an op needs numbers.
    """
    return _memory(Rehearsal(graph, step.precision), step, lengths or {})


def largest_batch(graph: Graph, step: Callable[[int], TrainingStep], lengths: Mapping[str, int], size: int) -> int:
    """The largest batch whose step holds at most so many bytes at once; 0 where a single example takes more."""
    rehearsal = Rehearsal(graph, step(1).precision)
    return last_below(cache(lambda batch: _memory(rehearsal, step(batch), lengths).peak), size)


class Moments(NamedTuple):
    """Bytes of a step: its batch, what autograd keeps, and the most at once, forwards and in all."""

    examples: int
    kept: int
    forward: int
    most: int


class Rehearsal:
    """A model without numbers, to take steps with. What has no loss is trained on its outputs; where decisions are
    sampled, an algorithm descends on how likely they and the targets are."""

    def __init__(self, graph: Graph, precision: str, lowering: str | None = None) -> None:
        self.graph, self.half = graph, precision == "bfloat16"
        self.sampled = [pair for each in graph.decisions() if each.facts.draws for pair in _sampled(each)]
        judged, likelihoods = with_likelihoods(graph) if self.sampled else (graph, {})
        self.ends: tuple[Result, ...] = (*likelihoods.values(), *(graph.losses or graph.outputs).values())
        self.loops = {*_unrolled_axes(graph)}
        self.mode = FakeTensorMode()
        self.dtype = torch.float64 if precision == "float64" else torch.float32
        self.model = empty_model(judged, lowering, self.mode, asked=self.ends)
        with self.mode:
            weights = self.model.state_dict().items()
            self.model.load_state_dict({name: self._in_precision(each) for name, each in weights}, assign=True)

    def _in_precision(self, x: Tensor) -> Tensor:
        return x.to(self.dtype) if x.is_floating_point() else x

    def moments(self, batch: int, lengths: Mapping[str, int], learns: bool = True, page: int = PAGE) -> Moments:
        """Those of a step, or of a forward pass of inference if it does not learn. Raises `ModgraphError`."""
        long = next((axis for axis in sorted(self.loops) if lengths.get(axis, 1) > LONG), None)
        if long is None:
            with self.mode, _failing(batch):
                return self._step(self._examples(batch, lengths), learns, page)
        shorter = (self.moments(batch, {**lengths, long: each}, learns, page=1) for each in SHORTER)
        examples, kept, forward, most = (_continued(each, lengths[long]) for each in zip(*shorter, strict=True))
        return Moments(examples, kept, forward, max(forward, most))

    def _step(self, batch: Mapping[str, Tensor], learns: bool, page: int) -> Moments:
        self.model.train(learns).zero_grad()
        half: AbstractContextManager[object] = torch.autocast("cpu", torch.bfloat16) if self.half else nullcontext()
        with LiveBytes([*self.model.parameters(), *self.model.buffers(), *batch.values()], page) as live:
            with torch.set_grad_enabled(learns), half:
                loss = self._loss(batch, live)
            kept, forward = live.kept_bytes(), live.most
            if loss.requires_grad:
                loss.backward()  # type: ignore[no-untyped-call]
        return Moments(sum(each.nbytes for each in batch.values()), kept, forward, live.most)

    def _loss(self, batch: Mapping[str, Tensor], live: LiveBytes) -> Tensor:
        """What a step descends on; autograd's tensors are noted."""
        with torch.autograd.graph.saved_tensors_hooks(live.keep, lambda tensor: tensor):
            found = iter(self.model.results(batch, (*self.ends, *(result for pair in self.sampled for result in pair))))
            ends = [each.mean() for each in islice(found, len(self.ends)) if each.is_floating_point()]
            means = [*ends, *((one * other).mean() for one, other in zip(found, found, strict=True))]
            return torch.stack(means).sum() if means else torch.zeros(())

    def _examples(self, batch: int, lengths: Mapping[str, int]) -> dict[str, Tensor]:
        types = {**self.graph.input_types, **self.graph.target_types}
        given = {name: type_ for name, type_ in types.items() if type_.dtype != "length"}
        return {name: self._example(type_, batch, lengths) for name, type_ in given.items()}

    def _example(self, type_: TensorType, batch: int, lengths: Mapping[str, int]) -> Tensor:
        shape = [lengths.get(axis.name, 1) if axis.size is None else axis.size for axis in type_.shape]
        return torch.empty([batch, *shape], dtype=self.dtype if type_.dtype == "float" else torch.int64)


def _memory(rehearsal: Rehearsal, step: TrainingStep, lengths: Mapping[str, int]) -> Memory:
    graph, number = rehearsal.graph, BYTES[step.precision]
    cost_of(graph, lengths)  # tells of lengths that do not fit
    weights = weights_of(graph)
    trained = [each.count for each in weights if not each.buffer and not each.frozen]
    held, gradients = number * sum(weight.count for weight in weights), number * sum(trained)
    state, work = step.state_per_weight * gradients, step.work_per_weight * number * max(trained, default=0)
    found = rehearsal.moments(step.batch, lengths)
    peak = max(found.most, held + found.examples + gradients + work)
    if step.tried_at_once:
        peak = max(peak, gradients + rehearsal.moments(step.tried_at_once, lengths, learns=False).most)
    return Memory(step.batch, held, gradients, state, found.examples, found.kept, state + peak)


def _sampled(decision: Decision) -> Iterator[tuple[Result, Result]]:
    """What choices are sampled from, and the choices."""
    distribution, choice = decision.record_as(*DISTRIBUTION), decision.record_as(*CHOSEN)
    if distribution is not None and choice is not None:
        yield decision.results[distribution], decision.results[choice]


@contextmanager
def _failing(batch: int) -> Iterator[None]:
    """Raises `ModgraphError` where torch cannot take a step without numbers."""
    try:
        yield
    except (RuntimeError, NotImplementedError) as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModgraphError([StepIsUnmeasured(batch=batch, reason=reason)]) from error


def _unrolled_axes(graph: Graph) -> Iterator[str]:
    """The axes of any length along which torch computes one step after another."""
    for part in graph.parts():
        for node in part.graph:
            along = (
                0 if isinstance(node, ScanNode) else -2 if isinstance(getattr(node, "op", None), Recurrent) else None
            )
            if along is not None and node.types[0].shape[along].size is None:
                yield node.types[0].shape[along].name


def _continued(found: tuple[int, ...], length: int) -> int:
    """The value at a length, from those at the shorter ones: a polynomial of degree 2, as attention's is."""
    first, second, third = found
    at, gap = (length - SHORTER[0]) / (SHORTER[1] - SHORTER[0]), third - 2 * second + first
    return round(first + at * (second - first) + at * (at - 1) / 2 * gap)
