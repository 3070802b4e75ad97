"""Writes routes: as an einsum, a call of `route_by_choice` or `route_by_ids`, or a call of their lowering's module."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from modgraph.backends.torch.construct import resolve
from modgraph.backends.torch.source.formulas import Expression, Masks, apply_mask, call_of, name, text
from modgraph.backends.torch.source.writer import Writer
from modgraph.ir import Part, PoolNode, Result, RouteNode
from modgraph.nn.choice_routes import route_by_choice, value_of
from modgraph.nn.id_routes import route_by_ids
from modgraph.nn.weighted import Weighted
from modgraph.routers import IdChoice
from modgraph.routers.choice import TokenChoice

BY_CHOICE = ("ChoiceGrouped", "ChoicePerModule", "ChoiceGathered", "ChoiceMessagePassing")
WEIGHTED = {"WeightedDense", "WeightedFactorised"}
WRITTEN = {"EveryModuleRoute", "OneModuleRoute", *WEIGHTED}


def write_route(writer: Writer, node: RouteNode) -> None:
    """Write the lines of one route."""
    graph, layout = writer.graph, writer.layout
    pool, router = graph.pool_of(node), graph.declaration_of(node)
    path = Part(graph, layout.scan).lowering_of(node).route
    lowering = path.rpartition(".")[2]
    writer.file.define_modules(pool, layout.programs.get(pool.name) or writer.file.programs[pool.name])
    by_choice = isinstance(router, TokenChoice) and lowering in BY_CHOICE
    if not by_choice and not isinstance(router, IdChoice) and lowering not in WRITTEN:
        writer.file.whole_pools.add((id(writer.tree), pool.name))
    values, masks = writer.read_operands(node)
    said, modules = [each.said for each in values], writer.write_argument(pool.name)
    if lowering == "EveryModuleRoute":
        found = _every(modules, said[0], pool, graph.signature(node).constructor()[1][0])
    elif lowering == "OneModuleRoute":
        found = text(f"{modules}[{graph.signature(node).constructor()[1][0]}](_0)", said[0])
    elif lowering in WEIGHTED:
        found = _sum_weighted(writer, node, modules, said, masks)
    elif isinstance(router, IdChoice):
        function = writer.vendored.name_of(route_by_ids)
        slots, rank = router.slots, len(pool.message.shape)
        found = call_of(function, [*said, name(modules), name(f"{slots}"), name(f"{rank}")], mask=masks[0])
    elif by_choice:
        found = _call_choice(writer, node, modules, said, masks[0])
    else:
        _call_lowering(writer, node, path, modules, said, masks[0])
        return
    writer.set(Result(node.name), found, stays=not layout.is_chance(node))


def _every(modules: str, x: Expression, pool: PoolNode, rows: bool) -> Expression:
    """Apply every module to a value, or each to its row."""
    axis = -1 - len(pool.result.shape)
    if rows:
        pairs = f"zip({modules}, _0.unbind({-1 - len(pool.message.shape)}))"
        return text(f"torch.stack([module(row) for module, row in {pairs}], {axis})", x)
    return text(f"torch.stack([module(_0) for module in {modules}], {axis})", x)


def _sum_weighted(
    writer: Writer, node: RouteNode, modules: str, said: Sequence[Expression], masks: Masks
) -> Expression:
    """Write the einsum of a weighted route. A mask excludes padded tokens."""
    pool = writer.graph.pool_of(node)
    kind, positional, named = writer.graph.signature(node).constructor()
    router: Weighted = resolve(kind)(*positional, **named)
    x, weights = (apply_mask(each, mask) for each, mask in zip(said[:2], masks, strict=False))
    own = "VWXYZ"[: len(pool.result.shape)]
    equation = f"{router.weights},{router.pairs}{own}->{router.result}{own}"
    messages = said[2] if len(said) > 2 else _every(modules, writer.lines.bind(x, "x"), pool, router.rows)
    found = text(f'torch.einsum("{equation}", _0, _1)', weights, messages)
    if masks[0] is None:
        return found
    letters, mask = router.given, text("_0" + "[..., 0]" * len(pool.message.shape), masks[0])
    if router.over in letters:
        letters, mask = letters.replace(router.over, ""), text(f"_0.any({letters.index(router.over)})", mask)
    order = [letters.index(letter) for letter in router.result if letter in letters]
    if order != sorted(order):
        mask = text(f"_0.permute({order})", mask)
    places = [*(":" if letter in letters else "None" for letter in router.result), *["None"] * len(own)]
    return apply_mask(found, text(f"_0[{', '.join(places)}]", mask))


def _call_choice(
    writer: Writer, node: RouteNode, modules: str, said: Sequence[Expression], mask: Expression | None
) -> Expression:
    """Write a call of `route_by_choice`, and the router's records."""
    lines, pool = writer.lines, writer.graph.pool_of(node)
    router: Any = writer.graph.declaration_of(node)
    x, gates, scores, choice = said
    mask = None if mask is None else text("_0" + "[..., 0]" * (len(pool.message.shape) - 1), mask)
    records = [Result(node.name, at) for at in range(1, len(node.types))]
    if mask is not None:
        choice = lines.bind(apply_mask(choice, mask), "choice")
    if any(lines.left[each] for each in records[:1]):
        choice = lines.bind(choice, "choice")
        straight = router.straight or ast.unparse(gates) == ast.unparse(choice)
        gates = apply_mask(gates if straight else text("_0.masked_fill(_1 == 0, 0.0)", gates, choice), mask)
        gates = lines.bind(gates, "gates")
    values = [gates, scores, choice]
    if router.record_choice:
        values[1:] = apply_mask(text("_0.detach()", scores), mask), text("(_0 != 0).to(_0.dtype)", choice)
    for each, record in zip(records, values, strict=False):
        if lines.left[each]:
            lines.assign(each, text("_0.unsqueeze(-2)", record) if _is_single(writer, node) else record)
    return call_of(writer.vendored.name_of(route_by_choice), [x, gates, choice, name(modules)])


def _is_single(writer: Writer, node: RouteNode) -> bool:
    """Whether each example is a single message."""
    shape = writer.graph.type_of(writer.graph.inputs(node.name)["tokens"]).shape
    return len(shape) == len(writer.graph.pool_of(node).message.shape)


def _call_lowering(
    writer: Writer, node: RouteNode, path: str, modules: str, said: Sequence[Expression], mask: Expression | None
) -> None:
    """Write a call of the lowering's module."""
    graph, lines, file = writer.graph, writer.lines, writer.file
    pool, router, own = graph.pool_of(node), graph.declaration_of(node), graph.router_of(node)
    helper = writer.add_helper("route", f"{file.vendored.name_of(resolve(path))}()")
    made = file.instantiate(graph.signature(node).constructor())
    called = writer.write_member(own.name) if own.weights else writer.add_helper("router", made)
    single = router.token_axis and _is_single(writer, node)
    takes_one = single and router.takes_one
    squeezed = single and not router.takes_one and router.one_for_each == "sender"
    x = text(f"_0.unsqueeze({-len(pool.message.shape) - 1})", said[0]) if single and not takes_one else said[0]
    found = call_of(helper, [x, name(modules), name(called), *said[1:]], mask=None if single else mask)
    results = [Result(node.name, at) for at in range(len(node.types))]
    if len(results) > 1:
        lines.set_all(results, found)
    else:
        lines.assign(results[0], text(f"{writer.vendored.name_of(value_of)}(_0)", found))
    for at, each in enumerate(results):
        if lines.left[each] and (squeezed if at == 0 else takes_one):
            change = f"squeeze({-len(pool.result.shape) - 1})" if at == 0 else "unsqueeze(-2)"
            lines.line(f"{lines.variable(each)} = {lines.variable(each)}.{change}")
