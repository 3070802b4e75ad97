"""Routes to every module: without weights, and by weights with matrices instead of edges.

Axes have letters, as in an equation of Einstein's: `z` that of examples, `m` that of modules.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from modgraph.nn.layer import Layer
from modgraph.nn.padding import cleared
from modgraph.nn.pool import Pool

EXAMPLES, MODULE = "z", "m"
Masks = tuple[Tensor | None, ...]


class EveryModule(Layer):
    """Whether a value has an axis of modules already."""

    rows: bool


class EveryModuleRoute(nn.Module):
    """[..., message], or [..., M, message] row by row, gives [..., M, result]."""

    def forward(self, tokens: Tensor, pool: Pool, router: EveryModule, real: Tensor | None = None) -> Tensor:
        return pool.rows(tokens) if router.rows else pool.all(tokens)


class Weighted(nn.Module):
    """The axes of the senders, of the weights, the one that is summed, and those of the result before a module's own,
    which are all others in any order. With `rows` what is routed has the axis of
    modules behind those of the senders: each module takes its own row."""

    def __init__(self, senders: str, weights: str, over: str, result: str, rows: bool = False) -> None:
        super().__init__()
        self.rows = rows
        self.given = EXAMPLES + senders + (MODULE if rows else "")  # the axes of what is routed
        self.pairs = EXAMPLES + senders + MODULE  # the axes of all messages
        self.senders = EXAMPLES + senders
        self.weights = EXAMPLES + weights
        self.over = over
        self.own = "".join(letter for letter in self.weights if letter not in self.pairs)  # the weights' alone
        self.result = EXAMPLES + result


class WeightedDense(nn.Module):
    """Every module on every sender, and one sum of products."""

    def forward(
        self,
        tokens: Tensor,
        pool: Pool,
        router: Weighted,
        weights: Tensor,
        messages: Tensor | None = None,
        real: Masks | None = None,
    ) -> Tensor:
        """Tokens [..., message] and weights give [..., result], as the letters say."""
        if messages is None:
            tokens = tokens if real is None else cleared(tokens, real[0])
            messages = pool.rows(tokens) if router.rows else pool.all(tokens)
        weights = weights if real is None else cleared(weights, real[1])
        own = messages.shape[messages.dim() - pool.result_rank :]
        flat = messages.reshape(*messages.shape[: len(router.pairs)], own.numel())
        found = torch.einsum(f"{router.weights},{router.pairs}V->{router.result}V", weights, flat)
        return emptied(found.reshape(*found.shape[:-1], *own), router, real)


class WeightedFactorised(nn.Module):
    """For affine modules and sums over senders: f(Σ w x) + (Σ w − 1) f(0) = Σ w f(x), so these are summed first."""

    def forward(
        self,
        tokens: Tensor,
        pool: Pool,
        router: Weighted,
        weights: Tensor,
        of_zero: Tensor | None = None,
        real: Masks | None = None,
    ) -> Tensor:
        """Tokens [..., message] and weights give [..., result], as the letters say; f(0) of every module may be given,
        [1, M, result]."""
        if of_zero is None:
            of_zero = pool.rows(tokens.new_zeros(1, len(pool), *tokens.shape[tokens.dim() - pool.rank :]))
        tokens, weights = without_padding(tokens, weights, real)
        message = tokens.shape[tokens.dim() - pool.rank :]
        rows = "".join(each for each in router.senders + router.own if each != router.over)
        rows += MODULE if MODULE in router.weights + router.given else ""
        flat = tokens.reshape(*tokens.shape[: len(router.given)], message.numel())
        sums = torch.einsum(f"{router.weights},{router.given}D->{rows}D", weights, flat)  # as ONNX Runtime does it best
        sums = sums.reshape(*sums.shape[:-1], *message)
        values = pool.rows(sums) if MODULE in rows else pool.all(sums)
        total = weights.sum(router.weights.index(router.over))
        total = laid(total, router.weights.replace(router.over, ""), rows.replace(MODULE, "") + MODULE)
        total = total.reshape(*total.shape, *[1] * pool.result_rank)
        found = in_order(values + (total - 1) * of_zero.squeeze(0), rows.replace(MODULE, "") + MODULE, router.result)
        return emptied(found, router, real)


def without_padding(tokens: Tensor, weights: Tensor, real: Masks | None) -> tuple[Tensor, Tensor]:
    """What is routed and its weights, zero in padding."""
    return (tokens, weights) if real is None else (cleared(tokens, real[0]), cleared(weights, real[1]))


def emptied(found: Tensor, router: Weighted, real: Masks | None) -> Tensor:
    """A result that is zero where what was routed is padding."""
    if real is None or real[0] is None:
        return found
    letters, mask = router.given, real[0].reshape(real[0].shape[: len(router.given)])
    if router.over in letters:
        letters, mask = letters.replace(router.over, ""), mask.any(letters.index(router.over))
    mask = laid(mask, letters, router.result)
    return cleared(found, mask.reshape(*mask.shape, *[1] * (found.dim() - mask.dim())))


def laid(x: Tensor, letters: str, target: str) -> Tensor:
    """x, whose axes have these letters, with those of the target; of length 1 where it has none."""
    x = x.permute([letters.index(letter) for letter in target if letter in letters])
    for at, letter in enumerate(target):
        x = x if letter in letters else x.unsqueeze(at)
    return x


def in_order(x: Tensor, letters: str, target: str) -> Tensor:
    """x, whose first axes have these letters, with them in the order of the target."""
    rest = range(len(letters), x.dim())
    return x.permute([letters.index(letter) for letter in target] + list(rest))
