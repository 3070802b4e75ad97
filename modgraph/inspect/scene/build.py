"""Turns a graph into a scene: boxes, and edges between them, also across the borders of scans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from modgraph import ir
from modgraph.diagnostics import Source
from modgraph.inspect.cost import Cost, compute_cost, list_axes_of_any_length
from modgraph.inspect.scene.arrange import gather_routes, mark_servants
from modgraph.inspect.scene.stacks import Entry, fold_repeats, make_group, mark_tokenizers
from modgraph.inspect.scene.values import Box, Edge, Row, Scene
from modgraph.inspect.scene.words import (
    Level,
    brief,
    format_settings,
    help_of,
    lines_of,
    settings_of,
    shape_of,
    strip_path,
)
from modgraph.ir.program.outline import number_definitions
from modgraph.ops.array import Array
from modgraph.prelude import blocks
from modgraph.types import TensorType


def scene_of(graph: ir.Graph) -> Scene:
    """The scene of a graph. Boxes of nodes with spans have source lines."""
    cost, edges = compute_cost(graph), tuple(dict.fromkeys(edges_of(graph)))
    builder = _Builder(graph, cost)
    boxes = mark_tokenizers(builder.boxes(ir.body_of(graph), Level(graph)), edges)
    boxes = mark_servants(gather_routes(boxes, edges), edges)
    lengths = tuple((axis, 1) for axis in list_axes_of_any_length(graph))
    return Scene(
        graph.name, format_settings(graph.parameters), boxes, edges, cost, lengths, tuple(builder.sources.values())
    )


class _Builder:
    """Makes boxes of nodes and calls. Each is drawn and counted once."""

    def __init__(self, graph: ir.Graph, cost: Cost) -> None:
        self.graph = graph
        self.own = cost.own
        self.definitions = number_definitions(graph)
        self.weights: dict[str, list[ir.GraphWeight]] = {}
        for weight in ir.weights_of(graph):
            self.weights.setdefault(weight.owner, []).append(weight)
        self.first_use: dict[str, str] = {}  # of the weights of an owner
        self.taken = {id for _, id in find_ids_of_nodes(graph)}
        self.visited: set[str] = set()
        self.sources: dict[str, Source] = {}

    def boxes(self, body: ir.Body, level: Level) -> tuple[Box, ...]:
        """The boxes of a body; equal calls that follow each other are folded."""
        entries: list[Entry] = []
        for item in body.items:
            match item:
                case ir.Body():
                    entries += self.call(item, level)
                case ir.Node() if item.name not in level.shared and level.prefix + item.name not in self.visited:
                    self.visited.add(level.prefix + item.name)
                    entries.append(Entry(self.box(item, level)))
        return tuple(fold_repeats(entries, self.unique))

    def call(self, body: ir.Body, level: Level) -> Iterator[Entry]:
        """The box of a call. A router's text becomes its decision, a module with one op that op."""
        call = body.call
        assert call is not None
        inside = replace(level, path=call.path, weights=call.weights)
        decisions = (each for each in body.items if isinstance(each, ir.DecisionNode) and each.name == call.path)
        if (route := next(decisions, None)) is not None:
            self.visited.add(level.prefix + route.name)
            box, children = self.box(route, level), self.boxes(body, inside)
            yield Entry(replace(box, children=children, cost=sum((child.cost for child in children), box.cost)))
        elif children := self.boxes(body, inside):
            label = level.label(call)
            box = replace(children[0], label=label)
            if len(children) > 1 or box.kind == "repeat":
                author = "" if label == call.definition or call.kind == "round" else call.definition
                box = make_group(self.unique(level.prefix + call.path), label, children, detail=author)
                box = replace(box, built_in=call.kind == "block" and call.definition in blocks())
            yield Entry(box, call, self.definitions[call])

    def unique(self, id: str) -> str:
        found, count = id, 1
        while found in self.taken:
            count += 1
            found = f"{id}~{count}"
        self.taken.add(found)
        return found

    def box(self, node: ir.Node, level: Level) -> Box:
        if node.span is not None:
            self.sources.setdefault(node.span.source.label, node.span.source)
        graph, inside = level.graph, bool(level.prefix)
        types = tuple(map(str, node.types))
        box = Box(id=level.prefix + node.name, kind=node.kind, label=level.label_of(node), lines=lines_of(node))
        if node.types:
            box = replace(box, detail=types[0], types=types, short=short_type(node.types[0]))
        declared = node.op if isinstance(node, ir.OpNode) else node.router if isinstance(node, ir.RouterNode) else None
        if declared is not None:
            box = replace(box, detail=brief(declared), help=help_of(declared), settings=settings_of(declared))
        match node:
            case ir.OpNode():
                return self.op(graph, node, box, inside)
            case ir.PoolNode():
                return self.pool(node, box, inside)
            case ir.RouterNode():
                return self.router(node, box, inside)
            case ir.RouteNode() | ir.DecisionNode():
                return _route(ir.Decision(ir.Part(graph), node), box)
            case ir.GrowthNode():
                return replace(box, detail=f"{graph.pool_of(node).name} by {graph.router_of(node).name}")
            case ir.ScanNode():
                return self.scan(node, box)
            case ir.TargetNode() if node.grown:
                return replace(box, notes=(f"the last {node.grown} classes were added to a trained model",))
            case ir.OutputNode():
                return replace(box, detail=node.label if node.label != node.name else "")
            case _:
                return box

    def op(self, graph: ir.Graph, node: ir.OpNode, box: Box, inside: bool) -> Box:
        first = self.first_use.setdefault(node.owner, node.name) == node.name if not inside else False
        shared = not inside and node.owner != node.name
        notes = (f"its weights are those of {node.owner}, its cost is counted where they are first used",) * shared
        axes = graph.signature(node).weight_axes()
        return replace(
            box,
            kind="tokenizer" if node.op.tokenizes else "op",
            weights=tuple(Row(name, shape_of(shape), "frozen" * node.frozen) for name, shape in axes.items()),
            cost=self.own.get(node.owner, Cost()) if first else Cost(),
            notes=notes + ("frozen",) * node.frozen,
        )

    def pool(self, node: ir.PoolNode, box: Box, inside: bool) -> Box:
        """The box of a pool. A pool inside a module counts its cost at the outer pool."""
        children: tuple[Box, ...] = ()
        for module, (region, prefix) in enumerate(zip(node.regions, prefixes(node, box.id), strict=True)):
            boxes = self.boxes(ir.body_of(region.graph), Level(region.graph, prefix))
            if node.is_homogeneous:
                children = boxes
            else:
                children += (Box(id=prefix[:-1], kind="block", label=f"module {module}", children=boxes),)
        owners = (node.name, f"{node.name}.shared", *(f"{node.name}.{key}" for key in node.keys))
        grown = (f"the last {node.grown} were added to a trained pool",) if node.grown else ()
        return replace(
            box,
            detail=f"{node.size} modules: {node.message} → {node.result}",
            settings=(("modules", str(node.size)),),
            cost=Cost() if inside else sum((self.own.get(owner, Cost()) for owner in owners), Cost()),
            weights=() if inside else self.rows(f"{node.name}.shared") + self.rows(f"{node.name}.{node.keys[0]}"),
            children=children,
            count=node.size if node.is_homogeneous else 1,
            notes=grown + ((f"its modules are those of {node.shares}",) if node.shares else ()),
        )

    def router(self, node: ir.RouterNode, box: Box, inside: bool) -> Box:
        records = next(iter(each.declared for each in self.graph.decisions(node.name)), ())
        return replace(
            box,
            cost=Cost() if inside else self.own.get(node.name, Cost()),
            weights=() if inside else self.rows(node.name),
            records=tuple(Row(each.name, each.axes, each.role.value) for each in records),
            notes=("frozen",) if node.frozen else (),
        )

    def scan(self, node: ir.ScanNode, box: Box) -> Box:
        shared = frozenset(each.name for each in self.graph)
        level = Level(node.region.graph, path=node.name, weights=node.name, shared=shared)
        children = []
        for child in self.boxes(ir.body_of(node.region.graph, node.within), level):
            if child.id in node.region.arguments:
                role = "state" if child.id in node.states else "from outside"
                role = "one step" if child.id == node.variable else role
                child = replace(child, detail=f"{role}: {child.detail}")
            children.append(child)
        states = ", ".join(strip_path(node.name, state) for state in node.states)
        cost = sum((child.cost for child in children), Cost())
        words = [f"carries {states}"] * bool(states) + ["ends by a value"] * bool(node.final)
        return replace(box, detail=", ".join(words), children=tuple(children), cost=cost)

    def rows(self, owner: str) -> tuple[Row, ...]:
        named = ((each.name.removeprefix(f"{owner}."), each) for each in self.weights.get(owner, ()))
        return tuple(Row(name, shape_of(each.axes), "frozen" * each.frozen) for name, each in named)


def _route(decision: ir.Decision, box: Box) -> Box:
    """A route with the records of its router; a router in the language has its text inside."""
    graph, node = decision.part.graph, decision.node
    types = {name: str(graph.type_of(result)) for name, result in decision.inside.items()}
    value = graph.type_of(decision.value)
    return replace(
        box,
        kind="route",
        detail=f"{decision.pool.name} by {decision.router.name}",
        types=(str(value),),
        short=short_type(value),
        records=tuple(Row(each.name, types[each.name], each.role.value) for each in decision.declared),
        settings=(("lowering", node.lowering),) if isinstance(node, ir.RouteNode) and node.lowering else (),
    )


# ------------------------------------------------------------ edges


def edges_of(graph: ir.Graph, prefix: str = "") -> Iterator[Edge]:
    """The edges of a graph and of its regions; `prefix` begins the ids of its boxes.

    A pool that stands in two graphs has its edges twice.
    """

    def edge(result: ir.Result, target: str, kind: str, slot: str) -> Edge:
        type_ = graph.type_of(result)
        return Edge(prefix + result.node, target, kind, slot, str(type_), short_type(type_))

    for node in graph:
        here = prefix + node.name
        own = node.within if isinstance(node, ir.DecisionNode) else None  # the box of a decision has its router's body
        array = isinstance(node, ir.OpNode) and isinstance(
            node.op, Array
        )  # its operand only gives the number of examples
        for slot, source in graph.inputs(node.name).items() if not array else ():
            around = graph[source.node].within
            if own is None or around is None or own not in around.chain():
                yield edge(source, slot if isinstance(node, ir.ScanNode) else here, "data", slot)
        yield from (edge(source, here, "length", axis) for axis, source in graph.lengths(node.name).items())
        yield from (Edge(prefix + used, here, "uses", role) for role, used in graph.uses(node.name).items())
        if isinstance(node, ir.ScanNode):
            inside = node.region.graph
            yield from edges_of(inside)
            for state, following in zip(node.states, node.following, strict=True):
                type_ = inside.type_of(following)
                yield Edge(following.node, state, "carry", "next", str(type_), short_type(type_))
        elif isinstance(node, ir.PoolNode):
            for region, strip_path in zip(node.regions, prefixes(node, here), strict=True):
                yield from edges_of(region.graph, strip_path)


def prefixes(pool: ir.PoolNode, box: str) -> list[str]:
    """Find the prefixes of ids in the regions of a pool, given the id of its box."""
    return [f"{box}/"] if pool.is_homogeneous else [f"{box}/{module}/" for module in range(pool.size)]


def find_ids_of_nodes(graph: ir.Graph, prefix: str = "", place: str = "") -> Iterator[tuple[str, str]]:
    """The places of nodes (`expert/0/fc1`) with the ids of their boxes.

    Names in a scan's step belong to the whole model, names in a pool's module to the module.
    """
    for node in graph:
        yield place + node.name, prefix + node.name
        if isinstance(node, ir.ScanNode):
            yield from find_ids_of_nodes(node.region.graph, prefix, f"{place}{node.name}/0/")
        elif isinstance(node, ir.PoolNode):
            for at, inner in enumerate(prefixes(node, prefix + node.name)):
                yield from find_ids_of_nodes(node.regions[at].graph, inner, f"{place}{node.name}/{at}/")


def short_type(type_: TensorType) -> str:
    """A type in few characters: `197×384`, `time×32`, or nothing for a single number."""
    return "×".join(str(axis.size if axis.size is not None else axis.name) for axis in type_.shape)
