"""Writes routes: as sums of products, as a call that sends tokens to the modules chosen for them, or of their form."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from modgraph.backends.errors import NoSource
from modgraph.backends.torch.construct import resolve
from modgraph.backends.torch.source.copied import STANDALONE
from modgraph.backends.torch.source.formulas import Expression, called, cleared, name, text
from modgraph.backends.torch.source.pools import define_modules
from modgraph.backends.torch.source.writer import Writer
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Part, PoolNode, Result, RouteNode
from modgraph.nn.weighted import Weighted
from modgraph.routers.chosen import Chosen

SENT = ("SelectedGrouped", "SelectedPerModule", "SelectedGathered")


def route_of(writer: Writer, node: RouteNode) -> None:
    """The lines of one route."""
    graph, layout = writer.graph, writer.layout
    pool, router = graph.pool_of(node), graph.declaration_of(node)
    forms = (*router.lowerings(Part(graph, layout.scan).facts_of(node)), router.reference_form)
    path = next((each for each in forms if each.form == node.lowering), router.reference_form).route
    form = path.rpartition(".")[2]
    program = layout.programs.get(pool.name) or writer.file.programs[pool.name]
    define_modules(writer.file, pool, program)  # type: ignore[arg-type]
    operands = [*graph.inputs(node.name).values()]
    real = writer.real(node, operands)
    values = [writer.value(each) for each in operands]
    for each in (*layout.counts(node), *layout.lengths(node)):
        writer.lines.left[each] -= 1
    said = [each.said for each in writer.for_examples(node, operands, values)]
    modules = writer.pool(pool.name)
    constructor = graph.signature(node).constructor()
    if form == "EveryModuleRoute":
        found = every(modules, said[0], pool, rows=constructor[1][0])
        _give(writer, node, found)
    elif form in ("WeightedDense", "WeightedFactorised"):
        weighted = resolve(constructor[0])(*constructor[1], **constructor[2])
        _weighted(writer, node, weighted, modules, said, real)
    elif isinstance(router, Chosen):
        _chosen(writer, node, form, modules, said, real[0])
    else:
        _by_form(writer, node, path, modules, said, real[0])


def _give(writer: Writer, node: RouteNode, said: Expression) -> None:
    writer.set(Result(node.name), said, stays=not writer.layout.is_chance(node))


def every(modules: str, x: Expression, pool: PoolNode, rows: bool) -> Expression:
    """Every module on the value, or each on its row."""
    axis = -1 - len(pool.result.shape)
    if rows:
        pairs = f"zip({modules}, _0.unbind({-1 - len(pool.message.shape)}))"
        return text(f"torch.stack([module(row) for module, row in {pairs}], {axis})", x)
    return text(f"torch.stack([module(_0) for module in {modules}], {axis})", x)


# ------------------------------------------------------------ weights


def _weighted(
    writer: Writer,
    node: RouteNode,
    router: Weighted,
    modules: str,
    said: Sequence[Expression],
    real: Sequence[Expression | None],
) -> None:
    pool = writer.graph.pool_of(node)
    if writer.layout.is_chance(node) and len(writer.graph.same_messages(node)) > 1:
        reason = "its modules draw messages once for several routes"
        raise ModgraphError([NoSource(path=f'route "{node.name}"', reason=reason)])
    x, weights = (cleared(each, mask) for each, mask in zip(said, real, strict=True))
    x, own = _named(writer, x, "x"), "VWXYZ"[: len(pool.result.shape)]
    equation = f"{router.weights},{router.pairs}{own}->{router.result}{own}"
    found = text(f'torch.einsum("{equation}", _0, _1)', weights, every(modules, x, pool, router.rows))
    if real[0] is not None:
        letters, mask = router.given, text("_0" + "[..., 0]" * len(pool.message.shape), real[0])
        if router.over in letters:
            letters, mask = letters.replace(router.over, ""), text(f"_0.any({letters.index(router.over)})", mask)
        found = cleared(found, _laid(mask, letters, router.result, len(own)))
    _give(writer, node, found)


def _laid(x: Expression, letters: str, target: str, more: int) -> Expression:
    """A value, whose axes have these letters, with those of the target and so many more, of length 1 where it lacks
    one."""
    order = [letters.index(letter) for letter in target if letter in letters]
    if order != [*range(len(order))]:
        x = text(f"_0.permute({order})", x)
    places = [*(":" if letter in letters else "None" for letter in target), *["None"] * more]
    return text(f"_0[{', '.join(places)}]", x)


def _named(writer: Writer, said: Expression, word: str) -> Expression:
    """A variable for an expression that is said several times."""
    text_ = _text(said)
    if text_.isidentifier():
        return said
    called_ = writer.lines.named(word)
    writer.lines.line(f"{called_} = {text_}")
    return name(called_)


def _text(said: Expression) -> str:
    return ast.unparse(said)


# ------------------------------------------------------------ choices


def _chosen(
    writer: Writer, node: RouteNode, form: str, modules: str, said: Sequence[Expression], real: Expression | None
) -> None:
    """Tokens sent to the modules chosen for them, and what is recorded of the choice."""
    lines, pool = writer.lines, writer.graph.pool_of(node)
    router: Any = writer.graph.declaration_of(node)
    x, weights, scores, choice = said
    mask = None if real is None else text("_0" + "[..., 0]" * (len(pool.message.shape) - 1), real)
    results = [Result(node.name, at) for at in range(len(node.types))]
    if real is not None:
        choice = _named(writer, cleared(choice, mask), "choice")
    single = len(writer.type_of(writer.graph.inputs(node.name)["tokens"]).shape) == len(pool.message.shape)
    gates = weights
    if any(lines.left[each] for each in results[1:2]) or form not in SENT:
        choice = _named(writer, choice, "choice")
        straight = router.straight or _text(weights) == _text(choice)
        gates = cleared(weights if straight else text("_0.masked_fill(_1 == 0, 0.0)", weights, choice), mask)
        gates = _named(writer, gates, "gates")
    wide = "[..., " + ", ".join(["None"] * len(pool.result.shape)) + "]" if pool.result.shape else ""
    axis = -1 - len(pool.result.shape)
    if form in SENT:
        function = writer.copied.needed((STANDALONE, "by_choice"))
        found = called(function, [x, gates, choice, name(modules)])
    else:
        values = every(modules, cleared(x, real), pool, rows=False)
        if form == "SelectedMasked":
            values = text(f"_0.masked_fill(_1{wide} == 0, 0.0)", values, choice)
        found = text(f"(_0 * _1{wide}).sum({axis})", values, gates)
    shown = [
        gates,
        cleared(text("_0.detach()", scores), mask) if router.shows else scores,
        text("(_0 != 0).to(_0.dtype)", choice) if router.shows else choice,
    ]
    for each, record in zip(results[1:], shown, strict=False):
        if lines.left[each]:
            lines.assign(each, text("_0.unsqueeze(-2)", record) if single else record)
    _give(writer, node, found)


# ------------------------------------------------------------ others


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
    single = router.senders and len(writer.type_of(graph.inputs(node.name)["tokens"]).shape) == len(pool.message.shape)
    alone, squeezed = single and router.takes_one, single and not router.takes_one and router.one_for_each == "sender"
    x = text(f"_0.unsqueeze({-len(pool.message.shape) - 1})", said[0]) if single and not alone else said[0]
    found = called(helper, [x, name(modules), name(chooser), *said[1:]], real=None if single else real)
    results = [Result(node.name, at) for at in range(len(node.types))]
    if len(results) > 1:
        lines.set_all(results, found)
    else:
        lines.assign(results[0], text(f"{writer.copied.needed((STANDALONE, 'value_of'))}(_0)", found))
    for at, each in enumerate(results):
        if lines.left[each] and (squeezed if at == 0 else alone):
            change = f"squeeze({-len(pool.result.shape) - 1})" if at == 0 else "unsqueeze(-2)"
            lines.line(f"{lines.variable(each)} = {lines.variable(each)}.{change}")
