"""Routes that send each token to the modules chosen for it, as message passing: their definition.

Shape suffixes: S tokens of all examples, M modules, E edges (a token and a module chosen for it).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from modgraph.nn.message_passing.base import MessagePassing
from modgraph.nn.padding import cleared
from modgraph.nn.pool import Pool
from modgraph.nn.selected import Records, edge_messages, flat


class SelectedMessagePassing(MessagePassing):
    """The definition: chosen modules send f_j(x_i) to the token, weighted by its gate."""

    def forward(
        self, tokens: Tensor, pool: Pool, router: nn.Module, *others: Tensor, real: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Tokens [..., N, message] give results [..., N, result], and the router's records."""
        tokens = cleared(tokens, real)
        records: Records = router(tokens, *others, real=real)
        tokens_S, gates_SM, selected_SM = flat(tokens, records, pool)
        token_E, module_E = self.edges(selected_SM).nonzero(as_tuple=True)
        messages = edge_messages(tokens_S[token_E], module_E, pool)
        edges, size = torch.stack((module_E, token_E)), (len(pool), tokens_S.shape[0])
        weight = gates_SM[token_E, module_E]
        values = self.propagate(edges, messages=messages.flatten(1), weight=weight, size=size)
        return values.reshape(*records.gates.shape[:-1], *messages.shape[1:]), *records

    def edges(self, selected_SM: Tensor) -> Tensor:
        """Not zero where a token is sent to a module."""
        return selected_SM

    def message(self, messages: Tensor, weight: Tensor) -> Tensor:
        """What an edge carries."""
        return messages * weight.unsqueeze(-1)


class EveryEdgeMessagePassing(SelectedMessagePassing):
    """The definition where gates learn that are zero: every module sends its message."""

    def edges(self, selected_SM: Tensor) -> Tensor:
        return torch.ones_like(selected_SM)
