"""Layers that read a sequence step by step, by torch's fused kernels.

B examples, N steps, D numbers of a step, H hidden numbers, G gates.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.padding import cleared


class Recurrent(nn.Module):
    """One layer from the first step to the last, or in reverse, its state zero before: [..., N, D] to [..., N, H]."""

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
        """In the order in which torch takes them."""
        found = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return [weight for weight in found if weight is not None]

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """x [..., N, D] gives [..., N, H]. A mask `real` [..., N, 1] tells the last step of each example, which is the
        first in reverse; forwards no step sees what comes behind it, padding least of all."""
        if x.shape[-2] == 0:
            return x.new_zeros(*x.shape[:-1], self.hidden)
        if not self.reverse:
            return self._read(x)
        order = None if real is None else turned(real)
        return backwards(self._read(backwards(cleared(x, real), order)), order)

    def _read(self, x: Tensor) -> Tensor:
        if x.dim() == 3:
            return self.layer(x)
        return self.layer(x.reshape(-1, *x.shape[-2:])).reshape(*x.shape[:-1], self.hidden)

    def layer(self, x: Tensor) -> Tensor:
        """All states [B, N, H] of x [B, N, D]."""
        if torch.compiler.is_exporting():
            each: Tensor = TRACED[self.gates](x, self.weights)
            return each
        return fused(x, self.weights, self.training)


class LSTM(Recurrent):
    """torch.nn.LSTM of one layer."""

    gates = 4

    def layer(self, x: Tensor) -> Tensor:
        if torch.compiler.is_exporting():
            return super().layer(x)
        return self._stepwise(x) if torch.compiler.is_compiling() else super().layer(x)

    def _stepwise(self, x: Tensor) -> Tensor:
        """The equations: `torch.compile` takes the fused kernel for one of inference where x needs no gradient, and
        then fails on that of the weights."""
        states: list[Tensor] = []
        state = cell = x.new_zeros(x.shape[0], self.hidden)
        for given in F.linear(x, self.weight_ih, self.bias_ih).unbind(1):
            i, f, g, o = (given + F.linear(state, self.weight_hh, self.bias_hh)).chunk(4, -1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            state = o.sigmoid() * cell.tanh()
            states.append(state)
        return torch.stack(states, 1)


class GRU(Recurrent):
    """torch.nn.GRU of one layer."""

    gates = 3


def fused(x: Tensor, weights: list[Tensor], training: bool) -> Tensor:
    """All states of x by torch's kernel, the states zero before."""
    state = x.new_zeros(1, x.shape[0], weights[1].shape[1])
    is_lstm = len(weights[1]) == LSTM.gates * weights[1].shape[1]
    kernel: Any = torch._VF.lstm if is_lstm else torch._VF.gru
    states = (state, state) if is_lstm else state
    found: Tensor = kernel(x, states, weights, len(weights) > 2, 1, 0.0, training, False, True)[0]
    return found


@torch.library.custom_op("modgraph::lstm", mutates_args=())
def traced_lstm(x: Tensor, weights: list[Tensor]) -> Tensor:
    """An LSTM as one operation of a traced graph: torch traces its own step by step, which takes half of an export."""
    return fused(x, weights, training=False).clone(memory_format=torch.contiguous_format)


@torch.library.custom_op("modgraph::gru", mutates_args=())
def traced_gru(x: Tensor, weights: list[Tensor]) -> Tensor:
    """A GRU likewise."""
    return fused(x, weights, training=False).clone(memory_format=torch.contiguous_format)


@traced_lstm.register_fake
@traced_gru.register_fake
def _(x: Tensor, weights: list[Tensor]) -> Tensor:
    return x.new_empty(*x.shape[:-1], weights[1].shape[1])


TRACED = {LSTM.gates: traced_lstm, GRU.gates: traced_gru}


def turned(real: Tensor) -> Tensor:
    """Where each step [..., N, 1] is read from, so that those that are real come in reverse, padding behind them."""
    steps = torch.arange(real.shape[-2], device=real.device).unsqueeze(-1)
    return torch.where(real, real.sum(-2, keepdim=True) - 1 - steps, steps)


def backwards(x: Tensor, order: Tensor | None) -> Tensor:
    """x [..., N, D] with its steps in another order, or in reverse."""
    return x.flip(-2) if order is None else x.gather(-2, order.expand_as(x))
