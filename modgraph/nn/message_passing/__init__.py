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
from modgraph.nn.edges import (
    FEW,
    Counted,
    EdgeScatter,
    are_dense,
    count_nodes,
    number_ends,
    number_receivers,
    order_rows,
    restore_rows,
    split_rows,
    sum_by_matrices,
)
from modgraph.nn.id_routes import IdChoice, flatten_edges
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


class IdMessagePassing(MessagePassing):
    """The definition of a route by ids: each slot's module sends f_id(x_i) to the token, times the slot's gate."""

    def forward(
        self, tokens: Tensor, pool: Pool, router: IdChoice, ids: Tensor, gates: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Tokens [..., message], ids and gates [..., slots] give [..., result]."""
        tokens_S, ids_SK, gates_SK = flatten_edges(tokens, ids, gates, router.slots, router.rank, mask)
        module_E, token_E = ids_SK.reshape(-1), torch.arange(ids_SK.numel(), device=ids.device) // ids_SK.shape[1]
        messages = edge_messages(tokens_S[token_E], module_E, pool)
        edges, size = torch.stack((module_E, token_E)), (len(pool), tokens_S.shape[0])
        values: Tensor = self.propagate(edges, messages=messages.flatten(1), weight=gates_SK.reshape(-1), size=size)
        return values.reshape(*tokens.shape[: tokens.dim() - router.rank], *messages.shape[1:])

    def message(self, messages: Tensor, weight: Tensor) -> Tensor:
        """Messages [E, result] times weights [E]."""
        return messages * weight.unsqueeze(-1)


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


class EdgeMessagePassing(MessagePassing):
    """The definition where edges are data: the message of a node, or of an edge, times its weights.

    Arguments and tensors are those of `EdgeScatter`. With `by_density`, sums of values of nodes are products with a
    matrix where many pairs of nodes are joined, and few edges scatter.
    """

    def __init__(
        self,
        values: str,
        result: str,
        end: int,
        reads: bool,
        counted: Counted,
        weights: str = "",
        reduce: str = "sum",
        by_density: bool = False,
    ) -> None:
        super().__init__(aggr=reduce, flow="source_to_target")
        self.values, self.result, self.weights = values, result, weights
        self.end, self.reads, self.counted = end, reads, counted
        self.by_density, self.sums_nodes = by_density, reads and reduce == "sum"
        self.scatter = EdgeScatter(values, result, end, reads, counted, weights, reduce)

    def forward(self, x: Tensor, edges: Tensor, *others: Tensor, mask: Masks | None = None) -> Tensor:
        """x and edges [B, E, 2] give the axes of `result`, with nodes in place of edges."""
        nodes = count_nodes(self.counted, (x, edges, *others))
        if self.by_density and self.sums_nodes and are_dense(x, edges, x.shape[1 + self.values.index("e")], nodes):
            weights, own = others[0] if self.weights else None, None if mask is None else mask[1]
            letters = self.values, self.weights, self.result
            return sum_by_matrices(x, edges, weights, own, letters, self.end, nodes)
        if self.by_density and edges.shape[0] * edges.shape[1] <= FEW:
            return self.scatter.forward(x, edges, *others, mask=mask)
        receiver_E = number_receivers(edges, self.end, nodes, None if mask is None else mask[1])
        values = order_rows(x, self.values, self.result)
        origins = values.flatten(0, 1)
        if self.reads:
            origin_E = number_ends(edges, 1 - self.end, values.shape[1])
        else:  # each edge has a message of its own
            origin_E = torch.arange(receiver_E.shape[0], device=x.device)
        weight = order_rows(others[0], self.weights, self.result).flatten(0, 1) if self.weights else None
        total = edges.shape[0] * nodes
        found = self.propagate(
            torch.stack((origin_E, receiver_E)), x=origins, weight=weight, size=(origins.shape[0], total + 1)
        )
        return restore_rows(split_rows(found[:total], edges, nodes), self.result)

    def message(self, x_j: Tensor, weight: Tensor | None) -> Tensor:
        """Messages [E, ...] times weights that broadcast against them."""
        return x_j if weight is None else x_j * weight
