"""Routes by weights as message passing, their definition.

Shape suffixes: S senders and R receivers of all examples, M modules, E edges (a sender's message through a module to a
receiver), K weights of one edge.
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from modgraph.nn.message_passing.base import MessagePassing
from modgraph.nn.pool import Pool
from modgraph.nn.selected import edge_messages
from modgraph.nn.weighted import Masks, Weighted, in_order, laid, without_padding


class WeightedMessagePassing(MessagePassing):
    """The definition: every real sender sends f_j(x) along an edge for each module, weighted, to what is not summed."""

    def forward(
        self, tokens: Tensor, pool: Pool, router: Weighted, weights: Tensor, real: Masks | None = None
    ) -> Tensor:
        """Tokens [..., message] and weights give [..., result], as the letters say."""
        tokens, weights = without_padding(tokens, weights, real)
        outer, message = tokens.shape[: len(router.senders)], tokens.shape[len(router.given) :]
        sizes = dict(zip(router.pairs + router.weights, (*outer, len(pool), *weights.shape), strict=True))
        sender_E, module_E = self.edges(tokens, outer, len(pool), None if real is None else real[0])
        kept = router.pairs.replace(router.over, "")
        receivers = torch.arange(prod(sizes[each] for each in kept), device=tokens.device)
        receivers = laid(receivers.reshape([sizes[each] for each in kept]), kept, router.pairs)
        receiver_SM = receivers.expand([sizes[each] for each in router.pairs]).reshape(-1, len(pool))
        edges = router.pairs + router.own
        weight = laid(weights, router.weights, edges).expand([sizes[each] for each in edges])
        weight_SMK = weight.reshape(len(receiver_SM), len(pool), prod(sizes[each] for each in router.own))
        sent_E = sender_E * len(pool) + module_E if router.rows else sender_E
        messages = edge_messages(tokens.reshape(-1, *message)[sent_E], module_E, pool)
        found = self.propagate(
            torch.stack((sender_E, receiver_SM[sender_E, module_E])),
            messages=messages.flatten(1),
            weight=weight_SMK[sender_E, module_E],
            size=(len(receiver_SM), receivers.numel()),
        )
        found = found.reshape(*(sizes[each] for each in kept + router.own), *messages.shape[1:])
        return in_order(found, kept + router.own, router.result)

    def message(self, messages: Tensor, weight: Tensor) -> Tensor:
        """What an edge carries: a message for each of its weights."""
        return messages.unsqueeze(1) * weight.unsqueeze(-1)

    def edges(self, tokens: Tensor, outer: torch.Size, M: int, real: Tensor | None) -> Tensor:
        """From every real sender through every module: numbers of senders and modules, [2, E]."""
        senders = tokens.new_ones(outer, dtype=torch.bool)
        if real is not None:
            senders = senders & real.reshape(real.shape[: len(outer)])
        return senders.reshape(-1, 1).expand(-1, M).nonzero().t()
