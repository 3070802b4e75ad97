"""How ops without weights are said in a line of torch. What is not here is copied as the module that it is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from modgraph import nn as library
from modgraph.backends.torch.source.copied import STANDALONE, Copied
from modgraph.backends.torch.source.quote import literal
from modgraph.nn import arithmetic, chance, elementwise, loss

Expression = ast.expr


@dataclass(frozen=True)
class Value:
    """A value: the expression that gives it, how many axes an example has, whether it has none of examples, and whether
    it is away from zero."""

    said: Expression
    rank: int = 0
    is_bare: bool = False
    is_apart: bool = False

    @property
    def is_number(self) -> bool:
        return self.is_bare and not self.rank


Said = Callable[[Any, Sequence[Value], Copied], Expression | None]


def text(template: str, *values: Expression, **named: Expression) -> Expression:
    """An expression with others in the places `_0`, `_1`, … of a template, or of its names."""
    places = {**{f"_{at}": value for at, value in enumerate(values)}, **named}

    class Filled(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return places.get(node.id, node)

    tree: ast.Expression = Filled().visit(ast.parse(template, mode="eval"))
    return tree.body


def name(of: str) -> Expression:
    """A name, or any other expression, from its text."""
    return ast.parse(of, mode="eval").body


def constant(value: Any) -> Expression:
    """A number, a text, a tuple of such: as Python writes it."""
    return name(literal(value))


def called(function: str, arguments: Sequence[Expression], **named: Expression | None) -> Expression:
    """A call; arguments by name that are None are left out."""
    told = {f"given_{key}": value for key, value in named.items() if value is not None}
    said = [*(f"_{at}" for at in range(len(arguments))), *(f"{each[6:]}={each}" for each in told)]
    return text(f"{function}({', '.join(said)})", *arguments, **told)


def cleared(value: Expression, real: Expression | None, otherwise: float = 0.0) -> Expression:
    """A value without what a mask says is padding."""
    return value if real is None else text(f"_0.masked_fill(~_1, {literal(otherwise)})", value, real)


def _called(template: str, *settings: str) -> Said:
    def said(module: Any, values: Sequence[Value], copied: Copied) -> Expression:
        return text(template, *_said(values), **{each: constant(getattr(module, each)) for each in settings})

    return said


def _said(values: Sequence[Value]) -> list[Expression]:
    return [value.said for value in values]


def _widened(value: Value, lacks: Sequence[int]) -> Expression:
    """A value with the axes that it lacks, counted from the last."""
    said = value.said
    for axis in () if value.is_number else reversed(lacks):
        said = text(f"_0.unsqueeze({axis})", said)
    return said


SYMBOLS = {"+": "_0 + _1", "-": "_0 - _1", "*": "_0 * _1", "/": "_0 / _1", "**": "_0 ** _1"}
COMPARED = ("<", "<=", ">", ">=", "==", "!=")


def arithmetic_of(module: arithmetic.Arithmetic, values: Sequence[Value], copied: Copied) -> Expression | None:
    """left ∘ right."""
    symbol = next(symbol for symbol, each in module.OPERATORS.items() if each is module.function)
    remaining, sides = iter(values), list[Expression]()
    for number, lacks in zip((module.left, module.right), module.lacks, strict=True):
        sides.append(constant(number) if number is not None else _widened(next(remaining), lacks))
    if symbol in ("minimum", "maximum"):
        bound = "max" if symbol == "minimum" else "min"
        is_number = module.right is not None
        return text(f"_0.clamp({bound}=_1)" if is_number else f"torch.{symbol}(_0, _1)", *sides)
    if symbol in COMPARED:
        tensor = sides[0] if module.left is None else sides[1]
        return text(f"(_0 {symbol} _1).to(_2.dtype)", *sides, tensor)
    if symbol == "/" and module.right is None and not values[-1].is_apart:
        return text(f"{copied.name_of(elementwise.divide)}(_0, _1)", *sides)
    if symbol == "**" and (module.right is None or 0 != module.right < 1):
        return text(f"{copied.name_of(elementwise.power)}(_0, _1)", *sides)
    return text(SYMBOLS[symbol], *sides)


def is_apart(module: Any, values: Sequence[Value]) -> bool:
    """Whether what a module gives is away from zero: a bound of its numbers is above zero."""
    if isinstance(module, library.Clamp):
        return module.least is not None and module.least > 0
    if isinstance(module, arithmetic.Arithmetic) and module.function is module.OPERATORS["maximum"]:
        return isinstance(module.right, float) and module.right > 0
    functions = (elementwise.FUNCTIONS["sqrt"],)
    return isinstance(module, elementwise.Elementwise) and module.function in functions and values[0].is_apart


def where_of(module: arithmetic.Where, values: Sequence[Value], copied: Copied) -> Expression | None:
    if module.constants.count(None) == 0:
        return None
    condition, *rest = (_widened(value, lacks) for value, lacks in zip(values, module.lacks, strict=False))
    remaining = iter(rest)
    sides = [next(remaining) if each is None else constant(each) for each in module.constants]
    return text("torch.where(_0 != 0, _1, _2)", condition, *sides)


def elementwise_of(module: elementwise.Elementwise, values: Sequence[Value], copied: Copied) -> Expression:
    known = next(key for key, each in elementwise.FUNCTIONS.items() if each is module.function)
    if known in ("log", "sqrt") and not values[0].is_apart:
        return text(f"{copied.name_of(module.function)}(_0)", *_said(values))
    return text(f"_0.{known}()", *_said(values))


def joined(template: str) -> Said:
    """Of any number of values as a tuple."""

    def said(module: Any, values: Sequence[Value], copied: Copied) -> Expression:
        return text(template, ast.Tuple(_said(values), ast.Load()), rank=constant(-1 - getattr(module, "rank", 0)))

    return said


def transposed(module: library.Transpose, values: Sequence[Value], copied: Copied) -> Expression:
    rank = len(module.order)
    moved = [at for at, place in enumerate(module.order) if at - rank != place]
    if len(moved) == 2:
        return text(f"_0.transpose({moved[0] - rank}, {moved[1] - rank})", *_said(values))
    return text(f"_0.movedim({tuple(module.order)}, {tuple(range(-rank, 0))})", *_said(values))


def flattened(module: library.Flatten, values: Sequence[Value], copied: Copied) -> Expression:
    return text(f"_0.flatten({-module.rank})" if module.rank else "_0.unsqueeze(-1)", *_said(values))


def contracted(module: library.Contract, values: Sequence[Value], copied: Copied) -> Expression:
    """A map of vectors by a matrix that is the same for all examples; an equation for other products."""
    plain = not module.aligned and values[1].is_bare and module.free[1] == 1
    if not plain:
        return text("torch.einsum(equation, _0, _1)", *_said(values), equation=constant(module.equation))
    vectors, matrix = (
        value.said if axis == -1 else text(f"_0.movedim({axis}, -1)", value.said)
        for value, axis in zip(values, module.over, strict=True)
    )
    return text("F.linear(_0, _1)", vectors, matrix)


def cross_entropy_of(module: library.CrossEntropy, values: Sequence[Value], copied: Copied) -> Expression | None:
    """That of one label for each example, all of which count alike; None for others."""
    plain = not module.weights and module.ignore is None and not module.since and not module.missing
    if not plain or values[1].rank != 0 or values[0].is_bare:
        return None
    return text("F.cross_entropy(_0, _1.long(), reduction='none')", *_said(values))


def importance_of(module: library.Importance, values: Sequence[Value], copied: Copied) -> Expression | None:
    """That of one route, or of two."""
    flat = "flatten(1, -2).sum(1)" if module.over == "example" else "flatten(0, -2).sum(0)"
    if len(values) > 2 or any(value.is_bare for value in values):
        return None
    squared = [text(f"{copied.name_of(loss.squared_cv)}(_0.{flat})", value) for value in _said(values)]
    return squared[0] if len(squared) == 1 else text("_0 + _1", *squared)


def pooled(function: str) -> Said:
    """Pooling of images [B, C, H, W]; None for those with other axes before."""

    def said(module: Any, values: Sequence[Value], copied: Copied) -> Expression | None:
        settings = {"size": constant(module.kernel_size), "stride": constant(module.stride)}
        same = module.kernel_size == module.stride
        return text(
            f"F.{function}(_0, size)" if same else f"F.{function}(_0, size, stride)", *_said(values), **settings
        )

    return said


def noise_of(module: chance.NormalNoise, values: Sequence[Value], copied: Copied) -> Expression:
    """Normal noise of a deviation."""
    if module.deviation == 0:
        return text("torch.zeros_like(_0)", *_said(values))
    drawn = f"{copied.needed((STANDALONE, 'standard_normal'))}(_0)"
    deviation = values[1].said if module.deviation is None else constant(module.deviation)
    return text(f"{drawn} * deviation if self.training else torch.zeros_like(_0)", *_said(values), deviation=deviation)


def gumbel_of(module: chance.GumbelNoise, values: Sequence[Value], copied: Copied) -> Expression:
    drawn = f"{copied.needed((STANDALONE, 'standard_gumbel'))}(_0)"
    return text(f"{drawn} if self.training else torch.zeros_like(_0)", *_said(values))


def positions_of(module: library.Positions, values: Sequence[Value], copied: Copied) -> Expression:
    """0, 1, 2, … along an axis; numbers of two bytes would round them."""
    kind = "torch.promote_types(_0.dtype, torch.float32)"
    places = f"torch.arange(_0.shape[{module.axis}], dtype={kind}, device=_0.device)"
    return text(f"{places}.expand(*_0.shape[:-{module.rank}], -1)", *_said(values))


FORMULAS: Mapping[type, Said] = {
    nn.ReLU: _called("F.relu(_0)"),
    nn.GELU: _called("F.gelu(_0)"),
    nn.SiLU: _called("F.silu(_0)"),
    nn.Tanh: _called("torch.tanh(_0)"),
    nn.Sigmoid: _called("torch.sigmoid(_0)"),
    nn.Softplus: _called("F.softplus(_0)"),
    nn.Identity: _called("_0"),
    nn.ELU: _called("F.elu(_0, alpha)", "alpha"),
    nn.LeakyReLU: _called("F.leaky_relu(_0, negative_slope)", "negative_slope"),
    library.Arithmetic: arithmetic_of,
    library.Where: where_of,
    library.Elementwise: elementwise_of,
    library.Clamp: _called("_0.clamp(least, largest)", "least", "largest"),
    library.Softmax: _called("_0.softmax(axis)", "axis"),
    library.LogSoftmax: _called("_0.log_softmax(axis)", "axis"),
    library.Max: _called("_0.amax(axis)", "axis"),
    library.Min: _called("_0.amin(axis)", "axis"),
    library.Mean: _called("_0.mean(axis)", "axis"),
    library.Last: _called("_0.select(axis, -1)", "axis"),
    library.Flatten: flattened,
    library.Merge: _called("_0.flatten(first, last)", "first", "last"),
    library.Unmerge: _called("_0.unflatten(axis, sizes)", "axis", "sizes"),
    library.Transpose: transposed,
    library.CrossEntropy: cross_entropy_of,
    library.Importance: importance_of,
    library.Concat: joined("torch.cat(_0, dim=-1)"),
    library.Stack: joined("torch.stack(_0, dim=rank)"),
    library.Split: _called("_0.split(lengths, dim=-1)", "lengths"),
    library.Tokens: _called("_0.flatten(-2).transpose(-1, -2)"),
    library.Positions: positions_of,
    library.StopGradient: _called("_0.detach()"),
    library.NextState: _called("_1.detach()"),
    library.TrainingOrInference: _called("_0 if self.training else _1"),
    library.MaxPool2d: pooled("max_pool2d"),
    library.AvgPool2d: pooled("avg_pool2d"),
    library.NormalNoise: noise_of,
    library.GumbelNoise: gumbel_of,
}
OF_CLEARED: Mapping[type, Said] = {  # whose padding is zeros
    library.Unit: _called("F.normalize(_0, dim=axis, eps=1e-08)", "axis"),
    library.Sum: _called("_0.sum(axis)", "axis"),
    library.CumulativeSum: _called("_0.cumsum(axis)", "axis"),
    library.Select: _called("_0.select(axis, index)", "axis", "index"),
    library.Contract: contracted,
    library.MaskPadding: _called("_0"),
}
NOT_BARE = (library.CrossEntropy, library.Importance)


Masks = Sequence[Expression | None]


def formula(module: Any, values: Sequence[Value], real: Masks, copied: Copied) -> Expression | None:
    """What a module computes of some values with masks, in a line; None where there is no such line."""
    if type(module) in OF_CLEARED:
        masks = [*real, *[None] * len(values)]
        values = [
            Value(cleared(each.said, mask), each.rank, each.is_bare) for each, mask in zip(values, masks, strict=False)
        ]
        return OF_CLEARED[type(module)](module, values, copied)
    said = FORMULAS.get(type(module))
    return None if said is None or any(real) else said(module, values, copied)
