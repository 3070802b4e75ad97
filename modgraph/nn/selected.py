"""Routes that send each token to the modules chosen for it, in equal forms.

Shape suffixes: S tokens of all examples, M modules, E edges (a token and a module chosen for it).
A router gives `Records` for tokens [..., N, D]; one of a package may give other records beside gates and selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.choice import Records
from modgraph.nn.grouped import SortedRows, pays
from modgraph.nn.padding import cleared
from modgraph.nn.pool import Pool


class Selected(nn.Module):
    """A route by a router's choice: what a form says becomes of tokens and records."""

    def forward(
        self, tokens: Tensor, pool: Pool, router: nn.Module, *others: Tensor, real: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Tokens [..., N, message] give results [..., N, result], and the router's records."""
        tokens = cleared(tokens, real)
        records: Records = router(tokens, *others, real=real)
        return self.total(tokens, records, pool, router), *records

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        """The sum of the messages to each token [..., N, result]."""
        raise NotImplementedError


class SelectedGrouped(Selected):
    """Edges sorted by module, each module once on its slice, results added back: fast, and backwards too."""

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        tokens_S, gates_SM, selected_SM = flat(tokens, records.gates, records.selected)
        chosen_SM = selected_SM != 0
        module_E, token_E = chosen_SM.t().nonzero().unbind(1)  # of the transposed: in the order of modules
        sent_E, counts_M = tokens_S.index_select(0, token_E), chosen_SM.sum(0)
        at_once = pool.at_once() if pays(sent_E, pool.expert(0)) else None
        if at_once is None:
            values = torch.cat([pool.expert(j)(part) for j, part in enumerate(slices(sent_E, counts_M))])
        else:
            values = at_once(SortedRows(module_E, counts_M.cumsum(0)), sent_E)
        weight = gates_SM.flatten().index_select(0, token_E * len(pool) + module_E)
        found = added(values, weight, token_E, tokens_S.shape[0])
        return found.reshape(*records.gates.shape[:-1], *found.shape[1:])


class SelectedPerModule(Selected):
    """Each module once, on the tokens that chose it, all results added back together: only what is chosen is computed.

    Adding each module's results by itself would pass over all tokens once for each module.
    """

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        return by_choice(tokens, records.gates, records.selected, pool)


class SelectedGathered(Selected):
    """The weights of the chosen modules taken by index: only what is chosen is computed, by operations whose sizes do
    not depend on the choice. For modules of one kind that can be stacked."""

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        by_index = pool.gathered() if isinstance(pool, Pool) else pool
        tokens_S, gates_SM, left_SM = flat(tokens, records.gates, records.selected)
        parts: list[Tensor] = []  # a call of `list[Tensor]` cannot be compiled
        for _ in range(router.k):  # one choice after another
            best = left_SM.argmax(-1, keepdim=True)
            left_S1 = left_SM.gather(-1, best)  # zero where no choice is left
            weight = gates_SM.gather(-1, best)
            left_SM = left_SM.scatter(-1, best, 0)
            values = by_index(best.squeeze(-1), tokens_S)
            parts.append(cleared(values.flatten(1), left_S1 != 0) * weight)
        return sum(parts[1:], parts[0]).reshape(*records.gates.shape[:-1], *values.shape[1:])


class SelectedMasked(Selected):
    """Every module on every token, what was not chosen weighted by zero: for modules that cannot be taken by index."""

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        values, shape = pool.all(tokens), (*records.gates.shape, *[1] * pool.result_rank)
        values = cleared(values, records.selected.reshape(shape) != 0)
        return (values * records.gates.reshape(shape)).sum(-pool.result_rank - 1)


class SelectedDense(Selected):
    """Every module on every token, weighted by its gate, which may learn where it is zero."""

    def total(self, tokens: Tensor, records: Records, pool: Any, router: Any) -> Tensor:
        gates = records.gates.reshape(*records.gates.shape, *[1] * pool.result_rank)
        found: Tensor = (pool.all(tokens) * gates).sum(-pool.result_rank - 1)
        return found


def by_choice(x: Tensor, gates: Tensor, choice: Tensor, modules: Any) -> Tensor:
    """Each token's sum of gate_j f_j(x) over the modules that are chosen for it; each runs on the tokens that chose it.

    x [..., message], gates and choice [..., M] give [..., result].
    """
    x_S, gates_SM, chosen_SM = flat(x, gates, choice)
    tokens_of = [chosen_SM[:, j].nonzero().squeeze(1) for j in range(len(modules))]
    values = torch.cat([modules[j](x_S.index_select(0, at)) for j, at in enumerate(tokens_of)])
    weight = torch.cat([gates_SM[:, j].index_select(0, at) for j, at in enumerate(tokens_of)])
    found = added(values, weight, torch.cat(tokens_of), x_S.shape[0])
    return found.reshape(*gates.shape[:-1], *found.shape[1:])


def added(values_E: Tensor, weight_E: Tensor, token_E: Tensor, tokens: int) -> Tensor:
    """The weighted sum of the values of all edges to each token [S, result]."""
    weighted = values_E.flatten(1) * weight_E.unsqueeze(-1)
    total = weighted.new_zeros(tokens, weighted.shape[1]).index_add(0, token_E, weighted)
    return total.reshape(-1, *values_E.shape[1:])


def slices(x: Tensor, counts: Tensor) -> Sequence[Tensor]:
    """The rows of x [E, ...] in parts one after another, so many each: counts [M], which add up to E."""
    if torch.compiler.is_exporting():
        parts: Sequence[Tensor] = traced(x, counts, counts.shape[0])
        torch._check(sum(part.shape[0] for part in parts) == x.shape[0])  # type: ignore[no-untyped-call]
        return parts
    return torch.split(x, counts.tolist())


@torch.library.custom_op("modgraph::slices", mutates_args=())
def traced(x: Tensor, counts: Tensor, parts: int) -> list[Tensor]:
    """The same as one operation, for a trace that holds sizes that it does not know: torch's own would be a number read
    out of a tensor for each part."""
    return [part.clone() for part in torch.split(x, counts.tolist())]


@traced.register_fake
def _(x: Tensor, counts: Tensor, parts: int) -> list[Tensor]:
    sizes = [torch.library.get_ctx().new_dynamic_size() for _ in range(parts)]
    return [x.new_empty(size, *x.shape[1:]) for size in sizes]


def flat(tokens: Tensor, gates: Tensor, choice: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens of all examples [S, message], and their gates and choices [S, M]."""
    M = gates.shape[-1]
    return tokens.reshape(-1, *tokens.shape[gates.dim() - 1 :]), gates.reshape(-1, M), choice.reshape(-1, M)


def value_of(found: Any) -> Tensor:
    """The value that a route gives, without what its router recorded."""
    value: Tensor = found[0] if isinstance(found, tuple) else found
    return value


def edge_messages(tokens_ED: Tensor, module_E: Tensor, pool: Pool) -> Tensor:
    """f_j(s_i) on every edge E, each module on the edges that lead to it."""
    edges_of = [(module_E == j).nonzero().squeeze(1) for j in range(len(pool))]
    results = [pool.expert(j)(tokens_ED[edges]) for j, edges in enumerate(edges_of)]
    return torch.cat(results)[torch.cat(edges_of).argsort()]
