"""Ops without weights as torch expressions. Modules without a rule here are vendored."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from modgraph import nn as library
from modgraph.backends.torch.source.text import literal
from modgraph.backends.torch.source.vendored import Vendored
from modgraph.nn import elementwise, loss
from modgraph.nn.windows import BEFORE

Expression = ast.expr
Masks = Sequence[Expression | None]


@dataclass(frozen=True)
class Value:
    """An expression `said`, the rank of an example, and two facts.

    `is_bare` values have no axis of examples; `is_apart` values are bounded away from zero.
    """

    said: Expression
    rank: int = 0
    is_bare: bool = False
    is_apart: bool = False


Template = str | None  # an expression with `_0`, `_1`, … for values and `{axis}` for a setting of the module
Rule = str | Callable[[Any, Sequence[Value], Vendored], Template]


def text(template: str, *values: Expression) -> Expression:
    """Parse a template, and substitute expressions for `_0`, `_1`, …."""
    places = {f"_{at}": value for at, value in enumerate(values)}

    class Filled(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return places.get(node.id, node)

    tree: ast.Expression = Filled().visit(ast.parse(template, mode="eval"))
    return tree.body


def name(of: str) -> Expression:
    """Parse a name or another expression."""
    return ast.parse(of, mode="eval").body


def call_of(function: str, arguments: Sequence[Expression], **named: Expression | None) -> Expression:
    """Write a call without the named arguments that are None."""
    keywords = [ast.keyword(key, value) for key, value in named.items() if value is not None]
    return ast.Call(name(function), [*arguments], keywords)


def apply_mask(value: Expression, mask: Expression | None, otherwise: float = 0.0) -> Expression:
    """Fill a value with `otherwise` where the mask is false."""
    return value if mask is None else text(f"_0.masked_fill(~_1, {literal(otherwise)})", value, mask)


def expand(value: Value, like: Expression, rank: int, inside: bool) -> Expression:
    """Expand a value without an axis of examples to the outer axes of `like`, whose examples have `rank` axes."""
    kept = "".join(", -1" for _ in range(value.rank))
    outer = "len(_1)" if not inside else f"*_1.shape[:-{rank}]" if rank else "*_1.shape"
    return text(f"_0.expand({outer}{kept})", value.said, like)


def formula(module: Any, values: Sequence[Value], masks: Masks, vendored: Vendored) -> Expression | None:
    """Write the expression that a module computes from values with masks; None without a rule here."""
    kind = type(module)
    rule = MASKED.get(kind) or (None if any(masks) else FORMULAS.get(kind))
    template = rule(module, values, vendored) if callable(rule) else rule
    if template is None:
        return None
    settings = {name: literal(each) for name, each in vars(module).items() if f"{{{name}}}" in template}
    said = [apply_mask(value.said, mask) for value, mask in zip(values, masks, strict=True)]
    return text(template.format_map(settings), *said)


def is_apart(module: Any, values: Sequence[Value]) -> bool:
    """Whether the results of a module are bounded away from zero."""
    if isinstance(module, library.Clamp):
        return module.least is not None and module.least > 0
    if isinstance(module, library.Arithmetic) and module.symbol == "maximum":
        return isinstance(module.right, float) and module.right > 0
    return isinstance(module, library.Elementwise) and module.name == "sqrt" and values[0].is_apart


def write_arithmetic(module: library.Arithmetic, values: Sequence[Value], vendored: Vendored) -> Template:
    """Write left ∘ right."""
    symbol, sides, remaining = module.symbol, list[str](), iter(enumerate(values))
    broadcast = ((module.left_lacks, module.left_order), (module.right_lacks, module.right_order))
    for number, (axes, order) in zip((module.left, module.right), broadcast, strict=True):
        if number is not None:
            sides.append(literal(number) if number >= 0 else f"({literal(number)})")
            continue
        at, value = next(remaining)
        lacks = reversed(() if value.is_bare and not value.rank else axes)  # a number has no axes
        sides.append(f"_{at}{_permute(order)}" + "".join(f".unsqueeze({axis})" for axis in lacks))
    left, right = sides
    if symbol in ("minimum", "maximum"):
        bound = "max" if symbol == "minimum" else "min"
        return f"torch.{symbol}({left}, {right})" if module.right is None else f"{left}.clamp({bound}={right})"
    if symbol in ("<", "<=", ">", ">=", "==", "!="):
        return f"({left} {symbol} {right}).to({'torch.get_default_dtype()' if module.ids else '_0.dtype'})"
    if symbol == "/" and module.right is None and not values[-1].is_apart:
        return f"{vendored.name_of(elementwise.divide)}({left}, {right})"
    if symbol == "**" and (module.right is None or 0 != module.right < 1):
        return f"{vendored.name_of(elementwise.power)}({left}, {right})"
    return f"{left} {symbol} {right}"


def write_lookup(module: library.Lookup, values: Sequence[Value], vendored: Vendored) -> Template:
    """Write an embedding for rows of a matrix that all examples share; None for other tables."""
    if not values[0].is_bare or (module.axis, module.table_rank) != (-2, 2):
        return None
    return f"F.embedding(_1, _0{', sparse=True' if module.sparse else ''})"


def write_attention(module: library.DotProductAttention, values: Sequence[Value], vendored: Vendored) -> Template:
    """Write a call of torch's kernel for plain attention, causal or to all keys; None for any other."""
    is_plain = module.has_one_head and len(values) == 3 and module.window is None and module.options.cap is None
    if not is_plain or module.options.band not in ((), BEFORE) or any(each.is_bare for each in values):
        return None
    head = module.heads
    orders = {f"N{head}": ".transpose(-3, -2)", f"M{head}": ".transpose(-3, -2)", f"{head}N": "", f"{head}M": ""}
    given = [orders.get(each[:2]) for each in (*module.letters.values(), module.result)]
    if None in given or {len(each) for each in (*module.letters.values(), module.result)} != {3}:
        return None
    q, k, v = (f"_{at}{order}" for at, order in enumerate(given[:3]))
    causal = ", is_causal=True" if module.options.band == BEFORE else ""
    scale = f"scale={literal(module.options.scale)}"
    return f"F.scaled_dot_product_attention({q}, {k}, {v}{causal}, {scale}){given[3]}"


def write_elementwise(module: library.Elementwise, values: Sequence[Value], vendored: Vendored) -> Template:
    if module.name in ("log", "sqrt") and not values[0].is_apart:
        return f"{vendored.name_of(elementwise.FUNCTIONS[module.name])}(_0)"
    return f"_0.{module.name}()"


def transpose_of(module: library.Transpose, values: Sequence[Value], vendored: Vendored) -> Template:
    return f"_0{_permute(module.order)}"


def _permute(order: Sequence[int]) -> str:
    """Write the call that permutes the last axes to an order, counted from the last; nothing for their own order."""
    rank = len(order)
    moved = [at - rank for at, place in enumerate(order) if at - rank != place]
    if len(moved) == 2:
        return f".transpose({moved[0]}, {moved[1]})"
    return f".movedim({tuple(order)}, {tuple(range(-rank, 0))})" if moved else ""


def write_contraction(module: library.Contract, values: Sequence[Value], vendored: Vendored) -> Template:
    """Write `F.linear` for a matrix that all examples share, and an einsum for other products."""
    if module.aligned or not values[1].is_bare or module.free[1] != 1:
        return "torch.einsum({equation}, _0, _1)"
    sides = (f"_{at}" + ("" if axis == -1 else f".movedim({axis}, -1)") for at, axis in enumerate(module.over))
    return f"F.linear({', '.join(sides)})"


def write_cross_entropy(module: library.CrossEntropy, values: Sequence[Value], vendored: Vendored) -> Template:
    """Write torch's cross-entropy for one label per example without weights or ignored labels; None otherwise."""
    plain = not module.weights and module.ignore is None and not module.since and not module.missing
    one = values[1].rank == 0 and not values[0].is_bare
    return "F.cross_entropy(_0, _1.long(), reduction='none')" if plain and one else None


def write_max_pool(module: library.MaxPool2d, values: Sequence[Value], vendored: Vendored) -> Template:
    """Write torch's function, without arguments that are its defaults."""
    stride = "" if module.kernel_size == module.stride else ", {stride}"
    return f"F.max_pool2d(_0, {{kernel_size}}{stride}{', padding={padding}' if module.padding else ''})"


def write_importance(module: library.Importance, values: Sequence[Value], vendored: Vendored) -> Template:
    """Write the sum for one or two routes; None for more."""
    flat = "flatten(1, -2).sum(1)" if module.over == "example" else "flatten(0, -2).sum(0)"
    if len(values) > 2 or any(value.is_bare for value in values):
        return None
    return " + ".join(f"{vendored.name_of(loss.cv_squared)}(_{at}.{flat})" for at in range(len(values)))


FORMULAS: Mapping[type, Rule] = {
    nn.ReLU: "F.relu(_0)",
    nn.GELU: lambda module, values, vendored: (
        "F.gelu(_0)" if module.approximate == "none" else "F.gelu(_0, approximate={approximate})"
    ),
    nn.SiLU: "F.silu(_0)",
    nn.Tanh: "torch.tanh(_0)",
    nn.Sigmoid: "torch.sigmoid(_0)",
    nn.Identity: "_0",
    library.Arithmetic: write_arithmetic,
    library.Elementwise: write_elementwise,
    library.Clamp: "_0.clamp({least}, {largest})",
    library.Softmax: "_0.softmax({axis})",
    library.LogSoftmax: "_0.log_softmax({axis})",
    library.Mean: "_0.mean({axis})",
    library.LogSumExp: "_0.logsumexp({axis})",
    library.Flatten: lambda module, values, vendored: "_0.flatten(-{rank})" if module.rank else "_0.unsqueeze(-1)",
    library.Merge: "_0.flatten({first}, {last})",
    library.Unmerge: "_0.unflatten({axis}, {sizes})",
    library.Transpose: transpose_of,
    library.CrossEntropy: write_cross_entropy,
    library.Importance: write_importance,
    library.Lookup: write_lookup,
    library.DotProductAttention: write_attention,
    library.Concat: lambda module, values, vendored: (
        f"torch.cat(({''.join(f'_{at}, ' for at in range(len(values)))}), dim={{axis}})"
    ),
    library.Split: "_0.split({lengths}, dim={axis})",
    library.Tokens: "_0.flatten(-2).transpose(-1, -2)",
    library.StopGradient: "_0.detach()",
    library.Above: "(_0.detach() > {threshold}).to(_0.dtype)",
    library.StraightThrough: "_1.detach() + (_0 - _0.detach()) if self.training else _1",
    library.MaxPool2d: write_max_pool,
}
MASKED: Mapping[type, Rule] = {  # operands whose padding is zero
    library.Unit: "F.normalize(_0, dim={axis}, eps=1e-08)",
    library.Sum: "_0.sum({axis})",
    library.Select: "_0.select({axis}, {index})",
    library.Contract: write_contraction,
    library.MaskPadding: "_0",
}
NOT_BARE = (library.CrossEntropy, library.Importance)
