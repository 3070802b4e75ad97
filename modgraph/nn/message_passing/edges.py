"""The edges of a complete graph between tokens and modules: E edges, N tokens, M modules, S tokens of all examples."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import scatter


def complete(tokens: Tensor, M: int, real: Tensor | None) -> Tensor:
    """An edge from every real token to every module of its example: [2, E]."""
    outer = tokens.shape[:-1]
    senders = torch.ones(outer, dtype=torch.bool) if real is None else real.squeeze(-1).expand(outer)
    sender_E = senders.reshape(-1).nonzero().squeeze(1).repeat_interleave(M).to(tokens.device)
    module_E = torch.arange(M, device=tokens.device).repeat(sender_E.numel() // M)
    return torch.stack((sender_E, sender_E // tokens.shape[-2] * M + module_E))


def shares(receiver_E: Tensor, receivers: int, like: Tensor) -> Tensor:
    """One over the number of edges into the receiver, on every edge."""
    ones = torch.ones(receiver_E.shape, dtype=like.dtype, device=like.device)
    total: Tensor = scatter(ones, receiver_E, dim_size=receivers)
    return ones / total[receiver_E]
