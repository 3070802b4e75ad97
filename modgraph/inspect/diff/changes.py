"""The differences of two graphs, as frozen values.

A place is the name of a node. In a region it is the place of the outer node, the number of the region and the name:
`expert/0/fc1`. Something with two names has the one after the change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from modgraph.declare import Declaration
from modgraph.inspect.diff.level import split_place
from modgraph.ir import DecisionNode, Graph, Node, OpNode, RouterNode, ScanNode, regions_of
from modgraph.routers import RouterFacts, RouterText

Facts = dict[str, Any]

PLAIN = ("initial", "frozen", "size", "grown", "shares", "inside", "lowering", "once", "records")
OUTPUT = "output."  # what the name of an output begins with in a spec; its label follows


@dataclass(frozen=True)
class Attribute:
    """One fact of a node before and after, None where it has none."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Unmatched:
    """A node of one graph without a counterpart in the other, and its graph."""

    place: str
    graph: Graph

    @property
    def node(self) -> Node:
        return self.graph[split_place(self.place)[1]]

    @property
    def kind(self) -> str:
        return self.node.kind


@dataclass(frozen=True)
class Moved:
    """Something with a new name: a node, an axis (`axis`), weights that are not called as their node (`weights`), or
    the name by which users know a decision (`label`)."""

    kind: str
    before: str
    after: str


@dataclass(frozen=True)
class Changed:
    """A node in both graphs, and the facts that differ. `graph` is the graph after the change."""

    kind: str
    before: str
    after: str
    attributes: tuple[Attribute, ...]
    graph: Graph

    @cached_property
    def names(self) -> set[str]:
        """The names of the facts that differ."""
        return {each.name for each in self.attributes}

    @property
    def follows(self) -> bool:
        """Whether only its types differ, which follow from its operands."""
        made = self.kind in ("op", "route", "scan") or (self.kind == "input" and "/" in self.after)
        return made and all(name.startswith("types.") for name in self.names)


@dataclass(frozen=True)
class Doubt(Moved):
    """A removed and an added node that may be one node with a new name."""

    @property
    def declaration(self) -> str:
        """The declaration in the later spec that would settle the doubt."""
        return f"moved {self.before} -> {self.after}"


@dataclass(frozen=True)
class Diff:
    """All that leads from one graph to another.

    `model` has what is no part of a graph's identity: the model's name, its parameters, the order of its inputs.
    """

    added: tuple[Unmatched, ...] = ()
    removed: tuple[Unmatched, ...] = ()
    moved: tuple[Moved, ...] = ()
    changed: tuple[Changed, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    model: tuple[Attribute, ...] = ()

    def __repr__(self) -> str:
        counts = {kind: len(getattr(self, kind)) for kind in ("added", "removed", "changed", "moved", "doubts")}
        return f"<Diff: {', '.join(f'{count} {kind}' for kind, count in counts.items() if count) or 'nothing'}>"

    def __bool__(self) -> bool:
        """Whether the graphs are different."""
        return bool(self.added or self.removed or self.moved or self.changed)


# ------------------------------------------------------------ facts


def facts_of(graph: Graph, name: str, shared: int) -> Facts:
    """The comparable facts of a node by dotted names, with settings at their defaults.

    The first `shared` regions are compared by themselves and left out here.
    """
    node = graph[name]
    declared, label = declaration_of(node), getattr(node, "label", "")
    facts: Facts = {}
    if isinstance(declared, RouterText):
        texts = {"text": declared.name, "given": declared.given, "defaults": declared.defaults}
        facts = {key: value for key, value in texts.items() if value}
    elif declared is not None:
        facts["is"] = declared.name
    facts |= {key: value for key in PLAIN if (value := getattr(node, key, None))}
    facts |= {"carried": node.carried, "final": node.final} if isinstance(node, ScanNode) else {}
    facts |= {f"types.{at}": type_ for at, type_ in enumerate(node.types)}
    if isinstance(declared, Declaration):
        facts |= {f"settings.{key}": getattr(declared, key) for key in declared.settings()}
    if isinstance(node, DecisionNode):
        default = vars(RouterFacts())
        facts |= {f"facts.{key}": value for key, value in vars(node.facts).items() if value != default[key]}
        facts |= {"rounds": node.rounds} if node.rounds > 1 else {}
    facts |= {"owner": node.owner} if isinstance(node, OpNode) else {}
    facts |= {"label": label} if label and node.name != OUTPUT + label else {}
    for relation, edges in (("inputs", graph.inputs(name)), ("lengths", graph.lengths(name))):
        facts |= {relation: tuple(edges)} if edges else {}
        facts |= {f"{relation}.{slot}": source for slot, source in edges.items()}
    facts |= {f"uses.{role}": used for role, used in graph.uses(name).items()}
    for at, region in enumerate(regions_of(node)):
        facts[f"regions.{at}"] = region if at >= shared else replace(region, graph=Graph(""))
    return facts


def differences(before: Facts, after: Facts) -> tuple[Attribute, ...]:
    """The facts that differ."""
    pairs = ((name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after]))
    # 0 equals 0.0 and false
    return tuple(Attribute(name, old, new) for name, old, new in pairs if old != new or type(old) is not type(new))


def declaration_of(node: Node) -> Declaration | RouterText | None:
    """The op or router of a node."""
    return node.op if isinstance(node, OpNode) else node.router if isinstance(node, RouterNode) else None


def model_of(graph: Graph) -> Facts:
    """Collect the facts of a model that do not affect a graph's identity."""
    parameters = {f"parameters.{name}": value for name, value in graph.parameters.items()}
    return {"name": graph.name, **parameters, "inputs": (*graph.input_types,)}
