"""Linear recurrences of matrices, S' = S diag(g) + Σ w zᵀ, by products of matrices over chunks of steps.

Legend: B batch, T steps, C chunks, L steps of a chunk, V rows of S, K columns; … axes of independent matrices. Gated
linear attention knows each w (Yang et al., 2024); by the delta rule the first is w = u + c S x (UT form, Yang et al.,
NeurIPS 2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from modgraph.nn.chunk_weights import weigh
from modgraph.nn.recurrence import CHUNK, count_chunks, is_opaque, is_traced, run_recurrence, shift_states, split_chunks
from modgraph.nn.scan import scan

ONE_GATE, MANY_GATES = 32, 16  # steps of a chunk: with one gate for all columns, and with one for each
TRACED = 8  # the same with one for each, where all products of gates are computed
Pair = tuple[Tensor, Tensor]


def run_matrix_recurrence(
    gate: Tensor,
    product: Pair | None,
    outer: Sequence[Pair],
    queries: Sequence[tuple[Tensor, bool]],
    initial: Tensor,
    reads: bool = False,
) -> tuple[list[Tensor], Tensor, Tensor | None]:
    """Compute S q at each step for each query, the last S, and S x at each step if something `reads` that.

    `gate` is [B, T, …, 1] or [B, T, …, K], `outer` pairs u [B, T, …, V] and z [B, T, …, K], `initial` [B, …, V, K].
    With `product`, x [B, T, …, K] and c [B, T, …, 1], the product c S x is added to the first u. A query is
    q [B, T, …, K], and whether it reads the state before the step. The products S q and S x are [B, T, …, V].
    """
    T, many = gate.shape[1], TRACED if is_traced() else MANY_GATES
    length = ONE_GATE if gate.shape[-1] == 1 else many
    length = min(length, CHUNK if torch.compiler.is_exporting() else max(1, T))
    count = count_chunks(T, length)

    def split(x: Tensor, fill: float = 0.0) -> Tensor:
        return split_chunks(x, count, fill, length).movedim(2, -2).contiguous()

    def join(x: Tensor) -> Tensor:
        return x.movedim(-2, 2).flatten(1, 2)[:, :T]

    w, z = [split(u) for u, _ in outer], [split(z) for _, z in outer]
    asked = [(split(q), before) for q, before in queries]
    asked = asked if product is None else [(split(product[0]), True), *asked]
    from_start, pairs, ends, whole = weigh(split(gate, 1.0), z, asked)
    of_state = None  # w[0] is itself plus of_state Sᵀ, with the state S at the beginning of the chunk
    whole = whole.unsqueeze(-2)
    if product is not None:
        c = split(product[1])
        known = sum_all([w[0], *(c * (pair @ u) for pair, u in zip(pairs[0][1:], w[1:], strict=True))])
        of_state, w[0] = solve_unit_lower(c * pairs[0][0], [c * from_start[0], known])
        whole = whole * torch.eye(z[0].shape[-1], dtype=gate.dtype, device=gate.device) + of_state.mT @ ends[0]
    added = sum_all([u.mT @ end for u, end in zip(w, ends, strict=True)])
    entering, last = run_chunks(whole, added, initial, is_product=product is not None)
    if of_state is not None:
        w[0] = w[0] + of_state @ entering.mT
    if product is not None and not reads:
        from_start, pairs = from_start[1:], pairs[1:]
    found = [
        join(sum_all([start @ entering.mT, *(pair @ u for pair, u in zip(own, w, strict=True))]))
        for start, own in zip(from_start, pairs, strict=True)
    ]
    read = found.pop(0) if len(found) > len(queries) else None
    return found, last, read


def sum_all(values: Sequence[Tensor]) -> Tensor:
    found = values[0]
    for each in values[1:]:
        found = found + each
    return found


def run_chunks(whole: Tensor, added: Tensor, initial: Tensor, is_product: bool) -> tuple[Tensor, Tensor]:
    """Run S' = S ∘ whole + added over chunks [B, C, …, V, K]: the state before each chunk, and the last one."""
    if is_traced():

        def step(slices: Any, states: Any) -> Any:
            gate, more = slices
            following = (states[0] @ gate if is_product else states[0] * gate) + more
            return [following], [states[0], following]

        entering, ends = scan(step, [whole, added], [initial])
        return entering, ends[:, -1]
    if is_product:
        states = multiply_chunks(whole, added, initial)
        return states[:, :-1], states[:, -1]
    states, last = run_recurrence(whole, added, initial)
    return shift_states(states, initial), last


def multiply_chunks(factor: Tensor, added: Tensor, initial: Tensor) -> Tensor:
    """Run S' = S factor + added over chunks: S before each chunk, and the last one, [B, 1 + C, …, V, K]."""
    dtype = torch.promote_types(torch.promote_types(factor.dtype, added.dtype), initial.dtype)
    added = added.to(dtype).expand(-1, -1, *initial.shape[1:])
    factor = factor.to(dtype).expand(*added.shape[:-2], -1, -1)
    found: Tensor = MultiplyChunks.apply(factor, added, initial.to(dtype))  # type: ignore[no-untyped-call]
    return found


class MultiplyChunks(torch.autograd.Function):
    """The products, whose gradient is the same backward in time."""

    @staticmethod
    def forward(ctx: Any, factor: Tensor, added: Tensor, initial: Tensor) -> Tensor:
        states = _multiply_chunks(factor, added, initial)
        ctx.save_for_backward(factor, states)
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        factor, states = ctx.saved_tensors
        (grad,) = grads
        reverse = multiply_chunks(factor.mT.flip(1), grad[:, :-1].flip(1), grad[:, -1]).flip(1)
        return states[:, :-1].mT @ reverse[:, 1:], reverse[:, 1:], reverse[:, 0]


def _multiply_chunks(factor: Tensor, added: Tensor, initial: Tensor) -> Tensor:
    if is_opaque():
        found: Tensor = multiply_chunks_op(factor, added, initial)
        return found
    states = [initial]
    for own, more in zip(factor.unbind(1), added.unbind(1), strict=True):
        states.append(states[-1] @ own + more)
    return torch.stack(states, 1)


@torch.library.custom_op("modgraph::multiply_chunks", mutates_args=())
def multiply_chunks_op(factor: Tensor, added: Tensor, initial: Tensor) -> Tensor:
    """The products, as one op of a compiled graph."""
    return _multiply_chunks(factor, added, initial)


@multiply_chunks_op.register_fake
def _(factor: Tensor, added: Tensor, initial: Tensor) -> Tensor:
    return added.new_empty(len(added), added.shape[1] + 1, *added.shape[2:])


def solve_unit_lower(lower: Tensor, columns: Sequence[Tensor]) -> list[Tensor]:
    """Solve (1 − lower) x = columns for strictly lower triangular matrices [..., L, L] and columns [..., L, N]."""
    if torch.compiler.is_exporting():
        inverse = _invert(lower)
        return [inverse @ each for each in columns]
    dtype = torch.promote_types(lower.dtype, torch.float32)  # there is no solver of half precision
    given = torch.cat([each.to(dtype) for each in columns], -1)
    found = torch.linalg.solve_triangular(-lower.to(dtype), given, upper=False, unitriangular=True).to(lower.dtype)
    return [*torch.split(found, [each.shape[-1] for each in columns], -1)]


def _invert(lower: Tensor) -> Tensor:
    """The inverse of 1 − lower, by blocks: each round inverts blocks of twice the size, which cancels nothing."""
    size = lower.shape[-1]
    place = torch.arange(size, device=lower.device)
    found, step = torch.eye(size, dtype=lower.dtype, device=lower.device), 1
    while step < size:
        block = place // step
        is_below = (block.unsqueeze(-1) == block + 1) & (block % 2 == 0)
        found = found + found @ torch.where(is_below, lower, 0.0) @ found
        step *= 2
    return found
