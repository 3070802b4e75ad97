"""Linear recurrences h' = a ⊙ h + b over all steps. B is the batch axis, T that of steps."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

from modgraph.nn.scan import scan

CHUNK = 32  # steps that are computed together where the number of steps is unknown
WIDE = 32_768  # so many numbers occupy the processor for longer than a call takes


def run_recurrence(gate: Tensor | float, offset: Tensor, initial: Tensor) -> Tensor:
    """Compute the states [B, T, ...] of h_t = gate_t ⊙ h_(t−1) + offset_t from h_0 [B, ...].

    `gate` [B, T, ...] broadcasts against `offset` [B, T, ...]; it may be one number.
    """
    if offset.shape[1] == 0:
        return offset
    if not isinstance(gate, Tensor):
        if gate == 1:
            return offset.cumsum(1) + initial.unsqueeze(1)
        gate = offset.new_full((1,) * offset.dim(), gate)
    gate = gate.expand(-1, offset.shape[1], *[-1] * (gate.dim() - 2))
    if torch.compiler.is_exporting() or torch.compiler.is_compiling():
        return _double(gate, offset, initial)
    found: Tensor = Steps.apply(gate, offset, initial)  # type: ignore[no-untyped-call]
    return found


class Steps(torch.autograd.Function):
    """The recurrence in chunks, step by step in all chunks together. Its gradient is a recurrence backward in time."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, offset: Tensor, initial: Tensor) -> Tensor:
        states = _run(gate, offset, initial, reverse=False)
        ctx.save_for_backward(gate, initial, states)
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        gate, initial, states = ctx.saved_tensors
        (grad,) = grads
        if torch.is_grad_enabled():  # differentiated again
            after = torch.cat([gate[:, 1:], torch.ones_like(gate[:, :1])], 1).flip(1)
            of_offset = run_recurrence(after, grad.flip(1), torch.zeros_like(grad[:, 0])).flip(1)
        else:
            of_offset = _run(gate, grad, None, reverse=True)
        of_gate = (of_offset * shift_states(states, initial)).sum_to_size(gate.shape)
        return of_gate, of_offset, (gate[:, 0] * of_offset[:, 0]).sum_to_size(initial.shape)


def shift_states(states: Tensor, initial: Tensor) -> Tensor:
    """The state before each step, from the states [B, T, ...] after each step and the initial one [B, ...]."""
    return torch.cat([initial.unsqueeze(1), states[:, :-1]], 1)


def _run(gate: Tensor, offset: Tensor, initial: Tensor | None, reverse: bool) -> Tensor:
    """Run C chunks of L steps: L steps from zero in all chunks together, then the chunks one after another.

    A chunk's states are those from zero plus the cumulative products of its gates times the state before it. More
    chunks need fewer steps and more arithmetic, so wide states have few. In `reverse` it runs from the last step, and
    h_t = gate_(t+1) ⊙ h_(t+1) + offset_t.
    """
    T = offset.shape[1]
    C = max(1, min(math.isqrt(T), WIDE * T // max(1, offset.numel())))
    L = -(-T // C)
    states = torch.empty_like(offset, memory_format=torch.contiguous_format)
    products = torch.empty_like(gate, memory_format=torch.contiguous_format) if C > 1 else gate

    def take_step(x: Tensor, step: int) -> Tensor:
        """The slices of a step in all chunks."""
        return x[:, (T - 1 - step) % L : T - step : L] if reverse else x[:, step::L]

    def take_before(x: Tensor, step: int) -> Tensor:
        """The slices of the step before, in the chunks that have the step."""
        first = (T - 1 - step) % L + 1 if reverse else step - 1
        return x[:, first : T - step + 1 if reverse else T - 1 : L]

    take_gates = take_before if reverse else take_step
    take_step(states, 0).copy_(take_step(offset, 0))
    if initial is not None:
        states[:, 0].addcmul_(gate[:, 0], initial)
    if C > 1:
        gates = take_gates(gate, 0)
        take_step(products, 0)[:, : gates.shape[1]].copy_(gates)
    for step in range(1, L):
        own = take_gates(gate, step)
        torch.addcmul(take_step(offset, step), own, take_before(states, step), out=take_step(states, step))
        if C > 1:
            torch.mul(own, take_before(products, step), out=take_step(products, step))
    for start in range(L, T, L):
        stop = min(T, start + L)
        first, last, known = (T - stop, T - start, T - start) if reverse else (start, stop, start - 1)
        states[:, first:last].addcmul_(products[:, first:last], states[:, known : known + 1])
    return states


def _double(gate: Tensor, offset: Tensor, initial: Tensor) -> Tensor:
    """The same in operations whose number does not depend on T: within a chunk each round doubles the steps that a
    state depends on; chunks run one after another."""
    T, count = offset.shape[1], count_chunks(offset.shape[1], CHUNK)
    gate, state = (split_chunks(each, count, fill) for each, fill in ((gate, 1.0), (offset, 0.0)))
    step = 1
    while step < CHUNK:
        state = state + gate * shift(state, step, 0.0)
        gate = gate * shift(gate, step, 1.0)
        step *= 2
    entering = run_chunks(gate[:, :, -1], state[:, :, -1], initial)
    found = state + gate * entering.unsqueeze(2)
    return found.flatten(1, 2)[:, :T]


def run_chunks(gate: Tensor, offset: Tensor, initial: Tensor) -> Tensor:
    """The states [B, C, ...] before each of some chunks."""

    def step(slices: Any, states: Any) -> Any:
        own, added = slices
        return [own * states[0] + added], [states[0]]

    gate = gate.expand_as(offset)
    return scan(step, [gate, offset], [initial])[0]


def count_chunks(T: int, length: int) -> int:
    """The number of chunks of T steps; at least two in an export, which would take one for a constant."""
    return (T + length - 1) // length + (1 if torch.compiler.is_exporting() else 0)


def split_chunks(x: Tensor, count: int, fill: float, length: int = CHUNK) -> Tensor:
    """Split the steps of x [B, T, ...] into chunks, the last one filled: [B, count, length, ...]."""
    missing = count * length - x.shape[1]
    x = F.pad(x, (*[0] * (2 * (x.dim() - 2)), 0, missing), value=fill)
    return x.reshape(x.shape[0], count, length, *x.shape[2:])


def shift(x: Tensor, steps: int, fill: float) -> Tensor:
    """Move x [B, C, L, ...] by some steps within each chunk, and fill the first ones."""
    return F.pad(x[:, :, :-steps], (*[0] * (2 * (x.dim() - 3)), steps, 0), value=fill)
