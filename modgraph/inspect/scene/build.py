"""Graph to scene."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from modgraph.declare import Declaration, shown_value
from modgraph.diagnostics import Source
from modgraph.inspect.cost import Cost, axes_of_any_length, cost_of
from modgraph.inspect.scene.counts import of_pool, own_counts, total
from modgraph.inspect.scene.edges import edges_of, prefixes, short_type
from modgraph.inspect.scene.nesting import Leaf, nested
from modgraph.inspect.scene.repeats import folded
from modgraph.inspect.scene.tokenizers import tokenizers_told
from modgraph.inspect.scene.values import Box, Lines, Row, Scene
from modgraph.ir import (
    Graph,
    GraphWeight,
    GrowthNode,
    Node,
    OpNode,
    OutputNode,
    PoolNode,
    RouteNode,
    RouterNode,
    ScanNode,
    TargetNode,
    weights_of,
)
from modgraph.routers.defined import Defined


def scene_of(graph: Graph, cost: Cost | None = None) -> Scene:
    """The scene of a graph; nodes with spans know their lines."""
    return _Builder(graph, cost or cost_of(graph)).scene()


class _Builder:
    """Makes boxes of nodes, each of which is drawn once, and counted once."""

    def __init__(self, graph: Graph, cost: Cost) -> None:
        self.graph = graph
        self.cost = cost
        self.own = own_counts(cost)
        self.weights: dict[str, list[GraphWeight]] = {}
        for weight in weights_of(graph):
            self.weights.setdefault(weight.owner, []).append(weight)
        self.first_use: dict[str, str] = {}  # of the weights of an owner
        self.drawn: set[str] = set()
        self.sources: dict[str, Source] = {}

    def scene(self) -> Scene:
        edges = tuple(dict.fromkeys(edges_of(self.graph, {node.name: node.name for node in self.graph})))
        self.drawn = {node.name for node in self.graph}
        boxes = nested([Leaf(self.box(self.graph, node), node.name) for node in self.in_order(self.graph)])
        boxes = folded(tokenizers_told(boxes, edges), edges)
        lengths = tuple((axis, 1) for axis in axes_of_any_length(self.graph))
        return Scene(
            self.graph.name,
            _shown(self.graph.parameters),
            boxes,
            edges,
            self.cost,
            lengths,
            tuple(self.sources.values()),
        )

    def in_order(self, graph: Graph) -> list[Node]:
        return [graph[name] for name in graph.canonical()]

    def box(self, graph: Graph, node: Node, prefix: str = "") -> Box:
        """The box of a node and of what is inside of it; `prefix` is that of the pool's region it stands in."""
        if node.span is not None:
            self.sources.setdefault(node.span.source.label, node.span.source)
        plain = Box(
            id=prefix + node.name,
            kind=node.kind,
            label=node.name,
            types=tuple(map(str, node.types)),
            short=short_type(node.types[0]) if node.types else "",
            lines=_lines(node),
        )
        match node:
            case OpNode():
                return self.op(graph, node, plain, inside=bool(prefix))
            case PoolNode():
                return self.pool(node, plain, inside=bool(prefix))
            case RouterNode():
                return self.router(node, plain, inside=bool(prefix))
            case RouteNode():
                return _route(graph, node, plain)
            case GrowthNode():
                return replace(plain, detail=f"{graph.pool_of(node).name} by {graph.router_of(node).name}")
            case ScanNode():
                return self.scan(node, plain)
            case TargetNode() if node.grown:
                notes = (f"the last {node.grown} classes were added to a trained model",)
                return replace(plain, detail=str(node.types[0]), notes=notes)
            case OutputNode():
                return replace(plain, detail=node.label if node.label != node.name else "")
            case _:
                return replace(plain, detail=str(node.types[0]) if node.types else "")

    def op(self, graph: Graph, node: OpNode, box: Box, inside: bool) -> Box:
        first = inside or self.first_use.setdefault(node.owner, node.name) == node.name
        shared = not inside and node.owner != node.name
        notes = (f"its weights are those of {node.owner}, its cost is counted where they are first used",) * shared
        if node.frozen:
            notes = (*notes, "frozen")
        axes = graph.signature(node).weight_axes()
        return replace(
            box,
            kind="tokenizer" if node.op.tokenizes else "op",
            detail=_brief(node.op),
            help=_help(node.op),
            settings=_settings(node.op),
            weights=tuple(Row(name, _shape(shape), "frozen" * node.frozen) for name, shape in axes.items()),
            cost=self.own.get(node.owner, Cost()) if first and not inside else Cost(),
            notes=notes,
        )

    def pool(self, node: PoolNode, box: Box, inside: bool) -> Box:
        """A pool's box; what one inside a module costs is counted at the pool around it."""
        children: tuple[Box, ...] = ()
        for module, (region, prefix) in enumerate(zip(node.regions, prefixes(node, box.id), strict=True)):
            leaves = [Leaf(self.box(region.graph, each, prefix), each.name) for each in self.in_order(region.graph)]
            boxes = nested(leaves, prefix)
            if node.alike:
                children = boxes
            else:
                children += (Box(id=prefix[:-1], kind="block", label=f"module {module}", children=boxes),)
        grown = (f"the last {node.grown} were added to a trained pool",) if node.grown else ()
        shares = (f"its modules are those of {node.shares}",) if node.shares else ()
        return replace(
            box,
            detail=f"{node.size} modules: {node.message} → {node.result}",
            settings=(("modules", str(node.size)),),
            cost=Cost() if inside else of_pool(node, self.own),
            weights=() if inside else self.rows(f"{node.name}.shared") + self.rows(f"{node.name}.0"),
            children=children,
            count=node.size if node.alike else 1,
            notes=grown + shares,
        )

    def router(self, node: RouterNode, box: Box, inside: bool) -> Box:
        records = tuple(Row(each.name, each.axes, each.role.value) for each in node.router.records)
        return replace(
            box,
            detail=_brief(node.router),
            help=_help(node.router),
            settings=_settings(node.router),
            cost=Cost() if inside else self.own.get(node.name, Cost()),
            weights=() if inside else self.rows(node.name),
            records=records,
            notes=("frozen",) if node.frozen else (),
        )

    def scan(self, node: ScanNode, box: Box) -> Box:
        graph, prefix = node.region.graph, f"{node.name}."
        inside = [each for each in self.in_order(graph) if each.name not in self.drawn]
        self.drawn |= {each.name for each in inside}
        leaves = [Leaf(self.box(graph, each), each.name.removeprefix(prefix)) for each in inside]
        leaves = [replace(leaf, box=_argument(leaf.box, node)) for leaf in leaves]
        states = ", ".join(state.removeprefix(prefix) for state in node.states)
        children = nested(leaves, prefix)
        detail = f"carries {states}" if states else ""
        return replace(box, detail=detail, children=children, cost=total(child.cost for child in children))

    def rows(self, owner: str) -> tuple[Row, ...]:
        return tuple(
            Row(each.name.removeprefix(f"{owner}."), _shape(each.axes), "frozen" * each.frozen)
            for each in self.weights.get(owner, ())
        )


def _route(graph: Graph, node: RouteNode, box: Box) -> Box:
    router, pool = graph.router_of(node), graph.pool_of(node)
    types = dict(zip(router.router.record_names, node.types[1:], strict=True))
    records = tuple(Row(each.name, str(types[each.name]), each.role.value) for each in router.router.records)
    lowering = (("lowering", node.lowering),) if node.lowering else ()
    return replace(box, detail=f"{pool.name} by {router.name}", types=box.types[:1], records=records, settings=lowering)


def _argument(box: Box, scan: ScanNode) -> Box:
    """What a scan's argument is to a step of it."""
    if box.id not in scan.region.arguments:
        return box
    if box.id == scan.variable:
        return replace(box, detail=f"one step: {box.detail}")
    return replace(box, detail=f"{'state' if box.id in scan.states else 'from outside'}: {box.detail}")


def _help(declaration: Declaration) -> str:
    return (declaration.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")


def _brief(declaration: Declaration) -> str:
    """A declaration with its settings, numbers to four digits; a router of the language as its text calls it."""
    if isinstance(declaration, Defined):
        given = ", ".join(f"{name}={_digits(value)}" for name, value in map(_pair, declaration.given))
        return f"{declaration.definition}({given})" if given else declaration.definition
    values = {name: f"{v:.4g}" if isinstance(v, float) else shown_value(v) for name, v in declaration.values().items()}
    given = ", ".join(f"{name}={value}" for name, value in values.items())
    return f"{declaration.name}({given})" if given else declaration.name


def _pair(written: str) -> tuple[str, str]:
    name, _, value = written.partition("=")
    return name, value


def _digits(written: str) -> str:
    """A value, a number with four digits."""
    return f"{float(written):.4g}" if re.fullmatch(r"-?\d+\.\d*(e-?\d+)?", written) else written


def _settings(declaration: Declaration) -> tuple[tuple[str, str], ...]:
    if isinstance(declaration, Defined):
        return tuple(map(_pair, (*declaration.given, *declaration.defaults)))
    return _shown({name: getattr(declaration, name) for name in declaration.settings()})


def _shown(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((name, shown_value(value)) for name, value in values.items())


def _shape(axes: tuple[object, ...]) -> str:
    return f"[{', '.join(map(str, axes))}]"


def _lines(node: Node) -> Lines | None:
    if node.span is None:
        return None
    source, start, end = node.span.source, node.span.start, node.span.end
    first, last = source.position(start)[0], source.position(max(start, end - 1))[0]
    return Lines(source.label, start, end, first, last)
