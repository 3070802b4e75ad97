"""Lowerings of a route by ids: y = Σ g_s f_id(s)(x) over slots s; nothing has an axis of modules.

Shape suffixes: S tokens of all examples, K slots of a token, E = S · K edges (a token and a module that it names), M
modules.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.choice_routes import sum_edges
from modgraph.nn.layer import Layer
from modgraph.nn.order import stable_argsort
from modgraph.nn.padding import apply_mask
from modgraph.nn.pool import Pool


class IdChoice(Layer):
    """A router whose ids and gates are operands; it sums their last `slots` axes. `rank` is that of a token."""

    slots: int
    rank: int = 1


class IdRoute(nn.Module):
    """A route by ids. A subclass is a lowering: it computes the total of the messages."""

    def forward(
        self, tokens: Tensor, pool: Any, router: IdChoice, ids: Tensor, gates: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Tokens [..., message], ids and gates [..., slots] give [..., result]. Padding gets zeros."""
        tokens_S, ids_SK, gates_SK = flatten_edges(tokens, ids, gates, router.slots, router.rank, mask)
        found = self.total(tokens_S, ids_SK, gates_SK, pool)
        return found.reshape(*tokens.shape[: tokens.dim() - router.rank], *found.shape[1:])

    def total(self, tokens_S: Tensor, ids_SK: Tensor, gates_SK: Tensor, pool: Any) -> Tensor:
        """The sum of the messages to each token [S, result]."""
        raise NotImplementedError


def flatten_edges(
    tokens: Tensor, ids: Tensor, gates: Tensor, slots: int, rank: int, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Flatten tokens to [S, message], ids and gates to [S, K]; gates of padding are zero."""
    outer, first = tokens.shape[: tokens.dim() - rank], ids.dim() - slots
    if mask is not None:
        tokens = apply_mask(tokens, mask)
        gates = apply_mask(gates, mask.reshape(*mask.shape[:first], *[1] * slots))
    K = ids.shape[first:].numel()
    ids, gates = (each.expand(*outer, *each.shape[first:]).reshape(-1, K) for each in (ids, gates))
    return tokens.reshape(-1, *tokens.shape[len(outer) :]), ids, gates


class IdGathered(IdRoute):
    """Gathers the weights of the modules that ids name, so that no size depends on ids or on the number of modules.

    For homogeneous pools whose weights can be stacked.
    """

    def total(self, tokens_S: Tensor, ids_SK: Tensor, gates_SK: Tensor, pool: Any) -> Tensor:
        run_indexed = pool.stack_weights() if isinstance(pool, Pool) else pool
        K = ids_SK.shape[1]
        tokens_E = tokens_S.unsqueeze(1).expand(-1, K, *tokens_S.shape[1:]).reshape(-1, *tokens_S.shape[1:])
        values_E = run_indexed(ids_SK.reshape(-1), tokens_E)
        kind = torch.promote_types(gates_SK.dtype, values_E.dtype)
        values_SKV = values_E.reshape(-1, K, values_E.shape[1:].numel()).to(kind)
        found = torch.bmm(gates_SK.to(kind).unsqueeze(1), values_SKV).squeeze(1)
        return found.reshape(-1, *values_E.shape[1:])


class IdGrouped(IdRoute):
    """Sorts edges by the ids of their modules, runs each module once on its slice, and adds the results."""

    def total(self, tokens_S: Tensor, ids_SK: Tensor, gates_SK: Tensor, pool: Any) -> Tensor:
        module_E = ids_SK.reshape(-1)
        order_E = stable_argsort(module_E, 0)
        module_E, token_E = module_E[order_E], order_E // ids_SK.shape[1]
        counts_M = torch.zeros(len(pool), dtype=torch.int64, device=module_E.device)
        counts_M = counts_M.index_add(0, module_E, torch.ones_like(module_E))
        values_E = pool.run_sorted(tokens_S.index_select(0, token_E), module_E, counts_M)
        return sum_edges(values_E, gates_SK.reshape(-1)[order_E], token_E, tokens_S.shape[0])


class IdPerModule(IdRoute):
    """Runs each module once on the tokens whose ids name it, and adds all results at once."""

    def total(self, tokens_S: Tensor, ids_SK: Tensor, gates_SK: Tensor, pool: Any) -> Tensor:
        return run_each(tokens_S, ids_SK, gates_SK, pool)


def run_each(x: Tensor, ids: Tensor, gates: Tensor, modules: Any) -> Tensor:
    """Sum gate_s f_id(s)(x) over the slots of each token; each module runs on the tokens that name it.

    x [S, message], ids and gates [S, K] give [S, result].
    """
    module_E, gate_E = ids.reshape(-1), gates.reshape(-1)
    edges_of = [(module_E == j).nonzero().squeeze(1) for j in range(len(modules))]
    values = torch.cat([modules[j](x.index_select(0, at // ids.shape[1])) for j, at in enumerate(edges_of)])
    edges = torch.cat(edges_of)
    return sum_edges(values, gate_E.index_select(0, edges), edges // ids.shape[1], x.shape[0])


def route_by_ids(
    x: Tensor, ids: Tensor, gates: Tensor, modules: Any, slots: int, rank: int, mask: Tensor | None = None
) -> Tensor:
    """`run_each` for x [..., message], where a message has `rank` axes, and ids and gates [..., slots]."""
    found = run_each(*flatten_edges(x, ids, gates, slots, rank, mask), modules)
    return found.reshape(*x.shape[: x.dim() - rank], *found.shape[1:])
