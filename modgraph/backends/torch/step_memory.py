"""Measures the memory of a training step, which runs on fake tensors: with shapes and without numbers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from modgraph.backends.errors import StepIsUnmeasured
from modgraph.backends.torch.model import build_empty_model
from modgraph.diagnostics import ModgraphError
from modgraph.inspect.cost import Memory, TrainingStep, compute_cost, fix_lengths, last_below
from modgraph.ir import Graph, OpNode, Result, ScanNode, weights_of
from modgraph.nn import ExpertChoice, TokenChoice
from modgraph.nn.choice_routes import ChoiceGrouped, ChoicePerModule
from modgraph.nn.id_routes import IdGrouped, IdPerModule
from modgraph.ops.sequence import Recurrent
from modgraph.passes.gradients import drop_sparse_gradients
from modgraph.passes.likelihoods import with_likelihoods

BYTES = {"float32": 4, "bfloat16": 4, "float64": 8}  # per weight: bfloat16 is only for arithmetic
ops: Any = torch.ops.aten
PAGE = 4096
SHORTER = (8, 12, 16)  # measured numbers of steps of a loop; larger ones are extrapolated


def memory_of(graph: Graph, step: TrainingStep, lengths: Mapping[str, int] | None = None) -> Memory:
    """The memory of a training step, with padded axes of the given lengths (default 1).

    Raises `ModgraphError` if a length does not fit, or an op needs numbers.
    """
    return _memory(Rehearsal(graph, step.precision), step, lengths or {})


def find_largest_batch(graph: Graph, step: Callable[[int], TrainingStep], lengths: Mapping[str, int], size: int) -> int:
    """The largest batch whose step needs at most `size` bytes; 0 if one example needs more."""
    rehearsal = Rehearsal(graph, step(1).precision)
    return last_below(cache(lambda batch: _memory(rehearsal, step(batch), lengths).peak), size)


class StepBytes(NamedTuple):
    """Bytes of a step: its batch, the tensors that autograd saves, and the peaks of the forward pass and of all."""

    examples: int
    kept: int
    forward: int
    most: int


class Rehearsal:
    """A model of fake tensors that takes steps.

    Without losses it trains on outputs. If decisions are sampled, it trains on the log-likelihoods of decisions and
    targets.
    """

    def __init__(self, graph: Graph, precision: str, lowering: str | None = None) -> None:
        self.graph, self.half = graph, precision == "bfloat16"
        drawing = (each.sampled for each in graph.decisions() if each.facts.draws)
        self.sampled = [each for each in drawing if each is not None]
        judged, likelihoods = with_likelihoods(graph) if self.sampled else (graph, {})
        judged = drop_sparse_gradients(judged)
        self.ends: tuple[Result, ...] = (*likelihoods.values(), *(graph.losses or graph.outputs).values())
        self.mode = FakeTensorMode()
        self.dtype = torch.float64 if precision == "float64" else torch.float32
        self.model = build_empty_model(judged, lowering, self.mode, asked=self.ends)
        self.loops = {*_find_unrolled_axes(self.model.computed)}
        if self.dtype == torch.float64:
            with self.mode:
                doubled = {name: each.double() for name, each in self.model.state_dict().items()}
                self.model.load_state_dict(doubled, assign=True)

    def measure(self, batch: int, lengths: Mapping[str, int], learns: bool = True, page: int = PAGE) -> StepBytes:
        """Measure a step, or a forward pass of inference unless it `learns`. Raises `ModgraphError`."""
        long = next((axis for axis in sorted(self.loops) if lengths.get(axis, 1) > SHORTER[-1]), None)
        if long is None:
            try:
                with self.mode:
                    return self._step(self._examples(batch, lengths), learns, page)
            except (RuntimeError, NotImplementedError) as error:
                reason = str(error).strip().partition("\n")[0] or type(error).__name__
                raise ModgraphError([StepIsUnmeasured(batch=batch, reason=reason)]) from error
        shorter = (self.measure(batch, {**lengths, long: each}, learns, page=1) for each in SHORTER)
        examples, kept, forward, most = (_extrapolate(each, lengths[long]) for each in zip(*shorter, strict=True))
        return StepBytes(examples, kept, forward, max(forward, most))

    def _step(self, batch: Mapping[str, Tensor], learns: bool, page: int) -> StepBytes:
        self.model.train(learns).zero_grad()
        half: AbstractContextManager[object] = torch.autocast("cpu", torch.bfloat16) if self.half else nullcontext()
        live = LiveBytes([*self.model.parameters(), *self.model.buffers(), *batch.values()], page)
        saved = torch.autograd.graph.saved_tensors_hooks(live.keep, lambda tensor: tensor)
        with live, register_module_forward_pre_hook(live.enter_module):
            with torch.set_grad_enabled(learns), half, saved:
                pairs = (result for pair in self.sampled for result in pair)
                found = iter(self.model.results(batch, (*self.ends, *pairs)))
                ends = [each.mean() for each in islice(found, len(self.ends)) if each.is_floating_point()]
                averages = [*ends, *((one * other).mean() for one, other in zip(found, found, strict=True))]
                loss = torch.stack(averages).sum() if averages else torch.zeros(())
            kept, forward = sum(storage.nbytes() for storage in live.kept), live.most
            if loss.requires_grad:
                loss.backward()  # type: ignore[no-untyped-call]
        return StepBytes(sum(each.nbytes for each in batch.values()), kept, forward, live.most)

    def _examples(self, batch: int, lengths: Mapping[str, int]) -> dict[str, Tensor]:
        types = {**self.graph.input_types, **self.graph.target_types}
        shapes = {name: fix_lengths(type_, lengths).shape for name, type_ in types.items() if type_.dtype != "length"}
        kinds = {name: self.dtype if types[name].dtype == "float" else torch.int64 for name in shapes}
        return {
            name: torch.empty([batch, *(axis.size or 0 for axis in shape)], dtype=kinds[name])
            for name, shape in shapes.items()
        }


def _memory(rehearsal: Rehearsal, step: TrainingStep, lengths: Mapping[str, int]) -> Memory:
    graph, number = rehearsal.graph, BYTES[step.precision]
    compute_cost(graph, lengths)  # reports lengths that do not fit
    weights = weights_of(graph)
    trained = [each.count for each in weights if not each.buffer and not each.frozen]
    weight_bytes, gradients = number * sum(weight.count for weight in weights), number * sum(trained)
    state, work = step.state_per_weight * gradients, step.work_per_weight * number * max(trained, default=0)
    found = rehearsal.measure(step.batch, lengths)
    peak = max(found.most, weight_bytes + found.examples + gradients + work)
    if step.tried_at_once:
        peak = max(peak, gradients + rehearsal.measure(step.tried_at_once, lengths, learns=False).most)
    return Memory(step.batch, weight_bytes, gradients, state, found.examples, found.kept, state + peak)


def _find_unrolled_axes(graph: Graph) -> Iterator[str]:
    """The padded axes along which torch runs step by step."""
    for part in graph.parts():
        for node in part.graph:
            is_scan = isinstance(node, ScanNode) and not node.lowering
            if is_scan or (isinstance(node, OpNode) and isinstance(node.op, Recurrent)):
                inputs = part.graph.inputs(node.name)
                of_steps = inputs[node.variable] if isinstance(node, ScanNode) else Result(node.name)
                axis = part.graph.type_of(of_steps).shape[0 if is_scan else -2]
                yield from [axis.lengths] if axis.is_padded else []


def _extrapolate(found: tuple[int, ...], length: int) -> int:
    """Extrapolate the values at `SHORTER` to a length by a polynomial of degree 2, as for attention."""
    first, second, third = found
    at, gap = (length - SHORTER[0]) / (SHORTER[1] - SHORTER[0]), third - 2 * second + first
    return round(first + at * (second - first) + at * (at - 1) / 2 * gap)


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of live storages, their peak, and those that autograd saves, without `known` ones.

    It invents the numbers that fake tensors lack: choices spread evenly over modules, other masks are true everywhere,
    and other numbers are zero.
    """

    def __init__(self, known: Iterable[Tensor], page: int = PAGE) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.page = page
        self.live = self.most = 0
        self.seen, self.kept = weakref.WeakSet[Any](), weakref.WeakSet[Any]()
        self.share = 1.0
        self.counts: Iterator[int] = iter(())
        for tensor in known:
            self.note(tensor)
        self.known = weakref.WeakSet(self.seen)

    def note(self, tensor: Tensor) -> None:
        """Count the storage of a tensor, once."""
        storage = tensor.untyped_storage()
        if storage in self.seen:
            return
        self.seen.add(storage)
        self.live += storage.nbytes()
        self.most = max(self.most, self.live)
        weakref.finalize(storage, self._forget, storage.nbytes())

    def _forget(self, size: int) -> None:
        self.live -= size

    def keep(self, tensor: Tensor) -> Tensor:
        """Note a tensor that autograd saves."""
        if tensor.untyped_storage() not in self.known:
            self.kept.add(tensor.untyped_storage())
        return tensor

    def enter_module(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        """Note the share of all pairs of tokens and modules that a route will choose."""
        if isinstance(module, ChoiceGrouped | ChoicePerModule):
            tokens, pool, router = given[:3]
            all_ = tokens.shape[-1 - pool.rank] if isinstance(router, ExpertChoice) else len(pool)
            self.share = min(1.0, router.k / all_) if isinstance(router, TokenChoice) else 1.0
        elif isinstance(module, IdGrouped | IdPerModule):
            tokens, pool, router, ids = given[:4]
            self.share = 1 / len(pool)
            edges = ids.shape[ids.dim() - router.slots :].numel() * tokens.shape[: tokens.dim() - router.rank].numel()
            self.counts = _spread(edges, len(pool))
        elif not isinstance(module, TokenChoice):
            self.share = 1.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is ops._local_scalar_dense.default:
            dtype = args[0].dtype
            return False if dtype == torch.bool else 0.0 if dtype.is_floating_point else next(self.counts, 0)
        found = self._pairs(args[0]) if func is ops.nonzero.default else func(*args, **(kwargs or {}))
        if func is ops.mkldnn_rnn_layer.default:  # torch leaves its workspace out
            size = _workspace(args[0].shape, args[10], self.page)
            found = (*found[:3], found[0].new_empty(size, dtype=torch.uint8))
        for each in tree_leaves(found):
            if isinstance(each, Tensor):
                self.note(each)
        return found

    def _pairs(self, x: Tensor) -> Tensor:
        """The indices of x that are not zero, as many as the share, spread evenly over rows (modules)."""
        total = round(x.numel() * self.share)
        self.counts = _spread(total, x.shape[0])
        return x.new_empty((total, x.dim()), dtype=torch.int64)


def _spread(total: int, rows: int) -> Iterator[int]:
    """A number divided evenly among rows."""
    return iter([total // rows + (row < total % rows) for row in range(rows)])


def _workspace(shape: Sequence[int], hidden: int, page: int) -> int:
    """Bytes that oneDNN's LSTM kernel keeps: gates, states, cells and inputs of each step.

    Rows are aligned to 64 bytes, arrays to pages.
    """
    steps, examples, width = shape
    of_step = [examples * steps * row for row in (_pad_row(4 * hidden), _pad_row(hidden))]
    rows = hidden, hidden, *[_pad_row(max(width, hidden))] * 3
    of_states = [2 * examples * (steps + 1) * row for row in rows]
    return sum(-(-4 * count // page) * page for count in (*of_step, *of_states))


def _pad_row(numbers: int) -> int:
    """The padded length of a row: a multiple of 16, but not of 256, which would collide in the cache."""
    found = -(-numbers // 16) * 16
    return found if found % 256 else found + 16
