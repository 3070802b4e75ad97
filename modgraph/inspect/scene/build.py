"""Graph to scene."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from modgraph import ir
from modgraph.diagnostics import Source
from modgraph.inspect.cost import Cost, axes_of_any_length, cost_of
from modgraph.inspect.scene.edges import edges_of, ids_of_nodes, prefixes, short_type
from modgraph.inspect.scene.stacks import Entry, group_of, mark_tokenizers, stacked
from modgraph.inspect.scene.values import Box, Row, Scene
from modgraph.inspect.scene.words import Level, below, brief, help_of, lines_of, settings_of, shape_of, shown
from modgraph.ir.program.outline import definitions_of


def scene_of(graph: ir.Graph) -> Scene:
    """The scene of a graph; nodes with spans know their lines."""
    cost, edges = cost_of(graph), tuple(dict.fromkeys(edges_of(graph)))
    builder = _Builder(graph, cost)
    boxes = mark_tokenizers(builder.boxes(ir.body_of(graph), Level(graph)), edges)
    lengths = tuple((axis, 1) for axis in axes_of_any_length(graph))
    return Scene(graph.name, shown(graph.parameters), boxes, edges, cost, lengths, tuple(builder.sources.values()))


class _Builder:
    """Makes boxes of nodes and calls, each of which is drawn once, and counted once."""

    def __init__(self, graph: ir.Graph, cost: Cost) -> None:
        self.graph = graph
        self.own = cost.own
        self.definitions = definitions_of(graph)
        self.weights: dict[str, list[ir.GraphWeight]] = {}
        for weight in ir.weights_of(graph):
            self.weights.setdefault(weight.owner, []).append(weight)
        self.first_use: dict[str, str] = {}  # of the weights of an owner
        self.taken = {id for _, id in ids_of_nodes(graph)}
        self.drawn: set[str] = set()
        self.sources: dict[str, Source] = {}

    def boxes(self, body: ir.Body, level: Level) -> tuple[Box, ...]:
        """The boxes of a body: its nodes, and calls, equal ones that follow each other as one."""
        entries: list[Entry] = []
        for item in body.items:
            match item:
                case ir.Body():
                    entries += self.call(item, level)
                case ir.Node() if item.name not in level.shared and level.prefix + item.name not in self.drawn:
                    self.drawn.add(level.prefix + item.name)
                    entries.append(Entry(self.box(item, level)))
        return tuple(stacked(entries, self.unique))

    def call(self, body: ir.Body, level: Level) -> Iterator[Entry]:
        """The box of a call; that of a router's text is its decision, a module's that has one op is the op."""
        call = body.call
        assert call is not None
        inside = replace(level, path=call.path, weights=call.weights)
        decisions = (each for each in body.items if isinstance(each, ir.DecisionNode) and each.name == call.path)
        if (route := next(decisions, None)) is not None:
            self.drawn.add(level.prefix + route.name)
            box, children = self.box(route, level), self.boxes(body, inside)
            yield Entry(replace(box, children=children, cost=sum((child.cost for child in children), box.cost)))
        elif children := self.boxes(body, inside):
            label = level.label(call)
            box = replace(children[0], label=label)
            if len(children) > 1 or box.kind == "repeat":
                author = "" if label == call.definition or call.kind == "round" else call.definition
                box = group_of(self.unique(level.prefix + call.path), label, children, detail=author)
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
        """A pool's box; what one inside a module costs is counted at the pool around it."""
        children: tuple[Box, ...] = ()
        for module, (region, prefix) in enumerate(zip(node.regions, prefixes(node, box.id), strict=True)):
            boxes = self.boxes(ir.body_of(region.graph), Level(region.graph, prefix))
            if node.alike:
                children = boxes
            else:
                children += (Box(id=prefix[:-1], kind="block", label=f"module {module}", children=boxes),)
        owners = (node.name, f"{node.name}.shared", *(f"{node.name}.{module}" for module in range(node.size)))
        grown = (f"the last {node.grown} were added to a trained pool",) if node.grown else ()
        return replace(
            box,
            detail=f"{node.size} modules: {node.message} → {node.result}",
            settings=(("modules", str(node.size)),),
            cost=Cost() if inside else sum((self.own.get(owner, Cost()) for owner in owners), Cost()),
            weights=() if inside else self.rows(f"{node.name}.shared") + self.rows(f"{node.name}.0"),
            children=children,
            count=node.size if node.alike else 1,
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
        states = ", ".join(below(node.name, state) for state in node.states)
        cost = sum((child.cost for child in children), Cost())
        return replace(box, detail=f"carries {states}" if states else "", children=tuple(children), cost=cost)

    def rows(self, owner: str) -> tuple[Row, ...]:
        named = ((each.name.removeprefix(f"{owner}."), each) for each in self.weights.get(owner, ()))
        return tuple(Row(name, shape_of(each.axes), "frozen" * each.frozen) for name, each in named)


def _route(decision: ir.Decision, box: Box) -> Box:
    """A route, and what its router decides; one that is written in the language has its text inside."""
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
