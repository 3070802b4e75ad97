"""Routing by a truncated kernel of signature and token (Rahaman et al., Neural Interpreters, 2021).

affinity_ij = exp(−(1 − cos(signature_j, Wa s_i)) / bandwidth), zero beyond the truncation, and
v_j = mean_i affinity_ij u_ij.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from modgraph.nn.keys import Keys
from modgraph.nn.messages import WeightedSum, dense_sum, factorised_sum
from modgraph.nn.padding import cleared
from modgraph.nn.pool import Pool

Routed = tuple[Tensor, Tensor]


class TruncatedKernel(Keys):
    """A signature for each module, the map from tokens to keys, and the kernel's bandwidth, which is learnt."""

    def __init__(
        self, width_in: int, width: int, modules: int, truncation: float | None = None, bias: bool = False
    ) -> None:
        super().__init__(width_in, width, bias)
        self.signature = nn.Parameter(torch.empty(modules, width))
        self.bandwidth = nn.Parameter(torch.ones(()))
        self.truncation = truncation

    def affinity(self, cosine: Tensor) -> Tensor:
        """The kernel of a cosine; zero where the distance 1 − cosine is beyond the truncation."""
        distance = 1 - cosine
        kernel = torch.exp(-distance / self.bandwidth)
        return kernel if self.truncation is None else kernel * (distance <= self.truncation)


class _KernelDense(nn.Module, ABC):
    """The kernel over the complete graph with matrices instead of edges."""

    def forward(self, tokens: Tensor, pool: Pool, router: TruncatedKernel, real: Tensor | None = None) -> Routed:
        """Tokens [..., N, D] give results [..., M, V] and gates [..., N, M]."""
        tokens = cleared(tokens, real)
        counted = cleared(tokens.new_ones(*tokens.shape[:-1], 1), real)
        affinity = cleared(router.affinity(router.cosines(tokens)(router.signature)), real)
        return self.weighted_sum(tokens, pool, real)(affinity / counted.sum(-2, keepdim=True).clamp(min=1)), affinity

    @abstractmethod
    def weighted_sum(self, tokens: Tensor, pool: Pool, real: Tensor | None) -> WeightedSum:
        """A function from weights c [..., N, M] to Σ_i c_ij f_j(s_i) [..., M, V]."""


class KernelDense(_KernelDense):
    """For any modules: every message is computed."""

    def weighted_sum(self, tokens: Tensor, pool: Pool, real: Tensor | None) -> WeightedSum:
        return dense_sum(tokens, pool, real)


class KernelFactorised(_KernelDense):
    """For affine modules: tokens are summed first, modules run on the sums."""

    def weighted_sum(self, tokens: Tensor, pool: Pool, real: Tensor | None) -> WeightedSum:
        return factorised_sum(tokens, pool)
