"""Messages f_j(s_i) along edges.

Shape suffixes: E edges, D token width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from modgraph.nn.pool import Pool


def edge_messages(tokens_ED: Tensor, module_E: Tensor, pool: Pool) -> Tensor:
    """f_j(s_i) on every edge, each module on the edges that lead to it."""
    edges_of = [(module_E == j).nonzero().squeeze(1) for j in range(len(pool))]
    results = [pool.expert(j)(tokens_ED[edges]) for j, edges in enumerate(edges_of)]
    return torch.cat(results)[torch.cat(edges_of).argsort()]
