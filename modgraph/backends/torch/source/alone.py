"""What a file of its own holds in place of parts of `modgraph.nn` that know of several processes and of exports.

B is the batch axis, T that of steps, M that of modules. Numbers are those of what it stands for, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.labels import both, labelled
from modgraph.nn.names import keep_names
from modgraph.nn.padding import cleared

Tensors = Sequence[Tensor]


class Named(nn.Module):
    """Modules and parameters under names."""

    def __init__(self, /, **named: Any) -> None:
        super().__init__()
        for name, each in named.items():
            (self._parameters if isinstance(each, nn.Parameter) else self._modules)[name] = each


class Renamed(Named):
    """Modules and parameters under attributes, some of which have other names in state dicts."""

    def __init__(self, attributes: Mapping[str, str], /, **named: Any) -> None:
        super().__init__(**named)
        keep_names(self, attributes)


def sent(x: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor on a device, of another type where one is named."""
    return x.to(device=device, dtype=dtype)


def constant(values: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Given numbers [n] as a tensor."""
    return torch.tensor(values, dtype=dtype, device=device)


class Pool(nn.Module):
    """Modules of one interface, from messages of `rank` axes to results of `result_rank`, named 0, 1, …; what they have
    in common stands under `shared`."""

    def __init__(
        self, modules: Iterable[nn.Module], rank: int = 1, result_rank: int = 1, shared: nn.Module | None = None
    ) -> None:
        super().__init__()
        if shared is not None:
            self.add_module("shared", shared)
        self.size = 0
        for module in modules:
            self.add_module(str(self.size), module)
            self.size += 1
        self.rank, self.result_rank = rank, result_rank

    def __len__(self) -> int:
        return self.size

    def expert(self, index: int) -> Any:
        """One module; it takes [..., message] to [..., result]."""
        return self._modules[str(index)]

    def experts(self) -> list[Any]:
        """All modules in their order."""
        return [self.expert(j) for j in range(self.size)]

    def all(self, x: Tensor) -> Tensor:
        """Every module on x [..., message]: [..., M, result]."""
        return self.each(lambda j: x)

    def rows(self, x: Tensor) -> Tensor:
        """Module j on row j of x [..., M, message]: [..., M, result]."""
        rows = x.unbind(-self.rank - 1)
        return self.each(lambda j: rows[j])

    def each(self, message: Callable[[int], Tensor]) -> Tensor:
        """Each module on a message of its own [..., message]: [..., M, result]."""
        return stacked([self.expert(j)(message(j)) for j in range(self.size)], self.result_rank)

    def repeated(self, x: Tensor) -> Tensor:
        """x [..., message] for every module: [..., M, message]."""
        x = x.unsqueeze(-self.rank - 1)
        shape = list(x.shape)
        shape[-self.rank - 1] = self.size
        return x.expand(shape)


def stacked(results: Sequence[Tensor], rank: int) -> Tensor:
    """Results [..., result] of modules side by side: [..., M, result]."""
    return results[0].unsqueeze(-rank - 1) if len(results) == 1 else torch.stack(tuple(results), dim=-rank - 1)


@dataclass(frozen=True, eq=False)
class Gathered:
    """A pool whose modules are taken by index: `chosen` takes modules [E] and messages [E, ...] to results."""

    pool: Pool
    chosen: Callable[[Tensor, Tensor], Tensor]

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def rank(self) -> int:
        return self.pool.rank


def is_sharded() -> bool:
    return False


def whole_batch_sum(x: Tensor) -> Tensor:
    return x


def whole_batch(x: Tensor) -> Tensor:
    return x


def own_rows(whole: Tensor, like: Tensor) -> Tensor:
    return whole


def standard_normal(like: Tensor) -> Tensor:
    """Normal noise of a tensor's shape, type and device."""
    return torch.randn(like.shape, dtype=like.dtype, device=like.device)


def standard_gumbel(like: Tensor) -> Tensor:
    """Gumbel noise of a tensor's shape, type and device: the largest of it and logits is a draw from their softmax."""
    uniform = torch.rand(like.shape, dtype=like.dtype, device=like.device)
    return uniform.clamp_(min=torch.finfo(like.dtype).tiny).log_().neg_().log_().neg_()


class Dropout(nn.Dropout):
    """torch's dropout; an example keeps its noise however it lies in memory."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        kept = torch.empty(x.shape, dtype=x.dtype, device=x.device).bernoulli_(1 - self.p)
        return x * (kept / (1 - self.p))


def slices(x: Tensor, counts: Tensor) -> Tensors:
    """The rows of x in parts one after another, so many each: counts [M]."""
    return torch.split(x, counts.tolist())


def scan(
    step: Callable[[Tensors, Tensors], tuple[Tensors, Tensors]],
    sequences: Tensors,
    states: Tensors,
    length: Tensor | None = None,
) -> list[Tensor]:
    """Results [B, T, ...] of a step, which takes slices [B, ...] of sequences and states to the next states and results
    [B, ...]. At and beyond an example's length, states stay as they are and results are zero."""
    steps, found = sequences[0].shape[1], []
    sequences = sequences if steps else [each.new_zeros(each.shape[0], 1, *each.shape[2:]) for each in sequences]
    for time, slices in enumerate(zip(*(each.unbind(1) for each in sequences), strict=True)):
        following, results = step(slices, states)
        if length is not None and steps:
            real = time < length.to(sequences[0].device)
            following = [torch.where(_beside(real, new), new, old) for new, old in zip(following, states, strict=True)]
            results = [result.masked_fill(~_beside(real, result), 0) for result in results]
        states = following
        found.append(results)
    stacked = [torch.stack(list(each), dim=1) for each in zip(*found, strict=True)]
    return stacked if steps else [each[:, :0] for each in stacked]


def _beside(real: Tensor, x: Tensor) -> Tensor:
    return real.reshape(-1, *[1] * (x.dim() - 1))


def value_of(found: Any) -> Tensor:
    """The value that a route gives, without what its router recorded."""
    value: Tensor = found[0] if isinstance(found, tuple) else found
    return value


def weights_of_chosen(weights: Tensor, choice: Tensor, straight: bool) -> Tensor:
    """Weights, zero where nothing is chosen; the gradient is too, unless it is to go straight through."""
    return weights if straight or weights is choice else cleared(weights, choice != 0)


def by_choice(x: Tensor, weights: Tensor, choice: Tensor, pool: Pool, straight: bool = False) -> Tensor:
    """Each token's sum of w_j f_j(x) over the modules chosen for it, each module run once, on the tokens that chose it.

    x [..., message], weights and choice [..., M] give [..., result].
    """
    x_S, chosen_SM = x.reshape(-1, *x.shape[-pool.rank :]), choice.reshape(-1, len(pool)) != 0
    weights_SM = weights_of_chosen(weights, choice, straight).reshape(-1, len(pool))
    module_E, token_E = chosen_SM.t().nonzero().unbind(1)  # of the transposed: in the order of modules
    parts = torch.split(x_S.index_select(0, token_E), chosen_SM.sum(0).tolist())
    values = torch.cat([pool.expert(j)(part) for j, part in enumerate(parts)])
    weight = weights_SM.flatten().index_select(0, token_E * len(pool) + module_E)
    weighted = values.flatten(1) * weight.unsqueeze(-1)
    total = weighted.new_zeros(x_S.shape[0], weighted.shape[1]).index_add(0, token_E, weighted)
    return total.reshape(*weights.shape[:-1], *values.shape[1:])


def by_index(x: Tensor, weights: Tensor, choice: Tensor, pool: Gathered, k: int, straight: bool = False) -> Tensor:
    """The same with the weights of the chosen modules taken by index, one choice after another."""
    x_S, left_SM = x.reshape(-1, *x.shape[-pool.rank :]), choice.reshape(-1, len(pool))
    weights_SM = weights_of_chosen(weights, choice, straight).reshape(-1, len(pool))
    parts = []
    for _ in range(k):
        best = left_SM.argmax(-1, keepdim=True)
        left_S1 = left_SM.gather(-1, best)  # zero where no choice is left
        weight = weights_SM.gather(-1, best)
        left_SM = left_SM.scatter(-1, best, 0)
        values = pool.chosen(best.squeeze(-1), x_S)
        parts.append(cleared(values.flatten(1), left_S1 != 0) * weight)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total.reshape(*weights.shape[:-1], *values.shape[1:])


def given(sizes: Sequence[int], values: Sequence[float], like: Tensor) -> Tensor:
    """Given numbers, or one number everywhere, of the type and on the device of a value."""
    kind = like.dtype if like.is_floating_point() else torch.get_default_dtype()
    found = torch.tensor(values, dtype=kind, device=like.device)
    return found.reshape(tuple(sizes)) if found.numel() == torch.Size(sizes).numel() else found.expand(tuple(sizes))


def with_labels(target: Tensor, real: Tensor | None, ignored: int | None, missing: bool) -> Tensor:
    """Which examples [B] of a target [B, ...] have any label that counts."""
    counts = both(labelled(target, ignored, missing), real)
    counts = torch.ones_like(target, dtype=torch.bool) if counts is None else counts
    return counts.flatten(1).any(1) if target.dim() > 1 else counts
