"""The memory of a training step, measured: the step runs on tensors that have shapes and no numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.modules.module import register_module_forward_pre_hook

from modgraph.backends.errors import StepIsUnmeasured
from modgraph.backends.torch.live_bytes import PAGE, LiveBytes
from modgraph.backends.torch.model import empty_model
from modgraph.declare import CHOSEN, DISTRIBUTION
from modgraph.diagnostics import ModgraphError
from modgraph.inspect.cost import cost_of, fixed
from modgraph.inspect.memory import Memory, TrainingStep, last_below
from modgraph.ir import Decision, Graph, OpNode, Result, ScanNode, weights_of
from modgraph.ops.recurrent import Recurrent
from modgraph.passes.likelihoods import with_likelihoods

BYTES = {"float32": 4, "bfloat16": 4, "float64": 8}  # of a number of a weight: bfloat16 is of the arithmetic alone
SHORTER = (8, 12, 16)  # steps of a loop that are measured; what more of them take follows


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
        if self.dtype == torch.float64:
            with self.mode:
                doubled = {name: each.double() for name, each in self.model.state_dict().items()}
                self.model.load_state_dict(doubled, assign=True)

    def moments(self, batch: int, lengths: Mapping[str, int], learns: bool = True, page: int = PAGE) -> Moments:
        """Those of a step, or of a forward pass of inference if it does not learn. Raises `ModgraphError`."""
        long = next((axis for axis in sorted(self.loops) if lengths.get(axis, 1) > SHORTER[-1]), None)
        if long is None:
            try:
                with self.mode:
                    return self._step(self._examples(batch, lengths), learns, page)
            except (RuntimeError, NotImplementedError) as error:
                reason = str(error).strip().partition("\n")[0] or type(error).__name__
                raise ModgraphError([StepIsUnmeasured(batch=batch, reason=reason)]) from error
        shorter = (self.moments(batch, {**lengths, long: each}, learns, page=1) for each in SHORTER)
        examples, kept, forward, most = (_continued(each, lengths[long]) for each in zip(*shorter, strict=True))
        return Moments(examples, kept, forward, max(forward, most))

    def _step(self, batch: Mapping[str, Tensor], learns: bool, page: int) -> Moments:
        self.model.train(learns).zero_grad()
        half: AbstractContextManager[object] = torch.autocast("cpu", torch.bfloat16) if self.half else nullcontext()
        live = LiveBytes([*self.model.parameters(), *self.model.buffers(), *batch.values()], page)
        with live, register_module_forward_pre_hook(live.enter_module):
            with torch.set_grad_enabled(learns), half:
                loss = self._loss(batch, live)
            kept, forward = sum(storage.nbytes() for storage in live.kept), live.most
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
        shapes = {name: fixed(type_, lengths).shape for name, type_ in types.items() if type_.dtype != "length"}
        kinds = {name: self.dtype if types[name].dtype == "float" else torch.int64 for name in shapes}
        return {
            name: torch.empty([batch, *(axis.size or 0 for axis in shape)], dtype=kinds[name])
            for name, shape in shapes.items()
        }


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


def _unrolled_axes(graph: Graph) -> Iterator[str]:
    """The axes of any length along which torch computes one step after another."""
    for part in graph.parts():
        for node in part.graph:
            if isinstance(node, ScanNode) or (isinstance(node, OpNode) and isinstance(node.op, Recurrent)):
                axis = node.types[0].shape[0 if isinstance(node, ScanNode) else -2]
                yield from [axis.name] if axis.is_padded else []


def _continued(found: tuple[int, ...], length: int) -> int:
    """The value at a length, from those at the shorter ones: a polynomial of degree 2, as attention's is."""
    first, second, third = found
    at, gap = (length - SHORTER[0]) / (SHORTER[1] - SHORTER[0]), third - 2 * second + first
    return round(first + at * (second - first) + at * (at - 1) / 2 * gap)
