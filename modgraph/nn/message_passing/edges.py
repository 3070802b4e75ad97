"""The edges of a complete graph between tokens and modules: E edges, N tokens, M modules, S tokens of all examples."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from modgraph.nn.messages import edge_messages
from modgraph.nn.padding import cleared
from modgraph.nn.pool import Pool


def complete(tokens: Tensor, M: int, real: Tensor | None) -> Tensor:
    """An edge from every real token to every module of its example: [2, E]."""
    outer = tokens.shape[:-1]
    senders = torch.ones(outer, dtype=torch.bool) if real is None else real.squeeze(-1).expand(outer)
    sender_E = senders.reshape(-1).nonzero().squeeze(1).repeat_interleave(M).to(tokens.device)
    module_E = torch.arange(M, device=tokens.device).repeat(sender_E.numel() // M)
    return torch.stack((sender_E, sender_E // tokens.shape[-2] * M + module_E))


class CompleteGraph(NamedTuple):
    """Messages along every edge of a complete graph, between `size` tokens and modules of all examples."""

    tokens: Tensor  # [S, D]
    edges: Tensor  # [2, E]
    modules: Tensor  # [E]
    messages: Tensor  # [E, V]
    size: tuple[int, int]


def complete_graph(tokens: Tensor, pool: Pool, real: Tensor | None) -> CompleteGraph:
    """The graph over tokens [..., N, D], without those that are padding."""
    N, D, M = *tokens.shape[-2:], len(pool)
    tokens_SD = cleared(tokens, real).reshape(-1, D)
    edges = complete(tokens, M, real)
    sender_E, module_E = edges[0], edges[1] % M
    messages = edge_messages(tokens_SD[sender_E], module_E, pool)
    return CompleteGraph(tokens_SD, edges, module_E, messages, (len(tokens_SD), len(tokens_SD) // N * M))


def shares(receiver_E: Tensor, receivers: int, like: Tensor) -> Tensor:
    """One over the number of edges into the receiver, on every edge."""
    ones = torch.ones(receiver_E.shape, dtype=like.dtype, device=like.device)
    total: Tensor = scatter(ones, receiver_E, dim_size=receivers)
    return ones / total[receiver_E]
