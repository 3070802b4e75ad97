"""Messages f_j(s_i): along chosen edges, or summed over tokens with weights, for all pairs.

Shape suffixes: E edges, N tokens, M modules, D token width, V width of a message.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from modgraph.nn.padding import cleared
from modgraph.nn.pool import Pool

WeightedSum = Callable[[Tensor], Tensor]


def edge_messages(tokens_ED: Tensor, module_E: Tensor, pool: Pool) -> Tensor:
    """f_j(s_i) on every edge, each module on the edges that lead to it."""
    edges_of = [(module_E == j).nonzero().squeeze(1) for j in range(len(pool))]
    results = [pool.expert(j)(tokens_ED[edges]) for j, edges in enumerate(edges_of)]
    return torch.cat(results)[torch.cat(edges_of).argsort()]


def matrix(x_E: Tensor, token_E: Tensor, module_E: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Values on edges as a matrix of tokens by modules, zero where no edge runs."""
    values = x_E.new_zeros(shape).reshape(-1, shape[-1])
    return values.index_put((token_E, module_E), x_E).reshape(shape)


def dense_sum(tokens: Tensor, pool: Pool, real: Tensor | None = None) -> WeightedSum:
    """A function from weights c [..., N, M] to Σ_i c_ij f_j(s_i) [..., M, V], every message kept but of padding."""
    messages = cleared(pool.all(tokens), None if real is None else real.unsqueeze(-1))
    return lambda c: torch.einsum("...nm,...nmv->...mv", c, messages)


def factorised_sum(tokens: Tensor, pool: Pool) -> WeightedSum:
    """The same for affine modules, tokens summed first: f(Σ c s) + (Σ c − 1) f(0) = Σ c f(s)."""
    offset = pool.rows(tokens.new_zeros(len(pool), tokens.shape[-1]))

    def weighted_sum(c: Tensor) -> Tensor:
        sums = torch.einsum("...nm,...nd->...md", c, tokens)
        return pool.rows(sums) + (c.sum(-2) - 1).unsqueeze(-1) * offset

    return weighted_sum
