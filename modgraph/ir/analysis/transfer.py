"""The transfer function of causality: from the reaches of a node's operands to those of its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count, product
from math import prod

from modgraph.declare import Signature
from modgraph.declare.indexing import Indexing, Inner, Place, Reading, Use, place_at
from modgraph.ir.analysis.bands import BandFinder, Bands, Piece
from modgraph.ir.analysis.lattice import (
    EVERYTHING,
    Index,
    Interval,
    Limits,
    Reach,
    follow,
    join,
    rename,
    sum_before,
    widen,
)
from modgraph.ir.analysis.reach import is_batch_statistic
from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, OpNode, OutputNode, PoolNode, Result, RouteNode, ScanNode
from modgraph.ir.part import Region
from modgraph.ops.choice import TopK
from modgraph.ops.ids import OneHot
from modgraph.ops.situation import Draw
from modgraph.types import Axis, TensorType

Sources = Mapping[str, Reach]  # the reaches of a node's operands, by slot
MOST_LIMITS = 16  # ways in which known zeros limit inner indices
OUTER = "outer axis of"  # begins the names of axes of tokens inside modules
ROUNDS = 3  # of a fixed point before bounds that move are dropped; after twice as many a state reads everything


class Transfer:
    """The transfer functions of one graph, in training or in inference. `depth` counts the graphs around it."""

    def __init__(self, graph: Graph, training: bool, depth: int = 0) -> None:
        self.graph = graph
        self.training = training
        self.depth = depth
        self._regions: dict[int, Transfer] = {}

    @cached_property
    def bands(self) -> BandFinder:
        """The bands of the graph's values."""
        return BandFinder(self.graph)

    def run(self, seeds: Mapping[Result, Reach], names: Iterable[str] | None = None) -> dict[Result, Reach]:
        """The reaches of all values that depend on some, given theirs; only of the nodes with some names, if given,
        sources first."""
        found = dict(seeds)
        nodes = self.graph if names is None else map(self.graph.__getitem__, names)
        for node in nodes if seeds else ():
            sources = {slot: found[each] for slot, each in self.graph.inputs(node.name).items() if each in found}
            if sources:
                for index, reach in enumerate(self.read(node, sources)):
                    if reach:
                        found[Result(node.name, index)] = reach
        return found

    def read(self, node: Node, sources: Sources) -> tuple[Reach, ...]:
        """The reaches of a node's results."""
        match node:
            case OpNode():
                return self._read_op(node, sources)
            case RouteNode():
                return self._read_route(node, sources)
            case ScanNode():
                return self._read_scan(node, sources)
            case OutputNode():
                return tuple(sources.values())
            case _:
                return ()

    # ------------------------------------------------------------ ops

    def _read_op(self, node: OpNode, sources: Sources) -> tuple[Reach, ...]:
        inputs = self.graph.inputs(node.name)
        op, signature = node.op, self.graph.signature(node)
        if not self.training and (op.outside_training or op.zero_outside_training):
            return (sources.get(op.outside_training, {}),)
        if not self.training and op.deterministic() is not op:
            op = op.deterministic()
            slots = [*inputs][: len(op.operands)]
            signature, inputs = op.bind(*signature.operands[: len(slots)]), {slot: inputs[slot] for slot in slots}
        indexing: Callable[[Use], Indexing] = op.indexing
        results = indexing(Use(signature, self.training, self._is_tied(inputs, signature)))
        found = tuple(self._combine(readings, inputs, sources) for readings in results)
        of_batch = op.over_batch and (self.training or is_batch_statistic(self.graph, node))
        return tuple(map(forget_tokens, found)) if of_batch else found

    def _is_tied(self, inputs: Mapping[str, Result], signature: Signature) -> bool:
        """Whether all operands are one choice of equally many places along the op's axis, all of them one."""
        made = {*inputs.values()}
        node = self.graph[next(iter(made)).node] if len(made) == 1 else None
        if not isinstance(node, OpNode) or (isinstance(node.op, OneHot) and node.op.missing):
            return False
        place = -1 if isinstance(node.op, OneHot) else self.graph.signature(node).axes.bound.get("position")
        return isinstance(node.op, TopK | Draw | OneHot) and place == signature.axes.bound.get("position")

    def _combine(
        self, readings: tuple[Reading, ...], inputs: Mapping[str, Result], sources: Sources, zeros_from: int = 0
    ) -> Reach:
        """The reach of a result from what it reads. Known zeros of operands count from the one with that number on."""
        slots, found = [*inputs], list[Reach]()
        for reading in (each for each in readings if each.operand < len(slots)):
            reach = sources.get(slots[reading.operand])
            if reach:
                masks = [each for each in readings if (each is reading or each.guards) and each.operand >= zeros_from]
                known = [(each, self.bands.find(inputs[slots[each.operand]])) for each in masks]
                limits = _list_limits(reading, [(each, bands) for each, bands in known if bands is not None])
                found += [follow(reach, reading.places, each) for each in limits]
        return join(found)

    # ------------------------------------------------------------ routes and scans

    def region(self, region: Region) -> Transfer:
        """The transfer functions of a region's graph."""
        if id(region) not in self._regions:
            self._regions[id(region)] = Transfer(region.graph, self.training, self.depth + 1)
        return self._regions[id(region)]

    def enter(self, node: Node, sources: Sources) -> Iterator[tuple[Transfer, dict[Result, Reach]]]:
        """The graphs that a route or a scan runs, with the reaches of their values."""
        if isinstance(node, ScanNode):
            yield self._run_steps(node, sources)
        elif isinstance(node, RouteNode) and (slot := next(iter(self.graph.inputs(node.name)))) in sources:
            yield from self._run_modules(self.graph.pool_of(node), sources[slot])

    def _read_route(self, node: RouteNode, sources: Sources) -> tuple[Reach, ...]:
        inputs, pool = self.graph.inputs(node.name), self.graph.pool_of(node)
        router, signature = self.graph.declaration_of(node), self.graph.signature(node)
        slot, rank = next(iter(inputs)), len(pool.result.shape)
        if slot in sources:
            results = [region.results[0] for region in pool.regions]
            inside = zip(self._run_modules(pool, sources[slot]), results, strict=True)
            found = join(reaches.get(result, {}) for (_, reaches), result in inside)
            sources = {**sources, slot: rename(found, lambda index: _from_name(index, rank, self._outer))}
        indexing: Callable[[Use], Indexing] = router.indexing
        uses = indexing(Use(signature, self.training))
        return tuple(self._combine(readings, inputs, sources, zeros_from=1) for readings in uses)

    @property
    def _outer(self) -> str:
        """The beginning of the names of outer axes of tokens inside modules."""
        return f"{OUTER} {self.depth}: "

    def _run_modules(self, pool: PoolNode, reach: Reach) -> Iterator[tuple[Transfer, dict[Result, Reach]]]:
        """Run each module; the outer axes of the tokens have names inside."""
        rank = len(pool.message.shape)
        message = rename(reach, lambda index: _to_name(index, rank, self._outer))
        for region in pool.regions:
            inside = self.region(region)
            yield inside, inside.run({Result(region.arguments[0]): message})

    def _read_scan(self, node: ScanNode, sources: Sources) -> tuple[Reach, ...]:
        inside, reaches = self._run_steps(node, sources)
        step, steps = _name_step(node), self.graph.type_of(self.graph.inputs(node.name)[node.variable]).shape[0]
        found = []
        for at, each in enumerate(node.stacked):
            type_, ends = inside.graph.type_of(each), sum_before(_read_ends(node, reaches, each), step)
            reach = join([reaches.get(each, {}), ends])
            found.append(_forget_step(reach, step, steps) if at < node.final else _stack(reach, step, type_))
        return tuple(found)

    def _run_steps(self, node: ScanNode, sources: Sources) -> tuple[Transfer, dict[Result, Reach]]:
        """Run a step until its states reach a fixed point; a step's index has a name inside."""
        inside, step = self.region(node.region), _name_step(node)
        first = -len(node.region.graph[node.variable].types[0].shape) - 1
        given = dict(sources)
        if node.variable in given:
            given[node.variable] = rename(given[node.variable], lambda index: step if index == first else index)
        states = {state: given.get(state, {}) for state in node.states}
        for at in count():
            seeds = {Result(slot): reach for slot, reach in {**given, **states}.items() if reach}
            reaches = inside.run(seeds)
            after = {
                state: join([states[state], *(sum_before(each, step) for each in read)])
                for state, following in zip(node.states, node.following, strict=True)
                for read in ([reaches.get(following, {}), _read_ends(node, reaches, following)],)
            }
            if after == states:
                return inside, reaches
            for state, reach in after.items():
                if at >= ROUNDS and reach != states[state]:
                    after[state] = widen(states[state], reach) if at < 2 * ROUNDS else EVERYTHING
            states = after
        raise AssertionError("the states of a scan reach a fixed point")


def _list_limits(reading: Reading, masks: list[tuple[Reading, Bands]]) -> Iterator[Limits]:
    """The limits of the inner indices of a reading, one for each way in which the masks may be non-zero."""
    inner = {index for place in reading.places for index, _ in place.terms if isinstance(index, Inner)}
    ways = [[(mask, piece) for piece in bands.pieces] for mask, bands in masks] if inner else []
    for way in product(*ways) if prod(map(len, ways)) <= MOST_LIMITS else ((),):
        yield {each: _limit_index(each, way) for each in inner}


def _limit_index(index: Inner, way: tuple[tuple[Reading, Piece], ...]) -> Place:
    """The places where an inner index may be, by its own limit and pieces of bands: relative to one axis of the result.

    An upper limit relative to an axis wins, then a lower one, then absolute places.
    """
    whole = Interval(0, None if index.size is None else index.size - 1)
    found: dict[int | None, Interval] = {None: whole}
    if index.within is not None:
        ((axis, _),) = index.within.terms
        assert isinstance(axis, int), "an inner index is limited relative to an axis"
        found[axis] = Interval(index.within.low, index.within.high)
    for reading, piece in way:
        for axes, interval in piece.items():
            for to, limit in _solve_for(reading, axes, interval, index):
                found[to] = found[to].meet(limit) if to in found else limit
    best = min(found, key=lambda axis: (axis is None, found[axis].high is None, found[axis].low is None))
    best = best if best is not None and found[best] != Interval(None, None) else None
    return Place(() if best is None else ((best, 1),), *found[best])


def _solve_for(
    reading: Reading, axes: tuple[int, ...], interval: Interval, index: Inner
) -> Iterator[tuple[int | None, Interval]]:
    """A limit on axes of an operand as one of an inner index, relative to an axis of the result or to none."""
    places = [reading.places[axis] for axis in axes]
    if any((each.low, each.high) != (0, 0) or len(each.terms) != 1 or each.terms[0][1] != 1 for each in places):
        return
    indices = [each.terms[0][0] for each in places]
    if indices == [index]:
        yield None, interval
    elif len(indices) == 2 and indices[1] == index and isinstance(indices[0], int):
        yield indices[0], interval
    elif len(indices) == 2 and indices[0] == index and isinstance(indices[1], int):
        yield indices[1], Interval().add(interval, -1)


def forget_tokens(reach: Reach) -> Reach:
    """The reach of a value of all messages of a module: those of any token."""
    return join(
        {frozenset(kept): interval if len(kept) == len(terms) else Interval(None, None)}
        for terms, interval in reach.items()
        for kept in ([each for each in terms if not str(each[0]).startswith(OUTER)],)
    )


def _to_name(index: Index, message: int, name: str) -> Index:
    """Name an outer axis of tokens, by its distance from the message, so that modules leave it alone."""
    return f"{name}{-index - message}" if isinstance(index, int) and index < -message else index


def _from_name(index: Index, result: int, name: str) -> Index:
    is_outer = isinstance(index, str) and index.startswith(name)
    return -int(str(index).removeprefix(name)) - result if is_outer else index


def _name_step(node: ScanNode) -> str:
    """The name of the index of a scan's step inside."""
    return f"step of {node.name}"


def _read_ends(node: ScanNode, reaches: Mapping[Result, Reach], result: Result) -> Reach:
    """What an entry of a result of a step reads of the value that ends the scan for it."""
    if node.going is None:
        return {}
    shape, axes = (node.region.graph.type_of(each).shape for each in (result, node.going))
    shared = node.count_own_axes(result)
    places = [place_at(at - len(shape)) for at in range(shared)]
    places += [Place((), 0, None if axis.size is None else axis.size - 1) for axis in axes[shared:]]
    return follow(reaches.get(node.going, {}), places, {})


def _forget_step(reach: Reach, step: str, steps: Axis) -> Reach:
    """The reach of a value of any one step."""
    found = []
    for terms, interval in reach.items():
        factor = dict(terms).get(step, 0)
        if factor:
            interval = interval.add(Interval(0, None if steps.size is None else steps.size - 1), factor)
        found.append({terms - {(step, factor)}: interval})
    return join(found)


def _stack(reach: Reach, step: str, type_: TensorType) -> Reach:
    """The reach of a stacked result, whose first axis are the steps."""
    return rename(reach, lambda index: -len(type_.shape) - 1 if index == step else index)
