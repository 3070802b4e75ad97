"""What two graphs differ in, as frozen values.

A place is the name of a node; of one in a region the place of the node that has it, the region's number and the name:
`expert/0/fc1`. Names are those after the change, wherever a thing is known by two.
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
    """One fact of a node before and after; None where there is none."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Unmatched:
    """A node that one of the graphs has and the other has not, and the graph that it stands in."""

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
    """A thing under another name: a node, an axis (`axis`), weights whose name is not that of a node (`weights`), or a
    use of a router as users know it (`label`)."""

    kind: str
    before: str
    after: str


@dataclass(frozen=True)
class Changed:
    """A node that is there before and after, and what is not the same of it; `graph` is the one that it stands in
    after."""

    kind: str
    before: str
    after: str
    attributes: tuple[Attribute, ...]
    graph: Graph

    @cached_property
    def names(self) -> set[str]:
        """The names of what differs."""
        return {each.name for each in self.attributes}

    @property
    def follows(self) -> bool:
        """Whether its types alone are others: they follow from what flows in."""
        made = self.kind in ("op", "route", "scan") or (self.kind == "input" and "/" in self.after)
        return made and all(name.startswith("types.") for name in self.names)


@dataclass(frozen=True)
class Doubt(Moved):
    """A node that was removed and one that was added, which may be the same under another name."""

    @property
    def declaration(self) -> str:
        """What settles it, in the spec that comes after."""
        return f"moved {self.before} -> {self.after}"


@dataclass(frozen=True)
class Diff:
    """All that leads from one graph to another; `model` is what is no part of a graph's identity: the model's name, its
    parameters, the order of its inputs."""

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
    """What can be compared of a node, by dotted names; settings at their defaults too. Of its regions the first
    `shared` are compared by themselves: their nodes are left out."""
    node = graph[name]
    declared, label = declaration_of(node), getattr(node, "label", "")
    facts: Facts = {}
    if isinstance(declared, RouterText):
        texts = {"text": declared.name, "given": declared.given, "defaults": declared.defaults}
        facts = {key: value for key, value in texts.items() if value}
    elif declared is not None:
        facts["is"] = declared.name
    facts |= {key: value for key in PLAIN if (value := getattr(node, key, None))}
    facts |= {"carried": node.carried} if isinstance(node, ScanNode) else {}
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
    """The facts that are not the same."""
    pairs = ((name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after]))
    # 0 equals 0.0 and false
    return tuple(Attribute(name, old, new) for name, old, new in pairs if old != new or type(old) is not type(new))


def declaration_of(node: Node) -> Declaration | RouterText | None:
    """The op or router of a node."""
    return node.op if isinstance(node, OpNode) else node.router if isinstance(node, RouterNode) else None


def model_of(graph: Graph) -> Facts:
    """What is no part of a graph's identity."""
    parameters = {f"parameters.{name}": value for name, value in graph.parameters.items()}
    return {"name": graph.name, **parameters, "inputs": (*graph.input_types,)}
