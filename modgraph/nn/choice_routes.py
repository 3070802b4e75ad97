"""Lowerings of a route by choice: each token goes to the modules of its choice.

Shape suffixes: S tokens of all examples, M modules, E edges (a token and a module of its choice).
A router gives `Records` for tokens [..., N, D]. A router of a package may add records, but has gates and choice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.choice import Records, TokenChoice
from modgraph.nn.padding import apply_mask
from modgraph.nn.pool import Pool


class ChoiceRoute(nn.Module):
    """A route by a router's choice. A subclass is a lowering: it computes the total of the messages."""

    def forward(
        self, tokens: Tensor, pool: Pool, router: nn.Module, *others: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Tokens [..., N, message] give results [..., N, result], and the router's records."""
        tokens = apply_mask(tokens, mask)
        records: Records = router(tokens, *others, mask=mask)
        return self.total(tokens, records, pool, router), *records

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        """The sum of the messages to each token [..., N, result]."""
        raise NotImplementedError


class ChoiceGrouped(ChoiceRoute):
    """Sorts edges by module, runs each module once on its slice, and adds the results: fast forwards and backwards."""

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        tokens_S, gates_SM, choice_SM = flat(tokens, records.gates, records.choice)
        edge_SM = choice_SM != 0
        module_E, token_E, counts_M, is_edge_E = find_edges(edge_SM, tokens_S, pool, router)
        values = apply_rows(pool.run_sorted(tokens_S.index_select(0, token_E), module_E, counts_M), is_edge_E)
        weight = apply_mask(gates_SM.flatten().index_select(0, token_E * len(pool) + module_E), is_edge_E)
        found = sum_edges(values, weight, token_E, tokens_S.shape[0])
        return found.reshape(*records.gates.shape[:-1], *found.shape[1:])


Edges = tuple[Tensor, Tensor, Tensor, Tensor | None]  # modules and tokens [E], counts by module [M], masks [E]


def find_edges(edge_SM: Tensor, tokens_S: Tensor, pool: Pool, router: Any) -> Edges:
    """The edges of tokens to modules, sorted by module, and a mask where some are none.

    Their number is a value, so a device waits once to know it. It does not where all modules run at once and tokens
    choose k of them: then each token has k edges, and those beyond its choice are masked.
    """
    if can_wait(edge_SM):
        module_E, token_E = edge_SM.t().nonzero().unbind(1)  # transposed, so that edges are sorted by module
        return module_E, token_E, edge_SM.sum(0), None
    if not pool.runs_at_once(tokens_S):
        counts_M = edge_SM.sum(0).cpu()
        size: Any = counts_M.sum().item()
        module_E, token_E = edge_SM.t().nonzero_static(size=size).unbind(1)
        return module_E, token_E, counts_M, None
    if has_k_edges(router, pool):
        return find_k_edges(edge_SM, router.k)
    module_E, token_E = edge_SM.t().nonzero().unbind(1)
    return module_E, token_E, edge_SM.sum(0), None


def has_k_edges(router: Any, pool: Any) -> bool:
    """Whether a token has at most k edges, fewer than there are modules."""
    return type(router) is TokenChoice and router.k < len(pool)


def find_k_edges(edge_SM: Tensor, k: int) -> Edges:
    """k edges of each token, sorted by module; those beyond its choice are masked."""
    module_SK = edge_SM.byte().sort(stable=True, descending=True).indices[:, :k]
    module_E, order_E = module_SK.flatten().sort(stable=True)
    counts_M = module_E.new_zeros(edge_SM.shape[1]).scatter_add(0, module_E, torch.ones_like(module_E))
    token_E = order_E // k
    return module_E, token_E, counts_M, edge_SM.flatten().index_select(0, token_E * edge_SM.shape[1] + module_E)


def can_wait(x: Tensor) -> bool:
    """Whether a size may be read from a tensor: elsewhere than on the processor that waits for all queued work."""
    return x.device.type == "cpu" or torch.compiler.is_compiling()


def apply_rows(x: Tensor, mask: Tensor | None) -> Tensor:
    """Zero the rows of x [E, ...] where a mask [E] is false."""
    return x if mask is None else apply_mask(x, mask.reshape(-1, *[1] * (x.dim() - 1)))


class ChoicePerModule(ChoiceRoute):
    """Runs each module once on the tokens that chose it, and adds all results at once.

    Adding the results module by module would pass over all tokens once for each module.
    """

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        modules = pool.experts() if isinstance(pool, Pool) else pool
        if not (torch.compiler.is_exporting() and has_k_edges(router, pool)):
            return route_by_choice(tokens, records.gates, records.choice, modules)
        tokens_S, gates_SM, choice_SM = flat(tokens, records.gates, records.choice)
        values, _ = send_by_choice(tokens_S, choice_SM, modules)
        found = sum_k_edges(values, gates_SM, choice_SM != 0, router.k)
        return found.reshape(*records.gates.shape[:-1], *found.shape[1:])


class ChoiceGathered(ChoiceRoute):
    """Gathers the weights of the chosen modules by index, so that no size depends on the choice.

    For homogeneous pools whose weights can be stacked.
    """

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        run_indexed = pool.stack_weights() if isinstance(pool, Pool) else pool
        tokens_S, gates_SM, left_SM = flat(tokens, records.gates, records.choice)
        parts: list[Tensor] = []  # a call of `list[Tensor]` cannot be compiled
        for _ in range(router.k):  # one choice after another
            best = left_SM.argmax(-1, keepdim=True)
            left_S1 = left_SM.gather(-1, best)  # zero where no choice is left
            weight = gates_SM.gather(-1, best)
            left_SM = left_SM.scatter(-1, best, 0)
            values = run_indexed(best.squeeze(-1), tokens_S)
            parts.append(apply_mask(values.flatten(1), left_S1 != 0) * weight)
        return sum(parts[1:], parts[0]).reshape(*records.gates.shape[:-1], *values.shape[1:])


class ChoiceMasked(ChoiceRoute):
    """Runs every module on every token, and masks results outside the choice."""

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        values, shape = pool.all(tokens), (*records.gates.shape, *[1] * pool.result_rank)
        values = apply_mask(values, records.choice.reshape(shape) != 0)
        return (values * records.gates.reshape(shape)).sum(-pool.result_rank - 1)


class ChoiceDense(ChoiceRoute):
    """Runs every module on every token, weighted by its gate; gates of zero learn too."""

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        gates = records.gates.reshape(*records.gates.shape, *[1] * pool.result_rank)
        found: Tensor = (pool.all(tokens) * gates).sum(-pool.result_rank - 1)
        return found


def route_by_choice(x: Tensor, gates: Tensor, choice: Tensor, modules: Any) -> Tensor:
    """Sum gate_j f_j(x) over the modules of each token's choice; each module runs on the tokens that chose it.

    x [..., message], gates and choice [..., M] give [..., result].
    """
    x_S, gates_SM, choice_SM = flat(x, gates, choice)
    values, tokens_of = send_by_choice(x_S, choice_SM, modules)
    weight = torch.cat([gates_SM[:, j].index_select(0, at) for j, at in enumerate(tokens_of)])
    found = sum_edges(values, weight, torch.cat(tokens_of), x_S.shape[0])
    return found.reshape(*gates.shape[:-1], *found.shape[1:])


def send_by_choice(x_S: Tensor, choice_SM: Tensor, modules: Any) -> tuple[Tensor, list[Tensor]]:
    """The messages [E, result] of modules to the tokens that chose them, sorted by module, and these tokens of each."""
    tokens_of = [choice_SM[:, j].nonzero().squeeze(1) for j in range(len(modules))]
    return torch.cat([modules[j](x_S.index_select(0, at)) for j, at in enumerate(tokens_of)]), tokens_of


def sum_edges(values_E: Tensor, weight_E: Tensor, token_E: Tensor, tokens: int) -> Tensor:
    """Sum values [E, result] times weights [E] over the edges of each token: [S, result]."""
    weighted = values_E.flatten(1) * weight_E.unsqueeze(-1)
    total = weighted.new_zeros(tokens, weighted.shape[1]).index_add(0, token_E, weighted)
    return total.reshape(-1, *values_E.shape[1:])


def sum_k_edges(values_E: Tensor, gates_SM: Tensor, edge_SM: Tensor, k: int) -> Tensor:
    """Sum values [E, result] of edges sorted by module times gates, at most k for each token, by index: [S, result].

    ONNX Runtime gathers rows on all threads; it adds to rows on one.
    """
    rows = values_E.flatten(1)
    rows = torch.cat((rows, rows.new_zeros(1, rows.shape[1])))  # the last for what is no edge
    place_SM = edge_SM.t().long().flatten().cumsum(0).reshape(edge_SM.shape[1], -1).t() - 1
    place_SK, module_SK = torch.where(edge_SM, place_SM, values_E.shape[0]).topk(k, largest=False)
    found = rows.index_select(0, place_SK.flatten()).reshape(-1, k, rows.shape[1])
    found = (found * gates_SM.gather(1, module_SK).unsqueeze(-1)).sum(1)
    return found.reshape(-1, *values_E.shape[1:])


def flat(tokens: Tensor, gates: Tensor, choice: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Flatten outer axes: tokens [..., N, message] to [S, message], gates and choice [..., N, M] to [S, M]."""
    M = gates.shape[-1]
    return tokens.reshape(-1, *tokens.shape[gates.dim() - 1 :]), gates.reshape(-1, M), choice.reshape(-1, M)


def value_of(found: Any) -> Tensor:
    """The value of a route, without its router's records."""
    value: Tensor = found[0] if isinstance(found, tuple) else found
    return value


def edge_messages(tokens_ED: Tensor, module_E: Tensor, pool: Pool) -> Tensor:
    """Compute f_j(x_i) on every edge, each module on its edges: [E, result]."""
    edges_of = [(module_E == j).nonzero().squeeze(1) for j in range(len(pool))]
    results = [expert(tokens_ED[edges]) for expert, edges in zip(pool.experts(), edges_of, strict=True)]
    return torch.cat(results)[torch.cat(edges_of).argsort()]
