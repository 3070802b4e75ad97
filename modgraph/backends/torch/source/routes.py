"""Writes routes: as sums of products, as a call that sends tokens to the modules chosen for them, or of their form."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from modgraph.backends.torch.construct import resolve
from modgraph.backends.torch.source.copied import STANDALONE
from modgraph.backends.torch.source.formulas import Expression, called, cleared, name, text
from modgraph.backends.torch.source.pools import define_modules
from modgraph.backends.torch.source.writer import Writer
from modgraph.ir import Part, PoolNode, Result, RouteNode
from modgraph.nn.weighted import MODULE, Weighted

SENT = ("SelectedGrouped", "SelectedPerModule", "SelectedGathered")


def route_of(writer: Writer, node: RouteNode) -> None:
    """The lines of one route."""
    graph, layout = writer.graph, writer.layout
    pool, router = graph.pool_of(node), graph.declaration_of(node)
    forms = (*router.lowerings(Part(graph, layout.scan).facts_of(node)), router.reference_form)
    form = next(each.route for each in forms if each.form == node.lowering).rpartition(".")[2]
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
        _weighted(writer, node, form, weighted, modules, said, real)
    elif constructor[0] == "modgraph.nn.Chosen":
        _chosen(writer, node, form, modules, said, real[0])
    else:
        _by_form(writer, node, form, modules, said, real)


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
    form: str,
    router: Weighted,
    modules: str,
    said: Sequence[Expression],
    real: Sequence[Expression | None],
) -> None:
    pool, lines = writer.graph.pool_of(node), writer.lines
    x, weights = (cleared(each, mask) for each, mask in zip(said, real, strict=True))
    x = _named(writer, x, "x")
    weights = _named(writer, weights, "weights")
    message, own = "DEFGH"[: len(pool.message.shape)], "VWXYZ"[: len(pool.result.shape)]
    if form == "WeightedDense":
        messages = every(modules, x, pool, router.rows)
        equation = f"{router.weights},{router.pairs}{own}->{router.result}{own}"
        found = text(f'torch.einsum("{equation}", _0, _1)', weights, messages)
    else:
        rows = "".join(each for each in router.senders + router.own if each != router.over)
        rows += MODULE if MODULE in router.weights + router.given else ""
        equation = f"{router.weights},{router.given}{message}->{rows}{message}"
        sums = lines.named("sums")
        lines.line(f"{sums} = {_text(text(f'torch.einsum({equation!r}, _0, _1)', weights, x))}")
        values = every(modules, name(sums), pool, rows=MODULE in rows)
        offset = lines.named("offset")
        zeros = text(f"_0.new_zeros({', '.join(str(axis.size) for axis in pool.message.shape)})", x)
        lines.line(f"{offset} = {_text(every(modules, zeros, pool, rows=False))}")
        letters, target = router.weights.replace(router.over, ""), rows.replace(MODULE, "") + MODULE
        total = text(f"_0.sum({router.weights.index(router.over)})", weights)
        total = _laid(total, letters, target, len(own))
        values = _named(writer, values, writer.lines.word(Result(node.name)))
        found = text(f"_0 + (_1 - 1) * {offset}", values, total)
        order = [target.index(letter) for letter in router.result]
        if order != [*range(len(order))]:
            found = text(f"_0.permute({[*order, *range(len(order), len(order) + len(own))]})", found)
    if real[0] is not None:
        letters, mask = router.given, text("_0" + "[..., 0]" * len(message), real[0])
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
    writer: Writer,
    node: RouteNode,
    form: str,
    modules: str,
    said: Sequence[Expression],
    real: Sequence[Expression | None],
) -> None:
    """A call of the module that computes the route's form, as it is."""
    graph, lines, file = writer.graph, writer.lines, writer.file
    pool, router = graph.pool_of(node), graph.declaration_of(node)
    file.whole_pools.add((id(writer.tree), pool.name))
    forms = (*router.lowerings(Part(graph, writer.layout.scan).facts_of(node)), router.reference_form)
    path = next(each.route for each in forms if each.form == node.lowering)
    called_ = re.sub(r"(?<!^)(?=[A-Z])", "_", form).lower()
    helper = writer.helper(called_, f"{file.copied.name_of(resolve(path))}()")
    own = graph.router_of(node)
    made = file.made(graph.signature(node).constructor())
    chooser = writer.member(own.name) if own.weights else writer.helper(own.name.split(".")[-1], made)
    x, *others = said
    single = router.senders and len(writer.type_of(graph.inputs(node.name)["tokens"]).shape) == len(pool.message.shape)
    if single and not router.takes_one:
        x = text(f"_0.unsqueeze({-len(pool.message.shape) - 1})", x)
    mask = real[0] if not single else None
    found = called(helper, [x, name(modules), name(chooser), *others], real=mask)
    results = [Result(node.name, at) for at in range(len(node.types))]
    squeezed = single and not router.takes_one and router.one_for_each == "sender"
    value = writer.copied.needed((STANDALONE, "value_of"))
    if len(results) == 1:
        said_ = text(f"{value}(_0)", found)
        _give(writer, node, text(f"_0.squeeze({-len(pool.result.shape) - 1})", said_) if squeezed else said_)
        return
    lines.set_all(results, found)
    if squeezed and lines.left[results[0]]:
        first = lines.variable(results[0])
        lines.line(f"{first} = {first}.squeeze({-len(pool.result.shape) - 1})")
    for each in results[1:] if single and router.takes_one else ():
        if lines.left[each]:
            lines.line(f"{lines.variable(each)} = {lines.variable(each)}.unsqueeze(-2)")
