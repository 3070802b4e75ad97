"""Writes pools: the class of their modules, one for all that are alike, and how they run together or by index."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from torch import nn

from modgraph.backends.torch.construct import paths_of, resolve
from modgraph.backends.torch.plan import Plan, needed
from modgraph.backends.torch.pool import CompiledPool, Expert
from modgraph.backends.torch.run import Step, plan
from modgraph.backends.torch.source.body import Body, called
from modgraph.backends.torch.source.classes import NAME, Class, File, Made, at_path, laid_out
from modgraph.backends.torch.source.formulas import Expression, Value, formula, name
from modgraph.backends.torch.source.names import class_name
from modgraph.backends.torch.source.quote import prose
from modgraph.backends.torch.source.starts import starts
from modgraph.backends.torch.source.steps import ALONE, Writer, reads
from modgraph.ir import OpNode, PoolNode, Result
from modgraph.nn.pool import taken_by_index


def made_pool(file: File, node: PoolNode, pool: CompiledPool, inside: str = "") -> str:
    """The call that makes a pool; `inside` is what the names of its weights begin with in the module it is part of."""
    shared = pool._modules.get("shared")
    given = "shared" if shared is not None else ""
    path = f"{inside}{node.name}"
    classes = [_expert_class(file, node, path, pool.expert(at), at, shared) for at in range(len(pool))]  # type: ignore[arg-type]
    alike = len({*classes}) == 1
    calls = (
        f"{classes[0]}({given}) for _ in range({len(pool)})"
        if alike
        else ", ".join(f"{each}({given})" for each in classes)
    )
    ranks = [len(node.message.shape), len(node.result.shape)]
    told = ", ".join([f"[{calls}]", *(map(str, ranks) if ranks != [1, 1] else [])])
    base = file.copied.needed((ALONE, "Pool"))
    if shared is None and pool not in file.by_index:
        return f"{base}({told})"
    return f"{_own_class(file, node, path, pool, base, told)}()"


def _own_class(file: File, node: PoolNode, path: str, pool: CompiledPool, base: str, told: str) -> str:
    """The class of a pool whose modules share weights, or are taken by index."""
    shared, home = pool._modules.get("shared"), Class(file, nn.Module())
    methods, init = [], [f"super().__init__({told})"]
    if shared is not None:
        init = [*_shared(file, path, pool, shared), f"super().__init__({told}, shared=shared)"]
        methods += [ALL, _rows(home, pool)] if pool.together is not None else []
    if pool in file.by_index:
        methods.append(_gathered(home, pool))
    init += [f"self.{key} = {made}" for key, made in home.helpers.items()]
    doc = f'    """The modules of {prose(_last(node))}."""'
    head = [f"class {NAME}({base}):", doc, "", "    def __init__(self):"]
    lines = [*head, *(f"        {line}" for line in init), "", *_indented("\n\n".join(methods))]
    return file.add("\n".join(lines), f"{class_name(_last(node))}Pool")


ALL = """def all(self, x):
    return self.rows(self.repeated(x))"""


def _last(node: PoolNode) -> str:
    return next(each for each in reversed(node.name.split(".")) if not each.isdigit())


def _indented(text: str) -> list[str]:
    return [f"    {line}" if line else "" for line in text.splitlines()]


def _shared(file: File, path: str, pool: CompiledPool, shared: nn.Module) -> list[str]:
    """The line that makes what the modules have in common."""
    home, region = Class(file, shared, f"{path}.shared."), pool.region.graph
    for op in region.of_kind(OpNode):
        if any(weight.shared for weight in op.op.all_weights()):
            path, positional, named = region.signature(op).constructor()
            home.held(op.owner, partial(file.made, (resolve(path).Shared, positional, named)))
    begun = starts(home, home.members, "shared")
    return [*laid_out("shared = ", home._made(home.tree(), shared), 0), *begun]


# ------------------------------------------------------------ one module


def _expert_class(file: File, node: PoolNode, path: str, expert: Expert, at: int, shared: nn.Module | None) -> str:
    """The class of one module."""
    region = node.region(at)
    home = Class(file, expert, f"{path}.{at}.")
    body = Body(region.graph, *reads(expert.plan), outer="B" if expert.routes else "...", taken=("lead",))
    (argument,) = region.arguments
    x = body.argument(Result(argument), argument)
    has_shared = any(weight.shared for op in region.graph.of_kind(OpNode) for weight in op.op.all_weights())

    class ExpertWriter(Writer):
        def made(self, node: str) -> Made:
            path, positional, named = super().made(node)
            op: Any = region.graph[node]
            if not any(weight.shared for weight in op.op.all_weights()):
                return path, positional, named
            width = region.graph.signature(op).axes["code_width"]
            assert shared is not None
            return resolve(path).Own, [name(at_path("shared", shared, op.owner)), width], {}

    writer = ExpertWriter(body, home, region.graph, paths_of(expert), file.rules, inside=not expert.routes)
    writer.write(expert.plan.steps)
    if expert.routes:
        lines = _of_one_batch(body, expert, x)
    else:
        (result,) = body.returned(expert.plan.wanted)
        lines = [*body.folded(), f"return {result}"]
    file.hold(home, region.graph, "")
    doc = f"One module of {_last(node)}: {_shape(node.message)} to {_shape(node.result)}."
    method = function(f"forward(self, {x})", lines)
    return file.add(home.text(doc, [method], given=", shared" if has_shared else ""), _last(node))


def _of_one_batch(body: Body, expert: Expert, x: str) -> list[str]:
    """The lines of a module with routes, which takes all axes before those of a message as one."""
    (result,) = body.variables(expert.plan.wanted)
    before = [f"lead = {x}.shape[:-{expert.rank}]", f"{x} = {x}.reshape(-1, *{x}.shape[-{expert.rank}:])"]
    return [*before, *body.folded(), f"return {result}.reshape(*lead, *{result}.shape[1:])"]


def _shape(type_: Any) -> str:
    return f"[..., {', '.join(str(axis.size if axis.size is not None else axis.name) for axis in type_.shape)}]"


def function(head: str, lines: list[str], doc: str = "") -> str:
    """A function of these lines."""
    told = [f'    """{prose(doc)}"""'] if doc else []
    return "\n".join([f"def {head}:", *told, *(f"    {line}" for line in lines)])


# ------------------------------------------------------------ all modules, op after op, or those of some indices


def _rows(home: Class, pool: CompiledPool) -> str:
    """The modules on a row each, op after op."""
    assert pool.together is not None
    body, result = _together(home, pool, pool.together, _row)
    return function("rows(self, x)", ["modules = self.experts()", *body.folded(), f"return {result}"])


def _gathered(home: Class, pool: CompiledPool) -> str:
    """The modules with their weights stacked."""
    taken = {key: taken_by_index(column) for key, column in pool.columns.items()}
    of_one = needed(plan(pool.region.graph, taken), pool.region.results)
    before: list[str] = []

    def taken_of(home: Class, pool: CompiledPool, step: Step, body: Body, values: list[Value]) -> Expression:
        column = pool.columns[step.node]
        of = type(column[0])
        if getattr(of, "gathered", None) is None:
            return _stateless(home, pool, step, column[0], values)
        home.file.copied.calls.add("gathered")
        by_index = body.named(step.node.split(".")[-1])
        modules = f"[{_op_of_each(pool, step)} for each in self.experts()]"
        before.append(f"{by_index} = {home.file.copied.name_of(of)}.gathered({modules})")
        return called(by_index, [name("module_E"), *(value.said for value in values)])

    body, result = _together(home, pool, of_one, taken_of)
    gathered = home.file.copied.needed((ALONE, "Gathered"))
    chosen = function("chosen(module_E, x)", [*body.folded(), f"return {result}"]).splitlines()
    doc = "The same modules with their weights stacked, so that they are taken by index."
    return function("gathered(self)", [*before, "", *chosen, "", f"return {gathered}(self, chosen)"], doc)


def _together(home: Class, pool: CompiledPool, of: Plan, said: Any) -> tuple[Body, str]:
    region = pool.region
    body = Body(region.graph, *reads(of), outer="...", taken=("modules", "module_E"))
    (argument,) = region.arguments
    body.taken.add("x")
    body.values[Result(argument)] = Value(name("x"))
    for step in of.steps:
        results = [Result(step.node, at) for at in range(len(region.graph[step.node].types))]
        found = said(home, pool, step, body, body.said(step.operands))
        if len(results) > 1:
            body.assign_all(results, ast.unparse(found))
        else:
            body.gives(results[0], found, body.readers.get(results[0]))
    (returned,) = body.returned(of.wanted)
    return body, returned


def _op_of_each(pool: CompiledPool, step: Step) -> str:
    """The expression for the op of a step in the module `each`."""
    op: Any = pool.region.graph[step.node]
    return at_path("each", pool.expert(0), op.owner)


def _stateless(home: Class, pool: CompiledPool, step: Step, module: Any, values: list[Value]) -> Expression:
    found = formula(module, values, home.file.copied)
    if found is not None:
        return found
    op: Any = pool.region.graph[step.node]
    made = home.file.made(pool.region.graph.signature(op).constructor())
    return called(home.helper(op.op.name, made), [value.said for value in values])


def _row(home: Class, pool: CompiledPool, step: Step, body: Body, values: list[Value]) -> Expression:
    """One op of every module, each on its row."""
    column, rank, result_rank = step.compute.args  # type: ignore[attr-defined]
    of = type(column[0])
    if getattr(of, "rows", None) is not None:
        home.file.copied.calls.add("rows")
        modules = name(f"[{_op_of_each(pool, step)} for each in modules]")
        return called(f"{home.file.copied.name_of(of)}.rows", [modules, *(value.said for value in values)])
    if not any(True for _ in column[0].parameters()):
        return _stateless(home, pool, step, column[0], values)
    stacked = home.file.copied.needed((ALONE, "stacked"))
    rows = ", ".join(f"{ast.unparse(value.said)}.unbind({-rank - 1})" for value in values)
    names = ", ".join(f"row_{at}" for at in range(len(values)))
    each = f"[{_op_of_each(pool, step)}({names}) for each, {names} in zip(modules, {rows})]"
    return name(f"{stacked}({each}, {result_rank})")
