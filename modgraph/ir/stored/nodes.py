"""The nodes of a graph as JSON, and back. One table gives the fields of each kind of node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

from modgraph.declare import Declaration
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, ask
from modgraph.ir.node import (
    RECURRENCE,
    InputNode,
    Node,
    OpNode,
    PoolNode,
    Result,
    RouteNode,
    RouterNode,
    ScanNode,
    TargetNode,
)
from modgraph.ir.part import Region
from modgraph.ir.program.program import CallNode, DeferredNode, Definition, PlaceNode
from modgraph.ir.stored import fields as readers
from modgraph.ir.stored.fields import Fields
from modgraph.routers import Router, RouterFacts, RouterText
from modgraph.types import Misfit, is_key
from modgraph.vocabulary import find_op, find_router

MOST_ROUNDS = 1_000_000
Definitions = dict[str, Definition]  # the nodes read so far, by name


# ------------------------------------------------------------ the table


class Field(NamedTuple):
    """A field of a node: its reader, its default, which JSON omits, and its writer."""

    name: str
    read: Callable[[Any], Any]
    default: Any = readers.MISSING
    write: Callable[[Any], Any] = lambda value: value


def facts_to_json(facts: RouterFacts) -> dict[str, Any]:
    """Write the facts that are not at their default."""
    defaults = asdict(RouterFacts())
    return {name: value for name, value in asdict(facts).items() if value != defaults[name]}


FROZEN = Field("frozen", readers.flag_of, False)
ONCE = Field("once", readers.one_of("", "batch", "scan"), "")
GROWN = Field("grown", readers.whole_of(0, readers.MOST_PLACES), 0)
LABEL = Field("label", readers.relative_name_of, "")
OWNER = Field("owner", readers.name_or_none_of)  # by default the name of the node
FIELDS: Mapping[str, tuple[Field, ...]] = {  # by the kind of node
    "target": (GROWN,),
    "op": (OWNER, Field("initial", readers.initial_of, None, asdict), FROZEN, ONCE),
    "router": (FROZEN,),
    "decision": (
        Field("rounds", readers.whole_of(1, MOST_ROUNDS), 1),
        LABEL,
        Field("records", readers.records_of, (), lambda found: [[each.name, each.role.name.lower()] for each in found]),
        Field("facts", readers.facts_of, RouterFacts(), facts_to_json),
    ),
    "pool": (
        Field("size", readers.whole_of(1, readers.MOST_MODULES)),
        GROWN,
        Field("shares", readers.relative_name_of, ""),
        Field("inside", readers.relative_name_of, ""),
        Field("stored", readers.flag_of, False),
    ),
    "route": (Field("lowering", readers.name_of, None), ONCE, LABEL),
    "scan": (
        Field("carried", readers.whole_of(0, readers.MOST_PLACES)),
        Field("final", readers.whole_of(0, readers.MOST_PLACES), 0),
        Field("lowering", readers.one_of("", RECURRENCE), ""),
    ),
    "output": (Field("label", readers.relative_name_of),),
}
KINDS: Mapping[str, Any] = {each.kind: each for each in Node.__subclasses__() if each.__module__ == Node.__module__}
VALUES = {"input": 1, "target": 1, "growth": 0, "loss": 0}  # the number of results
SLOTS = {"loss": "x", "output": "x", "growth": "when"}  # a slot with one value


def most_grown(node: Node) -> int:
    """Bound the number of modules or classes that may have been added to a node."""
    match node:
        case PoolNode():
            return node.size - 1
        case TargetNode(types=(type_,)):
            return (type_.size or 1) - 1 if type_.of else 0
        case _:
            return 0


# ------------------------------------------------------------ written


def flat_to_json(graph: Graph) -> dict[str, Any]:
    """Write every node of a flat graph, in the order in which noise is sampled."""
    inputs = list(graph.input_types)
    return {"name": graph.name, "parameters": plain(graph.parameters), "nodes": _list_nodes(graph), "inputs": inputs}


def nodes_to_json(graph: Graph) -> list[Any]:
    """Write nodes and edges in canonical order, which identifies a graph."""
    return [node_with_edges(graph, graph[name]) for name in graph.canonical()]


def _list_nodes(graph: Graph) -> list[Any]:
    return [node_with_edges(graph, node, _list_nodes) for node in graph]


def node_with_edges(graph: Graph, node: Node, nodes: Callable[[Graph], list[Any]] = nodes_to_json) -> dict[str, Any]:
    """Write a node with its regions and all its edges, lengths too. `nodes` writes the nodes of regions."""
    lengths = _edges_to_json(graph.lengths(node.name))
    return body_node_to_json(graph, node, nodes) | ({"lengths": lengths} if lengths else {})


def body_node_to_json(graph: Graph, node: Node, nodes: Callable[[Graph], list[Any]]) -> dict[str, Any]:
    """Write a node of a program's body with its regions and edges. `nodes` writes the nodes of regions."""

    def region_to_json(region: Region) -> dict[str, Any]:
        results = results_to_json(region.results)
        return {"arguments": [*region.arguments], "results": results, "nodes": nodes(region.graph)}

    entry = node_to_json(node)
    if isinstance(node, PoolNode):
        entry["regions"] = [*map(region_to_json, node.regions)]
    if isinstance(node, ScanNode):
        entry["region"] = region_to_json(node.region)
    edges = {"inputs": _edges_to_json(graph.inputs(node.name)), "uses": dict(graph.uses(node.name))}
    return entry | {relation: found for relation, found in edges.items() if found}


def _edges_to_json(edges: Mapping[str, Result]) -> list[Any]:
    return [[slot, result.node, result.index] for slot, result in edges.items()]


def results_to_json(results: Iterable[Result]) -> list[Any]:
    return [[result.node, result.index] for result in results]


def node_to_json(node: Node) -> dict[str, Any]:
    """Write a node without regions and edges."""
    entry: dict[str, Any] = {"name": node.name, "kind": node.kind}
    if isinstance(node, CallNode):
        entry |= {"is": node.definition.name, "names": [*node.names]} | ({} if node.key is None else {"key": node.key})
        return entry | ({"weights": node.weights} if node.weights else {})
    entry["types"] = [type_.as_json() for type_ in node.types]
    match node:
        case RouterNode(router=RouterText(name=name) as text):
            entry |= {"text": name}
            for word, written in (("given", text.given), ("defaults", text.defaults)):
                entry |= {word: [*map(list, written)]} if written else {}
        case OpNode(op=declared) | RouterNode(router=declared):
            assert isinstance(declared, Declaration)
            entry |= {"is": declared.name, "settings": plain(declared.values())}
    for field in FIELDS.get(node.kind, ()):
        value = getattr(node, field.name)
        if value != (node.name if field is OWNER else field.default):
            entry[field.name] = field.write(value)
    return entry


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Write constants by name."""
    return {name: _thaw(value) for name, value in values.items()}


def _thaw(value: Any) -> Any:
    if isinstance(value, range):
        return {"range": [value.start, value.stop]}
    return [*map(_thaw, value)] if isinstance(value, tuple) else value


# ------------------------------------------------------------ read


def fill(graph: Graph, records: list[Any], known: Definitions) -> None:
    """Add the nodes that a body lists."""
    for record in records:
        fields = Fields.read_named(record, readers.relative_name_of)
        name, kind = fields.node, record.get("kind")
        if kind == "place":
            fields.read("kind", readers.name_of)
            fields.close()
            graph.add(PlaceNode(name=f"place.{len(graph)}", placed=name))
            continue
        if fields.read("deferred", readers.flag_of, False):
            graph.add(DeferredNode(name=f"deferred.{len(graph)}", placed=name))
        node: Node = _call(fields, known) if kind == "call" else _node(fields, known)
        uses = fields.read("uses", readers.uses_of, {})
        router = graph[uses["router"]] if uses.get("router", "") in graph else None
        inputs = fields.read("inputs", partial(_inputs, node, router), {})
        fields.close()
        ask(name not in graph, "another node is called so", name, "name")
        for result in inputs.values():
            ask(_is_there(graph, result), f"it reads {result}, which is not there before it", name, "inputs")
        if isinstance(node, CallNode):
            takes = node.definition.operands
            ask(tuple(inputs) == takes, f"it takes {', '.join(takes)}, in this order", name, "inputs")
        add = graph.add_typed if isinstance(node, OpNode) and not node.types else graph.add
        try:
            add(node, inputs, uses)
        except Misfit as misfit:
            raise InvalidGraph(misfit.reason, name, "inputs") from misfit


def _node(fields: Fields, known: Definitions) -> Node:
    facts: dict[str, Any] = {"name": fields.node, "types": fields.read("types", readers.types_of, ())}
    region = partial(_region, fields.node, known)
    kind = fields.read("kind", readers.name_of)
    ask(kind in KINDS, f'"{kind}" is no kind of node', fields.node, "kind")
    if kind in VALUES:
        reason = "it has one type" if VALUES[kind] else "it has no value"
        ask(len(facts["types"]) == VALUES[kind], reason, fields.node, "types")
    for field in FIELDS.get(kind, ()):
        reader = readers.whole_of(0, most_grown(KINDS[kind](**facts))) if field is GROWN else field.read
        facts[field.name] = fields.read(field.name, reader, fields.node if field is OWNER else field.default)
        if field.name == "size":
            facts["regions"] = fields.read("regions", readers.each_of(region))
    if kind == "op":
        facts["op"] = readers.read_declaration(fields, find_op)
    if kind == "router" and fields.has("text"):
        text, given = fields.read("text", readers.name_of), fields.read("given", readers.texts_of, ())
        facts["router"] = RouterText(text, given, fields.read("defaults", readers.texts_of, ()))
    elif kind == "router":
        facts["router"] = readers.read_declaration(fields, find_router)
    if kind == "scan":
        facts["region"] = fields.read("region", region)
    node: Node = KINDS[kind](**facts)
    return node


def _call(fields: Fields, known: Definitions) -> CallNode:
    fields.read("kind", readers.name_of)
    called = fields.read("is", readers.name_of)
    ask(called in known, f"{called} is no definition before it", fields.node, "is")
    names = fields.read("names", readers.each_of(readers.relative_name_of))
    definition = known[called]
    ask(len(names) == len(definition.takes), f"it takes {', '.join(definition.takes)}", fields.node, "names")
    weights, key = fields.read("weights", readers.relative_name_of, ""), fields.read("key", _key, None)
    node = CallNode(name=fields.node, definition=definition, names=names, weights=weights, key=key)
    return replace(node, types=node.yields())


def _key(value: Any) -> Any:
    readers.expect(is_key(value), value, "is no key of a round")
    return value


def _inputs(node: Node, router: Node | None, value: Any) -> dict[str, Result]:
    """Read the operands of a node by slot; a declaration may make some optional."""
    edges = [*map(readers.list_of, readers.list_of(value))]
    if edges and all(len(edge) == 2 for edge in edges):
        slots: tuple[str, ...] = (SLOTS[node.kind],) if node.kind in SLOTS else ()
        if isinstance(node, OpNode):
            slots = node.op.slots_of(len(edges))
        if isinstance(node, RouteNode) and isinstance(router, RouterNode) and isinstance(router.router, Router):
            slots = router.router.slots_of(len(edges))
        ask(len(slots) == len(edges), f"it takes {', '.join(slots) or 'nothing without a slot'}")
        edges = [[slot, *edge] for slot, edge in zip(slots, edges, strict=True)]
    ask(all(len(edge) == 3 for edge in edges), "it is no list of slots, each with a node and a number")
    inputs = {readers.relative_name_of(slot): _result(source) for slot, *source in edges}
    ask(len(inputs) == len(edges), "two slots have one name")
    return inputs


def _result(value: Any) -> Result:
    ask(isinstance(value, list) and len(value) == 2, "a source is no node with a number")
    return Result(readers.relative_name_of(value[0]), readers.whole_of(0, readers.MOST_PLACES)(value[1]))


def _is_there(graph: Graph, result: Result) -> bool:
    return result.node in graph and result.index < len(graph[result.node].types)


def results_of(value: Any, graph: Graph) -> tuple[Result, ...]:
    """Read values of a body."""
    results = readers.each_of(_result)(value)
    for result in results:
        ask(_is_there(graph, result), f"it gives {result}, which is not there")
    return results


def _region(holder: str, known: Definitions, value: Any) -> Region:
    fields, graph = Fields(value, holder), Graph(holder)
    fill(graph, fields.read("nodes", readers.list_of), known)
    arguments = fields.read("arguments", readers.relative_names_of)
    for name in arguments:
        there = name in graph and isinstance(graph[name], InputNode)
        ask(there, f"it has no input {name}", holder, "arguments")
    results = fields.read("results", lambda each: results_of(each, graph))
    fields.close()
    return Region(graph, arguments, results)
