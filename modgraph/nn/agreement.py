"""Agreement routing (Hu et al., Scalable Modular Network, ICLR 2024, Algorithm 1), in dense forms.

Shape suffixes: N tokens, M modules, D token width, V width of a message. They compute what
`modgraph.nn.message_passing.AgreementMessagePassing` defines, and faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.keys import SMALL, Keys
from modgraph.nn.messages import WeightedSum, dense_sum, factorised_sum
from modgraph.nn.padding import cleared
from modgraph.nn.pool import Pool

Routed = tuple[Tensor, Tensor, Tensor]


class Agreement(Keys):
    """The router's weights and settings: keys t_i = Wa s_i, how often to iterate, how to update."""

    def __init__(
        self,
        width_in: int,
        width: int,
        iterations: int,
        bias: bool = False,
        update: str = "sum",
        residual: bool = False,
    ) -> None:
        super().__init__(width_in, width, bias)
        self.iterations = iterations
        self.normalised = update == "normalised"
        self.residual = residual

    def finish(self, first: Tensor, last: Tensor) -> Tensor:
        """The result from v⁰ and the last v."""
        if not self.residual:
            return last
        return F.relu(first + last) if self.iterations else F.relu(first)


def normalised(values: Tensor, total: Tensor) -> Tensor:
    """Values over the gates that came in; a module that no token reaches keeps its zero."""
    return values / torch.where(total > 0, total + SMALL, 1.0).unsqueeze(-1)


class _AgreementDense(nn.Module, ABC):
    """Agreement over the complete graph with matrices instead of edges."""

    def forward(self, tokens: Tensor, pool: Pool, router: Agreement, real: Tensor | None = None) -> Routed:
        """Tokens [..., N, D] give results [..., M, V], gates [..., N, M] and scores [..., N, M]."""
        M = len(pool)
        tokens = cleared(tokens, real)
        edges = cleared(tokens.new_ones(*tokens.shape[:-1], M), real)
        weighted_sum = self.weighted_sum(tokens, pool, real)
        first = values = weighted_sum(edges / edges.sum(-2, keepdim=True).clamp(min=1))
        scores, gates = torch.zeros_like(edges), edges / M
        if router.iterations:
            cosines = router.cosines(tokens)
        for _ in range(router.iterations):
            scores = scores + cleared(cosines(values), real)
            gates = cleared(scores.softmax(-1), real)
            values = weighted_sum(gates)
            if router.normalised:
                values = normalised(values, gates.sum(-2))
        return router.finish(first, values), gates, scores

    @abstractmethod
    def weighted_sum(self, tokens: Tensor, pool: Pool, real: Tensor | None) -> WeightedSum:
        """A function from weights c [..., N, M] to Σ_i c_ij f_j(s_i) [..., M, V]."""


class AgreementDense(_AgreementDense):
    """For any modules: every message is computed once and kept."""

    def weighted_sum(self, tokens: Tensor, pool: Pool, real: Tensor | None) -> WeightedSum:
        return dense_sum(tokens, pool, real)


class AgreementFactorised(_AgreementDense):
    """For affine modules: tokens are summed first, modules run on the sums."""

    def weighted_sum(self, tokens: Tensor, pool: Pool, real: Tensor | None) -> WeightedSum:
        return factorised_sum(tokens, pool)
