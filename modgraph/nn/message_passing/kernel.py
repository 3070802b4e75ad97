"""Routing by a truncated kernel as message passing, its definition.

Shape suffixes: N tokens, M modules, D token width, S tokens of all examples, E edges from a token to a module.
"""

from __future__ import annotations

from torch import Tensor

from modgraph.nn.kernel import Routed, TruncatedKernel
from modgraph.nn.keys import unit
from modgraph.nn.message_passing.base import MessagePassing
from modgraph.nn.message_passing.edges import complete_graph, shares
from modgraph.nn.messages import matrix
from modgraph.nn.pool import Pool


class KernelMessagePassing(MessagePassing):
    """The definition: every token sends f_j(s_i) to every module, weighted by their affinity."""

    def __init__(self) -> None:
        super().__init__(aggr="add", node_dim=0)

    def forward(self, tokens: Tensor, pool: Pool, router: TruncatedKernel, real: Tensor | None = None) -> Routed:
        """Tokens [..., N, D] give results [..., M, V] and gates [..., N, M]."""
        *outer, N, _ = tokens.shape
        M = len(pool)
        tokens_SD, edges, module_E, messages, size = complete_graph(tokens, pool, real)
        sender_E, receiver_E = edges
        cosine_E = (router.keys(tokens_SD)[sender_E] * unit(router.signature)[module_E]).sum(-1)
        affinity_E = router.affinity(cosine_E)
        weight = affinity_E * shares(receiver_E, size[1], messages)
        values = self.propagate(edges, messages=messages, weight=weight, size=size)
        return values.reshape(*outer, M, -1), matrix(affinity_E, sender_E, module_E, (*outer, N, M))

    def message(self, messages: Tensor, weight: Tensor) -> Tensor:
        """What an edge carries."""
        return messages * weight.unsqueeze(-1)
