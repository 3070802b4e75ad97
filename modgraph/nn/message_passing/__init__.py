"""The definition of every router, as message passing of torch_geometric.

torch_geometric takes longer to import than torch, so nothing imports this package before a route is to have this form.
Shape suffixes: S tokens or senders and R receivers of all examples, M modules, E edges (a token's message through a
module, of a route by weights to a receiver), K weights of one edge.
"""

from __future__ import annotations

import sys
from importlib.util import cache_from_source
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing as PlainMessagePassing

from modgraph.nn.choice import Records
from modgraph.nn.padding import cleared
from modgraph.nn.pool import Pool
from modgraph.nn.selected import edge_messages, flat
from modgraph.nn.weighted import Masks, Weighted, in_order, laid, without_padding


class MessagePassing(PlainMessagePassing):  # type: ignore[misc]
    """torch_geometric's base class, without the files it leaves in the temporary folder.

    It generates a module of Python for each class, which is imported once and never read again. It finds the text
    `self.propagate(` in the source of the class: so subclasses are static, have unique names, and call it on `self`.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{"aggr": "add", "node_dim": 0, **settings})
        for method in ("propagate", "edge_updater"):
            generated = sys.modules.get(f"{type(self).__module__}_{type(self).__name__}_{method}")
            if generated is not None and generated.__file__ is not None:
                Path(cache_from_source(generated.__file__)).unlink(missing_ok=True)
                Path(generated.__file__).unlink(missing_ok=True)


class SelectedMessagePassing(MessagePassing):
    """The definition: chosen modules send f_j(x_i) to the token, weighted by its gate."""

    def forward(
        self, tokens: Tensor, pool: Pool, router: nn.Module, *others: Tensor, real: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Tokens [..., N, message] give results [..., N, result], and the router's records."""
        tokens = cleared(tokens, real)
        records: Records = router(tokens, *others, real=real)
        tokens_S, gates_SM, selected_SM = flat(tokens, records.gates, records.selected)
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


class WeightedMessagePassing(MessagePassing):
    """The definition: every real sender sends f_j(x) along an edge for each module, weighted, to what is not summed."""

    def forward(
        self, tokens: Tensor, pool: Pool, router: Weighted, weights: Tensor, real: Masks | None = None
    ) -> Tensor:
        """Tokens [..., message] and weights give [..., result], as the letters say."""
        tokens, weights = without_padding(tokens, weights, real)
        outer, message = tokens.shape[: len(router.senders)], tokens.shape[len(router.given) :]
        sizes = dict(zip(router.pairs + router.weights, (*outer, len(pool), *weights.shape), strict=True))
        is_sender = tokens.new_ones(outer, dtype=torch.bool)
        if real is not None and real[0] is not None:
            is_sender = is_sender & real[0].reshape(real[0].shape[: len(outer)])
        sender_E, module_E = is_sender.reshape(-1, 1).expand(-1, len(pool)).nonzero().t()
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
