"""Writes the calls of definitions, and rounds that follow each other as a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from modgraph.backends.torch.source.formulas import name
from modgraph.backends.torch.source.layout import Item, Layout
from modgraph.backends.torch.source.writer import Writer
from modgraph.ir import Body, OpNode, Result, RouteNode, ScanNode


@dataclass
class Defined:
    """A definition as the file has it: its name, whether its instances hold anything, the places of what it borrows
    among all that a body has outside."""

    name: str = ""
    is_function: bool = False
    borrowed: tuple[int, ...] = ()
    holds: bool = False


def outside(layout: Layout, body: Body) -> list[str]:
    """The paths of what a body uses that does not stand below its weights, each once."""
    assert body.call is not None
    return [path for path in dict.fromkeys(_paths(layout, body)) if not path.startswith(f"{body.call.weights}.")]


def _paths(layout: Layout, body: Body) -> Iterator[str]:
    for item in layout.items(body):
        if isinstance(item, Body):
            yield from _paths(layout, item)
            yield item.call.weights if item.call is not None else ""
        else:
            yield from used(layout, item)


def used(layout: Layout, node: Item) -> Iterator[str]:
    """The paths of the layers, the pool and the router that a node uses."""
    if isinstance(node, OpNode) and node.op.all_weights():
        yield node.owner
    elif isinstance(node, RouteNode):
        yield from layout.graph.uses(node.name).values()
    elif isinstance(node, ScanNode):
        for each in node.region.graph:
            if isinstance(each, OpNode) and each.op.all_weights():
                yield each.owner
            elif isinstance(each, RouteNode):
                yield from node.region.graph.uses(each.name).values()


def write_definition(writer: Writer, body: Body) -> list[str]:
    """The lines of a definition's function, from one of its calls; its arguments."""
    layout, lines = writer.layout, writer.lines
    takes, results = layout.takes(body), layout.results(body)
    items = writer.flat(body)
    writer.count(items, results)
    arguments = [lines.named("x" if len(takes) == 1 else lines.word(each)) for each in takes]
    for each, argument in zip(takes, arguments, strict=True):
        lines.give(each, argument)
    given = [argument for each, argument in zip(takes, arguments, strict=True) if each.node in layout.optional]
    writer.write(items, " and ".join(f"{each} is not None" for each in given) if layout.guards(body) else "")
    lines.line(f"return {', '.join(ast.unparse(lines.read(each)) for each in results)}")
    return arguments


def function_of(writer: Writer, body: Body, defined: Defined) -> str:
    """What a call calls."""
    assert body.call is not None
    if defined.is_function:
        return defined.name
    if defined.holds:
        return writer.member(body.call.weights)
    return writer.helper(body.call.definition, f"{defined.name}()")


def write_call(writer: Writer, body: Body) -> None:
    """The call of one body."""
    layout, lines = writer.layout, writer.lines
    defined = writer.file.define(layout, writer.tree, body, writer.inside)
    paths = outside(layout, body)
    given = [ast.unparse(lines.read(each)) for each in layout.takes(body)]
    given += [writer.argument(paths[at]) for at in defined.borrowed]
    said = name(f"{function_of(writer, body, defined)}({', '.join(given)})")
    results = layout.results(body)
    if len(results) != 1:
        lines.set_all(results, said)
    else:
        chance = layout.is_chance(body)
        writer.set(results[0], said, stays=not chance)


# ------------------------------------------------------------ loops


def rounds(layout: Layout, items: Sequence[Item]) -> Iterator[list[Item]]:
    """The items in order, rounds of one definition that follow each other together."""
    run: list[Item] = []
    for item in items:
        if run and not (isinstance(item, Body) and _follows(layout, run[-1], item)):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


def _follows(layout: Layout, before: Item, body: Body) -> bool:
    """Whether a call is the next round of a loop."""
    if not isinstance(before, Body) or before.call is None or body.call is None or body.call.kind != "round":
        return False
    paths = [each.weights.rpartition(".")[0] for each in (before.call, body.call)]
    same = [(layout.definitions[each].name, layout.places(each)) for each in (before, body)]
    return same[0] == same[1] and paths[0] == paths[1] and before.call.outer is body.call.outer


def first_words(layout: Layout, items: Sequence[Item]) -> dict[Result, str]:
    """What loops call the values that they begin with."""
    found: dict[Result, str] = {}
    for run in rounds(layout, items):
        if len(run) > 1:
            takes, gives = [layout.takes(each) for each in run], [layout.results(each) for each in run]  # type: ignore[arg-type]
            carried = _carried(takes, gives) or {}
            found |= {takes[0][at]: layout.word(gives[-1][of]) for at, of in carried.items()}
    return found


def write_loop(writer: Writer, run: Sequence[Body]) -> bool:
    """Rounds as a loop, if they differ in what the round before gives alone."""
    layout, lines = writer.layout, writer.lines
    takes, gives = [layout.takes(each) for each in run], [layout.results(each) for each in run]
    carried = _carried(takes, gives)
    keys = [writer.file.key(layout, writer.tree, each, writer.inside) for each in run]
    if any(key != keys[0] for key in keys):
        return False
    defined = writer.file.define(layout, writer.tree, run[0], writer.inside)
    paths = [outside(layout, each) for each in run]
    borrowed = [[path[at] for at in defined.borrowed] for path in paths]
    if carried is None or any(each != borrowed[0] for each in borrowed):
        return False
    over = _over(writer, run, defined)
    if over is None:
        return False
    variables = {at: _begun(writer, takes, gives, at, of) for at, of in carried.items()}
    given = [variables[at] if at in variables else lines.variable(each) for at, each in enumerate(takes[0])]
    given += [writer.argument(path) for path in borrowed[0]]
    for taken in takes:
        lines.left.subtract(taken)
    named = {of: variables[at] for at, of in carried.items()}
    lists: dict[int, str] = {}
    for of, each in enumerate(gives[-1]):
        if any(lines.left[round_[of]] > 0 for round_ in gives[:-1]):
            lists[of] = lines.named(lines.word(each))
            lines.line(f"{lists[of]} = []")
        if of not in named:
            named[of] = (
                lines.named(lines.word(each)) if of in lists else lines.name_for(each) if lines.left[each] else "_"
            )
    variable, iterable, function = over
    targets = ", ".join(named[of] for of in range(len(named)))
    with lines.indented(f"for {variable} in {iterable}:"):
        lines.line(f"{targets} = {function or variable}({', '.join(given)})")
        for of, called in lists.items():
            lines.line(f"{called}.append({named[of]})")
    for at, round_ in enumerate(gives):
        lines.values |= {round_[of]: name(f"{called}[{at}]") for of, called in lists.items()}
    for of, each in enumerate(gives[-1]):
        if of not in lists and named[of] != "_":
            lines.owners[named[of]] = []
            lines.give(each, named[of])
    return True


def _carried(takes: Sequence[Sequence[Result]], gives: Sequence[Sequence[Result]]) -> dict[int, int] | None:
    """Which results of a round the next one takes, by the place of the operand; None where rounds differ otherwise."""
    found: dict[int, int] = {}
    for at, first in enumerate(takes[0]):
        if all(each[at] == first for each in takes):
            continue
        pairs = zip(gives, takes[1:], strict=False)
        places = {given.index(taken[at]) if taken[at] in given else -1 for given, taken in pairs}
        if len(places) != 1 or -1 in places or places & {*found.values()}:
            return None
        (found[at],) = places
    return found


def _begun(
    writer: Writer, takes: Sequence[Sequence[Result]], gives: Sequence[Sequence[Result]], at: int, of: int
) -> str:
    """The variable that each round gives the next, with its first value."""
    lines, first = writer.lines, takes[0][at]
    said = lines.values[first]
    is_last = lines.left[first] <= 1 and isinstance(said, ast.Name) and said.id not in lines.unsaid()
    if isinstance(said, ast.Name) and is_last and lines.owners.get(said.id) == [first]:
        called = said.id
    else:
        called = lines.named(lines.word(gives[-1][of]))
        lines.line(f"{called} = {ast.unparse(said)}")
        if first in lines.waiting:
            lines.waiting.remove(first)
    lines.owners[called] = [first, *(round_[of] for round_ in gives)]
    return called


def _over(writer: Writer, run: Sequence[Body], defined: Defined) -> tuple[str, str, str] | None:
    """The loop's variable, what it goes over, and what is called if that is not the variable."""
    call = run[0].call
    assert call is not None
    if not defined.holds:
        return "_", f"range({len(run)})", function_of(writer, run[0], defined)
    list_ = call.weights.rpartition(".")[0]
    keys = [each.call.weights.rpartition(".")[2] for each in run if each.call is not None]
    first = int(keys[0]) if keys[0].isdigit() else -1
    if keys != [str(first + at) for at in range(len(keys))] or not writer.tree.is_list(list_) or list_ == writer.root:
        return None
    whole = len(writer.tree.children(list_))
    bounds = f"{first or ''}:{first + len(keys) if first + len(keys) < whole else ''}"
    said = writer.tree.at(list_, writer.root) if not writer.root or list_.startswith(f"{writer.root}.") else None
    if said is None:
        return None
    return writer.lines.named(call.definition), said + ("" if bounds == ":" else f"[{bounds}]"), ""
