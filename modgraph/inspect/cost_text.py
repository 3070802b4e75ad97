"""Prints a cost: a heading, a table of parts with equal ones folded, and the memory of a training step."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from modgraph_runtime.files import format_bytes

from modgraph.declare import format_value
from modgraph.diagnostics import list_names
from modgraph.inspect.cost import Cost, Memory, find_unbounded
from modgraph.inspect.division import ProcessCost
from modgraph.ir import Graph, PoolNode, RouterNode, ScanNode
from modgraph.ir.program.outline import number_definitions


@dataclass(frozen=True)
class Part:
    """A named part of a model, or `count` equal parts folded into one. Its cost is the sum."""

    label: str
    cost: Cost
    parts: tuple[Part, ...] = ()
    count: int = 1

    def times(self, count: int) -> Part:
        """This part `count` times."""
        return replace(self, cost=self.cost * count, parts=tuple(part.times(count) for part in self.parts))


def list_parts(nodes: Mapping[str, Cost], graph: Graph | None = None) -> tuple[Part, ...]:
    """The parts that cost anything, as a tree.

    With a graph, equal parts are folded, and routers have no parts. `nodes` lists every prefix of a name before the
    name.
    """
    definitions = {} if graph is None else dict(_definitions(graph))
    parts = [] if graph is None else graph.parts()
    closed = {router.name for part in parts for router in part.graph.nodes_of(RouterNode)}
    below: dict[str, list[str]] = {}
    for name, cost in nodes.items():
        above = name.rpartition(".")[0]
        if (cost.parameters or cost.macs) and above not in closed:
            below.setdefault(above, []).append(name)

    def parts_below(name: str) -> tuple[Part, ...]:
        """The parts below a name. Parts of one definition with equal costs are folded at the first of them."""
        equal: dict[object, list[Part]] = {}
        for each in below.get(name, []):
            part = Part(each.rpartition(".")[2], nodes[each], parts_below(each))
            equal.setdefault((definitions[each], nodes[each]) if each in definitions else each, []).append(part)
        return tuple(map(_fold, equal.values()))

    return parts_below("")


def _definitions(graph: Graph) -> Iterator[tuple[str, Hashable]]:
    """The definition that equal siblings share, by the path of nodes or weights."""
    for call, definition in number_definitions(graph).items():
        yield from ((call.path, definition), (call.weights, definition))
    pending = [(pool, pool.name) for pool in graph.pools().values()]
    for pool, path in pending:
        for module, key in enumerate(pool.keys):
            region = pool.region(module)
            yield f"{path}.{key}", id(region)
            pending += ((inner, f"{path}.{key}.{inner.name}") for inner in region.graph.nodes_of(PoolNode))


def _fold(parts: list[Part]) -> Part:
    """Fold equal parts into one, and a part with a single child into that child: `y` that has only `linear` is
    `y.linear`."""
    part, labels = parts[0], [part.label for part in parts]
    if len(parts) > 1:
        label = ranges([*map(int, labels)]) if all(map(str.isdecimal, labels)) else f"{{{list_names(labels)}}}"
        part = replace(part.times(len(parts)), label=label, count=len(parts))
    if len(part.parts) != 1 or part.parts[0].count > 1 or part.parts[0].cost != part.cost:
        return part
    return replace(part.parts[0], label=f"{part.label}.{part.parts[0].label}", count=part.count)


def ranges(numbers: Sequence[int]) -> str:
    """Increasing numbers in few words: `0-7, 9, 11`, or `1, 3 … 11` for every second one."""
    runs: list[list[int]] = []
    for number in numbers:
        run = runs[-1] if runs else []
        if run and (len(run) == 1 or number - run[-1] == run[1] - run[0]):
            run.append(number)
        else:
            runs.append([number])
    texts = []
    for run in runs:
        if len(run) > 2 and run[1] == run[0] + 1:
            texts.append(f"{run[0]}-{run[-1]}")
        else:
            texts += [f"{run[0]}, {run[1]} … {run[-1]}"] if len(run) > 3 else map(str, run)
    return ", ".join(texts)


UNITS = ("", " K", " M", " G", " T", " P", " E")
EXACT_BELOW = 10_000


def format_heading(
    title: str, parameters: Mapping[str, Any], lengths: Mapping[str, int], asked: Container[str]
) -> Iterator[str]:
    """Write the heading: the model and its file, the parameters, and the lengths of axes of any length. The user gave
    those in `asked`."""
    given = ", ".join(f"{name}={format_value(value)}" for name, value in parameters.items())
    yield title + (f" with {given}" if given else "")
    for axis, length in lengths.items():
        yield f"{axis} = {length:,}" + ("" if axis in asked else f" (for another length: --length {axis}=N)")


def format_counts(graph: Graph, cost: Cost, caches: object | None, fold: bool = True) -> list[str]:
    """Everything below the heading: counts, equal parts folded if `fold`, upper bounds, and what generation keeps."""
    kept = [str(caches)] if caches else []
    return [*count_lines(cost, graph if fold else None), *note_upper_bound(graph), *kept]


def count_lines(cost: Cost, graph: Graph | None = None) -> list[str]:
    """The counts of the whole, then a row for each part that costs anything, indented below its parent."""
    trained = "all trained" if cost.trainable == cost.parameters else f"{cost.trainable:,} of them trained"
    active = "" if cost.active_macs == cost.macs else f", {cost.active_macs:,} where only the chosen modules run"
    columns = {"parameters": "parameters", "trainable": "trained", "macs": "MACs", "active_macs": "active MACs"}
    for name, other in (("trainable", "parameters"), ("active_macs", "macs")):
        if getattr(cost, name) == getattr(cost, other):
            del columns[name]

    def row(label: str, part: Cost) -> Iterator[str]:
        yield label
        for count, total in ((getattr(part, name), getattr(cost, name)) for name in columns):
            yield f"{readable(count)} {f'{count / total:7.1%}' if total else ''}" if count else ""

    labelled = [*_walk_labels(list_parts(cost.nodes, graph))]
    rows = [["", *columns.values()], *([*row(label, part.cost)] for label, part in labelled), [*row("in all", cost)]]
    return [
        f"{cost.parameters:,} parameters, {trained}",
        f"{cost.macs:,} multiply-accumulates (MACs) for one example{active}",
        "",
        *align(rows),
        *["× n: n equal parts, counted together (--all lists each)"] * any("×" in label for label, _ in labelled),
    ]


def note_upper_bound(graph: Graph) -> list[str]:
    """Lines for a model whose MACs, or active MACs, are an upper bound, or none."""
    pools, scans = find_unbounded(graph), [each for part in graph.parts() for each in part.graph.nodes_of(ScanNode)]
    bound = f"active MACs are an upper bound: gates of {list_names(pools)} choose by value"
    lines = [f"{bound}; `modgraph trace` counts what is chosen on data"] * bool(pools)
    ending = [scan.name for scan in scans if scan.final]
    bound = f"MACs are an upper bound: the rounds of {list_names(ending)} end by a value, and all are counted"
    return [*lines, *[bound] * bool(ending)]


def _walk_labels(parts: Sequence[Part], depth: int = 0) -> Iterator[tuple[str, Part]]:
    """All parts, parents first, with their indented labels."""
    for part in parts:
        yield "  " * depth + part.label + (f" × {part.count}" if part.count > 1 else ""), part
        yield from _walk_labels(part.parts, depth + 1)


def format_memory(memory: Memory, facts: Sequence[str]) -> list[str]:
    """The memory of a training step by purpose; `facts` say what it was computed with."""
    each = f"{format_bytes(round(memory.activations / memory.batch))} an example" if memory.batch > 1 else ""
    counts = {"weights": memory.weights, "gradients": memory.gradients, "state of the optimizer": memory.optimizer}
    counts |= {"the batch": memory.examples, "activations": memory.activations, "at once at most": memory.peak}
    rows = [(what, format_bytes(count), each if what == "activations" else "") for what, count in counts.items()]
    return [f"memory of a training step with {', '.join(facts)}", *(f"  {line}" for line in align(rows))]


def format_division(parts: Mapping[str, ProcessCost], facts: Sequence[str], batch: int, processes: int) -> list[str]:
    """What each of some processes holds and sends, for each divided pool and for the rest; `facts` say how."""
    columns = "weights", "gradients", "optimizer", "sent in a step"
    labelled = {name or "other weights": each for name, each in parts.items()}
    labelled |= {"in all": sum(parts.values(), ProcessCost())}
    rows = [
        [label, *map(format_bytes, (each.weights, each.gradients, each.optimizer, each.count_step(batch, processes)))]
        for label, each in labelled.items()
    ]
    return [f"at most, each of {processes:,} processes, {', '.join(facts)}", *align([["", *columns], *rows])]


def fits_line(size: int, batch: int) -> str:
    """Whether a training step fits into `size` bytes, and the largest batch that does."""
    if batch == 0:
        return f"{format_bytes(size)} do not hold a step of a single example"
    return f"{format_bytes(size)} hold a step of {f'up to {batch:,} examples' if batch > 1 else '1 example'}"


def readable(count: int) -> str:
    """A count with three significant digits and a unit, `86.6 M`; small counts are exact."""
    if count < EXACT_BELOW:
        return f"{count:,}"
    size, unit = float(count), 0
    while size >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:,.{max(0, 3 - len(str(int(size + 0.05))))}f}{UNITS[unit]}"


def align(rows: Sequence[Sequence[str]], least: int = 0) -> list[str]:
    """Rows as aligned lines: the first column left, the others right and at least `least` wide."""
    if not rows:
        return []
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    widths = [max(least, width) for width in others]
    lines = ("  ".join([row[0].ljust(first), *map(str.rjust, row[1:], widths)]) for row in rows)
    return [line.rstrip() for line in lines]
