"""From a program to its graph: inlines each definition where it is called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modgraph.frozen import replace_fields
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import ask
from modgraph.ir.node import Call, InputNode, Inputs, Node, PoolNode, Result, RouterNode, ScanNode
from modgraph.ir.part import Region, regions_of
from modgraph.ir.program.outline import name_captured
from modgraph.ir.program.program import CallNode, DeferredNode, PlaceNode, Program
from modgraph.ir.program.relative import Place, collect_marks, make_absolute, rename_axes, with_marks
from modgraph.ir.stored.fields import NAME
from modgraph.ir.stored.nodes import most_grown

CAPTURED = re.compile(r"outer\.\d+(_*)")  # a scan's argument that has the name of the value outside
DEEPEST_CALL = 100
MOST_NODES = 200_000  # of a graph, so that a small stored program cannot exhaust the memory

Names = Mapping[str, str]


def flatten(program: Program) -> Graph:
    """Flatten a program to its graph. Raises `InvalidGraph` if calls do not fit their definitions."""
    known: dict[str, tuple[int, int]] = {}
    for definition in program.definitions:  # before a graph that is too large is built
        known[definition.name] = size, depth = _extent(definition.graph, known)
        ask(size <= MOST_NODES, f"its graph has more than {MOST_NODES} nodes", definition.name, "nodes")
        ask(depth <= DEEPEST_CALL, f"its calls are nested more than {DEEPEST_CALL} deep", definition.name, "nodes")
    ask(_extent(program.body, known)[0] <= MOST_NODES, f"the graph has more than {MOST_NODES} nodes", field="nodes")
    flat = _Flat(Graph(program.body.name, program.body.parameters), program.weights, set())
    flat.put(program.body, Place(), None, {}, {})
    for place in program.weights.keys() - flat.marked:
        ask(False, "no node stands there", place, "weights")
    return flat.graph


def _extent(body: Graph, known: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Count the nodes of a body, with those of its calls and regions, and the depth of nested calls."""
    size, depth = len(body), 0
    for node in body:
        inner = [_extent(region.graph, known) for region in regions_of(node)]
        inner += [known[node.definition.name]] if isinstance(node, CallNode) else []
        size += sum(each for each, _ in inner)
        depth = max([depth, *(each + isinstance(node, CallNode) for _, each in inner)])
    return size, depth


@dataclass
class _Flat:
    """One graph while definitions are inlined: that of the model or of a region.

    The marks of a region's nodes stand below `pool`. `weights` has the marks of the whole program by place, `marked`
    the places that were found. `pending` has the pools and routers that a call will place, with the bodies that declare
    them.
    """

    graph: Graph
    weights: Mapping[str, Mapping[str, Any]]
    marked: set[str]
    pool: str = ""
    pending: dict[str, Node] = field(default_factory=dict)

    def put(self, body: Graph, place: Place, call: Call | None, given: Inputs, captured: Names) -> dict[Result, Result]:
        """Add the nodes of a body at a place, and return its results in the graph."""
        found: dict[Result, Result] = {}
        deferred = {node.placed for node in body.nodes_of(DeferredNode)}
        for node in body:
            inputs = {slot: found.get(each, each) for slot, each in body.inputs(node.name).items()}
            match node:
                case InputNode() if node.name in given:
                    found[Result(node.name)] = given[node.name]
                case DeferredNode():
                    pass
                case PlaceNode():
                    name = place.owner(node.placed)
                    ask(name in self.graph or name in self.pending, f"{name} is not declared", name, "kind")
                    declared = self.pending[name] if name in self.pending else self.graph[name]
                    ask(isinstance(declared, PoolNode | RouterNode), f"{name} is no pool or router", name, "kind")
                    if name in self.pending:
                        self._add(self.pending.pop(name), {}, {})
                case CallNode():
                    found |= self._call(node, place, call, inputs)
                case _:
                    added = self._node(node, place, call, inputs, captured)
                    uses = {role: place.owner(name) for role, name in body.uses(node.name).items()}
                    shared = isinstance(node, PoolNode | RouterNode)
                    deferrable = shared or node.name not in deferred
                    ask(deferrable, "only a pool or a router is deferred", node.name, "deferred")
                    if node.name in deferred and added.name not in self.graph:
                        self.pending[added.name] = added
                    elif added.name not in self.graph or not shared:
                        self._add(added, _slots(node, added, inputs), uses)
                    found |= {Result(node.name, at): Result(added.name, at) for at in range(len(node.types))}
        for name in deferred:
            ask(place.owner(name) not in self.pending, "it is deferred, and no call places it", name, "deferred")
        return found

    def _call(self, node: CallNode, place: Place, call: Call | None, inputs: Inputs) -> dict[Result, Result]:
        """Inline the definition of a call, and return the call's results in the graph."""
        definition, path = node.definition, place.node(node.path)
        weights = place.owner(node.weights) if node.weights else place.weight(node.path)
        names = {name: place.owner(here) for name, here in zip(definition.takes, node.names, strict=True)}
        inside = Place(path, weights, node.key, place, names, definition.axes)
        for operand, type_ in definition.graph.input_types.items():
            given = self.graph.type_of(inputs[operand])
            fits = rename_axes(type_, inside.owner) == given
            ask(fits, f"{definition.name} takes {operand}: {type_}, and this is {given}", node.name, "inputs")
        facts: Any = {"key": node.key, "members": definition.members, "span": node.span}
        inlined = Call(definition.kind, definition.author, path, weights, call, **facts)
        results = self.put(definition.graph, inside, inlined, inputs, {})
        return {Result(node.name, index): results[result] for index, result in enumerate(definition.results)}

    def _node(self, node: Node, place: Place, call: Call | None, inputs: Inputs, captured: Names) -> Node:
        """Make a node of the graph, with its marks and regions."""
        name = captured.get(node.name) or make_absolute(node, place).name
        at = self.pool + name
        if at in self.weights:
            marks = self.weights[at]
            self.marked.add(at)
            ask(marks.keys() <= collect_marks(node).keys(), f"a {node.kind} has no such marks", at, "weights")
            ask(marks.get("grown", 0) <= most_grown(node), f"not so many of {node.name} can be added", at, "weights")
            node = with_marks(node, marks)
        added = replace_fields(make_absolute(node, place), name=name, within=call)
        match added:
            case PoolNode():
                place = Place("", "", None, place, region=True)
                regions = (self._region(each, place, None, {}, f"{at}/{no}/") for no, each in enumerate(added.regions))
                return replace_fields(added, regions=tuple(regions))
            case ScanNode():
                called = {name: CAPTURED.fullmatch(name) for name in added.captured if name in inputs}
                words = {name: name_captured(inputs[name]) + match[1] for name, match in called.items() if match}
                return replace_fields(added, region=self._region(added.region, place, call, words, self.pool))
            case _:
                return added

    def _region(self, region: Region, place: Place, call: Call | None, captured: Names, pool: str) -> Region:
        flat = _Flat(Graph(""), self.weights, self.marked, pool)
        found = flat.put(region.graph, place, call, {}, captured)
        arguments = tuple(found[Result(name)].node for name in region.arguments)
        return Region(flat.graph, arguments, tuple(found[each] for each in region.results))

    def _add(self, node: Node, inputs: Inputs, uses: Names) -> None:
        ask(node.name not in self.graph, "another node is called so", node.name, "name")
        names = [
            node.name,
            *(name for type_ in node.types for name in (*(a.name for a in (*type_.shape, *type_.ends)), type_.of)),
        ]
        names += [getattr(node, field, "") for field in ("owner", "shares", "inside", "label")]
        for name in names:
            ask(not name or NAME.fullmatch(name) is not None, f"{name} is no name", node.name, "name")
        for name in uses.values():
            ask(name in self.graph, f"it uses {name}, which is not there before it", node.name, "uses")
        self.graph.add(node, inputs, uses)


def _slots(node: Node, added: Node, inputs: Inputs) -> Inputs:
    """Find the slots of a node's operands. The slots of a scan are its arguments."""
    if not isinstance(node, ScanNode) or not isinstance(added, ScanNode):
        return inputs
    now = dict(zip(node.region.arguments, added.region.arguments, strict=True))
    ask(inputs.keys() <= now.keys(), "it takes the arguments of its region", added.name, "inputs")
    return {now[slot]: each for slot, each in inputs.items()}
