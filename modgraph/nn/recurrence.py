"""Linear recurrences h' = a ⊙ h + b over all steps. B is the batch axis, T that of steps."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

from modgraph.nn.scan import scan

CHUNK = 32  # steps that are computed together where the number of steps is unknown
WIDE = 4_096  # numbers of a step that take as long as a call
SHORT = 16  # steps that run one after another
LEVELS = 5  # of pairs: products of more gates may overflow where the states do not


def run_recurrence(gate: Tensor | float, offset: Tensor, initial: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the states [B, T, ...] of h_t = gate_t ⊙ h_(t−1) + offset_t from h_0 [B, ...], and the last one.

    `gate` [B, T, ...] broadcasts against `offset` [B, T, ...]; it may be one number.
    """
    if offset.shape[1] == 0:
        return offset, initial
    if not isinstance(gate, Tensor):
        if gate == 1:
            states = offset.cumsum(1) + initial.unsqueeze(1)
            return states, states[:, -1]
        gate = offset.new_full((1,) * offset.dim(), gate)
    gate = gate.expand(-1, offset.shape[1], *[-1] * (gate.dim() - 2))
    if is_traced():
        states = _double(gate, offset, initial)
        return states, states[:, -1]
    found: tuple[Tensor, Tensor] = Steps.apply(gate, offset, initial)  # type: ignore[no-untyped-call]
    return found


def is_opaque() -> bool:
    """Whether `torch.compile` traces, which takes kernels as ops of their own; as text they would be unrolled."""
    return torch.compiler.is_compiling() and not torch.compiler.is_exporting()


def is_traced() -> bool:
    """Whether the number of steps is unknown, or a loop over them would be unrolled."""
    if is_opaque():
        return False
    return torch.compiler.is_exporting() or torch.compiler.is_compiling()


class Steps(torch.autograd.Function):
    """The recurrence over pairs of steps, pairs of pairs, and so on. Its gradient is a recurrence backward in time."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, offset: Tensor, initial: Tensor) -> tuple[Tensor, Tensor]:
        states = _run(gate, offset, initial, reverse=False)
        ctx.save_for_backward(gate, initial, states)
        ctx.set_materialize_grads(False)
        return states, states[:, -1].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        gate, initial, states = ctx.saved_tensors
        grad, of_last = grads
        if grad is None:
            grad = torch.zeros_like(states)
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # differentiated again
            if of_last is not None:
                grad = torch.cat([grad[:, :-1], grad[:, -1:] + of_last.unsqueeze(1)], 1)
            after = torch.cat([gate[:, 1:], torch.ones_like(gate[:, :1])], 1).flip(1)
            of_offset = run_recurrence(after, grad.flip(1), torch.zeros_like(grad[:, 0]))[0].flip(1)
            of_gate = of_offset * shift_states(states, initial)
        else:
            of_offset = _run(gate, grad, of_last, reverse=True)
            of_gate = _multiply_states(of_offset, states, initial)
        return of_gate.sum_to_size(gate.shape), of_offset, (gate[:, 0] * of_offset[:, 0]).sum_to_size(initial.shape)


def shift_states(states: Tensor, initial: Tensor) -> Tensor:
    """The state before each step, from the states [B, T, ...] after each step and the initial one [B, ...]."""
    return torch.cat([initial.unsqueeze(1), states[:, :-1]], 1)


def _run(gate: Tensor, offset: Tensor, initial: Tensor | None, reverse: bool) -> Tensor:
    """All states [B, T, ...]. In `reverse` it runs from the last step, and h_t = gate_(t+1) ⊙ h_(t+1) + offset_t;
    `initial` is then added to the last offset."""
    if is_opaque():
        found: Tensor = recurrence_op(gate, offset, initial, reverse)
        return found
    states = torch.empty_like(offset, memory_format=torch.contiguous_format)
    _fill(states, gate[:, 1:] if reverse else gate, offset, initial, reverse)
    return states


@torch.library.custom_op("modgraph::recurrence", mutates_args=())
def recurrence_op(gate: Tensor, offset: Tensor, initial: Tensor | None, reverse: bool) -> Tensor:
    """All states, as one op of a compiled graph."""
    return _run(gate, offset, initial, reverse)


@recurrence_op.register_fake
def _(gate: Tensor, offset: Tensor, initial: Tensor | None, reverse: bool) -> Tensor:
    return torch.empty_like(offset, memory_format=torch.contiguous_format)


def _multiply_states(x: Tensor, states: Tensor, initial: Tensor) -> Tensor:
    """Multiply x by the state before each step, without a copy of the states."""
    if is_opaque():
        return x * shift_states(states, initial)
    found = torch.empty_like(x)
    torch.mul(x[:, :1], initial.unsqueeze(1), out=found[:, :1])
    torch.mul(x[:, 1:], states[:, :-1], out=found[:, 1:])
    return found


def _fill(
    states: Tensor, gate: Tensor, offset: Tensor, initial: Tensor | None, reverse: bool, levels: int = LEVELS
) -> None:
    """Fill in the states. Every other one is a recurrence over pairs of steps, and gives the one after it.

    Pairs need fewer calls and more arithmetic, so wide states run step by step.
    """
    T = offset.shape[1]
    if T < SHORT or offset.numel() > WIDE * T or not levels:
        _fill_steps(states, gate, offset, initial, reverse)
        return
    p, end = T % 2, T - 1
    if reverse:
        late, early, own, before = slice(p, end, 2), slice(p + 1, None, 2), slice(p, T - 2, 2), slice(p + 1, T - 2, 2)
        first, others, known, others_own = end, slice(1 - p, T - 2, 2), slice(2 - p, end, 2), slice(1 - p, T - 2, 2)
    else:
        late, early, own, before = slice(1, None, 2), slice(0, end, 2), slice(1, None, 2), slice(0, end, 2)
        first, others, known, others_own = 0, slice(2, None, 2), slice(1, end, 2), slice(2, None, 2)
    pairs = torch.addcmul(offset[:, late], gate[:, late], offset[:, early], out=states[:, late])
    if reverse and initial is not None:
        pairs[:, -1].addcmul_(gate[:, -1], initial)
    of_pairs = gate[:, own] * gate[:, before]
    _fill(states[:, late], of_pairs, pairs, None if reverse else initial, reverse, levels - 1)
    _fill_steps(states[:, first : first + 1], gate[:, :1], offset[:, first : first + 1], initial, reverse)
    torch.addcmul(offset[:, others], gate[:, others_own], states[:, known], out=states[:, others])


def _fill_steps(states: Tensor, gate: Tensor, offset: Tensor, initial: Tensor | None, reverse: bool) -> None:
    order = slice(None, None, -1 if reverse else 1)
    gates, offsets, found = gate.unbind(1)[order], offset.unbind(1)[order], states.unbind(1)[order]
    if reverse or initial is None:
        first = found[0].copy_(offsets[0]) if initial is None else torch.add(offsets[0], initial, out=found[0])
        offsets, found, initial = offsets[1:], found[1:], first
    for own, added, state in zip(gates, offsets, found, strict=False):
        initial = torch.addcmul(added, own, initial, out=state)


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
    if is_traced() or missing:
        x = F.pad(x, (*[0] * (2 * (x.dim() - 2)), 0, missing), value=fill)
    return x.reshape(x.shape[0], count, length, *x.shape[2:])


def shift(x: Tensor, steps: int, fill: float) -> Tensor:
    """Move x [B, C, L, ...] by some steps within each chunk, and fill the first ones."""
    return F.pad(x[:, :, :-steps], (*[0] * (2 * (x.dim() - 3)), steps, 0), value=fill)
