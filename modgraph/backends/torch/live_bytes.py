"""Counts the bytes of tensors that have shapes and no numbers, while torch computes."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from modgraph.nn import Chosen, ChosenSenders
from modgraph.nn.selected import SelectedGrouped, SelectedPerModule

ops: Any = torch.ops.aten
PAGE = 4096


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of the storages that are alive, the most at once, and those that autograd keeps, but for some
    that are there before.

    It answers for numbers that are not there: choices are spread evenly over modules, whatever else is looked
    for is found everywhere, and any other number is zero.
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
        """Note what share of all pairs of senders and modules a route will look for."""
        if isinstance(module, SelectedGrouped | SelectedPerModule):
            tokens, pool, router = given[:3]
            all_ = tokens.shape[-1 - pool.rank] if isinstance(router, ChosenSenders) else len(pool)
            self.share = min(1.0, router.k / all_) if isinstance(router, Chosen) else 1.0
        elif not isinstance(module, Chosen):
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
        """Where x is not zero, as the share says: of modules in rows, as many for each."""
        total = round(x.numel() * self.share)
        rows = x.shape[0]
        self.counts = iter([total // rows + (row < total % rows) for row in range(rows)])
        return x.new_empty((total, x.dim()), dtype=torch.int64)


def _workspace(shape: Sequence[int], hidden: int, page: int) -> int:
    """Bytes that oneDNN's LSTM kernel keeps: gates, states, cells and what goes into each step, of two layers where one
    reads the other, their rows laid out by 64 bytes, each array by pages."""
    steps, examples, width = shape
    of_step = [examples * steps * row for row in (_padded(4 * hidden), _padded(hidden))]
    rows = hidden, hidden, *[_padded(max(width, hidden))] * 3
    of_states = [2 * examples * (steps + 1) * row for row in rows]
    return sum(-(-4 * count // page) * page for count in (*of_step, *of_states))


def _padded(numbers: int) -> int:
    """The length of a row: a multiple of 16, but not of 256, which would fall into the same places of a cache."""
    found = -(-numbers // 16) * 16
    return found if found % 256 else found + 16
