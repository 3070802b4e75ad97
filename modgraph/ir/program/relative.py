"""Names in a definition, relative to the paths of its call or to the surrounding body.

A node `blocks.8.x2.add` is `x2.add` in the definition of round 8 of `blocks`. `#` stands for the key of the round where
the loop's variable indexes a name (`h.#.linear` of `h[i] = …`), `##` for the key of the surrounding call. Names of the
surrounding body begin with `^`. `@` is the path of the call itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeVar

from modgraph.frozen import replace_fields
from modgraph.ir.node import Call, DecisionNode, GrowthNode, Node, OpNode, OutputNode, PoolNode, RouteNode, RouterNode
from modgraph.routers import Router
from modgraph.types import Axis, Shape, TensorType

SELF, OUTER, KEY = "@", "^", "#"
OUTSIDE = OUTER  # all names outside of a call
TAKEN = "%"  # before the number of a name that a draft takes
MARKS = re.compile(r"(?<![^.^])#+(?![^.])")  # stands for a key in a name

Naming = Callable[[str], str]


def rename_axes(type_: TensorType, name: Naming) -> TensorType:
    """Rename the axes of a type; an axis that gets the name of the one that it reads again becomes that one."""
    axes = [each for axis in (*type_.shape, *type_.ends) for each in (axis.name, axis.of)]
    names = {each: name(each) for each in (*axes, type_.of) if each}
    if all(before == after for before, after in names.items()):
        return type_

    def rename(shape: Shape) -> Shape:
        pairs = [(axis.size, names.get(axis.name, ""), names.get(axis.of, "")) for axis in shape]
        return tuple([Axis(size, own, of if of != own else "") for size, own, of in pairs])

    return replace_fields(type_, shape=rename(type_.shape), of=names.get(type_.of, ""), ends=rename(type_.ends))


class Level:
    """Names in the body of a graph: those of the graph."""

    def node(self, name: str) -> str:
        """Name a node in this body."""
        return name

    def weights(self, name: str) -> str:
        """Name the weights of a node in this body. The result is the node's name if weights and nodes have equal
        relative names."""
        return name

    def owner(self, name: str) -> str:
        """Name a pool, a router, a module or an axis in this body."""
        return name


@dataclass
class CallLevel(Level):
    """Names in the definition of a call.

    Names from outside are numbered in their order; `takes` are their names in the surrounding body. `axes` are its own
    axes below the path of its nodes.
    """

    call: Call
    outer: Level
    takes: dict[str, str] = field(default_factory=dict)  # by the name in the whole graph
    axes: dict[str, None] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)

    def node(self, name: str) -> str:
        return self._make_relative(self.call.path, name, self.outer.node)

    def weights(self, name: str) -> str:
        return self._make_relative(self.call.weights, name, self.outer.weights)

    def _make_relative(self, path: str, name: str, outer: Naming) -> str:
        if name == path:
            return SELF
        below = _strip_path(path, name)
        return self._mark_keys(below) if below is not None else OUTER + self._mark_keys(_raise_keys(outer(name)))

    def owner(self, name: str) -> str:
        if name == self.call.weights:
            return SELF
        if (below := _strip_path(self.call.weights, name)) is not None:
            own = self._mark_keys(below)
            self.own.add(own)
            return f".{own}" if own in self.axes else own
        if (below := _strip_path(self.call.path, name)) is not None:
            own = self._mark_keys(below)
            if own in self.own:
                return f"{SELF}.{own}"
            self.axes[own] = None
            return own
        if name not in self.takes:
            self.takes[name] = self.outer.owner(name)
        return f"{TAKEN}{[*self.takes].index(name)}"

    def _mark_keys(self, name: str) -> str:
        """Replace the keys of this round and the surrounding ones by marks, where a loop's variable gives them."""
        rounds = takewhile(lambda call: call.kind == "round", self.call.chain())
        for depth, call in enumerate(rounds, start=1):
            for member in call.members:
                path = f"{member}.{call.key}"
                if name == path or name.startswith(f"{path}."):
                    return f"{member}.{KEY * depth}{name[len(path) :]}"
        return name


def name_in_call(call: Call | None, name: str) -> str:
    """Name a node in the definition of a call; `OUTSIDE` for a node outside of the call."""
    if call is None:
        return name
    said = CallLevel(call, Level()).node(name)
    return OUTSIDE if said.startswith(OUTER) and KEY not in said else said


@dataclass
class RegionLevel(Level):
    """Names in the module of a pool, relative to the module. Names of the surrounding graph, `known`, have a mark."""

    outer: Level
    known: frozenset[str]

    def owner(self, name: str) -> str:
        parts = name.split(".")
        known = any(".".join(parts[:end]) in self.known for end in range(len(parts), 0, -1))
        return OUTER + self.outer.owner(name) if known else name


def _strip_path(path: str, name: str) -> str | None:
    return name[len(path) + 1 :] if name.startswith(f"{path}.") else None


def _raise_keys(name: str) -> str:
    """Raise the keys in a name of the surrounding body by one call."""
    return MARKS.sub(lambda found: found[0] + KEY, name) if KEY in name else name


@dataclass(frozen=True)
class Place:
    """The place of a body in a graph: maps names of the body to names of the graph.

    `names` are those that its definition takes, `axes` those below the path of its nodes.
    """

    path: str = ""
    weights: str = ""
    key: int | str | None = None
    outer: Place | None = None
    names: dict[str, str] = field(default_factory=dict)
    axes: frozenset[str] = frozenset()
    region: bool = False

    def node(self, name: str) -> str:
        return self._resolve(name, self.path, lambda outer: outer.node)

    def weight(self, name: str) -> str:
        return self._resolve(name, self.weights, lambda outer: outer.weight)

    def owner(self, name: str) -> str:
        if self.region:
            return self.outer.owner(name[1:]) if self.outer is not None and name.startswith(OUTER) else name
        if name in self.names:
            return self.names[name]
        if name == SELF:
            return self.weights
        if name.startswith(f"{SELF}."):
            return join(self.path, self._fill_keys(name[2:]))
        path = self.path if name in self.axes else self.weights
        return join(path, self._fill_keys(name.removeprefix(".")))

    def _resolve(self, name: str, path: str, of: Callable[[Place], Naming]) -> str:
        if name == SELF:
            return path
        if name.startswith(OUTER) and self.outer is not None:
            return of(self.outer)(MARKS.sub(lambda found: str(self.key) if found[0] == KEY else found[0][1:], name[1:]))
        return join(path, self._fill_keys(name))

    def _fill_keys(self, name: str) -> str:
        place: Place | None = self
        keys = list[str]()
        while place is not None and KEY in name:
            keys.append(str(place.key))
            place = place.outer

        def key(found: re.Match[str]) -> str:
            beyond = len(found[0]) - len(keys)  # marks of unknown rounds
            return KEY * beyond if beyond > 0 else keys[len(found[0]) - 1]

        return MARKS.sub(key, name)


def make_plain(value: Any) -> Any:
    """Drop the marks from names of axes, for checks before the names in the whole graph are known."""
    if isinstance(value, tuple):
        return tuple(map(make_plain, value))
    return MARKS.sub("0", value).lstrip(f"{OUTER}{SELF}.") if isinstance(value, str) else value


def join(path: str, name: str) -> str:
    """Join a path and a name below it."""
    return f"{path}.{name}" if path else name


GROWTH = ".growth"
N = TypeVar("N", bound=Node)
LOCAL = ""  # in a definition: the weights stand where the node stands
UNMARKED: Mapping[str, Any] = {"frozen": False, "initial": None, "grown": 0, "label": ""}


def collect_marks(node: Node) -> dict[str, Any]:
    """Collect the marks of a node: facts that its definition does not contain."""
    if isinstance(node, OutputNode):
        return {}
    marks = {name: getattr(node, name) for name in UNMARKED if hasattr(node, name)}
    return marks | ({"label": marks["label"] or node.name} if "label" in marks else {})


def with_marks(node: Node, marks: Mapping[str, Any]) -> Node:
    """Apply marks to a node. A label that equals the node's name is dropped."""
    facts = {name: "" if (name, value) == ("label", node.name) else value for name, value in marks.items()}
    return replace_fields(node, **facts)


def clear_marks(node: Node) -> Node:
    return replace_fields(node, **{name: UNMARKED[name] for name in collect_marks(node)})


def rename(node: N, name: str, owner: Naming) -> N:
    """Rename a node, and its axes and pools by `owner`. Its regions stay as they are."""
    facts: dict[str, Any] = {"name": name, "types": tuple(rename_axes(each, owner) for each in node.types)}
    match node:
        case OpNode():
            facts["op"] = node.op.with_axes(owner)
        case RouterNode(router=Router() as router):
            facts["router"] = router.with_axes(owner)
        case PoolNode():
            paths = {"shares": node.shares, "inside": node.inside}
            facts |= {field: owner(path) if path else "" for field, path in paths.items()}
    return replace_fields(node, **facts)


def make_relative(node: Node, level: Level) -> Node:
    """Make a node of a graph relative to a body."""
    said = _said(node, level.node, level.owner)
    if not isinstance(node, OpNode):
        return said
    if level.weights(node.owner) == said.name:
        return replace_fields(said, owner=said.name)
    return replace_fields(said, owner=LOCAL if node.owner == node.name else level.owner(node.owner))


def make_absolute(node: Node, place: Place) -> Node:
    """Make a node of a definition absolute, at the place of its body."""
    said = _said(node, place.node, place.owner)
    if not isinstance(node, OpNode):
        return said
    if node.owner == node.name:
        return replace_fields(said, owner=place.weight(node.name))
    return replace_fields(said, owner=said.name if node.owner == LOCAL else place.owner(node.owner))


def _said(node: Node, name: Naming, owner: Naming) -> Node:
    """Rename a node by `name` for nodes and `owner` for pools, routers and axes."""
    match node:
        case PoolNode() | RouterNode():
            return rename(node, owner(node.name), owner)
        case OutputNode() if node.name == _output_name(node.label):
            label = name(node.label)
            return replace_fields(rename(node, _output_name(label), owner), label=label)
        case GrowthNode() if node.name.endswith(GROWTH):
            return rename(node, owner(node.name.removesuffix(GROWTH)) + GROWTH, owner)
        case RouteNode() | DecisionNode() if node.label:
            return replace_fields(rename(node, name(node.name), owner), label=name(node.label))
        case _:
            return rename(node, name(node.name), owner)


def _output_name(label: str) -> str:
    """Return the name of an output's node in any body."""
    word = label.lstrip(OUTER)
    return f"{OUTER * (len(label) - len(word))}output.{word}"
