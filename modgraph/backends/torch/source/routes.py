"""Writes routes: as sums of products, as a call that sends tokens to the modules chosen for them, or of their form."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from modgraph.backends.torch.construct import resolve
from modgraph.backends.torch.source.formulas import Expression, Masks, called, cleared, name, text
from modgraph.backends.torch.source.writer import Writer
from modgraph.ir import Part, PoolNode, Result, RouteNode
from modgraph.nn.selected import by_choice, value_of
from modgraph.nn.weighted import Weighted
from modgraph.routers.chosen import Chosen

SENT = ("SelectedGrouped", "SelectedPerModule", "SelectedGathered", "SelectedMessagePassing")


def write_route(writer: Writer, node: RouteNode) -> None:
    """The lines of one route."""
    graph, layout = writer.graph, writer.layout
    pool, router = graph.pool_of(node), graph.declaration_of(node)
    path = Part(graph, layout.scan).lowering_of(node).route
    form = path.rpartition(".")[2]
    writer.file.define_modules(pool, layout.programs.get(pool.name) or writer.file.programs[pool.name])
    values, real = writer.operands(node)
    said, modules = [each.said for each in values], writer.argument(pool.name)
    if form == "EveryModuleRoute":
        found = _every(modules, said[0], pool, graph.signature(node).constructor()[1][0])
    elif form in ("WeightedDense", "WeightedFactorised"):
        found = _weighted(writer, node, modules, said, real)
    elif isinstance(router, Chosen) and form in SENT:
        found = _chosen(writer, node, modules, said, real[0])
    else:
        _by_form(writer, node, path, modules, said, real[0])
        return
    writer.set(Result(node.name), found, stays=not layout.is_chance(node))


def _every(modules: str, x: Expression, pool: PoolNode, rows: bool) -> Expression:
    """Every module on the value, or each on its row."""
    axis = -1 - len(pool.result.shape)
    if rows:
        pairs = f"zip({modules}, _0.unbind({-1 - len(pool.message.shape)}))"
        return text(f"torch.stack([module(row) for module, row in {pairs}], {axis})", x)
    return text(f"torch.stack([module(_0) for module in {modules}], {axis})", x)


def _weighted(writer: Writer, node: RouteNode, modules: str, said: Sequence[Expression], real: Masks) -> Expression:
    pool = writer.graph.pool_of(node)
    kind, positional, named = writer.graph.signature(node).constructor()
    router: Weighted = resolve(kind)(*positional, **named)
    x, weights = (cleared(each, mask) for each, mask in zip(said[:2], real, strict=False))
    own = "VWXYZ"[: len(pool.result.shape)]
    equation = f"{router.weights},{router.pairs}{own}->{router.result}{own}"
    messages = said[2] if len(said) > 2 else _every(modules, writer.lines.held(x, "x"), pool, router.rows)
    found = text(f'torch.einsum("{equation}", _0, _1)', weights, messages)
    if real[0] is None:
        return found
    letters, mask = router.given, text("_0" + "[..., 0]" * len(pool.message.shape), real[0])
    if router.over in letters:
        letters, mask = letters.replace(router.over, ""), text(f"_0.any({letters.index(router.over)})", mask)
    order = [letters.index(letter) for letter in router.result if letter in letters]
    if order != sorted(order):
        mask = text(f"_0.permute({order})", mask)
    places = [*(":" if letter in letters else "None" for letter in router.result), *["None"] * len(own)]
    return cleared(found, text(f"_0[{', '.join(places)}]", mask))


def _chosen(
    writer: Writer, node: RouteNode, modules: str, said: Sequence[Expression], real: Expression | None
) -> Expression:
    """Tokens sent to the modules chosen for them, and what is recorded of the choice."""
    lines, pool = writer.lines, writer.graph.pool_of(node)
    router: Any = writer.graph.declaration_of(node)
    x, gates, scores, choice = said
    mask = None if real is None else text("_0" + "[..., 0]" * (len(pool.message.shape) - 1), real)
    records = [Result(node.name, at) for at in range(1, len(node.types))]
    if real is not None:
        choice = lines.held(cleared(choice, mask), "choice")
    if any(lines.left[each] for each in records[:1]):
        choice = lines.held(choice, "choice")
        straight = router.straight or ast.unparse(gates) == ast.unparse(choice)
        gates = cleared(gates if straight else text("_0.masked_fill(_1 == 0, 0.0)", gates, choice), mask)
        gates = lines.held(gates, "gates")
    shown = [gates, scores, choice]
    if router.shows:
        shown[1:] = cleared(text("_0.detach()", scores), mask), text("(_0 != 0).to(_0.dtype)", choice)
    for each, record in zip(records, shown, strict=False):
        if lines.left[each]:
            lines.assign(each, text("_0.unsqueeze(-2)", record) if _is_single(writer, node) else record)
    return called(writer.copied.name_of(by_choice), [x, gates, choice, name(modules)])


def _is_single(writer: Writer, node: RouteNode) -> bool:
    """Whether the tokens of an example are one message."""
    shape = writer.graph.type_of(writer.graph.inputs(node.name)["tokens"]).shape
    return len(shape) == len(writer.graph.pool_of(node).message.shape)


def _by_form(
    writer: Writer, node: RouteNode, path: str, modules: str, said: Sequence[Expression], real: Expression | None
) -> None:
    """A call of the module that computes the route's form, as it is."""
    graph, lines, file = writer.graph, writer.lines, writer.file
    pool, router, own = graph.pool_of(node), graph.declaration_of(node), graph.router_of(node)
    file.whole_pools.add((id(writer.tree), pool.name))
    helper = writer.helper("route", f"{file.copied.name_of(resolve(path))}()")
    made = file.made(graph.signature(node).constructor())
    chooser = writer.member(own.name) if own.weights else writer.helper("router", made)
    single = router.senders and _is_single(writer, node)
    alone, squeezed = single and router.takes_one, single and not router.takes_one and router.one_for_each == "sender"
    x = text(f"_0.unsqueeze({-len(pool.message.shape) - 1})", said[0]) if single and not alone else said[0]
    found = called(helper, [x, name(modules), name(chooser), *said[1:]], real=None if single else real)
    results = [Result(node.name, at) for at in range(len(node.types))]
    if len(results) > 1:
        lines.set_all(results, found)
    else:
        lines.assign(results[0], text(f"{writer.copied.name_of(value_of)}(_0)", found))
    for at, each in enumerate(results):
        if lines.left[each] and (squeezed if at == 0 else alone):
            change = f"squeeze({-len(pool.result.shape) - 1})" if at == 0 else "unsqueeze(-2)"
            lines.line(f"{lines.variable(each)} = {lines.variable(each)}.{change}")
