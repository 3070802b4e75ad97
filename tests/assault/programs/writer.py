"""A program being written: where statements go, what they may speak of, and what types that has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import modgraph
from modgraph.types import Axis, TensorType
from tests.assault.programs.names import Names
from tests.assault.programs.text import Statement, Tree

LARGEST = 600  # numbers in a value of one example, axes of any length taken as 6
DEEPEST = 4  # axes
Accept = Callable[[TensorType], bool]


@dataclass(frozen=True)
class Pool:
    """A pool, as long as it is, and the width of its messages; None until it is used."""

    name: str
    size: int
    width: int


@dataclass
class Writer:
    """The values in scope with the types that they have, or are thought to have until modgraph has read them."""

    rng: Random
    names: Names
    tree: Tree = field(default_factory=Tree)
    values: dict[str, TensorType] = field(default_factory=dict)
    arrays: dict[str, TensorType] = field(
        default_factory=dict
    )  # learned, given or remembered: the same for all examples
    families: dict[str, tuple[list[str], TensorType]] = field(default_factory=dict)  # keys as written, and a type
    pools: dict[str, Pool] = field(default_factory=dict)
    routers: dict[str, list[str]] = field(default_factory=dict)  # losses that read what one recorded
    states: dict[str, TensorType] = field(default_factory=dict)  # without a rule yet
    named: dict[str, int] = field(default_factory=dict)  # axes that have a name and a length
    depth: int = 0
    in_scan: bool = False

    def __post_init__(self) -> None:
        self.here = self.tree.body

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def line(self, text: str) -> None:
        self.here.append(Statement(text))

    def define(self, head: str, lines: list[str]) -> None:
        self.tree.definitions.append(Statement(head, [Statement(line) for line in lines]))

    def bind(self, expression: str, type_: TensorType, stem: str = "a") -> str:
        """A line that gives a value a name, most often a new one."""
        name = self.names.fresh(stem)
        again = [each for each, other in self.values.items() if other == type_]
        if again and not self.depth and self.chance(0.06):
            name = self.rng.choice(again)
        self.line(f"{name} = {expression}")
        self.values[name] = type_
        return name

    def value(self, accept: Accept = lambda _: True) -> tuple[str, TensorType] | None:
        """A value in scope of the wanted kind, a late one rather than an early one."""
        fitting = [each for each in self.values.items() if each[1].dtype == "float" and accept(each[1])]
        if not fitting:
            return None
        late = self.chance(0.6) and len(fitting) > 2
        return self.rng.choice(fitting[-3:] if late else fitting)

    def number(self, value: int) -> str:
        """A number, sometimes through arithmetic or a parameter."""
        kind = self.rng.random()
        if kind < 0.85:
            return str(value)
        if kind < 0.93:
            name = self.names.fresh("n")
            self.tree.parameters.append(f"{name}={value}")
            return name
        return self.rng.choice([f"{value} * 1", f"({value} + 1 - 1)", f"[{value}, 7][0]", f"min({value}, {value + 3})"])

    @contextmanager
    def nested(self, head: str, tail: str = "}", scan: bool = False) -> Iterator[None]:
        """Statements below a head; what is bound inside is not seen behind it, unless it was there before."""
        statement = Statement(head, [], tail)
        self.here.append(statement)
        outside = self.here, dict(self.values), dict(self.pools), self.in_scan
        assert statement.body is not None
        self.here, self.depth, self.in_scan = statement.body, self.depth + 1, self.in_scan or scan
        try:
            yield
        finally:
            self.here, self.values, self.pools, self.in_scan = outside
            self.depth -= 1

    def settle(self) -> modgraph.Program | None:
        """Take out what modgraph refuses, and take the types of what is left as modgraph has them."""
        probes = {name: f"probe_{at}_{name}"[:200] for at, name in enumerate([*self.values, *self.arrays])}
        program = self.tree.pruned(tuple(Statement(f"output {probe} = {name}") for name, probe in probes.items()))
        if program is None:
            return None
        graph = program.ir
        found = {name: graph.type_of(graph.outputs[probe]) for name, probe in probes.items() if probe in graph.outputs}
        self.values = {name: found[name] for name in self.values if name in found}
        self.arrays = {name: found[name] for name in self.arrays if name in found}
        text = self.tree.text()
        self.pools = {name: pool for name, pool in self.pools.items() if f"pool {name}" in text}
        self.routers = {name: losses for name, losses in self.routers.items() if f"router {name} " in text}
        return program


def plain(type_: TensorType) -> bool:
    """Whether its last axis has a length."""
    return bool(type_.shape) and type_.shape[-1].size is not None


def width(type_: TensorType) -> int:
    return type_.shape[-1].size or 0


def is_small(type_: TensorType) -> bool:
    """Whether a program may go on with it."""
    count = 1
    for axis in type_.shape:
        count *= 6 if axis.size is None else axis.size
    return count <= LARGEST and len(type_.shape) <= DEEPEST


def written_axis(axis: Axis) -> str:
    return axis.name or str(axis.size)


def written_type(type_: TensorType) -> str:
    """A type as a spec has it, where an axis that is known is called by its name."""
    axes = [*map(written_axis, type_.shape), *([] if type_.size is None else [str(type_.size)])]
    return f"{type_.dtype}[{', '.join(axes)}]" if axes else type_.dtype


def target_type(writer: Writer, type_: TensorType) -> str:
    """A target's type, where a name that nothing in the program declares as an axis is declared here."""
    axes = []
    for axis in type_.shape:
        known = axis.size is None or axis.name in writer.pools or axis.name in writer.named
        axes.append(written_axis(axis) if known else f"{axis.name}={axis.size}" if axis.name else str(axis.size))
    axes += [] if type_.size is None else [str(type_.size)]
    return f"{type_.dtype}[{', '.join(axes)}]" if axes else type_.dtype
