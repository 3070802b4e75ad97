"""Writes routes: as sums of products, as a call that sends tokens to the modules chosen for them, or of their form."""

from __future__ import annotations

import re
from functools import partial

from modgraph.backends.torch.route import CompiledRoute
from modgraph.backends.torch.run import Step
from modgraph.backends.torch.source.body import called
from modgraph.backends.torch.source.formulas import name
from modgraph.backends.torch.source.pools import made_pool
from modgraph.backends.torch.source.steps import ALONE, Writer
from modgraph.ir import Result
from modgraph.nn import choice, every_module, selected, weighted


def route_of(writer: Writer, step: Step, route: CompiledRoute) -> None:
    """The lines of one route."""
    results = [Result(step.node, at) for at in range(len(writer.graph[step.node].types))]
    real = writer.body.real(step)
    pool = pool_of(writer, step, route)
    alone = real is None and [each for each in results if writer.body.uses[each]] == results[:1]  # no record is read
    plain = alone and not route.single
    vectors = plain and route.pool.rank == route.pool.result_rank == 1
    if plain and isinstance(route.form, every_module.EveryModuleRoute):
        _every(writer, step, route, pool)
    elif vectors and isinstance(route.form, weighted.WeightedDense):
        _dense(writer, step, route, pool)
    elif vectors and isinstance(route.form, weighted.WeightedFactorised):
        _factorised(writer, step, route, pool)
    elif alone and isinstance(route.router, choice.Chosen) and type(route.form) in SENT:
        _chosen(writer, step, route, pool)
    else:
        _by_form(writer, step, route, pool, real, results)


SENT = {selected.SelectedGrouped: "by_choice", selected.SelectedGathered: "by_index"}


def pool_of(writer: Writer, step: Step, route: CompiledRoute) -> str:
    """The expression for a route's pool, which the class holds."""
    node = writer.graph.pool_of(writer.graph[step.node])  # type: ignore[arg-type]
    inside = writer.home.prefix.removesuffix(writer.prefix)
    made = partial(made_pool, writer.home.file, node, route.pool, inside)
    return writer.home.held(writer.paths[id(route.pool)], made)


def _common(writer: Writer, step: Step, make: str, called: str) -> str:
    """What routes of one kind have in common, computed by the first of them."""
    body = writer.body
    if not step.common:
        return make
    if step.common not in body.common:
        body.settle()
        body.common[step.common] = body.named(called)
        body.line(f"{body.common[step.common]} = {make}")
    return body.common[step.common]


def _every(writer: Writer, step: Step, route: CompiledRoute, pool: str) -> None:
    """Every module on the value, or each on its row."""
    (x,) = writer.body.said(step.operands)
    said = called(f"{pool}.{'rows' if route.router.rows else 'all'}", [x.said])
    writer.body.gives(Result(step.node), said, writer.consumer(Result(step.node)))


def _dense(writer: Writer, step: Step, route: CompiledRoute, pool: str) -> None:
    """Every module on every sender, and one sum of products."""
    router, result = route.router, Result(step.node)
    x, weights = writer.body.variables(step.operands)
    messages = _common(writer, step, f"{pool}.{'rows' if router.rows else 'all'}({x})", "messages")
    said = f'torch.einsum("{router.weights},{router.pairs}V->{router.result}V", {weights}, {messages})'
    writer.body.gives(result, name(said), writer.consumer(result))


def _factorised(writer: Writer, step: Step, route: CompiledRoute, pool: str) -> None:
    """Σ w f(x) = f(Σ w x) + (Σ w − 1) f(0), since the modules are affine."""
    router, body, result = route.router, writer.body, Result(step.node)
    x, weights = body.variables(step.operands)
    module = weighted.MODULE
    rows = "".join(each for each in router.senders + router.own if each != router.over)
    rows += module if module in router.weights + router.given else ""
    (width,) = (axis.size for axis in writer.graph.pool_of(writer.graph[step.node]).message.shape)  # type: ignore[arg-type]
    offset = _common(writer, step, f"{pool}.rows({x}.new_zeros({len(route.pool)}, {width}))", "of_nothing")
    sums = body.temporary("sums")
    body.line(f'{sums} = torch.einsum("{router.weights},{router.given}D->{rows}D", {weights}, {x})')
    values = f"{pool}.{'rows' if module in rows else 'all'}({sums})"
    letters, target = router.weights.replace(router.over, ""), rows.replace(module, "") + module
    total = f"{weights}.sum({router.weights.index(router.over)})"
    order = [letters.index(letter) for letter in target if letter in letters]
    if order != [*range(len(order))]:
        total += f".permute({order})"
    places = [":" if letter in letters else "None" for letter in target]
    total += f"[{', '.join([*places, 'None'])}]"
    said = f"{values} + ({total} - 1) * {offset}"
    if target != router.result:
        order = [target.index(letter) for letter in router.result]
        said = f"({said}).permute({[*order, len(order)]})"
    body.gives(result, name(said), writer.consumer(result))


def _chosen(writer: Writer, step: Step, route: CompiledRoute, pool: str) -> None:
    """Tokens sent to the modules chosen for them."""
    function = SENT[type(route.form)]
    x, weights, _, chosen = writer.body.variables(step.operands)
    function = writer.home.file.copied.needed((ALONE, function))
    if isinstance(route.form, selected.SelectedGathered):
        pool = f"{writer.body.begun.get(step.node) or f'{pool}.gathered()'}, {route.router.k}"
    straight = ", straight=True" if route.router.straight else ""
    said = f"{function}({x}, {weights}, {chosen}, {pool}{straight})"
    writer.body.gives(Result(step.node), name(said), writer.consumer(Result(step.node)))


def _by_form(
    writer: Writer, step: Step, route: CompiledRoute, pool: str, real: str | None, results: list[Result]
) -> None:
    """A call of the module that computes the route's form, as it is."""
    body, home, graph = writer.body, writer.home, writer.graph
    form = home.helper(
        re.sub(r"(?<!^)(?=[A-Z])", "_", type(route.form).__name__).lower(),
        f"{home.file.copied.name_of(type(route.form))}()",
    )
    router = "None"
    if route.router is not None:
        node = graph.router_of(graph[step.node])  # type: ignore[arg-type]
        made = home.file.made(graph.signature(graph[step.node]).constructor())  # type: ignore[arg-type]
        path = writer.paths.get(id(route.router))
        stateful = any(True for _ in route.router.state_dict())
        router = home.held(str(path), lambda: made) if stateful else home.helper(node.name.split(".")[-1], made)
    if isinstance(route.form, selected.SelectedGathered):
        pool = body.begun.get(step.node) or f"{pool}.gathered()"
    x, *others = body.variables(step.operands)
    told = [f"real={real}"] if real is not None else []
    if step.common:
        given = ", ".join([x, pool, router, *told])
        told.append(f"common={_common(writer, step, f'{form}.common({given})', 'common')}")
    if route.single and not route.alone:
        x, told = f"{x}.unsqueeze({-route.pool.rank - 1})", []
    said = f"{form}({', '.join([x, pool, router, *others, *told])})"
    squeezed = route.single and not route.alone and route.one_for_each_sender
    first = f".squeeze({-route.result_rank - 1})" if squeezed else ""
    if len(results) == 1:
        value = home.file.copied.needed((ALONE, "value_of"))
        body.gives(results[0], name(f"{value}({said}){first}"), writer.consumer(results[0]))
        return
    body.assign_all(results, said)
    if first and body.uses[results[0]]:
        value = body.variables(results[:1])[0]
        body.line(f"{value} = {value}{first}")
    if route.alone:
        for each in results[1 : 1 + route.records]:
            if body.uses[each]:
                value = body.variables([each])[0]
                body.line(f"{value} = {value}.unsqueeze(-2)")
