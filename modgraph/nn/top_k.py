"""Routers that send each token to k modules, in two equal forms.

Shape suffixes: S tokens of all examples, M modules, E edges (a token and a module chosen for it).
A router module gives, for tokens [..., N, D], the gates, scores, choices and loads of all modules, each [..., N, M].
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from modgraph.nn.messages import edge_messages
from modgraph.nn.padding import valid
from modgraph.nn.pool import Pool
from modgraph.nn.shard import standard_normal

Decision = tuple[Tensor, Tensor, Tensor, Tensor]
Routed = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
LEAST_NOISE = 0.01


def top_k_mask(scores: Tensor, k: int) -> Tensor:
    """True at the k largest along the last axis, of equal ones the first: k rounds of argmax."""
    chosen = torch.zeros_like(scores, dtype=torch.bool)
    for _ in range(k):
        best = scores.masked_fill(chosen, -torch.inf).argmax(-1, keepdim=True)
        chosen = chosen.scatter(-1, best, True)
    return chosen


def normal_cdf(x: Tensor) -> Tensor:
    """Φ(x)."""
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))


class NoisyTopK(nn.Module):
    """Noisy top-k gating (Shazeer et al., 2017, section 2.1 and appendix A)."""

    def __init__(self, width_in: int, modules: int, k: int, noise: bool = True, softmax: str = "after_top_k") -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(modules, width_in))
        self.noise_weight = nn.Parameter(torch.zeros(modules, width_in))
        self.k = k
        self.noise = noise
        self.softmax_first = softmax == "before_top_k"

    def forward(self, tokens: Tensor, length: Tensor | None = None) -> Decision:
        """Gates, scores (without noise), choices and loads, [..., N, M]; zero for padding."""
        scores = F.linear(tokens, self.weight)
        deviation = F.softplus(F.linear(tokens, self.noise_weight)) + LEAST_NOISE
        noisy = scores + standard_normal(scores) * deviation if self.noise and self.training else scores
        selected = top_k_mask(noisy, self.k)
        if self.softmax_first:
            gates = noisy.softmax(-1) * selected
        else:
            gates = noisy.masked_fill(~selected, -torch.inf).softmax(-1)
        load = self._load(scores, noisy, selected, deviation)
        mask = valid(tokens, -2, length)
        real = torch.ones_like(scores[..., :1]) if mask is None else mask.to(scores.dtype)
        return gates * real, scores * real, selected * real, load * real

    def _load(self, scores: Tensor, noisy: Tensor, selected: Tensor, deviation: Tensor) -> Tensor:
        """The chance that a module stays among the top k if its noise alone is drawn anew."""
        if self.k == scores.shape[-1]:
            return torch.ones_like(scores)
        least = noisy.masked_fill(~selected, torch.inf).amin(-1, keepdim=True)
        next_best = noisy.masked_fill(selected, -torch.inf).amax(-1, keepdim=True)
        return normal_cdf((scores - torch.where(selected, next_best, least)) / deviation)


class SelectedMessagePassing(MessagePassing):  # type: ignore[misc]
    """The definition: chosen modules send f_j(x_i) to the token, weighted by its gate."""

    def __init__(self) -> None:
        super().__init__(aggr="add", node_dim=0)

    def forward(self, tokens: Tensor, pool: Pool, router: nn.Module, length: Tensor | None = None) -> Routed:
        """Tokens [..., N, message] give results [..., N, result], and the router's records."""
        gates, scores, selected, load = router(tokens, length)
        M, message = len(pool), tokens.shape[-pool.rank :]
        tokens_S = tokens.reshape(-1, *message)
        token_E, module_E = selected.reshape(-1, M).nonzero(as_tuple=True)
        messages = edge_messages(tokens_S[token_E], module_E, pool)
        weight = gates.reshape(-1, M)[token_E, module_E]
        edges, size = torch.stack((module_E, token_E)), (M, tokens_S.shape[0])
        values = self.propagate(edges, messages=messages.flatten(1), weight=weight, size=size)
        return values.reshape(*gates.shape[:-1], *messages.shape[1:]), gates, scores, selected, load

    def message(self, messages: Tensor, weight: Tensor) -> Tensor:
        """What an edge carries."""
        return messages * weight.unsqueeze(-1)


class SelectedPerModule(nn.Module):
    """Each module once, on the tokens that chose it, its results added back: only what is chosen is computed."""

    def forward(self, tokens: Tensor, pool: Pool, router: nn.Module, length: Tensor | None = None) -> Routed:
        """Tokens [..., N, message] give results [..., N, result], and the router's records."""
        gates, scores, selected, load = router(tokens, length)
        M, message = len(pool), tokens.shape[-pool.rank :]
        tokens_S, gates_SM, selected_SM = tokens.reshape(-1, *message), gates.reshape(-1, M), selected.reshape(-1, M)
        parts, result = [], torch.Size()
        for j in range(M):
            places = selected_SM[:, j].nonzero().squeeze(1)
            values = pool.expert(j)(tokens_S.index_select(0, places))
            result = values.shape[1:]
            parts.append((places, values.flatten(1) * gates_SM[:, j].index_select(0, places).unsqueeze(-1)))
        total = tokens_S.new_zeros(tokens_S.shape[0], result.numel())
        for places, values in parts:
            total = total.index_add(0, places, values)
        return total.reshape(*gates.shape[:-1], *result), gates, scores, selected, load
