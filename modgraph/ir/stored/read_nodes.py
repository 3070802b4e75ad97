"""Reads the nodes of a body from JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from modgraph.declare import Declaration, load_extensions
from modgraph.diagnostics import ModgraphError, Note
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, ask
from modgraph.ir.node import (
    GrowthNode,
    InputNode,
    LossNode,
    Node,
    OpNode,
    OutputNode,
    PoolNode,
    Result,
    RouteNode,
    RouterNode,
    ScanNode,
    TargetNode,
)
from modgraph.ir.program.program import CallNode, DeferredNode, Definition, PlaceNode
from modgraph.ir.program.relative import make_plain
from modgraph.ir.region import Region
from modgraph.ir.stored.decisions import read_decision, read_text
from modgraph.ir.stored.fields import (
    MOST_MODULES,
    Fields,
    constants_of,
    expect,
    flag_of,
    initial_of,
    list_of,
    name_of,
    relative_name_of,
    relative_names_of,
    types_of,
    whole_of,
)
from modgraph.routers import Router
from modgraph.types import Misfit, TensorType, is_key
from modgraph.vocabulary import find_op, find_router

MOST_PLACES = 2**31  # results of a node, or arguments of a region
SIMPLE = {"input": InputNode, "loss": LossNode, "growth": GrowthNode}
SLOTS = {"loss": ("x",), "output": ("x",), "growth": ("when",)}


Definitions = dict[str, Definition]  # those read so far, by name


def fill(graph: Graph, records: list[Any], known: Definitions) -> None:
    """Add the nodes that a body lists."""
    for record in records:
        name = Fields(record).read("name", relative_name_of)
        fields = Fields({key: value for key, value in record.items() if key != "name"}, name)
        if record.get("kind") == "place":
            fields.read("kind", name_of)
            fields.close()
            graph.add(PlaceNode(name=f"place.{len(graph)}", placed=name))
            continue
        if fields.read("deferred", flag_of, False):
            graph.add(DeferredNode(name=f"deferred.{len(graph)}", placed=name))
        node = _call(fields, known) if record.get("kind") == "call" else _node(fields, known)
        uses = fields.read("uses", _uses, {})
        router = graph[uses["router"]] if uses.get("router", "") in graph else None
        inputs = fields.read("inputs", partial(_inputs, node, router), {})
        fields.close()
        ask(node.name not in graph, "another node is called so", node.name, "name")
        for result in inputs.values():
            ask(_is_there(graph, result), f"it reads {result}, which is not there before it", node.name, "inputs")
        if isinstance(node, CallNode):
            takes = ", ".join(node.definition.operands)
            ask(tuple(inputs) == node.definition.operands, f"it takes {takes}, in this order", node.name, "inputs")
        graph.add(_with_types(node, graph, inputs), inputs, uses)


def _with_types(node: Node, graph: Graph, inputs: Mapping[str, Result]) -> Node:
    """An op whose types are left out has those that follow from what flows in."""
    if not isinstance(node, OpNode) or node.types:
        return node
    try:
        return replace(node, types=node.op.bind(*map(graph.type_of, inputs.values())).results)
    except Misfit as misfit:
        raise InvalidGraph(misfit.reason, node.name, "inputs") from misfit


def _call(fields: Fields, known: Definitions) -> CallNode:
    fields.read("kind", name_of)
    called = fields.read("is", name_of)
    ask(called in known, f"{called} is no definition before it", fields.node, "is")
    names = fields.read("names", lambda each: tuple(map(relative_name_of, list_of(each))))
    definition = known[called]
    ask(len(names) == len(definition.takes), f"it takes {', '.join(definition.takes)}", fields.node, "names")
    weights, key = fields.read("weights", relative_name_of, ""), fields.read("key", _key, None)
    node = CallNode(name=fields.node, definition=definition, names=names, weights=weights, key=key)
    return replace(node, types=node.yields())


def _key(value: Any) -> int | str:
    expect(is_key(value), value, "is no key of a round")
    found: int | str = value
    return found


def _is_there(graph: Graph, result: Result) -> bool:
    return result.node in graph and result.index < len(graph[result.node].types)


def _inputs(node: Node, router: Node | None, value: Any) -> dict[str, Result]:
    """What flows into a node, by slot, which may be left out where its declaration says it."""
    edges = [*map(list_of, list_of(value))]
    if edges and all(len(edge) == 2 for edge in edges):
        slots: tuple[str, ...] = SLOTS.get(node.kind, ())
        if isinstance(node, OpNode):
            slots = node.op.slots_of(len(edges))
        if isinstance(node, RouteNode) and isinstance(router, RouterNode) and isinstance(router.router, Router):
            slots = router.router.slots_of(len(edges))
        ask(len(slots) == len(edges), f"it takes {', '.join(slots) or 'nothing without a slot'}")
        edges = [[slot, *edge] for slot, edge in zip(slots, edges, strict=True)]
    ask(all(len(edge) == 3 for edge in edges), "it is no list of slots, each with a node and a number")
    inputs = {relative_name_of(slot): _result(source) for slot, *source in edges}
    ask(len(inputs) == len(edges), "two slots have one name")
    return inputs


def _result(value: Any) -> Result:
    ask(isinstance(value, list) and len(value) == 2, "a source is no node with a number")
    return Result(relative_name_of(value[0]), whole_of(0, MOST_PLACES)(value[1]))


def _uses(value: Any) -> dict[str, str]:
    ask(isinstance(value, dict), "is no object")
    return {name_of(role): relative_name_of(used) for role, used in value.items()}


def _node(fields: Fields, known: Definitions) -> Node:
    common: dict[str, Any] = {"name": fields.node, "types": fields.read("types", types_of, ())}
    match fields.read("kind", name_of):
        case "op":
            owner, initial = fields.read("owner", _owner, fields.node), fields.read("initial", initial_of, None)
            return OpNode(**common, op=_declared(fields, find_op), owner=owner, initial=initial, frozen=_frozen(fields))
        case "router":
            router = read_text(fields) if fields.has("text") else _declared(fields, find_router)
            return RouterNode(**common, router=router, frozen=_frozen(fields))
        case "decision":
            return read_decision(fields, common)
        case "pool":
            size = fields.read("size", whole_of(1, MOST_MODULES))
            regions = fields.read(
                "regions", lambda each: tuple(_region(fields.node, one, known) for one in list_of(each))
            )
            grown, shares = fields.read("grown", whole_of(0, size - 1), 0), fields.read("shares", relative_name_of, "")
            inside = fields.read("inside", relative_name_of, "")
            return PoolNode(**common, size=size, regions=regions, grown=grown, shares=shares, inside=inside)
        case "route":
            label = fields.read("label", relative_name_of, "")
            return RouteNode(**common, lowering=fields.read("lowering", name_of, None), label=label)
        case "scan":
            region = fields.read("region", lambda each: _region(fields.node, each, known))
            return ScanNode(**common, region=region, carried=fields.read("carried", whole_of(0, MOST_PLACES)))
        case "output":
            return OutputNode(**common, label=fields.read("label", relative_name_of))
        case "target":
            _has_value(common, fields)
            return TargetNode(**common, grown=fields.read("grown", _grown(common["types"]), 0))
        case kind:
            ask(kind in SIMPLE, f'"{kind}" is no kind of node', fields.node, "kind")
            _has_value(common, fields, given=kind == "input")
            return SIMPLE[kind](**common)


def _has_value(common: Mapping[str, Any], fields: Fields, given: bool = True) -> None:
    """A node that is given has one type, another of these none."""
    ask(len(common["types"]) == given, f"it has {'one type' if given else 'no value'}", fields.node, "types")


def _grown(types: tuple[TensorType, ...]) -> Callable[[Any], int]:
    """A reader of how many of a label's classes were added: of those of an axis that has a name."""
    (type_,) = types
    return whole_of(0, (type_.size or 1) - 1 if type_.of else 0)


def _frozen(fields: Fields) -> bool:
    return fields.read("frozen", flag_of, False)


def _owner(value: Any) -> str:
    return "" if value == "" else relative_name_of(value)


def _region(holder: str, value: Any, known: Definitions) -> Region:
    fields = Fields(value, holder)
    graph = Graph(holder)
    fill(graph, fields.read("nodes", list_of), known)
    arguments = fields.read("arguments", partial(_arguments, graph))
    results = fields.read("results", lambda each: results_of(each, graph))
    fields.close()
    return Region(graph, arguments, results)


def _arguments(graph: Graph, value: Any) -> tuple[str, ...]:
    """The inputs of a region, in order."""
    names = relative_names_of(value)
    for name in names:
        ask(isinstance(name in graph and graph[name], InputNode), f"it has no input {name}")
    return names


def _declared(fields: Fields, find: Any) -> Any:
    """The op or router of a node, with its settings."""
    name = fields.read("is", name_of)
    known: type[Declaration] | None = find(name)
    if known is None:
        _refuse_broken_extensions(name)
        raise InvalidGraph(f'this installation does not know "{name}"', fields.node, "is")
    settings = fields.read("settings", constants_of)
    values = {}
    for key, value in settings.items():
        setting = known.settings().get(key)
        said = make_plain(value) if setting is not None and setting.names_axis else value
        if setting is None or (problem := setting.problem(said)):
            reason = f'"{name}" has no setting "{key}"' if setting is None else f'setting "{key}" {problem}'
            raise InvalidGraph(reason, fields.node, "settings")
        values[key] = setting.convert(value)
    missing = [key for key, setting in known.settings().items() if setting.required and key not in values]
    ask(not missing, f'"{name}" needs the setting "{", ".join(missing)}"', fields.node, "settings")
    return known(**values)


def _refuse_broken_extensions(name: str) -> None:
    """Raises `ModgraphError` where an installed package may declare what is not known, and fails."""
    notes = (Note(text=f'the graph uses "{name}"'),)
    if faults := load_extensions():
        raise ModgraphError([fault.changed(notes=notes) for fault in faults])


def results_of(value: Any, graph: Graph) -> tuple[Result, ...]:
    """Values of a body."""
    results = tuple(map(_result, list_of(value)))
    for result in results:
        ask(_is_there(graph, result), f"it gives {result}, which is not there")
    return results
