"""smn(modules=2, iterations=4, classes=10, balance=0.001, over="example", bias=false, update="sum",
    residual=false, uncertainty=0.0)

Written by modgraph 0.1.0; torch is all that it needs. Weights have the names that they have in modgraph:

    model = Smn()
    model.load_state_dict(safetensors.torch.load_file("weights.safetensors"))
    output = model(image)

B is the batch axis, "..." stands for any axes before those of one message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


# ---------------------------------------------------------------- layers


def squared_cv(x: Tensor) -> Tensor:
    """Variance (unbiased) over squared mean along the last axis; 0 for a single value."""
    if x.shape[-1] == 1:
        return x.new_zeros(x.shape[:-1])
    least = 2.0**20 * torch.finfo(x.dtype).tiny  # by the smallest number a weighted gradient would overflow
    return x.var(-1) / (x.mean(-1) ** 2).clamp(min=least)


class Contract(nn.Module):
    """An einsum of two values, padding of each left out; one that is the same for all examples may stand for one alone.

    A product of matrices is computed as one, which ONNX Runtime does faster.
    """

    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation
        left, right, result = equation.replace(".", "").replace("->", ",").split(",")
        (over,) = {*left} & {*right} - {*result}
        self.free = (len(left) - 1, len(right) - 1)
        self.over = (left.find(over) - len(left), right.find(over) - len(right))
        self.aligned = bool({*left} & {*right} & {*result})

    def forward(self, left: Tensor, right: Tensor, real: tuple[Tensor | None, ...] = (None, None)) -> Tensor:
        left, right = cleared(left, real[0]), cleared(right, real[1])
        outer = [x.dim() - free - 1 for x, free in zip((left, right), self.free, strict=True)]
        if not self.aligned and outer[0] >= outer[1] and _is_one(right, outer[1]):
            return self._mapped(_last(left, self.over[0]), _last(right, self.over[1]))
        if not self.aligned and self.free == (1, 1) and outer[0] == outer[1]:
            left, right = _last(left, self.over[0]), _last(right, self.over[1])
            return (right @ left.reshape(left.shape[-2:]).mT).mT if _is_one(left, outer[0]) else left @ right.mT
        left, right = (x[(None,) * (max(outer) - own)] for x, own in zip((left, right), outer, strict=True))
        return torch.einsum(self.equation, left, right)

    def _mapped(self, left: Tensor, right: Tensor) -> Tensor:
        """Each vector of the left through one matrix, whose rows have all other axes of the right."""
        rows = right.shape[right.dim() - 1 - self.free[1] : -1]
        if not rows:
            return left @ right.flatten()
        found = F.linear(left, right.reshape(-1, right.shape[-1]))
        return found if len(rows) == 1 else found.reshape(*found.shape[:-1], *rows)


def _is_one(x: Tensor, outer: int) -> bool:
    """Whether a value with so many axes before an example's is known to be one for all examples."""
    return all(isinstance(size, int) and size == 1 for size in x.shape[:outer])


def _last(x: Tensor, axis: int) -> Tensor:
    """A value with an axis as its last."""
    return x if axis == -1 else x.movedim(axis, -1)


def cleared(x: Tensor, real: Tensor | None, otherwise: float = 0.0) -> Tensor:
    """x where `real`, a mask that broadcasts against it, is true. What stands in padding, be it infinite or no number,
    reaches neither values nor gradients."""
    return x if real is None else x.masked_fill(~real, otherwise)


class Named(nn.Module):
    """Modules and parameters under names."""

    def __init__(self, /, **named: Any) -> None:
        super().__init__()
        for name, each in named.items():
            (self._parameters if isinstance(each, nn.Parameter) else self._modules)[name] = each


class ModulatedMap(nn.Module):
    """What the modules of a pool share: y = W (x ⊙ LayerNorm(Wc c)) + b, the code c given."""

    def __init__(self, width_in: int, width: int, code_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width_in))
        self.bias = nn.Parameter(torch.zeros(width))
        self.code_weight = nn.Parameter(torch.empty(width_in, code_width))

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        """x [..., D] and codes [..., C] that broadcast against it give [..., V]."""
        gain = F.layer_norm(F.linear(code, self.code_weight), self.code_weight.shape[:1])
        return F.linear(x * gain, self.weight, self.bias)


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


class Coded(nn.Module):
    """One module of a pool that shares a modulated map with the others: only the code is its own."""

    def __init__(self, shared: nn.Module, code_width: int) -> None:
        super().__init__()
        self.code = nn.Parameter(torch.empty(code_width))
        self._shared = (shared,)  # in a tuple, so that the pool alone registers it

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self._shared[0](x, self.code)
        return result

    @staticmethod
    def rows(modules: Sequence[Any], x: Tensor) -> Tensor:
        """Module j on row j of x [..., M, D], in one product."""
        codes = torch.stack([module.code for module in modules])
        result: Tensor = modules[0]._shared[0](x, codes)
        return result


class Positions(nn.Module):
    """0, 1, 2, … along an axis of values of `rank` axes, for each example."""

    def __init__(self, axis: int, rank: int) -> None:
        super().__init__()
        self.axis = axis
        self.rank = rank

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[self.axis]
        found = torch.arange(length, dtype=exact(x), device=x.device)
        return found.expand(*x.shape[: x.dim() - self.rank], length)


def exact(x: Tensor) -> torch.dtype:
    """A type that holds whole numbers as they are, where that of x, of two bytes, would round them."""
    return x.dtype if x.dtype.itemsize >= 4 else torch.float32


def divide(left: Any, right: Any) -> Tensor:
    """left / right, one of them perhaps a number."""
    if isinstance(right, Tensor) and _learns(left, right):
        result: Tensor = _Quotient.apply(left, right)
        return result
    quotient: Tensor = left / right
    return quotient


class _Quotient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor | float, right: Tensor) -> Tensor:
        ctx.left = left if not isinstance(left, Tensor) else None
        ctx.save_for_backward(left if isinstance(left, Tensor) and ctx.needs_input_grad[1] else None, right)
        ctx.shapes = getattr(left, "shape", None), right.shape
        return left / right

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        left, right = ctx.saved_tensors
        of_left = of_right = None
        if ctx.needs_input_grad[0]:
            of_left = _selected(gradient, gradient / right).sum_to_size(ctx.shapes[0])
        if ctx.needs_input_grad[1]:
            left = ctx.left if left is None else left
            of_right = _selected(gradient, -gradient * (left / right) / right).sum_to_size(ctx.shapes[1])
        return of_left, of_right


def _selected(gradient: Tensor, flowing: Tensor) -> Tensor:
    """A gradient where one arrives, zero elsewhere."""
    return torch.where(gradient == 0, 0.0, flowing)


def _learns(*values: Any) -> bool:
    """Whether a gradient may be asked for, of what is traced for export never."""
    return torch.is_grad_enabled() and any(isinstance(each, Tensor) and each.requires_grad for each in values)


def sqrt(x: Tensor) -> Tensor:
    """The square root."""
    result: Tensor = _Sqrt.apply(x) if _learns(x) else x.sqrt()
    return result


class _Sqrt(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        result = x.sqrt()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (result,) = ctx.saved_tensors
        return _selected(gradient, gradient / (2 * result))


# ---------------------------------------------------------------- the model, from its parts to Smn


class Specialist(nn.Module):
    """One module of specialist: [..., 64] to [..., 384]."""

    def __init__(self, shared):
        super().__init__()
        self.modulated_linear = Coded(shared.modulated_linear, code_width=384)
        nn.init.uniform_(self.modulated_linear.code, -0.051031036307982884, 0.051031036307982884)

    def forward(self, x):
        return self.modulated_linear(x)


class SpecialistPool(Pool):
    """The modules of specialist."""

    def __init__(self):
        shared = Named(modulated_linear=ModulatedMap(64, width=384, code_width=384))
        nn.init.uniform_(shared.modulated_linear.weight, -0.125, 0.125)
        nn.init.zeros_(shared.modulated_linear.bias)
        nn.init.uniform_(shared.modulated_linear.code_weight, -0.051031036307982884, 0.051031036307982884)
        super().__init__([Specialist(shared) for _ in range(2)], shared=shared)

    def all(self, x):
        return self.rows(self.repeated(x))

    def rows(self, x):
        modules = self.experts()
        return Coded.rows([each.modulated_linear for each in modules], x)


class Smn(nn.Module):
    """image: float[1, 28, 28] to logits: float[10]."""

    def __init__(self):
        super().__init__()
        self.glimpses = Named(conv=nn.Conv2d(1, 32, 5), conv2=nn.Conv2d(32, 64, 5))
        self.specialist = SpecialistPool()
        self.agree = Named(weight=nn.Parameter(torch.empty(384, 64).uniform_(-0.125, 0.125)))
        self.logits = Named(linear=nn.Linear(384, 10))
        self.max_pool = nn.MaxPool2d(2, 2)
        self.positions = Positions(-2, rank=2)
        self.contract = Contract("...ab,...cb->...ac")

    def forward(self, image, label=None):
        """The output, and the losses by name where targets are given."""
        glimpses = self.glimpses.conv2(self.max_pool(F.relu(self.glimpses.conv(image))))  # [B, 64, 8, 8]
        glimpses = F.relu(glimpses).flatten(-2).transpose(-1, -2)  # [B, 64, 64]
        key_turned = self.agree.weight[None].transpose(-2, -1)
        key_along = F.linear(glimpses, F.linear(key_turned, key_turned.flatten(0, -2)).flatten(0, -2))  # [B, 64, 64]
        key_inverse = divide(1.0, sqrt((key_along * glimpses).sum(-1).clamp(min=1e-16)))  # [B, 64]
        even = (0.0 * self.positions(glimpses)).softmax(-1)  # [B, 64]
        of_nothing = self.specialist.rows(glimpses.new_zeros(2, 64))
        sums = torch.einsum("za,zaD->zD", even, glimpses)
        specialist = self.specialist.all(sums) + (even.sum(1)[:, None, None] - 1) * of_nothing  # [B, 2, 384]
        scores_back = F.linear(F.normalize(specialist, dim=-1, eps=1e-08), key_turned.flatten(0, -2))  # [B, 2, 64]
        scores = self.contract(glimpses, scores_back) * key_inverse.unsqueeze(-1)  # [B, 64, 2]
        scores = 0.0 + scores  # [B, 64, 2]
        for _ in range(3):
            gates = scores.softmax(-1)  # [B, 64, 2]
            sums = torch.einsum("zam,zaD->zmD", gates, glimpses)
            specialist = self.specialist.rows(sums) + (gates.sum(1)[:, :, None] - 1) * of_nothing  # [B, 2, 384]
            scores_back = F.linear(F.normalize(specialist, dim=-1, eps=1e-08), key_turned.flatten(0, -2))  # [B, 2, 64]
            scores_2 = self.contract(glimpses, scores_back) * key_inverse.unsqueeze(-1)  # [B, 64, 2]
            scores = scores + scores_2  # [B, 64, 2]
        gates = scores.softmax(-1)  # [B, 64, 2]
        sums = torch.einsum("zam,zaD->zmD", gates, glimpses)
        specialist = self.specialist.rows(sums) + (gates.sum(1)[:, :, None] - 1) * of_nothing  # [B, 2, 384]
        logits = self.logits.linear(specialist.mean(-2))  # [B, 10]
        if label is None:
            return logits
        cross_entropy = F.cross_entropy(logits, label.long(), reduction="none")  # [B]
        importance = 0.001 * squared_cv(gates.flatten(1, -2).sum(1))  # [B]
        losses = {"loss.cross_entropy": cross_entropy.mean(), "loss.importance": importance.mean()}
        return logits, losses
