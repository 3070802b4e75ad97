"""Agreement routing as message passing, its definition.

Shape suffixes: B examples, N tokens, M modules, D token width, V width of a message, E edges; an edge runs from a
token to a module.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import scatter, softmax

from modgraph.nn.agreement import Agreement, Routed, normalised
from modgraph.nn.keys import unit
from modgraph.nn.message_passing.base import MessagePassing
from modgraph.nn.message_passing.edges import complete_graph, shares
from modgraph.nn.messages import matrix
from modgraph.nn.pool import Pool


class AgreementMessagePassing(MessagePassing):
    """The definition: tokens send f_j(s_i) to modules along every edge, weighted by c_ij, round after round."""

    def __init__(self) -> None:
        super().__init__(aggr="add", node_dim=0)

    def forward(self, tokens: Tensor, pool: Pool, router: Agreement, real: Tensor | None = None) -> Routed:
        """Tokens [..., N, D] give results [..., M, V], gates [..., N, M] and scores [..., N, M]."""
        *outer, N, _ = tokens.shape
        M = len(pool)
        tokens_SD, edges, module_E, messages, size = complete_graph(tokens, pool, real)
        sender_E, receiver_E = edges
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
