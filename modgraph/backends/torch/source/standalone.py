"""What a file of its own holds in place of parts of `modgraph.nn` that know of several processes and of exports.

B is the batch axis, T that of steps, M that of modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.nn.padding import both, labelled

Tensors = Sequence[Tensor]


class Named(nn.Module):
    """Modules and parameters under any names."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        super().__init__()
        for name, each in named.items():
            (self._parameters if isinstance(each, nn.Parameter) else self._modules)[name] = each


class Pool(nn.Module):
    """Modules 0, 1, … from messages of `rank` axes to results of `result_rank`."""

    def __init__(self, modules: Iterable[Any], rank: int = 1, result_rank: int = 1) -> None:
        super().__init__()
        self.size = 0
        for module in modules:
            self.add_module(str(self.size), module)
            self.size += 1
        self.rank, self.result_rank = rank, result_rank

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        return self._modules[str(index)]

    def __iter__(self) -> Iterator[Any]:
        return (self[j] for j in range(self.size))

    def expert(self, index: int) -> Any:
        """One module; it takes [..., message] to [..., result]."""
        return self[index]

    def all(self, x: Tensor) -> Tensor:
        """Every module on x [..., message]: [..., M, result]."""
        return torch.stack([module(x) for module in self], -1 - self.result_rank)

    def rows(self, x: Tensor) -> Tensor:
        """Module j on row j of x [..., M, message]: [..., M, result]."""
        rows = zip(self, x.unbind(-1 - self.rank), strict=True)
        return torch.stack([module(row) for module, row in rows], -1 - self.result_rank)


class State(nn.Module):
    """An array that is one for the whole batch; no gradient moves it."""

    value: Tensor

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros(tuple(sizes)))

    def forward(self) -> Tensor:
        return self.value.clone() if self.training and torch.is_grad_enabled() else self.value


def sent(x: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor on a device, of another type where one is named."""
    return x.to(device=device, dtype=dtype)


def constant(values: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Given numbers [n] as a tensor."""
    return torch.tensor(values, dtype=dtype, device=device)


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
    step: Callable[..., tuple[Tensors, Tensors]], x: Tensor, states: Tensors, length: Tensor | None = None
) -> list[Tensor]:
    """Results [B, T, ...] of a step, which takes a slice [B, ...] of x and states to the next states and results
    [B, ...]. At and beyond an example's length, states stay as they are and results are zero."""
    steps, found = x.shape[1], []
    for time, each in enumerate((x if steps else x.new_zeros(len(x), 1, *x.shape[2:])).unbind(1)):
        following, results = step(each, *states)
        if length is not None and steps:
            over = [time >= length.to(x.device).reshape(-1, *[1] * (new.dim() - 1)) for new in (*following, *results)]
            following = [torch.where(end, old, new) for end, old, new in zip(over, states, following, strict=False)]
            results = [result.masked_fill(end, 0) for end, result in zip(over[len(states) :], results, strict=True)]
        states = following
        found.append(results)
    return [torch.stack(each, dim=1)[:, :steps] for each in zip(*found, strict=True)]


def value_of(found: Any) -> Tensor:
    """The value that a route gives, without what its router recorded."""
    value: Tensor = found[0] if isinstance(found, tuple) else found
    return value


def by_choice(x: Tensor, gates: Tensor, choice: Tensor, modules: Any) -> Tensor:
    """Each token's sum of gate_j f_j(x) over the modules that are chosen for it; each runs on the tokens that chose it.

    x [..., message], gates and choice [..., M] give [..., result].
    """
    x_S = x.flatten(0, gates.dim() - 2) if gates.dim() > 1 else x.unsqueeze(0)
    gates_SM, chosen_SM = gates.reshape(-1, len(modules)), choice.reshape(-1, len(modules)) != 0
    tokens = [chosen.nonzero().squeeze(1) for chosen in chosen_SM.unbind(1)]
    values = torch.cat([module(x_S[at]) for module, at in zip(modules, tokens, strict=True)])
    gate = torch.cat([gate[at] for gate, at in zip(gates_SM.unbind(1), tokens, strict=True)])
    weighted = values * gate.reshape(-1, *[1] * (values.dim() - 1))
    total = weighted.new_zeros(len(x_S), *weighted.shape[1:]).index_add(0, torch.cat(tokens), weighted)
    return total.reshape(*gates.shape[:-1], *values.shape[1:])


def real_places(x: Tensor, axis: int, length: Tensor) -> Tensor:
    """A mask that broadcasts against x [B, ...]: true where the place along an axis is below the example's length."""
    places = torch.arange(x.shape[axis], device=x.device)
    shape = [size if at in (0, axis) else 1 for at, size in enumerate(x.shape)]
    return (places < length.to(x.device).unsqueeze(-1)).reshape(shape)


def with_labels(target: Tensor, real: Tensor | None, ignored: int | None, missing: bool) -> Tensor:
    """Which examples [B] of a target [B, ...] have any label that counts."""
    counts = both(labelled(target, ignored, missing), real)
    counts = torch.ones_like(target, dtype=torch.bool) if counts is None else counts
    return counts.flatten(1).any(1) if target.dim() > 1 else counts
