"""How ops without weights are said in a line of torch. What is not here is copied as the module that it is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from modgraph import nn as library
from modgraph.backends.torch.source.copied import Copied
from modgraph.backends.torch.source.quote import literal
from modgraph.nn import arithmetic, elementwise, loss

Expression = ast.expr
Said = Callable[[Any, Sequence["Value"], Copied], Expression | None]


@dataclass(frozen=True)
class Value:
    """A value: the expression that gives it, whether it is a tensor without axes, whether it is the same for all
    examples, with an axis of length one in place of that of the batch, and whether it has not even that; `rank` is how
    many axes an example has."""

    said: Expression
    is_number: bool = False
    is_one: bool = False
    is_bare: bool = False
    rank: int | None = None


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
    if symbol == "/" and module.right is None:
        return text(f"{copied.name_of(elementwise.divide)}(_0, _1)", *sides)
    if symbol == "**" and (module.right is None or 0 != module.right < 1):
        return text(f"{copied.name_of(elementwise.power)}(_0, _1)", *sides)
    return text(SYMBOLS[symbol], *sides)


def where_of(module: arithmetic.Where, values: Sequence[Value], copied: Copied) -> Expression | None:
    if module.constants.count(None) == 0:
        return None
    condition, *rest = (_widened(value, lacks) for value, lacks in zip(values, module.lacks, strict=False))
    remaining = iter(rest)
    sides = [next(remaining) if each is None else constant(each) for each in module.constants]
    return text("torch.where(_0 != 0, _1, _2)", condition, *sides)


def elementwise_of(module: elementwise.Elementwise, values: Sequence[Value], copied: Copied) -> Expression:
    known = next(key for key, each in elementwise.FUNCTIONS.items() if each is module.function)
    if known in ("log", "sqrt"):
        return text(f"{copied.name_of(module.function)}(_0)", *_said(values))
    return text(f"_0.{known}()", *_said(values))


def unit_of(module: library.Unit, values: Sequence[Value], copied: Copied) -> Expression:
    return text(f"F.normalize(_0, dim={module.axis}, eps=1e-08)", *_said(values))


def joined(template: str) -> Said:
    """Of any number of values as a tuple."""

    def said(module: Any, values: Sequence[Value], copied: Copied) -> Expression:
        return text(template, ast.Tuple(_said(values), ast.Load()), rank=constant(-1 - getattr(module, "rank", 0)))

    return said


def transposed(module: library.Transpose, values: Sequence[Value], copied: Copied) -> Expression | None:
    rank = len(module.order)
    places = [place + rank for place in module.order]
    moved = [at for at, place in enumerate(places) if at != place]
    if len(moved) == 2:
        return text(f"_0.transpose({moved[0] - rank}, {moved[1] - rank})", *_said(values))
    return None


def flattened(module: library.Flatten, values: Sequence[Value], copied: Copied) -> Expression:
    return text(f"_0.flatten({-module.rank})" if module.rank else "_0.unsqueeze(-1)", *_said(values))


def contracted(module: library.Contract, values: Sequence[Value], copied: Copied) -> Expression | None:
    """A map of vectors by a matrix that is the same for all examples; None for other products."""
    if module.aligned or not values[1].is_one or module.free[1] != 1:
        return None
    vectors, matrix = (
        value.said if axis == -1 else text(f"_0.movedim({axis}, -1)", value.said)
        for value, axis in zip(values, module.over, strict=True)
    )
    return text("F.linear(_0, _1)" if values[1].is_bare else "F.linear(_0, _1.flatten(0, -2))", vectors, matrix)


def cross_entropy_of(module: library.CrossEntropy, values: Sequence[Value], copied: Copied) -> Expression | None:
    """That of one label for each example, all of which count alike; None for others."""
    plain = not module.weights and module.ignore is None and not module.since and not module.missing
    if not plain or values[1].rank != 0:
        return None
    return text("F.cross_entropy(_0, _1.long(), reduction='none')", *_said(values))


def importance_of(module: library.Importance, values: Sequence[Value], copied: Copied) -> Expression | None:
    """That of one route, or of two."""
    flat = "flatten(1, -2).sum(1)" if module.over == "example" else "flatten(0, -2).sum(0)"
    squared = [text(f"{copied.name_of(loss.squared_cv)}(_0.{flat})", value) for value in _said(values)]
    if len(squared) > 2:
        return None
    return squared[0] if len(squared) == 1 else text("_0 + _1", *squared)


FORMULAS: Mapping[type, Said] = {
    nn.ReLU: _called("F.relu(_0)"),
    nn.GELU: _called("F.gelu(_0)"),
    nn.SiLU: _called("F.silu(_0)"),
    nn.Tanh: _called("torch.tanh(_0)"),
    nn.Sigmoid: _called("torch.sigmoid(_0)"),
    nn.Softplus: _called("F.softplus(_0)"),
    nn.Identity: _called("_0"),
    library.Arithmetic: arithmetic_of,
    library.Where: where_of,
    library.Elementwise: elementwise_of,
    library.Clamp: _called("_0.clamp(least, largest)", "least", "largest"),
    library.Softmax: _called("_0.softmax(axis)", "axis"),
    library.LogSoftmax: _called("_0.log_softmax(axis)", "axis"),
    library.Unit: unit_of,
    library.Sum: _called("_0.sum(axis)", "axis"),
    library.Mean: _called("_0.mean(axis)", "axis"),
    library.Max: _called("_0.amax(axis)", "axis"),
    library.Min: _called("_0.amin(axis)", "axis"),
    library.Last: _called("_0.select(axis, -1)", "axis"),
    library.CumulativeSum: _called("_0.cumsum(axis)", "axis"),
    library.Select: _called("_0.select(axis, index)", "axis", "index"),
    library.Flatten: flattened,
    library.Merge: _called("_0.flatten(first, last)", "first", "last"),
    library.Unmerge: _called("_0.unflatten(axis, sizes)", "axis", "sizes"),
    library.Transpose: transposed,
    library.Contract: contracted,
    library.CrossEntropy: cross_entropy_of,
    library.Importance: importance_of,
    library.Concat: joined("torch.cat(_0, dim=-1)"),
    library.Stack: joined("torch.stack(_0, dim=rank)"),
    library.Split: _called("_0.split(lengths, dim=-1)", "lengths"),
    library.Tokens: _called("_0.flatten(-2).transpose(-1, -2)"),
    library.StopGradient: _called("_0.detach()"),
    library.NextState: _called("_1.detach()"),
    library.TrainingOrInference: _called("_0 if self.training else _1"),
}


def formula(module: Any, values: Sequence[Value], copied: Copied) -> Expression | None:
    """What a module computes of some values, in a line; None where there is no such line."""
    said = FORMULAS.get(type(module))
    return None if said is None else said(module, values, copied)
