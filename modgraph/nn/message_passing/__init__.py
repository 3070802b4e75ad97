"""The lowering that defines every route: message passing of torch_geometric.

torch_geometric takes longer to import than torch, so only routes with this lowering import this package.
Shape suffixes: S tokens and R receivers of all examples, M modules, E edges (a token's message through a module; in
a weighted route, to a receiver), K weights of one edge.
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
from modgraph.nn.choice_routes import edge_messages, flat
from modgraph.nn.padding import apply_mask
from modgraph.nn.pool import Pool
from modgraph.nn.weighted import Masks, Weighted, align_axes, mask_operands, order_axes


class MessagePassing(PlainMessagePassing):  # type: ignore[misc]
    """torch_geometric's base class, without the files it leaves in the temporary folder.

    It generates a Python module for each class, imports it once and never reads it again. It looks for the text
    `self.propagate(` in the source of the class, so subclasses are static, have unique names, and call it on `self`.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{"aggr": "add", "node_dim": 0, **settings})
        for method in ("propagate", "edge_updater"):
            generated = sys.modules.get(f"{type(self).__module__}_{type(self).__name__}_{method}")
            if generated is not None and generated.__file__ is not None:
                Path(cache_from_source(generated.__file__)).unlink(missing_ok=True)
                Path(generated.__file__).unlink(missing_ok=True)


class ChoiceMessagePassing(MessagePassing):
    """The definition of a route by choice: each chosen module sends f_j(x_i) to the token, times its gate."""

    def forward(
        self, tokens: Tensor, pool: Pool, router: nn.Module, *others: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Tokens [..., N, message] give results [..., N, result], and the router's records."""
        tokens = apply_mask(tokens, mask)
        records: Records = router(tokens, *others, mask=mask)
        tokens_S, gates_SM, choice_SM = flat(tokens, records.gates, records.choice)
        token_E, module_E = self.edges(choice_SM).nonzero(as_tuple=True)
        messages = edge_messages(tokens_S[token_E], module_E, pool)
        edges, size = torch.stack((module_E, token_E)), (len(pool), tokens_S.shape[0])
        weight = gates_SM[token_E, module_E]
        values = self.propagate(edges, messages=messages.flatten(1), weight=weight, size=size)
        return values.reshape(*records.gates.shape[:-1], *messages.shape[1:]), *records

    def edges(self, choice_SM: Tensor) -> Tensor:
        """The adjacency matrix [S, M] of tokens and modules: not zero where there is an edge."""
        return choice_SM

    def message(self, messages: Tensor, weight: Tensor) -> Tensor:
        """Messages [E, result] times weights [E]."""
        return messages * weight.unsqueeze(-1)


class EveryEdgeMessagePassing(ChoiceMessagePassing):
    """The definition where gates of zero learn too: every module sends its message."""

    def edges(self, choice_SM: Tensor) -> Tensor:
        return torch.ones_like(choice_SM)


class WeightedMessagePassing(MessagePassing):
    """The definition of a weighted route: every token sends f_j(x), times its weights, through every module.

    A receiver is a place along the axes that are not summed; padding has no edges.
    """

    def forward(
        self, tokens: Tensor, pool: Pool, router: Weighted, weights: Tensor, mask: Masks | None = None
    ) -> Tensor:
        """Tokens [..., message] and weights give [..., result], along the axes that the router's letters name."""
        tokens, weights = mask_operands(tokens, weights, mask)
        outer, message = tokens.shape[: len(router.tokens)], tokens.shape[len(router.given) :]
        sizes = dict(zip(router.pairs + router.weights, (*outer, len(pool), *weights.shape), strict=True))
        is_token = tokens.new_ones(outer, dtype=torch.bool)
        if mask is not None and mask[0] is not None:
            is_token = is_token & mask[0].reshape(mask[0].shape[: len(outer)])
        token_E, module_E = is_token.reshape(-1, 1).expand(-1, len(pool)).nonzero().t()
        kept = router.pairs.replace(router.over, "")
        receivers = torch.arange(prod(sizes[each] for each in kept), device=tokens.device)
        receivers = align_axes(receivers.reshape([sizes[each] for each in kept]), kept, router.pairs)
        receiver_SM = receivers.expand([sizes[each] for each in router.pairs]).reshape(-1, len(pool))
        edges = router.pairs + router.own
        weight = align_axes(weights, router.weights, edges).expand([sizes[each] for each in edges])
        weight_SMK = weight.reshape(len(receiver_SM), len(pool), prod(sizes[each] for each in router.own))
        row_E = token_E * len(pool) + module_E if router.rows else token_E
        messages = edge_messages(tokens.reshape(-1, *message)[row_E], module_E, pool)
        found = self.propagate(
            torch.stack((token_E, receiver_SM[token_E, module_E])),
            messages=messages.flatten(1),
            weight=weight_SMK[token_E, module_E],
            size=(len(receiver_SM), receivers.numel()),
        )
        found = found.reshape(*(sizes[each] for each in kept + router.own), *messages.shape[1:])
        return order_axes(found, kept + router.own, router.result)

    def message(self, messages: Tensor, weight: Tensor) -> Tensor:
        """Messages [E, result] times weights [E, K]: [E, K, result]."""
        return messages.unsqueeze(1) * weight.unsqueeze(-1)
