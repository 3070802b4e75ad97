"""Linear recurrences: scans whose states are affine in themselves, so that all steps can be computed at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from modgraph.ir.analysis.affine import AffineReader, Factor, NotAffine, Term, describe, find_places
from modgraph.ir.graph import Graph
from modgraph.ir.node import DecisionNode, InputNode, OpNode, Result, ScanNode
from modgraph.ops.arithmetic import Multiply
from modgraph.ops.array import NextState, State
from modgraph.ops.axes import NewAxis, Transpose
from modgraph.ops.linear import Contract
from modgraph.ops.shape import Rename


@dataclass(frozen=True)
class Readout:
    """The sum of products of a state with `query` over an axis of the state; `before` the step, or after it.

    `labels` are the places in the state of the result's axes.
    """

    value: Result
    query: Factor
    labels: tuple[int, ...]
    before: bool


@dataclass(frozen=True)
class Matrix:
    """How a state S is a matrix at each step: `key` is the axis of its columns, `rows` those of its rows.

    Terms S x yᵀ and u zᵀ are outer products: x, y and z, as the gates and the queries of `readouts`, lack the axes of
    rows, and u lacks that of columns.
    """

    key: int
    rows: tuple[int, ...]
    readouts: tuple[Readout, ...] = ()


@dataclass(frozen=True)
class Recurrence:
    """A state's following value: `gates` times the state, plus `products` of it, plus `offsets`.

    Its states are needed themselves if it `keeps` them. Without `matrix` it has no products, and each number has a
    recurrence of its own.
    """

    state: str
    following: Result
    gates: tuple[Term, ...]
    products: tuple[Term, ...]
    offsets: tuple[Term, ...]
    keeps: bool = True
    matrix: Matrix | None = None

    @property
    def factors(self) -> Iterator[Factor]:
        """The values that must be known at all steps before the states."""
        for term in (*self.gates, *self.products, *self.offsets):
            yield from (*term.factors, *term.inner)
        for each in self.matrix.readouts if self.matrix else ():
            yield each.query

    @property
    def is_sum(self) -> bool:
        """Whether the state is a cumulative sum of offsets."""
        return not self.products and [(each.number, each.factors) for each in self.gates] == [(1.0, ())]

    @property
    def given(self) -> set[Result]:
        """The values of the step that the recurrence gives."""
        readouts = self.matrix.readouts if self.matrix else ()
        states = {Result(self.state), self.following} if self.keeps else set[Result]()
        return {*states, *(each.value for each in readouts)} - {each.value for each in self.factors}


@dataclass(frozen=True)
class Recurrences:
    """The linear recurrences of a scan's states, each after those that it reads."""

    each: tuple[Recurrence, ...]
    depends: Mapping[str, frozenset[str]]  # the states on which each node of a step depends


def find_recurrences(scan: ScanNode) -> Recurrences:
    """Find the linear recurrences of a scan. Raises `NotAffine` if the steps must run one after another."""
    graph = scan.region.graph
    if scan.final:
        raise NotAffine("it ends by a value")
    if padded := [state for state in scan.states if graph[state].types[0].padded]:
        raise NotAffine(f"state {_short(padded[0])} has an axis of any length")
    for node in graph:
        _refuse(node.name, graph)
    depends = _find_dependent(scan)
    following = dict(zip(scan.states, scan.following, strict=True))
    found: list[Recurrence] = []
    while following:
        known = {each.state for each in found}
        ready = [state for state, after in following.items() if depends[after.node] <= {*known, state}]
        if not ready:
            raise NotAffine(f"states {', '.join(sorted(map(_short, following)))} depend on each other")
        found += [_read(graph, state, following.pop(state), depends) for state in ready]
    return Recurrences(tuple(_as_matrix(each, found, scan, depends) for each in found), depends)


def _refuse(name: str, graph: Graph) -> None:
    """Raise `NotAffine` for a node that cannot run for all steps at once."""
    node = graph[name]
    if isinstance(node, InputNode | DecisionNode):
        return
    if not isinstance(node, OpNode):
        raise NotAffine(f"{describe(node)} runs at each step")
    if node.op.by_chance:
        raise NotAffine(f"{describe(node)} samples at each step")
    buffers = any(weight.buffer for weight in node.op.all_weights())
    if node.op.over_batch or buffers or isinstance(node.op, State | NextState):
        raise NotAffine(f"{describe(node)} depends on other examples or has a state of its own")
    if graph.lengths(name):
        raise NotAffine(f"{describe(node)} masks the padding of another axis")


def _find_dependent(scan: ScanNode) -> dict[str, frozenset[str]]:
    """Map each node of a step to the states on which it depends."""
    graph, found = scan.region.graph, dict[str, frozenset[str]]()
    for node in graph:
        read = (found[each.node] for each in graph.inputs(node.name).values())
        found[node.name] = frozenset({node.name} & {*scan.states}).union(*read)
    return found


def _short(name: str) -> str:
    return f'"{name.rpartition(".")[2]}"'


def _read(graph: Graph, state: str, following: Result, depends: Mapping[str, frozenset[str]]) -> Recurrence:
    varying = {name for name, states in depends.items() if state in states}
    try:
        terms = AffineReader(graph, state, varying).read(following)
    except NotAffine as reason:
        raise NotAffine(f"state {_short(state)}: {reason}") from reason
    gates = tuple(each for each in terms if each.state and each.over is None)
    products = tuple(each for each in terms if each.over is not None)
    return Recurrence(state, following, gates, products, tuple(each for each in terms if not each.state))


# ------------------------------------------------------------ states that are matrices


def _as_matrix(
    each: Recurrence, all_: list[Recurrence], scan: ScanNode, depends: Mapping[str, frozenset[str]]
) -> Recurrence:
    """The recurrence with its matrix, if the state is one. Raises `NotAffine` if its products need one."""
    graph = scan.region.graph
    before = {other.state for other in all_[: all_.index(each)]}
    readouts = [*_find_readouts(each, graph, before, depends)]
    keys = {term.over for term in each.products} or {over for over, _ in readouts}
    if len(keys) != 1 or len({term.inner for term in each.products}) > 1:
        if each.products:
            raise NotAffine(f"state {_short(each.state)}: products over two of its axes change it")
        return each
    (key,) = keys
    assert key is not None
    keeps, needed = _find_reads(each, all_, scan, depends, {readout.value for _, readout in readouts})
    if keeps and not each.products:
        return each
    readouts = [(over, readout) for over, readout in readouts if readout.value in needed]
    split = replace(each, gates=_split(each.gates, graph), products=_split(each.products, graph))
    split = replace(split, offsets=_split(each.offsets, graph))
    of_keys = [factor.axes for factor in split.factors if key in factor.axes]
    of_keys += [readout.query.axes for _, readout in readouts]
    of_keys += [factor.axes for term in split.gates for factor in term.factors]
    of_keys += [factor.axes for term in split.products for factor in (*term.factors, *term.inner)]
    rank = len(graph.type_of(Result(each.state)).shape)
    rows = tuple(sorted({*range(rank)} - {key}.union(*of_keys)))
    if not each.products and not rows:
        return each
    taken = tuple(readout for over, readout in readouts if over == key and readout.query.axes.isdisjoint(rows))
    if len(taken) < len(readouts):
        keeps = True
    if keeps and not each.products:
        return each
    return replace(split, matrix=Matrix(key, rows, () if keeps else taken), keeps=keeps)


def _find_readouts(
    each: Recurrence, graph: Graph, before: Set[str], depends: Mapping[str, frozenset[str]]
) -> Iterator[tuple[int, Readout]]:
    """Find the contractions of a state, perhaps of a permuted one, each with the summed axis."""
    places = tuple(range(len(graph.type_of(Result(each.state)).shape)))
    pending = [(state, places, state.node == each.state) for state in (Result(each.state), each.following)]
    while pending:
        state, labels, is_before = pending.pop(0)
        for node in graph.users_of(state.node):
            operands = [*graph.inputs(node.name).values()]
            if not isinstance(node, OpNode) or state not in operands:
                continue
            if isinstance(node.op, Rename):
                pending.append((Result(node.name), labels, is_before))
            elif isinstance(node.op, Transpose):
                order = graph.signature(node).axes["order"]
                pending.append((Result(node.name), tuple(labels[at] for at in order), is_before))
            elif isinstance(node.op, Contract):
                is_left = operands[0] == state
                if depends[operands[is_left].node] <= before:
                    yield from _read_contraction(node, is_left, labels, is_before, graph)


def _read_contraction(
    node: OpNode, is_left: bool, labels: tuple[int, ...], before: bool, graph: Graph
) -> Iterator[tuple[int, Readout]]:
    """The readout that a contraction of a state with these labels is, unless its query has other axes."""
    left, right = graph.inputs(node.name).values()
    terms, result = graph.signature(node).axes["equation"].replace("...", "").split("->")
    of_state, of_other = terms.split(",") if is_left else reversed(terms.split(","))
    places = dict(zip(of_state, labels, strict=True))
    if {*of_other} <= {*places}:
        (over,) = {*of_state} - {*result}
        query = Factor(right if is_left else left, tuple(places[letter] for letter in of_other))
        yield places[over], Readout(Result(node.name), query, tuple(places[letter] for letter in result), before)


def _find_reads(
    each: Recurrence,
    all_: Iterable[Recurrence],
    scan: ScanNode,
    depends: Mapping[str, frozenset[str]],
    readouts: Set[Result],
) -> tuple[bool, set[Result]]:
    """Whether the steps' results, or other recurrences, need the states themselves, and the readouts that they need."""
    graph = scan.region.graph
    ends = {result for other in all_ if other is not each for result in (Result(other.state), other.following)}
    factors = (factor.value for other in all_ for factor in other.factors)
    pending, seen, states = [*scan.stacked, *factors], {*ends}, {Result(each.state), each.following}
    while pending:
        result = pending.pop()
        if result not in seen and each.state in depends[result.node]:
            seen.add(result)
            pending += () if result in {*readouts, *states} else graph.inputs(result.node).values()
    return not seen.isdisjoint(states - ends), seen & readouts


def _split(terms: tuple[Term, ...], graph: Graph) -> tuple[Term, ...]:
    """Split factors that are products of smaller ones, such as outer products."""
    return tuple(
        replace(
            term, factors=tuple(each for factor in term.factors for each in _list_smaller(_strip(factor, graph), graph))
        )
        for term in terms
    )


def _list_smaller(factor: Factor, graph: Graph) -> list[Factor]:
    """List the factors, each with fewer axes, whose product a factor is; only itself if there are none."""
    node, operands = graph[factor.value.node], [*graph.inputs(factor.value.node).values()]
    if not isinstance(node, OpNode) or not isinstance(node.op, Multiply) or len(operands) < 2 or factor.inverse:
        return [factor]
    parts = [_strip(_operand_of(factor, node, side, graph), graph) for side in range(2)]
    if not all(part.axes < factor.axes for part in parts):
        return [factor]
    return [each for part in parts for each in _list_smaller(part, graph)]


def _strip(factor: Factor, graph: Graph) -> Factor:
    """The value that a factor repeats along new axes, or only renames."""
    node, labels = graph[factor.value.node], factor.labels
    if not isinstance(node, OpNode) or not isinstance(node.op, NewAxis | Rename):
        return factor
    if isinstance(node.op, NewAxis):
        at = len(labels) + graph.signature(node).axes["place"]
        labels = labels[:at] + labels[at + 1 :]
    (value,) = graph.inputs(node.name).values()
    return _strip(replace(factor, value=value, labels=labels), graph)


def _operand_of(factor: Factor, node: OpNode, side: int, graph: Graph) -> Factor:
    """The left or the right operand of a product, with the labels that the product's axes have."""
    value = [*graph.inputs(node.name).values()][side]
    labels = [factor.labels[place] for place in find_places(node, side, graph)]
    sizes = (axis.size for axis in graph.type_of(value).shape)
    return Factor(value, tuple(None if size == 1 else label for size, label in zip(sizes, labels, strict=True)))
