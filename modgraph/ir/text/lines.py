"""The lines of one body of a program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from modgraph.declare import format_value
from modgraph.ir import node as kinds
from modgraph.ir.graph import Graph
from modgraph.ir.node import Node, Result
from modgraph.ir.part import Region
from modgraph.ir.program.program import CallNode, DeferredNode, PlaceNode
from modgraph.ir.program.relative import join
from modgraph.ir.stored.nodes import facts_to_json
from modgraph.ir.text.runs import Run, fold, list_runs, reference
from modgraph.routers import RouterText

STEP = "  "
FACTS = {"initial": " init {}", "frozen": " frozen", "grown": " grown {}", "shares": " shares {}"}
FACTS |= {
    "inside": " inside {}",
    "stored": " stored",
    "lowering": " lowering {}",
    "once": " once for {}",
    "label": " as {}",
}


def say_facts(facts: Mapping[str, Any]) -> str:
    """Write the facts of a node that are not at their default: ` frozen`, ` init zeros(1.0)`, ` grown 2`, ` as
    ^expert`."""
    return "".join(words.format(facts[name]) for name, words in FACTS.items() if facts.get(name))


class BodyLines:
    """Writes the text of a body. `read` are its values that others read. A definition's head lists its operands."""

    def __init__(self, graph: Graph, indent: str, read: Sequence[Result] = (), head: bool = False) -> None:
        self.graph, self.indent, self.read, self.head = graph, indent, {*read}, head
        self.own = {  # routers that are declared right before the one route that uses them
            route.name: router
            for router, route in pairwise(graph)
            if isinstance(router, kinds.RouterNode)
            and isinstance(route, kinds.RouteNode)
            and not router.frozen
            and graph.users(router.name) == [route.name]
            and graph.uses(route.name)["router"] == router.name
        }

    def __iter__(self) -> Iterator[str]:
        deferred = {each.placed for each in self.graph.nodes_of(DeferredNode)}
        own = {router.name for router in self.own.values()}
        for each in self._items():
            match each:
                case Run():
                    bound = _bound(each.first, each.names)
                    keys = f"[{each.first.key}..{each.last + 1}]"
                    text = f"{each.loop}{keys} = call {each.first.definition.name}{_list(each.operands)}{bound}"
                case list():
                    text = self._chain(each)
                case PlaceNode():
                    text = f"{each.placed} = place"
                case DeferredNode():
                    continue
                case _ if each.name in own or (self.head and isinstance(each, kinds.InputNode)):
                    continue
                case _:
                    text = f"{_name(each)} = {'deferred ' * (each.name in deferred)}{self._content(each)}"
            yield from f"{self.indent}{text}".split("\n")

    def _items(self) -> Iterator[Node | Run | list[Node]]:
        """Group the nodes in order: consecutive rounds as one, and a chain of ops as a list."""
        chain: list[Node] = []
        for item in (*list_runs(self.graph), None):
            if chain and isinstance(item, kinds.OpNode | kinds.LossNode) and self._continues(item, chain[-1]):
                chain.append(item)
                continue
            if chain:
                yield chain if len(chain) > 1 else chain[0]
            chain = [item] if isinstance(item, kinds.OpNode) else []
            if item is not None and not chain:
                yield item

    def _continues(self, node: Node, before: Node) -> bool:
        """Whether a node continues a line: it is the only reader of the one value before, as its first operand."""
        value, operands = Result(before.name), [*self.graph.inputs(node.name).values()]
        continues = self.graph.users(before.name) == [node.name] and value not in self.read and len(before.types) == 1
        return continues and operands[:1] == [value] and operands.count(value) == 1

    def _content(self, node: Node) -> str:
        operands, facts = self._operands(node), say_facts(vars(node))
        uses = " {pool} by {router}".format_map(self.graph.uses(node.name)) if self.graph.uses(node.name) else ""
        match node:
            case kinds.OpNode():
                return f"op {_op(node)}{operands}"
            case kinds.RouterNode(router=RouterText() as text):
                return f"text {_router_text(text)}{facts}"
            case kinds.RouterNode():
                return f"router {node.router}{facts}"
            case kinds.DecisionNode():
                return f"decision{uses}{self._decision(node)}{facts}"
            case kinds.PoolNode():
                pipeline = _pipeline(node.regions[0]) if node.is_homogeneous else None
                modules = self._regions(node.regions) if pipeline is None else f" of {pipeline}"
                return f"pool[{node.size}]{facts}{modules}"
            case kinds.RouteNode() if node.name in self.own:
                return f"route{uses} = {self.own[node.name].router}{operands}{facts}"
            case kinds.RouteNode():
                return f"route{uses}{self._slots(node)}{facts}"
            case kinds.ScanNode():
                final = f" final {node.final}" if node.final else ""
                return f"scan carrying {node.carried}{final}{facts}{self._slots(node)}{self._regions((node.region,))}"
            case kinds.OutputNode():
                return f"output {node.label}{operands}"
            case CallNode():
                end = node.path.rpartition(".")[2]
                key = "" if node.key is None or str(node.key) == end else f" key {node.key}"
                return f"call {node.definition.name}{key}{operands}{_bound(node, node.names)}"
            case _:
                return f"{node.kind}{uses}{facts}{operands}"

    def _operands(self, node: Node, skip: int = 0) -> str:
        given = [*self.graph.inputs(node.name).values()][skip:]
        return _list(fold([reference(self.graph, each) for each in given]))

    def _slots(self, node: Node) -> str:
        inputs = self.graph.inputs(node.name).items()
        return _list([f"{slot} <- {reference(self.graph, each)}" for slot, each in inputs])

    def _decision(self, node: kinds.DecisionNode) -> str:
        """Write what is routed, its value, the records of all rounds in order, and facts."""
        inputs = {slot: reference(self.graph, each) for slot, each in self.graph.inputs(node.name).items()}
        records = []
        for record in node.records:
            role = record.role.name.lower()
            values = fold([inputs[node.slot(record.name, at)] for at in range(1, node.rounds + 1)])
            records.append(f"{record.name}{f': {role}' if role != record.name else ''} <- {', '.join(values)}")
        facts = [f"{name}={format_value(value)}" for name, value in facts_to_json(node.facts).items()]
        lists = {"records": "; ".join(records), "facts": ", ".join(facts)}
        said = "".join(f" {word} ({text})" for word, text in lists.items() if text)
        return f" ({inputs['tokens']}, {inputs['value']}){said}"

    def _chain(self, nodes: list[Node]) -> str:
        """Write ops in one line. An op other than the last is named if its name does not follow from the last; all but
        the last give their types."""
        last, parts = nodes[-1], list[str]()
        path = last.name if isinstance(last, kinds.LossNode) else last.name.rpartition(".")[0]
        for node in nodes:
            if isinstance(node, kinds.OpNode):
                plain = node is last or node.name == join(path, node.op.name)
                operands = self._operands(node, skip=1 if parts else 0)
                parts.append(_op(node) + ("" if plain else f" as {node.name}") + operands)
        return f"{_name(last)} = {'loss ' * isinstance(last, kinds.LossNode)}op {' -> '.join(parts)}"

    def _regions(self, regions: tuple[Region, ...]) -> str:
        """Write regions one after the other, below their node: `region(arguments) -> (results) { … }`."""
        inner, texts = self.indent + STEP, []
        for region in regions:
            results = ", ".join(reference(region.graph, each) for each in region.results)
            head = f"region({', '.join(region.arguments)}) -> ({results}) {{"
            texts.append("\n".join([head, *BodyLines(region.graph, inner + STEP, region.results), inner + "}"]))
        return f"\n{inner}{' '.join(texts)}"


def _pipeline(region: Region) -> str | None:
    """Write a module that is one pipeline in one line: `x: float[8] -> linear(width=4) -> relu`, or a call of a
    definition."""
    graph, (first, *others) = region.graph, region.graph
    results = [reference(graph, each) for each in region.results]
    before, parts = first, [_name(first)]
    for node in others:
        continues = graph.users(before.name) == [node.name] and [*graph.inputs(node.name).values()] == [
            Result(before.name)
        ]
        if continues and isinstance(node, CallNode) and len(others) == 1:
            called = "" if node.name == node.definition.name else f" as {node.name}"
            return f"{parts[0]} -> call {node.definition.name}{called}{_bound(node, node.names)} ({results[0]})"
        if not continues or not isinstance(node, kinds.OpNode):
            return None
        parts.append(_op(node) + ("" if node.name == node.op.name else f" as {node.name}"))
        before = node
    return " -> ".join(parts) if others and results == [before.name] else None


def _name(node: Node) -> str:
    """Write `x.add: float[5]`; the types of a call follow from its definition."""
    types = "" if isinstance(node, CallNode) else ", ".join(map(str, node.types))
    return f"{node.name}: {types}" if types else node.name


def _op(node: kinds.OpNode) -> str:
    owner = f" of {node.owner}" if node.owner and node.owner != node.name else " local" * (not node.owner)
    return f"{node.op}{owner}{say_facts(vars(node))}"


def _router_text(router: RouterText) -> str:
    """Write a router text and its arguments; those at their default follow a semicolon."""
    lists = [", ".join(f"{name}={_quote(text)}" for name, text in each) for each in (router.given, router.defaults)]
    arguments = "; ".join(lists) if lists[1] else lists[0]
    return f"{router.name}({arguments})" if arguments else router.name


def _quote(text: str) -> str:
    """Write an argument as a spec does: a constant unchanged, other words between backquotes."""
    try:
        value = json.loads(text)
    except ValueError:
        return f"`{text}`"
    plain = isinstance(value, bool | int | float | str) and format_value(value) == text
    return text if plain else f"`{text}`"


def _list(items: Sequence[str]) -> str:
    return f" ({', '.join(items)})" if items else ""


def _bound(call: CallNode, names: tuple[str, ...]) -> str:
    """Write the path of a call's weights, and bind the names that it takes where they differ."""
    pairs = zip(call.definition.takes, names, strict=True)
    bound = [f"{name} <- {here}" for name, here in pairs if name != here]
    weights = f" weights {call.weights}" if call.weights else ""
    return weights + (f" takes{_list(bound)}" if bound else "")
