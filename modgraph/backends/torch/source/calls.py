"""Writes the statements of a body: calls of definitions, rounds as loops, and scans with nested functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from modgraph.backends.errors import NoSource
from modgraph.backends.torch.source.formulas import expand, name
from modgraph.backends.torch.source.layout import Item, Layout
from modgraph.backends.torch.source.members import is_below
from modgraph.backends.torch.source.routes import write_route
from modgraph.backends.torch.source.writer import Writer
from modgraph.declare import sizes
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Body, OpNode, Result, RouteNode, ScanNode
from modgraph.nn import loop, scan

Values = Sequence[Sequence[Result]]  # in each round


@dataclass
class Defined:
    """A definition in the file.

    `holds` means that its instances hold modules or parameters. `borrowed` are the places of its arguments among the
    paths that a body uses outside its weights.
    """

    name: str = ""
    is_function: bool = False
    borrowed: tuple[int, ...] = ()
    holds: bool = False


def write_items(writer: Writer, items: Sequence[Item], condition: str = "") -> None:
    """Write items; those that need targets go under a condition."""
    layout = writer.layout

    def is_optional(item: Item) -> bool:
        return bool(condition) and all(node.name in layout.optional for node in layout.inside(item))

    for below, group in groupby(items, is_optional):
        with writer.lines.guard(condition) if below else nullcontext():
            _write(writer, [*group])


def _write(writer: Writer, items: Sequence[Item]) -> None:
    layout, loops = writer.layout, list[tuple[list[Any], Values, Values, dict[int, int] | None]]()
    for _, each in groupby(items, partial(_loop_of, layout)):
        run: list[Any] = [*each]
        takes = [layout.list_arguments(body) for body in run if len(run) > 1]
        gives = [layout.results(body) for body in run if len(run) > 1]
        carried = _find_carried(takes, gives) if takes else None
        writer.lines.words |= {takes[0][at]: layout.word(gives[-1][of]) for at, of in (carried or {}).items()}
        loops.append((run, takes, gives, carried))
    for run, read, given, carried in loops:
        if carried is not None and _write_loop(writer, run, read, given, carried):
            continue
        for item in run:
            match item:
                case Body():
                    _write_call(writer, item)
                case OpNode():
                    writer.op(item)
                case RouteNode():
                    write_route(writer, item)
                case ScanNode():
                    _write_scan(writer, item)


# ------------------------------------------------------------ calls


def outside(layout: Layout, body: Body) -> list[str]:
    """The paths of modules that a body uses outside its weights, each once."""
    assert body.call is not None
    return [path for path in dict.fromkeys(_paths(layout, body)) if not path.startswith(f"{body.call.weights}.")]


def _paths(layout: Layout, item: Item) -> Iterator[str]:
    """The paths of the layers, the pools and the routers that an item uses."""
    if isinstance(item, Body):
        for each in layout.items(item):
            yield from _paths(layout, each)
        yield item.call.weights if item.call is not None else ""
        return
    used = [(layout.graph, item)]
    if isinstance(item, ScanNode):
        parts = item.region.graph.parts()
        used = [(part.graph, node) for part in parts for node in part.graph]
    for graph, node in used:
        if isinstance(node, OpNode) and node.op.all_weights():
            yield node.owner
        elif isinstance(node, RouteNode):
            yield from graph.uses(node.name).values()


def _function_of(writer: Writer, body: Body, defined: Defined) -> str:
    assert body.call is not None
    if defined.is_function:
        return defined.name
    if defined.holds:
        return writer.write_member(body.call.weights)
    return writer.add_helper(body.call.definition, f"{defined.name}()")


def _write_call(writer: Writer, body: Body) -> None:
    layout, lines = writer.layout, writer.lines
    defined = writer.file.define(writer, body)
    paths = outside(layout, body)
    given = [ast.unparse(lines.read(each)) for each in layout.list_arguments(body)]
    given += [writer.write_argument(paths[at]) for at in defined.borrowed]
    said = name(f"{_function_of(writer, body, defined)}({', '.join(given)})")
    results = layout.results(body)
    if len(results) == 1:
        writer.set(results[0], said, stays=not layout.is_chance(body))
    else:
        lines.set_all(results, said)


# ------------------------------------------------------------ loops


def _loop_of(layout: Layout, item: Item) -> object:
    """Compute a key that is equal for all rounds of one loop."""
    if not isinstance(item, Body) or item.call is None or item.call.kind != "round":
        return id(item)
    path = item.call.weights.rpartition(".")[0]
    return layout.definitions[item].name, layout.list_result_places(item), path, id(item.call.outer)


def _find_carried(takes: Values, gives: Values) -> dict[int, int] | None:
    """The results of a round that the next one takes, by the place of the operand; None if rounds differ otherwise."""
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


def _write_loop(writer: Writer, run: Sequence[Body], takes: Values, gives: Values, carried: dict[int, int]) -> bool:
    """Write rounds as a loop, if they differ only in the results of the round before; returns whether they do."""
    layout, lines = writer.layout, writer.lines
    if len({writer.file.compute_key(writer, each) for each in run}) > 1:
        return False
    defined = writer.file.define(writer, run[0])
    borrowed, *others = ([outside(layout, each)[at] for at in defined.borrowed] for each in run)
    over = _loop_header(writer, run, defined)
    if over is None or any(each != borrowed for each in others):
        return False
    variables = {at: _first_value(writer, takes, gives, at, of) for at, of in carried.items()}
    given = [variables[at] if at in variables else lines.variable(each) for at, each in enumerate(takes[0])]
    given += [writer.write_argument(path) for path in borrowed]
    for taken in takes:
        lines.left.subtract(taken)
    named = {of: variables[at] for at, of in carried.items()}
    lists: dict[int, str] = {}
    for of, each in enumerate(gives[-1]):
        if any(lines.left[round_[of]] > 0 for round_ in gives[:-1]):
            lists[of] = lines.fresh_name(lines.word(each))
            lines.line(f"{lists[of]} = []")
            named[of] = named.get(of) or lines.fresh_name(lines.word(each))
        elif of not in named:
            named[of] = lines.name_for(each) if lines.left[each] else "_"
    variable, iterable, function = over
    with lines.indent(f"for {variable} in {iterable}:"):
        lines.line(f"{', '.join(named[of] for of in range(len(named)))} = {function or variable}({', '.join(given)})")
        for of, called in lists.items():
            lines.line(f"{called}.append({named[of]})")
    for at, round_ in enumerate(gives):
        lines.values |= {round_[of]: name(f"{called}[{at}]") for of, called in lists.items()}
    for of, each in enumerate(gives[-1]):
        if of not in lists and named[of] != "_":
            lines.owners[named[of]] = []
            lines.give(each, named[of])
    return True


def _first_value(writer: Writer, takes: Values, gives: Values, at: int, of: int) -> str:
    """Write the initial value of a loop-carried variable, and return the variable."""
    lines, first = writer.lines, takes[0][at]
    said = lines.values[first]
    is_last = lines.left[first] <= 1 and isinstance(said, ast.Name) and said.id not in lines.pending()
    if isinstance(said, ast.Name) and is_last and lines.owners.get(said.id) == [first]:
        called = said.id
    else:
        called = lines.fresh_name(lines.word(gives[-1][of]))
        lines.line(f"{called} = {ast.unparse(said)}")
        lines.waiting.pop(first, None)
    lines.owners[called] = [first, *(round_[of] for round_ in gives)]
    return called


def _loop_header(writer: Writer, run: Sequence[Body], defined: Defined) -> tuple[str, str, str] | None:
    """Find the variable of a loop, its iterable, and the called function if that is not the variable; None if no loop
    fits."""
    call, tree, root = run[0].call, writer.tree, writer.root
    assert call is not None
    if not defined.holds:
        return "_", f"range({len(run)})", _function_of(writer, run[0], defined)
    path, _, first = call.weights.rpartition(".")
    keys = [each.call.weights.rpartition(".")[2] for each in run if each.call is not None]
    start = int(first) if first.isdigit() else -1
    stop = start + len(keys)
    is_whole_list = tree.is_list(path) and path != root and is_below(root, path)
    if keys != [*map(str, range(start, stop))] or not is_whole_list:
        return None
    bounds = f"{start or ''}:{stop if stop < len(tree.list_children(path)) else ''}"
    return (
        writer.lines.fresh_name(call.definition),
        tree.access(path, root) + ("" if bounds == ":" else f"[{bounds}]"),
        "",
    )


# ------------------------------------------------------------ scans


def _write_scan(writer: Writer, node: ScanNode) -> None:
    lines, layout = writer.lines, writer.layout
    values, _ = writer.read_operands(node)
    slots = writer.graph.inputs(node.name).items()
    given = {
        slot: ast.unparse(lines.bind(value.said, lines.word(of)))
        for (slot, of), value in zip(slots, values, strict=True)
    }
    results = [Result(node.name, at) for at in range(len(node.types))]
    kept = results if layout.is_chance(node) else [each for each in results if lines.left[each]]
    program = layout.programs[node.name]
    assert isinstance(program, ScanNode)
    wanted = (*node.steering, *(node.stacked[each.index] for each in kept))
    inner = Layout(node.region.graph, program.region.graph, wanted, node)
    step = Writer(writer.file, inner, writer.tree, writer.root)
    step.lines.taken, step.helpers, step.borrowed = lines.taken, writer.helpers, writer.borrowed
    length = "".join(f", {lines.variable(each)}" for each in layout.list_lengths(node)[-1:])
    if length and any(isinstance(each, OpNode) and each.op.over_batch for each in inner.inside(inner.root)):
        reason = "an op over the batch in its steps leaves out examples that have ended"
        raise ModgraphError([NoSource(path=f'scan "{node.name}"', reason=reason)])
    items = step.items(inner.root, wanted)
    x = given.pop(node.variable)
    # the state before the first step is zero by default
    learns = any(not each.buffer for each in step.tree.find_weights_below(step.root).values())
    weight = "next(self.parameters()).dtype" if learns or not step.root else "torch.get_default_dtype()"
    dtype = f"{x}.dtype" if step.graph.type_of(Result(node.variable)).dtype == "float" else weight
    initial = []
    for state in node.states:
        if state not in given:
            shape = (f"len({x})", *map(str, sizes(step.graph.type_of(Result(state)).shape)))
            given[state] = f"torch.zeros({', '.join(shape)}, dtype={dtype}, device={x}.device)"
        initial.append(given.pop(state))
    step.lines.values |= {Result(slot): name(said) for slot, said in given.items()}
    function, now, before = map(step.lines.fresh_name, ("step", "now", "before"))
    takes = [step.lines.fresh_name(each.rpartition(".")[2]) for each in (node.variable, *node.states)]
    for slot, called in zip((node.variable, *node.states), takes, strict=True):
        step.lines.give(Result(slot), called)
    write_items(step, items)
    rank = len(step.graph.type_of(Result(node.variable)).shape)
    found = []
    for each in wanted:
        value, same = step.value(each), each.node in inner.invariant
        found.append(ast.unparse(expand(value, name(takes[0]), rank, inside=False) if same else value.said))
    count, ends = len(node.states), len(node.steering)
    gives = [f"[{', '.join(found[:count])}]", *found[count:ends], f"[{', '.join(found[ends:])}]"]
    lines.line("")
    with lines.indent(f"def {function}({now}, {before}):"):
        lines.line(f"({takes[0]},), [{', '.join(takes[1:])}] = {now}, {before}")
        lines.lines += step.lines.lines
        lines.line(f"return {', '.join(gives)}")
    lines.line("")
    run = writer.vendored.name_of(loop if node.final else scan)
    stacked = (node.stacked[each.index] for each in kept if each.index >= node.final)
    shared = f", {[*map(node.count_own_axes, stacked)]}" if node.final else ""
    lines.set_all(kept, name(f"{run}({function}, [{x}], [{', '.join(initial)}]{shared}{length})"))
