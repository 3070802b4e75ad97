"""Agreement routing (Hu et al., Scalable Modular Network, ICLR 2024, Algorithm 1), in three equal forms.

Shape suffixes: B examples, N tokens, M modules, D token width, V width of a message, E edges; an edge runs from a
token to a module. The message passing form is the definition; the dense forms compute the same faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn
from torch_geometric.utils import scatter, softmax

from modgraph.nn.keys import SMALL, Keys, unit
from modgraph.nn.message_passing import MessagePassing
from modgraph.nn.messages import WeightedSum, edge_messages, factorised, kept, matrix
from modgraph.nn.padding import valid
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


class AgreementMessagePassing(MessagePassing):
    """The definition: tokens send f_j(s_i) to modules along every edge, weighted by c_ij, round after round."""

    def __init__(self) -> None:
        super().__init__(aggr="add", node_dim=0)

    def forward(self, tokens: Tensor, pool: Pool, router: Agreement, length: Tensor | None = None) -> Routed:
        """Tokens [..., N, D] give results [..., M, V], gates [..., N, M] and scores [..., N, M]."""
        *outer, N, D = tokens.shape
        M = len(pool)
        tokens_SD = tokens.reshape(-1, D)
        edges = complete(tokens, M, length)
        size = (tokens_SD.shape[0], tokens_SD.shape[0] // N * M)
        sender_E, receiver_E = edges
        module_E = receiver_E % M

        messages = edge_messages(tokens_SD[sender_E], module_E, pool)
        score_E = messages.new_zeros(messages.shape[0])
        gate_E = torch.full_like(score_E, 1 / M)
        first = self.propagate(edges, messages=messages, weight=shares(receiver_E, size[1], messages), size=size)
        keys, values = router.keys(tokens_SD), first
        for _ in range(router.iterations):
            score_E = score_E + self.edge_updater(edges, keys=keys, values=unit(values), size=size)
            gate_E = softmax(score_E, sender_E, num_nodes=size[0])
            values = self.propagate(edges, messages=messages, weight=gate_E, size=size)
            if router.normalised:
                total = scatter(gate_E, receiver_E, dim_size=size[1])
                values = normalised(values, total)
        result = router.finish(first, values).reshape(*outer, M, -1)
        gates, scores = (matrix(x_E, sender_E, module_E, (*outer, N, M)) for x_E in (gate_E, score_E))
        return result, gates, scores

    def message(self, messages: Tensor, weight: Tensor) -> Tensor:
        """What an edge carries."""
        return messages * weight.unsqueeze(-1)

    def edge_update(self, keys_j: Tensor, values_i: Tensor) -> Tensor:
        """The agreement of a token's key with a module's value: their cosine."""
        return (keys_j * values_i).sum(-1)


def complete(tokens: Tensor, M: int, length: Tensor | None) -> Tensor:
    """An edge from every real token to every module of its example: [2, E]."""
    outer = tokens.shape[:-1]
    mask = valid(tokens, -2, length)
    real = torch.ones(outer, dtype=torch.bool) if mask is None else mask.squeeze(-1).expand(outer)
    sender_E = real.reshape(-1).nonzero().squeeze(1).repeat_interleave(M).to(tokens.device)
    module_E = torch.arange(M, device=tokens.device).repeat(sender_E.numel() // M)
    return torch.stack((sender_E, sender_E // tokens.shape[-2] * M + module_E))


def shares(receiver_E: Tensor, receivers: int, like: Tensor) -> Tensor:
    """One over the number of edges into the receiver, on every edge."""
    ones = torch.ones(receiver_E.shape, dtype=like.dtype, device=like.device)
    total: Tensor = scatter(ones, receiver_E, dim_size=receivers)
    return ones / total[receiver_E]


class _AgreementDense(nn.Module, ABC):
    """Agreement over the complete graph with matrices instead of edges."""

    def forward(self, tokens: Tensor, pool: Pool, router: Agreement, length: Tensor | None = None) -> Routed:
        """Tokens [..., N, D] give results [..., M, V], gates [..., N, M] and scores [..., N, M]."""
        M = len(pool)
        mask = valid(tokens, -2, length)
        ones = tokens.new_ones(*tokens.shape[:-1], M)
        real = ones if mask is None else ones * mask
        weighted_sum = self.weighted_sum(tokens, pool)
        first = values = weighted_sum(real / real.sum(-2, keepdim=True).clamp(min=1))
        scores, gates = torch.zeros_like(real), real / M
        if router.iterations:
            cosines = router.cosines(tokens)
        for _ in range(router.iterations):
            scores = scores + cosines(values) * real
            gates = scores.softmax(-1) * real
            values = weighted_sum(gates)
            if router.normalised:
                values = normalised(values, gates.sum(-2))
        return router.finish(first, values), gates, scores

    @abstractmethod
    def weighted_sum(self, tokens: Tensor, pool: Pool) -> WeightedSum:
        """A function from weights c [..., N, M] to Σ_i c_ij f_j(s_i) [..., M, V]."""


class AgreementDense(_AgreementDense):
    """For any modules: every message is computed once and kept."""

    def weighted_sum(self, tokens: Tensor, pool: Pool) -> WeightedSum:
        return kept(tokens, pool)


class AgreementFactorised(_AgreementDense):
    """For affine modules: tokens are summed first, modules run on the sums."""

    def weighted_sum(self, tokens: Tensor, pool: Pool) -> WeightedSum:
        return factorised(tokens, pool)
