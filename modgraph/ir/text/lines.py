"""The lines of one body of a program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from modgraph.declare import shown_value
from modgraph.ir.graph import Graph
from modgraph.ir.node import (
    DecisionNode,
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
from modgraph.ir.program.program import CallNode, DeferredNode, PlaceNode
from modgraph.ir.program.relative import join
from modgraph.ir.region import Region
from modgraph.ir.stored.nodes import facts_to_json
from modgraph.ir.text.chains import chains_of, path_of
from modgraph.ir.text.runs import Run, fold, reference, runs_of
from modgraph.routers import RouterText

STEP = "  "


class BodyLines:
    """The text of a body: `read` are its values that are read outside; those that flow in stand in a definition's
    head."""

    def __init__(self, graph: Graph, indent: str, read: Sequence[Result] = (), head: bool = False) -> None:
        self.graph = graph
        self.indent = indent
        self.read = {*read}
        self.head = head

    def __iter__(self) -> Iterator[str]:
        deferred = {each.placed for each in self.graph.of_kind(DeferredNode)}
        own = {router.name for router in self._own.values()}
        for each in chains_of(runs_of(self.graph), self.graph, self.read):
            match each:
                case Run():
                    text = _run(each)
                case list():
                    text = self._chain(each)
                case PlaceNode():
                    text = f"{each.placed} = place"
                case _:
                    if (
                        isinstance(each, DeferredNode)
                        or each.name in own
                        or (self.head and isinstance(each, InputNode))
                    ):
                        continue
                    text = f"{_name(each)} = {'deferred ' * (each.name in deferred)}{self._content(each)}"
            yield from f"{self.indent}{text}".split("\n")

    @cached_property
    def _own(self) -> dict[str, RouterNode]:
        """The router of each route that is declared for this route alone, right before it."""
        pairs = ((a, b) for a, b in pairwise(self.graph) if isinstance(a, RouterNode) and isinstance(b, RouteNode))
        alone = ((a, b) for a, b in pairs if not a.frozen and self.graph.users(a.name) == [b.name])
        return {route.name: router for router, route in alone if self.graph.uses(route.name)["router"] == router.name}

    def _content(self, node: Node) -> str:
        graph = self.graph
        operands, uses = self._operands(node), graph.uses(node.name)
        match node:
            case OpNode():
                return f"op {_op(node)}{operands}"
            case RouterNode(router=RouterText() as text):
                return f"text {_router_text(text)}{' frozen' * node.frozen}"
            case DecisionNode():
                label = say_marks({"label": node.label})
                return f"decision {uses['pool']} by {uses['router']}{self._decision(node)}{label}"
            case RouterNode():
                return f"router {node.router}{' frozen' * node.frozen}"
            case PoolNode():
                shares = f" shares {node.shares}" if node.shares else ""
                shares += f" inside {node.inside}" if node.inside else ""
                return f"pool[{node.size}]{say_marks({'grown': node.grown})}{shares}{self._modules(node)}"
            case RouteNode():
                lowering = f" lowering {node.lowering}" if node.lowering is not None else ""
                given = f"{self._slots(node)}{lowering}"
                if node.name in self._own:
                    given = f" = {self._own[node.name].router}{operands}{lowering}"
                return f"route {uses['pool']} by {uses['router']}{given}{say_marks({'label': node.label})}"
            case TargetNode():
                return f"target{say_marks({'grown': node.grown})}"
            case GrowthNode():
                return f"growth {uses['pool']} by {uses['router']}{operands}"
            case ScanNode():
                return f"scan carrying {node.carried}{self._slots(node)}{self._regions((node.region,))}"
            case OutputNode():
                return f"output {node.label}{operands}"
            case LossNode():
                return f"loss{operands}"
            case CallNode():
                return f"call {node.definition.name}{_key(node)}{operands}{_bound(node, node.names)}"
            case _:
                return node.kind

    def _operands(self, node: Node, skip: int = 0) -> str:
        given = [*self.graph.inputs(node.name).values()][skip:]
        return _list(fold([reference(self.graph, each) for each in given]))

    def _slots(self, node: Node) -> str:
        inputs = self.graph.inputs(node.name).items()
        return _list([f"{slot} <- {reference(self.graph, each)}" for slot, each in inputs])

    def _decision(self, node: DecisionNode) -> str:
        """What is routed and its value, the records of all rounds, in order, and facts."""
        inputs = self.graph.inputs(node.name)
        given = [reference(self.graph, inputs[slot]) for slot in ("tokens", "value")]
        records = []
        for name, role in ((each.name, each.role.name.lower()) for each in node.records):
            slots = (node.slot(name, at) for at in range(1, node.rounds + 1))
            values = fold([reference(self.graph, inputs[slot]) for slot in slots])
            records.append(f"{name}{f': {role}' if role != name else ''} <- {', '.join(values)}")
        listed = f" records ({'; '.join(records)})" if records else ""
        return f"{_list(given)}{listed}{_values('facts', facts_to_json(node.facts))}"

    def _chain(self, nodes: list[Node]) -> str:
        """Ops in one line. One that is not called after itself next to the last is named; the types of all but the
        last follow."""
        last, parts = nodes[-1], list[str]()
        for node in nodes:
            if isinstance(node, OpNode):
                plain = node is last or node.name == join(path_of(last), node.op.name)
                operands = self._operands(node, skip=1 if parts else 0)
                parts.append(_op(node) + ("" if plain else f" as {node.name}") + operands)
        return f"{_name(last)} = {'loss ' * isinstance(last, LossNode)}op {' -> '.join(parts)}"

    def _modules(self, pool: PoolNode) -> str:
        """What the modules of a pool are: a pipeline in the same line, or regions below it."""
        pipeline = _pipeline(pool.regions[0]) if pool.alike else None
        return self._regions(pool.regions) if pipeline is None else f" of {pipeline}"

    def _regions(self, regions: tuple[Region, ...]) -> str:
        """Regions one after the other, below the node that has them."""
        inner = self.indent + STEP
        return f"\n{inner}{' '.join(_region(region, inner) for region in regions)}"


def say_marks(marks: Mapping[str, Any]) -> str:
    """What of a node is no part of its definition: ` frozen`, ` init zeros(1.0)`, ` grown 2`, ` as ^expert`."""
    words = {"initial": " init {}", "frozen": " frozen", "grown": " grown {}", "label": " as {}"}
    return "".join(words[name].format(value) for name, value in marks.items() if value)


def _region(region: Region, indent: str) -> str:
    """`region(arguments) -> (results) { … }`."""
    results = ", ".join(reference(region.graph, each) for each in region.results)
    head = f"region({', '.join(region.arguments)}) -> ({results}) {{"
    return "\n".join([head, *BodyLines(region.graph, indent + STEP, region.results), indent + "}"])


def _pipeline(region: Region) -> str | None:
    """A module that is one pipeline, in one line: `x: float[8] -> linear(width=4) -> relu`, or a call of a
    definition."""
    graph, (first, *others) = region.graph, region.graph
    results = [reference(graph, each) for each in region.results]
    before, parts = first, [_name(first)]
    for node in others:
        alone = graph.users(before.name) == [node.name] and [*graph.inputs(node.name).values()] == [Result(before.name)]
        if alone and isinstance(node, CallNode) and len(others) == 1:
            called = "" if node.name == node.definition.name else f" as {node.name}"
            return f"{parts[0]} -> call {node.definition.name}{called}{_bound(node, node.names)} ({results[0]})"
        if not alone or not isinstance(node, OpNode):
            return None
        parts.append(_op(node) + ("" if node.name == node.op.name else f" as {node.name}"))
        before = node
    return " -> ".join(parts) if others and results == [before.name] else None


def _run(run: Run) -> str:
    call, keys = run.first, f"[{run.first.key}..{run.last + 1}]"
    return f"{run.loop}{keys} = call {call.definition.name}{_list(run.operands)}{_bound(call, run.names)}"


def _name(node: Node) -> str:
    """`x.add: float[5]`; the types of a call follow from its definition."""
    types = "" if isinstance(node, CallNode) else ", ".join(map(str, node.types))
    return f"{node.name}: {types}" if types else node.name


def _op(node: OpNode) -> str:
    owner = f" of {node.owner}" if node.owner and node.owner != node.name else ""
    owner += " local" * (not node.owner)
    return f"{node.op}{owner}{say_marks({'initial': node.initial, 'frozen': node.frozen})}"


def _router_text(router: RouterText) -> str:
    """A router that is written in the language, and its arguments: those at their default behind a semicolon."""
    lists = [", ".join(f"{name}={_written(text)}" for name, text in each) for each in (router.given, router.defaults)]
    arguments = "; ".join(lists) if lists[1] else lists[0]
    return f"{router.name}({arguments})" if arguments else router.name


def _written(text: str) -> str:
    """An argument as a spec writes it: a constant as it is, other words between backquotes."""
    try:
        value = json.loads(text)
    except ValueError:
        return f"`{text}`"
    plain = isinstance(value, bool | int | float | str) and shown_value(value) == text
    return text if plain else f"`{text}`"


def _values(word: str, values: Mapping[str, Any]) -> str:
    """` word (name=value, …)`, or nothing where there are no values."""
    listed = ", ".join(f"{name}={shown_value(value)}" for name, value in values.items())
    return f" {word} ({listed})" if listed else ""


def _list(items: Sequence[str]) -> str:
    return f" ({', '.join(items)})" if items else ""


def _key(call: CallNode) -> str:
    """The key of a round, where its name does not end in it."""
    end = call.path.rpartition(".")[2]
    return "" if call.key is None or str(call.key) == end else f" key {call.key}"


def _bound(call: CallNode, names: tuple[str, ...]) -> str:
    """Where the weights of a call stand, and what the names are that it takes, where they are called otherwise."""
    pairs = zip(call.definition.takes, names, strict=True)
    bound = [f"{name} <- {here}" for name, here in pairs if name != here]
    weights = f" weights {call.weights}" if call.weights else ""
    return weights + (f" takes{_list(bound)}" if bound else "")
