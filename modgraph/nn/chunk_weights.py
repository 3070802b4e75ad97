"""How the steps of a chunk read the steps before them: products of the gates between.

Legend: L steps of a chunk, K columns; … all axes before. No cumulative product divides another, so gates may be zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

from modgraph.nn.recurrence import is_opaque, is_traced, run_recurrence

Parts = tuple[Tensor, Tensor, Tensor, Tensor]
Queries = Sequence[tuple[Tensor, bool]]  # q […, L, K], and whether it reads the state before its step


class Weights(NamedTuple):
    """With D[t, j] = Π g_i for j < i ≤ t, where 0 is the beginning of the chunk, and t − 1 in place of t for a query
    that reads before its step."""

    from_start: list[Tensor]  # of each query, q_t D[t, 0]: […, L, K]
    pairs: list[list[Tensor]]  # of each query and key, Σ_k q_t D[t, j] z_j, 0 for later j: […, L, L]
    ends: list[Tensor]  # of each key, z_j D[L, j]: […, L, K]
    whole: Tensor  # D[L, 0]: […, 1 or K]


def weigh(gate: Tensor, keys: Sequence[Tensor], queries: Queries) -> Weights:
    """Weigh keys […, L, K] and queries by the gates […, L, 1 or K] of a chunk."""
    if gate.shape[-1] == 1 or is_traced():
        return _weigh_by_products(gate, keys, queries)
    before = [each for _, each in queries]
    start = accumulate(gate)
    from_start = [q * (F.pad(start[..., :-1, :], (0, 0, 1, 0), value=1.0) if each else start) for q, each in queries]
    found = [_weigh_key(gate, z, [q for q, _ in queries], before) for z in keys]
    pairs = [[each[at] for each in found] for at in range(len(queries))]
    return Weights(from_start, pairs, [each[-1] for each in found], start[..., -1, :])


def _weigh_by_products(gate: Tensor, keys: Sequence[Tensor], queries: Queries) -> Weights:
    after, before, start, end = multiply_up(gate.mT)

    def pair(q: Tensor, z: Tensor, products: Tensor) -> Tensor:
        if gate.shape[-1] == 1:
            return q @ z.mT * products.squeeze(-3)
        return (q.mT.unsqueeze(-1) * z.mT.unsqueeze(-2) * products).sum(-3)

    from_start = [q * (start[..., :-1] if each else start[..., 1:]).mT for q, each in queries]
    pairs = [[pair(q, z, before if each else after) for z in keys] for q, each in queries]
    return Weights(from_start, pairs, [z * end.mT for z in keys], start[..., -1])


def accumulate(gate: Tensor) -> Tensor:
    """The products of gates […, L, K] from the beginning of the chunk to each step."""
    gates = gate.flatten(0, -3)
    return run_recurrence(gates, torch.zeros_like(gates), torch.ones_like(gates[:, 0]))[0].reshape(gate.shape)


def _weigh_key(gate: Tensor, z: Tensor, queries: Sequence[Tensor], before: Sequence[bool]) -> Sequence[Tensor]:
    lead = torch.broadcast_shapes(*(x.shape[:-2] for x in (gate, z, *queries)))  # type: ignore[no-untyped-call]
    dtype = reduce(torch.promote_types, (x.dtype for x in (gate, z, *queries)))
    flat = [x.to(dtype).expand(*lead, *x.shape[-2:]).flatten(0, -3) for x in (gate, z, *queries)]
    found = WeighKey.apply(before, *flat)  # type: ignore[no-untyped-call]
    return [x.unflatten(0, lead) for x in found]


class WeighKey(torch.autograd.Function):
    """The pairs [N, L, L] of each query [N, L, K] with a key [N, L, K], and the key at the end of the chunk.

    The keys of all steps decay together, step by step, and each query reads them at its step.
    """

    @staticmethod
    def forward(ctx: Any, before: Sequence[bool], gate: Tensor, z: Tensor, *queries: Tensor) -> tuple[Tensor, ...]:
        ctx.save_for_backward(gate, z, *queries)
        ctx.before = before
        return (*_read_key([*before], gate, z, [*queries]),)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        gate, z, *queries = ctx.saved_tensors
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # differentiated again
            _, pairs, ends, _ = _weigh_by_products(gate, [z], [*zip(queries, ctx.before, strict=True)])
            values = [*(pair for (pair,) in pairs), *ends]
            return None, *torch.autograd.grad(values, ctx.saved_tensors, grads, create_graph=True, allow_unused=True)
        return None, *_read_key_gradients([*ctx.before], gate, z, queries, [*grads])


def _read_key(before: list[bool], gate: Tensor, z: Tensor, queries: list[Tensor]) -> list[Tensor]:
    if is_opaque():
        found: list[Tensor] = read_key_op(before, gate, z, queries)
        return found
    gates, decayed = gate.transpose(0, 1).contiguous(), z.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    pairs = [z.new_zeros(len(z), len(decayed), len(decayed)) for _ in queries]

    def read(step: int, count: int, is_before: bool) -> None:
        for pair, q, each in zip(pairs, queries, before, strict=True):
            if each is is_before:
                pair[:, step : step + 1, :count] = q[:, step : step + 1] @ decayed[:count].permute(1, 2, 0)

    for step, gate in enumerate(gates):
        read(step, step, True)
        decayed[:step] *= gate
        read(step, step + 1, False)
    return [*pairs, decayed.transpose(0, 1).contiguous()]


def _read_key_gradients(
    before: list[bool], gate: Tensor, z: Tensor, queries: list[Tensor], grads: list[Tensor]
) -> list[Tensor]:
    """The gradients of the gate, the key and the queries."""
    if is_opaque():
        found: list[Tensor] = read_key_gradients_op(before, gate, z, queries, grads)
        return found
    gates, keys, (*of_pairs, of_end) = gate.transpose(0, 1).contiguous(), z.transpose(0, 1), grads
    all_decayed = [keys[:1]]  # the keys after each step
    for step in range(1, len(keys)):
        all_decayed.append(torch.cat([all_decayed[-1] * gates[step], keys[step : step + 1]]))
    of_decayed = of_end.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    of_gate, of_queries = torch.zeros_like(gates), [q.new_zeros(q.shape) for q in queries]

    def add(step: int, decayed: Tensor, is_before: bool) -> None:
        for of_pair, of_q, q, each in zip(of_pairs, of_queries, queries, before, strict=True):
            if each is is_before:
                weights = of_pair[:, step : step + 1, : len(decayed)]
                of_q[:, step : step + 1] = weights @ decayed.transpose(0, 1)
                of_decayed[: len(decayed)].addcmul_(weights.permute(2, 0, 1), q[:, step])

    for step in reversed(range(len(keys))):
        add(step, all_decayed.pop(), False)
        if step:
            of_gate[step] = (of_decayed[:step] * all_decayed[-1]).sum(0)
            of_decayed[:step] *= gates[step]
            add(step, all_decayed[-1], True)
    return [of_gate.transpose(0, 1).contiguous(), of_decayed.transpose(0, 1).contiguous(), *of_queries]


@torch.library.custom_op("modgraph::read_key", mutates_args=())
def read_key_op(before: list[bool], gate: Tensor, z: Tensor, queries: list[Tensor]) -> list[Tensor]:
    """The pairs and the end of a key, as one op of a compiled graph."""
    return _read_key(before, gate, z, queries)


@read_key_op.register_fake
def _(before: list[bool], gate: Tensor, z: Tensor, queries: list[Tensor]) -> list[Tensor]:
    N, L, K = z.shape
    return [*(z.new_empty(N, L, L) for _ in queries), z.new_empty(N, L, K)]


@torch.library.custom_op("modgraph::read_key_gradients", mutates_args=())
def read_key_gradients_op(
    before: list[bool], gate: Tensor, z: Tensor, queries: list[Tensor], grads: list[Tensor]
) -> list[Tensor]:
    """Their gradients, as one op of a compiled graph."""
    return _read_key_gradients(before, gate, z, queries, grads)


@read_key_gradients_op.register_fake
def _(before: list[bool], gate: Tensor, z: Tensor, queries: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
    return [each.new_empty(each.shape) for each in (gate, z, *queries)]


def multiply_up(gate: Tensor) -> Parts:
    """Multiply gates [..., L] from each place to each later one: D[t, j] = Π g_i for j < i ≤ t, 0 for j > t.

    Places 1 to L are the steps, place 0 is the beginning of the chunk. The results are D of steps [..., L, L], that
    with the place before each step in place of the step, D from the beginning [..., 1 + L], and to the end [..., L].
    """
    products: Parts = _double(gate) if is_traced() or is_opaque() else MultiplyUp.apply(gate)  # type: ignore[no-untyped-call]
    return products


def _double(gate: Tensor) -> Parts:
    found, step = _spread(gate), 1
    while step < found.shape[-1]:
        found = found * F.pad(found[..., :-step, :], (0, 0, step, 0), value=1.0)
        step *= 2
    return _take_parts(found.tril())


def _take_parts(products: Tensor) -> Parts:
    return products[..., 1:, 1:], products[..., :-1, 1:], products[..., 0], products[..., -1, 1:]


def _spread(gate: Tensor) -> Tensor:
    """The gate of each place below the diagonal, elsewhere one; place 0 has none."""
    size = gate.shape[-1] + 1
    below = torch.ones(size, size, dtype=torch.bool, device=gate.device).tril(-1)
    return torch.where(below, F.pad(gate, (1, 0), value=1.0).unsqueeze(-1), 1.0)


class MultiplyUp(torch.autograd.Function):
    """The products, with a gradient that divides by no gate."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor) -> tuple[Tensor, ...]:
        found = _spread(gate).cumprod(-2).tril()
        ctx.save_for_backward(gate, found)
        ctx.set_materialize_grads(False)
        return _take_parts(found)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Tensor:
        gate, found = ctx.saved_tensors
        if torch.is_grad_enabled():  # differentiated again
            values = [part for part, own in zip(_double(gate), grads, strict=True) if own is not None]
            given = [own for own in grads if own is not None]
            again: Tensor = torch.autograd.grad(values, gate, given, create_graph=True)[0]
            return again
        grad = torch.zeros_like(found)
        for part, own in zip(_take_parts(grad), grads, strict=True):
            if own is not None:
                part.add_(own)
        below: Tensor = found.mT @ grad
        of_gate: Tensor = (below[..., 1:, :] * found[..., :-1, :]).sum(-1)
        return of_gate
