"""Edits of a graph as values. A training applies them to its model, logs, replays and inverts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any, ClassVar

from modgraph.ir.analysis.learnt import find_module_axes
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph
from modgraph.ir.node import InputNode, Node, OpNode, PoolNode, RouterNode, ScanNode, TargetNode
from modgraph.ir.part import Part
from modgraph.ir.rewrite import rewrite_graph
from modgraph.ir.stored.fields import Fields, each_of, name_of, whole_of
from modgraph.ir.weights import GraphWeight, list_node_weights
from modgraph.routers import NAMED_MODULES
from modgraph.types import Axis, Misfit


@dataclass(frozen=True)
class Edit:
    """A change of a graph. Its inverse restores the graph, with an equal hash."""

    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str = "") -> None:
        cls.kind = kind

    def apply(self, graph: Graph) -> Graph:
        """Apply the edit. Raises `Misfit` or `KeyError` if the graph does not allow it."""
        raise NotImplementedError

    def invert(self, before: Graph) -> tuple[Edit, ...]:
        """The edits that restore the graph `before`."""
        return (Mark.from_graph(before),)

    def as_json(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"edit": self.kind, **{name: STORED[name][1](value) for name, value in values.items()}}


@dataclass(frozen=True)
class Grow(Edit, kind="grow"):
    """Add `by` places to an axis: modules to each pool along it, places to each weight and state."""

    axis: str
    by: int = 1

    def apply(self, graph: Graph) -> Graph:
        return grow(graph, self.axis, self.by)

    def invert(self, before: Graph) -> tuple[Edit, ...]:
        return (Shrink(self.axis, self.by),)

    def __str__(self) -> str:
        return f"{self.kind} {self.axis} by {self.by}"


@dataclass(frozen=True)
class Shrink(Grow, kind="shrink"):
    """Remove the last `by` places of an axis; the inverse of `Grow`."""

    def apply(self, graph: Graph) -> Graph:
        return grow(graph, self.axis, -self.by)

    def invert(self, before: Graph) -> tuple[Edit, ...]:
        return (Grow(self.axis, self.by), Mark.from_graph(before))


@dataclass(frozen=True)
class Freeze(Edit, kind="freeze"):
    """Freeze all weights, and reset the numbers of added places to zero.

    Weights whose names match a pattern of `but` still train, and additions to the pools and targets in `keeps` still
    count.
    """

    but: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()

    def apply(self, graph: Graph) -> Graph:
        before, weights = Mark.from_graph(graph), [*_weights(graph)]
        learn = {each.place for each in weights if any(fnmatchcase(each.name, pattern) for pattern in self.but)}
        frozen = {each.place for each in weights} - learn | before.frozen  # no pattern unfreezes these
        grown = tuple((name, count) for name, count in before.grown if name in self.keeps)
        return Mark(frozenset(frozen), grown).apply(graph)

    def __str__(self) -> str:
        spared = [*self.but, *(f"what was added to {name}" for name in self.keeps)]
        return f"freeze all but {', '.join(spared)}" if spared else "freeze all"


@dataclass(frozen=True)
class Mark(Edit, kind="mark"):
    """Set the frozen nodes and the numbers of added places; the inverse of `Freeze`.

    The place of a node in a pool's module is `pool/0/linear`.
    """

    frozen: frozenset[str] = frozenset()
    grown: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_graph(cls, graph: Graph) -> Mark:
        """The frozen nodes and numbers of added places of a graph."""
        nodes: list[PoolNode | TargetNode] = [*graph.pools().values(), *graph.nodes_of(TargetNode)]
        frozen = frozenset(weight.place for weight in _weights(graph) if weight.frozen)
        return cls(frozen, tuple(sorted((node.name, node.grown) for node in nodes if node.grown)))

    def apply(self, graph: Graph) -> Graph:
        places, grown = {weight.place for weight in _weights(graph)}, dict(self.grown)

        def mark_node(node: Node, part: Part) -> Node:
            place = part.place + node.name
            match node:
                case OpNode() | RouterNode() if place in places:
                    return replace(node, frozen=place in self.frozen)
                case PoolNode(inside="") | TargetNode():
                    return replace(node, grown=grown.get(node.name, 0))
                case _:
                    return node

        return rewrite_graph(graph, mark_node)

    def __str__(self) -> str:
        return f"mark {len(self.frozen)} nodes as frozen"


def replay_edits(graph: Graph, edits: Iterable[Edit]) -> Graph:
    """Apply edits in order."""
    return reduce(lambda before, edit: edit.apply(before), edits, graph)


# ------------------------------------------------------------ stored


def edit_from_json(record: Any) -> Edit:
    """Read an edit that `as_json` wrote. Raises `InvalidGraph` for anything else."""
    stored = Fields(record)
    kind = stored.read("edit", str)
    if kind not in KINDS:
        raise InvalidGraph(f'"{kind}" is no edit of a graph', field="edit")
    given = {field.name: stored.read(field.name, STORED[field.name][0]) for field in fields(KINDS[kind])}
    edit: Edit = KINDS[kind](**given)
    stored.close()
    return edit


def _counts(value: Any) -> tuple[tuple[str, int], ...]:
    counts = Fields(value)
    return tuple((name, counts.read(name, COUNT)) for name in sorted(value))


COUNT = whole_of(1, 2**31)
KINDS: Mapping[str, Any] = {each.kind: each for each in (Grow, Shrink, Freeze, Mark)}
STORED: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {  # how fields are read and written
    "axis": (name_of, str),
    "by": (COUNT, int),
    "but": (each_of(str), list),
    "keeps": (each_of(str), list),
    "frozen": (lambda value: frozenset(each_of(str)(value)), sorted),
    "grown": (_counts, dict),
}


# ------------------------------------------------------------ what grows


def grow(graph: Graph, axis: str, by: int) -> Graph:
    """Add `by` places (or remove, if negative) to the axis of a pool or of classes, and to all pools along it.

    Old weights keep their names; types downstream follow. Raises `Misfit` if something downstream fits only the old
    size, `KeyError` if there is no such axis.
    """
    pools = graph.pools()
    before = pools[axis].axis if axis in pools else list_class_axes(graph)[axis]
    assert before.size is not None and before.size + by >= 1, f"nothing would be left of {before}"
    longer = Axis(before.size + by, before.name)
    for each in pools.values():
        assert each.is_homogeneous or each.axis != before, (
            f"the modules of {each.name} are unlike: none says what a new one is"
        )
    for name, along in find_module_axes(graph).items():
        if along.name != before.name and before.name in along.others:
            raise Misfit(f"{name} lies along {along.name} and {before.name}, and can grow along the first alone")

    def grow_node(node: Node, part: Part) -> Node:
        match node:
            case PoolNode() if node.axis == before:
                grown = replace(node, size=node.size + by, grown=max(0, node.grown + by))
                if grown.is_large != node.is_large:
                    raise Misfit(f"the weights of {node.name} have other names from {NAMED_MODULES + 1:,} modules on")
                return grown
            case OpNode():
                return _with_class_weights(node, part, before, by)
            case InputNode() | TargetNode():
                (type_,) = node.types
                type_ = type_.with_shape([longer if a == before else a for a in type_.shape])
                if isinstance(node, TargetNode) and type_.classes == before:
                    type_, node = replace(type_, size=longer.size), replace(node, grown=max(0, node.grown + by))
                return replace(node, types=(type_,))
            case _:
                return node

    return rewrite_graph(graph, grow_node)


def _with_class_weights(node: OpNode, part: Part, classes: Axis, by: int) -> OpNode:
    """Fit an op to a longer axis. Class weights of added classes are 1."""
    assert classes.size is not None
    op = node.op.with_extent(classes.name, classes.size + by)
    given: tuple[float, ...] = getattr(op, "class_weights", ())
    if op.compares is not None and given:
        label = part.graph.type_of(part.graph.inputs(node.name)[op.compares.target])
        if label.classes == classes:
            if any(weight != 1 for weight in given[len(given) + min(0, by) :]):
                raise Misfit(f"{node.name} weighs the classes that would be lost")
            weights = {"class_weights": (*given, *[1.0] * by)[: len(given) + by]}
            op = replace(op, **weights)
    return replace(node, op=op)


def list_class_axes(graph: Graph) -> dict[str, Axis]:
    """List the named axes of classes."""
    axes = (type_.classes for type_ in graph.target_types.values())
    return {axis.name: axis for axis in axes if axis is not None and axis.name}


def _weights(graph: Graph) -> Iterator[GraphWeight]:
    """List the weights of every node, in scans and pools too; shared ones repeat."""
    for part in graph.parts():
        for node in part.graph:
            if not isinstance(node, ScanNode):
                yield from list_node_weights(part.graph, node)
