"""Recurrent layers by torch's fused kernels.

Axis letters: B examples, N steps, D input width, H hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.padding import apply_mask
from modgraph.nn.recurrence import run_recurrence


class Recurrent(nn.Module):
    """One layer, forwards or in reverse: [..., N, D] to [..., N, H]."""

    gates: ClassVar[int]

    def __init__(self, width: int, hidden: int, bias: bool = True, reverse: bool = False) -> None:
        super().__init__()
        rows = self.gates * hidden
        self.hidden, self.reverse = hidden, reverse
        self.weight_ih = nn.Parameter(torch.empty(rows, width))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden))
        self.bias_ih = nn.Parameter(torch.empty(rows)) if bias else None
        self.bias_hh = nn.Parameter(torch.empty(rows)) if bias else None

    @property
    def weights(self) -> list[Tensor]:
        """The weights in torch's order."""
        found = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return [weight for weight in found if weight is not None]

    def forward(self, x: Tensor, *states: Tensor, mask: Tensor | None = None) -> Tensor:
        """x [..., N, D] gives [..., N, H], from initial states [..., H], those that are missing zero.

        In reverse, the mask [..., N, 1] gives the last step of each example, which is read first. Forwards it is not
        needed: no step reads the padding behind it.
        """
        if x.shape[-2] == 0:
            return x.new_zeros(*x.shape[:-1], self.hidden)
        if not self.reverse:
            return self._read(x, states)
        order = None if mask is None else order_backwards(mask)
        return backwards(self._read(backwards(apply_mask(x, mask), order), states), order)

    def _read(self, x: Tensor, states: Sequence[Tensor]) -> Tensor:
        if x.dim() == 3:
            return self.layer(x, states)
        rows = [state.reshape(-1, self.hidden) for state in states]
        return self.layer(x.reshape(-1, *x.shape[-2:]), rows).reshape(*x.shape[:-1], self.hidden)

    def layer(self, x: Tensor, states: Sequence[Tensor] = ()) -> Tensor:
        """All states [B, N, H] of x [B, N, D] from initial states [B, H]."""
        if torch.compiler.is_exporting():
            each: Tensor = TRACED[self.gates](x, self.weights, [*states])
            return each
        return run_kernel(x, self.weights, self.training, states)


class LSTM(Recurrent):
    """torch.nn.LSTM of one layer; with `cells` it returns the cells [..., N, H] too."""

    gates = 4

    def __init__(self, width: int, hidden: int, bias: bool = True, reverse: bool = False, cells: bool = False) -> None:
        super().__init__(width, hidden, bias, reverse)
        self.cells = cells

    def forward(self, x: Tensor, *states: Tensor, mask: Tensor | None = None) -> Any:
        h = super().forward(x, *states, mask=mask)
        return (h, self._cells(x, h, states)) if self.cells else h

    def _cells(self, x: Tensor, h: Tensor, states: Sequence[Tensor]) -> Tensor:
        """The cells of all steps: with the states h [..., N, H] known, c' = f c + i g is a linear recurrence."""
        rows, after = x.reshape(-1, *x.shape[-2:]), h.reshape(-1, *h.shape[-2:])
        state, cell = complete_states(rows, self.hidden, [each.reshape(-1, self.hidden) for each in states], 2)
        before = torch.cat((state.unsqueeze(1), after), 1)[:, :-1]
        gates = F.linear(rows, self.weight_ih, self.bias_ih) + F.linear(before, self.weight_hh, self.bias_hh)
        i, f, g, _ = gates.chunk(4, -1)
        return run_recurrence(f.sigmoid(), i.sigmoid() * g.tanh(), cell)[0].reshape(h.shape)

    def layer(self, x: Tensor, states: Sequence[Tensor] = ()) -> Tensor:
        if torch.compiler.is_exporting():
            return super().layer(x, states)
        return self._stepwise(x, states) if torch.compiler.is_compiling() else super().layer(x, states)

    def _stepwise(self, x: Tensor, initial: Sequence[Tensor]) -> Tensor:
        """Compute the equations step by step: [B, N, D] to [B, N, H].

        `torch.compile` takes the fused kernel for inference if x needs no gradient, and fails on that of the weights.
        """
        states: list[Tensor] = []
        state, cell = complete_states(x, self.hidden, initial, 2)
        for projected in F.linear(x, self.weight_ih, self.bias_ih).unbind(1):
            i, f, g, o = (projected + F.linear(state, self.weight_hh, self.bias_hh)).chunk(4, -1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            state = o.sigmoid() * cell.tanh()
            states.append(state)
        return torch.stack(states, 1)


class GRU(Recurrent):
    """torch.nn.GRU of one layer."""

    gates = 3


def complete_states(x: Tensor, hidden: int, states: Sequence[Tensor], count: int) -> list[Tensor]:
    """The initial states [B, H] of x [B, N, D]: those given, then zeros."""
    return [*states, *(x.new_zeros(x.shape[0], hidden) for _ in range(count - len(states)))]


def run_kernel(x: Tensor, weights: list[Tensor], training: bool, states: Sequence[Tensor] = ()) -> Tensor:
    """Run torch's fused kernel on x [B, N, D] from initial states [B, H], zeros if not given: all states [B, N, H]."""
    hidden = weights[1].shape[1]
    is_lstm = len(weights[1]) == LSTM.gates * hidden
    initial = [each.unsqueeze(0).contiguous() for each in complete_states(x, hidden, states, 1 + is_lstm)]
    kernel: Any = torch._VF.lstm if is_lstm else torch._VF.gru
    start = initial if is_lstm else initial[0]
    found: Tensor = kernel(x, start, weights, len(weights) > 2, 1, 0.0, training, False, True)[0]
    return found


@torch.library.custom_op("modgraph::lstm", mutates_args=())
def lstm_op(x: Tensor, weights: list[Tensor], states: list[Tensor]) -> Tensor:
    """An LSTM as one op of a traced graph: torch would trace its own step by step, which takes half of an export."""
    return run_kernel(x, weights, False, states).clone(memory_format=torch.contiguous_format)


@torch.library.custom_op("modgraph::gru", mutates_args=())
def gru_op(x: Tensor, weights: list[Tensor], states: list[Tensor]) -> Tensor:
    """A GRU as one op of a traced graph."""
    return run_kernel(x, weights, False, states).clone(memory_format=torch.contiguous_format)


@lstm_op.register_fake
@gru_op.register_fake
def make_fake(x: Tensor, weights: list[Tensor], states: list[Tensor]) -> Tensor:
    """The shape of an op's result. It is not called `_`, or a file with a `for _ in` would register the ops again."""
    return x.new_empty(*x.shape[:-1], weights[1].shape[1])


TRACED = {LSTM.gates: lstm_op, GRU.gates: gru_op}


def order_backwards(mask: Tensor) -> Tensor:
    """Indices [..., N, 1] that reverse the steps of a mask [..., N, 1] and leave padding behind them."""
    steps = torch.arange(mask.shape[-2], device=mask.device).unsqueeze(-1)
    return torch.where(mask, mask.sum(-2, keepdim=True) - 1 - steps, steps)


def backwards(x: Tensor, order: Tensor | None) -> Tensor:
    """Reorder the steps of x [..., N, D] by indices [..., N, 1]; reverse them if `order` is None."""
    return x.flip(-2) if order is None else x.gather(-2, order.expand_as(x))
