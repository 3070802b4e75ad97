"""Linear recurrences of matrices, S' = S diag(g) + (S x) yᵀ + Σ u zᵀ, by products of matrices over chunks of steps.

Legend: B batch, T steps, C chunks, L steps of a chunk, V rows of S, K columns; … axes of independent matrices. Gated
linear attention has no x and y (Yang et al., 2024); the delta rule has y = −β x (WY form, Yang et al., NeurIPS 2024).
No cumulative product divides another, so gates may be zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

from modgraph.nn.recurrence import CHUNK, count_chunks, split_chunks
from modgraph.nn.scan import scan

ONE_GATE, MANY_GATES = 64, 8  # steps of a chunk: with one gate for all columns, and with one for each
Pair = tuple[Tensor, Tensor]


def run_matrix_recurrence(
    gate: Tensor,
    product: Pair | None,
    outer: Sequence[Pair],
    queries: Sequence[tuple[Tensor, bool]],
    initial: Tensor,
) -> tuple[list[Tensor], Tensor, Tensor | None]:
    """Compute S q at each step for each query, the last S, and S x at each step.

    `gate` is [B, T, …, 1] or [B, T, …, K], `product` x and y [B, T, …, K], `outer` pairs u [B, T, …, V] and z
    [B, T, …, K], `initial` [B, …, V, K]. A query is q [B, T, …, K], and whether it reads the state before the step.
    The products S q and S x are [B, T, …, V].
    """
    T, length = gate.shape[1], ONE_GATE if gate.shape[-1] == 1 else MANY_GATES
    length = min(length, CHUNK if torch.compiler.is_exporting() else max(1, T))
    count = count_chunks(T, length)

    def split(x: Tensor, fill: float = 0.0) -> Tensor:
        return split_chunks(x, count, fill, length).movedim(2, -2)

    def join(x: Tensor) -> Tensor:
        return x.movedim(-2, 2).flatten(1, 2)[:, :T]

    decay = Decay(split(gate, 1.0))
    pairs = [(split(u), split(z)) for u, z in outer]
    added = sum_all([u.mT @ decay.to_end(z) for u, z in pairs])
    whole = decay.whole.unsqueeze(-2)
    x_S = x_0 = y = None  # S x = x_S Sᵀ + x_0 with the state S at the beginning of the chunk
    if product is not None:
        x, y = map(split, product)
        known = sum_all([decay.pairs(x, z, before=True) @ u for u, z in pairs])
        x_S, x_0 = solve_unit_lower(decay.pairs(x, y, before=True), [decay.from_start(x, before=True), known])
        y_end = decay.to_end(y)
        added = added + x_0.mT @ y_end
        whole = whole * torch.eye(x.shape[-1], dtype=x.dtype, device=x.device) + x_S.mT @ y_end
    entering, last = run_chunks(whole, added, initial, is_product=product is not None)
    found = []
    for query, before in queries:
        q = split(query)
        of_start, now = decay.from_start(q, before), sum_all([decay.pairs(q, z, before) @ u for u, z in pairs])
        if x_S is not None and x_0 is not None and y is not None:
            weights = decay.pairs(q, y, before)
            of_start, now = of_start + weights @ x_S, now + weights @ x_0
        found.append(join(of_start @ entering.mT + now))
    read = None if x_S is None or x_0 is None else join(x_S @ entering.mT + x_0)
    return found, last, read


def sum_all(values: Sequence[Tensor]) -> Tensor:
    found = values[0]
    for each in values[1:]:
        found = found + each
    return found


def run_chunks(whole: Tensor, added: Tensor, initial: Tensor, is_product: bool) -> tuple[Tensor, Tensor]:
    """Run S' = S ∘ whole + added over chunks [B, C, …, V, K]: the state before each chunk, and the last one."""

    def step(slices: Any, states: Any) -> Any:
        gate, more = slices
        following = (states[0] @ gate if is_product else states[0] * gate) + more
        return [following], [states[0], following]

    entering, ends = scan(step, [whole, added], [initial])
    return entering, ends[:, -1]


class Decay:
    """The cumulative products of gates [B, C, …, L, 1 or K] in each chunk: D[t, j] = Π g_i for j < i ≤ t, 0 for j > t.

    Places 1 to L are the steps, place 0 is the beginning of the chunk. D is [B, C, …, 1 or K, 1 + L, 1 + L].
    """

    def __init__(self, gate: Tensor) -> None:
        self.products = multiply_up(gate.mT)

    @property
    def whole(self) -> Tensor:
        """The product of all gates of a chunk: [B, C, …, 1 or K]."""
        return self.products[..., -1, 0]

    def from_start(self, x: Tensor, before: bool) -> Tensor:
        """x [B, C, …, L, K] times the gates from the beginning of the chunk to the step, without its own `before`."""
        column = self.products[..., :, 0]
        return x * (column[..., :-1] if before else column[..., 1:]).mT

    def to_end(self, x: Tensor) -> Tensor:
        """x [B, C, …, L, K] times the gates after the step, to the end of the chunk."""
        return x * self.products[..., -1, 1:].mT

    def pairs(self, x: Tensor, y: Tensor, before: bool) -> Tensor:
        """Σ_k x_tk D_tjk y_jk for steps t and j [B, C, …, L, L]; `before` without the own gate of t, and j < t."""
        products = self.products[..., :-1, 1:] if before else self.products[..., 1:, 1:]
        if products.shape[-3] == 1:
            return x @ y.mT * products.squeeze(-3)
        return (x.mT.unsqueeze(-1) * y.mT.unsqueeze(-2) * products).sum(-3)


def multiply_up(gate: Tensor) -> Tensor:
    """Multiply gates [..., L] from every place to every later one: [..., 1 + L, 1 + L], zero above the diagonal."""
    if torch.compiler.is_exporting() or torch.compiler.is_compiling():
        found, step = _spread(gate), 1
        while step < found.shape[-1]:
            found = found * F.pad(found[..., :-step, :], (0, 0, step, 0), value=1.0)
            step *= 2
        return found.tril()
    products: Tensor = MultiplyUp.apply(gate)  # type: ignore[no-untyped-call]
    return products


def _spread(gate: Tensor) -> Tensor:
    """The gate of each place below the diagonal, elsewhere one; place 0 has none."""
    size = gate.shape[-1] + 1
    below = torch.ones(size, size, dtype=torch.bool, device=gate.device).tril(-1)
    return torch.where(below, F.pad(gate, (1, 0), value=1.0).unsqueeze(-1), 1.0)


class MultiplyUp(torch.autograd.Function):
    """The products, with a gradient that divides by no gate."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor) -> Tensor:
        found = _spread(gate).cumprod(-2).tril()
        ctx.save_for_backward(gate, found)
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        gate, found = ctx.saved_tensors
        grad: Tensor = grads[0]
        found = multiply_up(gate) if torch.is_grad_enabled() else found
        below: Tensor = found.mT @ grad
        of_gate: Tensor = (below[..., 1:, :] * found[..., :-1, :]).sum(-1)
        return of_gate


def solve_unit_lower(lower: Tensor, columns: Sequence[Tensor]) -> list[Tensor]:
    """Solve (1 − lower) x = columns for strictly lower triangular matrices [..., L, L] and columns [..., L, N]."""
    if torch.compiler.is_exporting():
        inverse = _invert(lower)
        return [inverse @ each for each in columns]
    matrix = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device) - lower
    solve = partial(torch.linalg.solve_triangular, matrix, upper=False, unitriangular=True)
    return [solve(each) for each in columns]


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
