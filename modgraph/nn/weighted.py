"""Routes to every module, and weighted routes as matrix products.

Axes have letters, as in an einsum equation: `z` is the axis of examples, `m` that of modules.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from modgraph.nn.layer import Layer
from modgraph.nn.padding import apply_mask
from modgraph.nn.pool import Pool

EXAMPLES, MODULE = "z", "m"
Masks = tuple[Tensor | None, ...]


class EveryModule(Layer):
    """The router of a route without weights. With `rows`, tokens already have an axis of modules."""

    rows: bool


class EveryModuleRoute(nn.Module):
    """Applies every module to tokens [..., message], or module j to row j of [..., M, message]: [..., M, result]."""

    def forward(self, tokens: Tensor, pool: Pool, router: EveryModule, mask: Tensor | None = None) -> Tensor:
        return pool.rows(tokens) if router.rows else pool.all(tokens)


class OneModule(Layer):
    """The router of a route to the module that the text names."""

    index: int


class OneModuleRoute(nn.Module):
    """Applies one module to tokens [..., message]: [..., result]."""

    def forward(self, tokens: Tensor, pool: Pool, router: OneModule, mask: Tensor | None = None) -> Tensor:
        result: Tensor = pool.expert(router.index)(tokens)
        return result


class Weighted(nn.Module):
    """The axes of a weighted route: of tokens, of weights, the summed one, and those of the result, in any order.

    The axes of a message and of a module's result are left out. With `rows`, the operand has the axis of modules behind
    those of tokens: each module takes its own row.
    """

    def __init__(self, tokens: str, weights: str, over: str, result: str, rows: bool = False) -> None:
        super().__init__()
        self.rows = rows
        self.given = EXAMPLES + tokens + (MODULE if rows else "")  # the axes of the operand
        self.pairs = EXAMPLES + tokens + MODULE  # the axes of all messages
        self.tokens = EXAMPLES + tokens
        self.weights = EXAMPLES + weights
        self.over = over
        self.own = "".join(letter for letter in self.weights if letter not in self.pairs)  # only the weights have these
        self.result = EXAMPLES + result


class WeightedDense(nn.Module):
    """Runs every module on every token, and sums the products with weights by one einsum."""

    def forward(
        self,
        tokens: Tensor,
        pool: Pool,
        router: Weighted,
        weights: Tensor,
        messages: Tensor | None = None,
        mask: Masks | None = None,
    ) -> Tensor:
        """Tokens [..., message] and weights give [..., result], along the axes that the router's letters name."""
        if messages is None:
            tokens = tokens if mask is None else apply_mask(tokens, mask[0])
            messages = pool.rows(tokens) if router.rows else pool.all(tokens)
        weights = weights if mask is None else apply_mask(weights, mask[1])
        own = messages.shape[messages.dim() - pool.result_rank :]
        flat = messages.reshape(*messages.shape[: len(router.pairs)], own.numel())
        found = torch.einsum(f"{router.weights},{router.pairs}V->{router.result}V", weights, flat)
        return mask_result(found.reshape(*found.shape[:-1], *own), router, mask)


class WeightedFactorised(nn.Module):
    """Sums tokens before affine modules: f(Σ w x) + (Σ w − 1) f(0) = Σ w f(x)."""

    def forward(
        self,
        tokens: Tensor,
        pool: Pool,
        router: Weighted,
        weights: Tensor,
        of_zero: Tensor | None = None,
        mask: Masks | None = None,
    ) -> Tensor:
        """Tokens [..., message] and weights give [..., result], along the axes that the router's letters name.

        `of_zero` [1, M, result] is f(0) of every module, if it is already computed.
        """
        if of_zero is None:
            of_zero = pool.rows(tokens.new_zeros(1, len(pool), *tokens.shape[tokens.dim() - pool.rank :]))
        tokens, weights = mask_operands(tokens, weights, mask)
        message = tokens.shape[tokens.dim() - pool.rank :]
        rows = "".join(each for each in router.tokens + router.own if each != router.over)
        rows += MODULE if MODULE in router.weights + router.given else ""
        flat = tokens.reshape(*tokens.shape[: len(router.given)], message.numel())
        sums = torch.einsum(f"{router.weights},{router.given}D->{rows}D", weights, flat)  # ONNX Runtime's fastest form
        sums = sums.reshape(*sums.shape[:-1], *message)
        values = pool.rows(sums) if MODULE in rows else pool.all(sums)
        total = weights.sum(router.weights.index(router.over))
        total = align_axes(total, router.weights.replace(router.over, ""), rows.replace(MODULE, "") + MODULE)
        total = total.reshape(*total.shape, *[1] * pool.result_rank)
        found = order_axes(values + (total - 1) * of_zero.squeeze(0), rows.replace(MODULE, "") + MODULE, router.result)
        return mask_result(found, router, mask)


def mask_operands(tokens: Tensor, weights: Tensor, mask: Masks | None) -> tuple[Tensor, Tensor]:
    """Zero the padding of tokens and weights."""
    return (tokens, weights) if mask is None else (apply_mask(tokens, mask[0]), apply_mask(weights, mask[1]))


def mask_result(found: Tensor, router: Weighted, mask: Masks | None) -> Tensor:
    """Zero a result [..., result] where its tokens are padding."""
    if mask is None or mask[0] is None:
        return found
    letters, tokens = router.given, mask[0].reshape(mask[0].shape[: len(router.given)])
    if router.over in letters:
        letters, tokens = letters.replace(router.over, ""), tokens.any(letters.index(router.over))
    tokens = align_axes(tokens, letters, router.result)
    return apply_mask(found, tokens.reshape(*tokens.shape, *[1] * (found.dim() - tokens.dim())))


def align_axes(x: Tensor, letters: str, target: str) -> Tensor:
    """Permute x, whose axes have `letters`, to those of the target; axes that it lacks get length 1."""
    x = x.permute([letters.index(letter) for letter in target if letter in letters])
    for at, letter in enumerate(target):
        x = x if letter in letters else x.unsqueeze(at)
    return x


def order_axes(x: Tensor, letters: str, target: str) -> Tensor:
    """Permute the first axes of x, which have `letters`, to the order of the target."""
    rest = range(len(letters), x.dim())
    return x.permute([letters.index(letter) for letter in target] + list(rest))
