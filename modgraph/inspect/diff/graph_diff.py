"""Compares two graphs: matches nodes, compares the regions of matches in the same way, then compares facts.

`Renames` has the new names of nodes, of owners of weights and of axes. `apply_diff` applies a diff to a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter

from modgraph import ir
from modgraph.inspect.cost import natural
from modgraph.inspect.diff.changes import OUTPUT, Changed, Diff, Moved, Unmatched, differences, facts_of, model_of
from modgraph.inspect.diff.level import Level, Palette, split_place
from modgraph.inspect.diff.matching import Matching

NODE, WEIGHTS, AXIS, LABEL = "node", "weights", "axis", "label"  # all but nodes are kinds of moves
GONE = "not."  # before the name of a node that is not there after: a path as those of axes, and none of a spec
PARAMETERS = "parameters."


class Renames:
    """New names: of nodes by level, of owners of weights by scope, of axes, and of the labels of decisions. A name
    that is not listed stays."""

    def __init__(self, moves: Iterable[Moved], graph: ir.Graph, gone: Iterable[tuple[str, str]] = ()) -> None:
        """`moves` are those in a graph, `gone` the kinds and places of nodes that are not there after.

        Unless said otherwise, owners of weights are called as their nodes, and axes as their pools.
        """
        scopes = {level.place: level.scope for level in Level(graph).walk()}
        self.names: dict[tuple[str, str], dict[str, str]] = {}
        for each in sorted(moves, key=lambda move: move.kind == WEIGHTS):
            (level, old), new = split_place(each.before), split_place(each.after)[1]
            if each.kind in (LABEL, AXIS):
                self._set(each.kind, "", old, new)
                continue
            self._set(WEIGHTS, scopes[level], old, new)
            if each.kind != WEIGHTS:
                self._set(NODE, level, old, new)
            if each.kind == "pool":
                self._set(AXIS, "", old, new)
        for kind, place in gone:  # another may use the weights of what is gone
            level, name = split_place(place)
            self._set(NODE, level, name, GONE + name)
            if kind == "pool":
                self._set(AXIS, "", name, GONE + name)

    def _set(self, kind: str, where: str, old: str, new: str) -> None:
        self.names.setdefault((kind, where), {})[old] = new

    def naming(self, kind: str, where: str = "") -> Callable[[str], str]:
        """The function from old to new names of a kind."""
        names = self.names.get((kind, where), {})
        return lambda name: names.get(name, name)

    def graph(self, level: Level) -> ir.Graph:
        """The graph of a level with new names."""
        found = ir.Graph(level.graph.name)
        named = self.naming(NODE, level.place)

        def read(result: ir.Result) -> ir.Result:
            return ir.Result(named(result.node), result.index)

        for node in level.graph:
            now, slots = self._node(node, level), dict[str, str]()
            if isinstance(node, ir.ScanNode) and isinstance(now, ir.ScanNode):  # slots are called as arguments
                slots = dict(zip(node.region.arguments, now.region.arguments, strict=True))
            inputs = {slots.get(slot, slot): read(each) for slot, each in level.graph.inputs(node.name).items()}
            uses = {role: named(used) for role, used in level.graph.uses(node.name).items()}
            found.add(now, inputs, uses)
        return found

    def _node(self, node: ir.Node, level: Level) -> ir.Node:
        named, axis = self.naming(NODE, level.place), self.naming(AXIS)
        regions = []
        for inner in level.inner(node):
            inside = self.naming(NODE, inner.place)
            results = tuple(ir.Result(inside(each.node), each.index) for each in inner.results)
            regions.append(ir.Region(self.graph(inner), tuple(map(inside, inner.arguments)), results))
        now = ir.with_regions(ir.rename(node, named(node.name), axis), tuple(regions))
        match now:
            case ir.OpNode():
                gone = GONE if now.name.startswith(GONE) else ""
                return replace(now, owner=gone + self.naming(WEIGHTS, level.scope)(now.owner))
            case ir.RouteNode() | ir.DecisionNode():
                return replace(now, label=self.naming(LABEL)(now.label))
            case ir.OutputNode() if node.name == OUTPUT + now.label:
                return replace(now, label=now.name.removeprefix(OUTPUT))
            case ir.PoolNode() if isinstance(node, ir.PoolNode):
                # the path of modules is that of their axis; one of unlike modules has a number behind it
                path, dot, at = node.inside.rpartition(".")
                inside_of = f"{axis(path)}.{at}" if dot and at.isdigit() and axis(path) != path else axis(node.inside)
                shared = named(node.shares)
                return replace(now, inside=inside_of, shares=now.shares if shared == node.shares else shared)
            case _:
                return now


def apply_diff(diff: Diff, before: ir.Graph) -> ir.Graph:
    """The graph that a diff leads to from the one before."""
    model = model_of(before) | {each.name: each.after for each in diff.model}
    left = {name: value for name, value in model.items() if name.startswith(PARAMETERS) and value is not None}
    parameters = {name.removeprefix(PARAMETERS): value for name, value in left.items()}
    known = {each.after: each.graph for each in diff.changed} | {each.place: each.graph for each in diff.added}

    def fill(graph: ir.Graph, level: Level, inputs: tuple[str, ...] = ()) -> ir.Graph:
        """Add the nodes of a level that has its new names: inputs in their order, then in topological order."""
        kept = [node.name for node in level.graph if not node.name.startswith(GONE)]
        added = [name for place, name in (split_place(each.place) for each in diff.added) if place == level.place]
        homes = {name: known.get(level.place + name, level.graph) for name in (*inputs, *kept, *added)}
        sources: dict[str, list[str]] = {}
        for name, home in homes.items():
            results = (*home.inputs(name).values(), *home.lengths(name).values())
            sources[name] = [*(each.node for each in results), *home.uses(name).values()]
        for name in TopologicalSorter(sources).static_order():
            home = homes[name]
            regions = [*ir.regions_of(home[name])]
            inner = level.inner(level.graph[name]) if name in level.graph else []
            for at, (region, below) in enumerate(zip(regions, inner, strict=False)):
                regions[at] = replace(region, graph=fill(ir.Graph(""), below))
            node = ir.with_regions(home[name], tuple(regions))
            graph.add(node, home.inputs(name), home.uses(name))
        return graph

    renames = Renames(diff.moved, before, [(each.kind, each.place) for each in diff.removed])
    return fill(ir.Graph(model["name"], parameters), Level(renames.graph(Level(before))), model["inputs"])


Pair = tuple[str, str]


def compare(before: ir.Graph, after: ir.Graph, moved: Mapping[str, str] | None = None) -> Diff:
    """The diff of two graphs; `moved` maps old names, or prefixes of names, to new ones."""
    palette: Palette = {}
    matched = [*_match(Level(before, palette=palette), Level(after, palette=palette), moved or {})]
    added, removed = list[Unmatched](), list[Unmatched]()
    for each in matched:
        for found, level, names in zip((removed, added), each.levels, each.rest(), strict=True):
            found += (Unmatched(level.place + name, level.graph) for name in names)
    moves = [*_moves(matched, before)]
    taken = {each.levels[0].place + name for each in matched for name in each.before}
    gone = [(each.kind, each.place) for each in removed if each.place in taken]
    renamed = Level(Renames(moves, before, gone).graph(Level(before)))
    homes = {level.place: level.graph for level in renamed.walk()}
    changed = []
    for each in matched:
        first, second = each.levels
        for old, new in each.nodes():
            shared = min(len(ir.regions_of(old)), len(ir.regions_of(new)))
            facts = (facts_of(graph, new.name, shared) for graph in (homes[second.place], second.graph))
            if attributes := differences(*facts):
                places = first.place + old.name, second.place + new.name
                changed.append(Changed(new.kind, *places, attributes, second.graph))
    return Diff(
        added=tuple(sorted(added, key=lambda each: natural(each.place))),
        removed=tuple(sorted(removed, key=lambda each: natural(each.place))),
        moved=tuple(moves),
        changed=tuple(sorted(changed, key=lambda each: natural(each.after))),
        doubts=tuple(doubt for each in matched if not each.levels[0].scope for doubt in each.doubts()),
        model=differences(model_of(before), model_of(after)),
    )


def _match(before: Level, after: Level, moved: Mapping[str, str]) -> Iterator[Matching]:
    found = Matching(before, after, moved)
    yield found
    for old, new in found.nodes():
        for inner, other in zip(before.inner(old), after.inner(new), strict=False):
            yield from _match(inner, other, moved if isinstance(old, ir.ScanNode) else {})


def _moves(matched: list[Matching], before: ir.Graph) -> Iterator[Moved]:
    """The names that differ: of nodes, of weights that are not called as their node, of axes of no pool, and labels."""
    pairs = [(each, old, new) for each in matched for old, new in each.nodes()]
    others = [(each.levels, old, new) for each, old, new in pairs if old.name != new.name]
    nodes = [Moved(old.kind, at[0].place + old.name, at[1].place + new.name) for at, old, new in others]
    yield from sorted(nodes, key=lambda each: natural(each.after))
    usual = Renames(nodes, before)
    owners: dict[str, list[Pair]] = {}
    for each, old, new in pairs:
        if isinstance(old, ir.OpNode) and isinstance(new, ir.OpNode):
            owners.setdefault(each.levels[0].scope, []).append((old.owner, new.owner))
    for scope, votes in owners.items():
        elected, named = _elect(votes), usual.naming(WEIGHTS, scope)
        for name in sorted({name for name, _ in votes}, key=natural):
            if named(name) != (other := elected.get(name, name)):
                yield Moved(WEIGHTS, scope + name, scope + other)
    pools = {pool.name for each in matched for level in each.levels for pool in level.graph.nodes_of(ir.PoolNode)}
    for name, other in sorted(_elect(vote for _, old, new in pairs for vote in _axes(old, new)).items()):
        if name != other and not pools & {name, other}:
            yield Moved(AXIS, name, other)
    uses = [(old, new) for _, old, new in pairs if isinstance(old, ir.RouteNode | ir.DecisionNode)]
    labels = _elect((old.label, getattr(new, "label", "")) for old, new in uses)
    yield from (Moved(LABEL, name, other) for name, other in labels.items() if name and other and name != other)


def _elect(votes: Iterable[Pair]) -> dict[str, str]:
    """New names that always replace one old name, which nothing else replaces."""
    after: dict[str, set[str]] = {}
    before: dict[str, set[str]] = {}
    for old, new in votes:
        after.setdefault(old, set()).add(new)
        before.setdefault(new, set()).add(old)
    return {old: new for old, names in after.items() if len(names) == 1 for new in names if len(before[new]) == 1}


def _axes(before: ir.Node, after: ir.Node) -> Iterator[Pair]:
    for old, new in zip(before.types, after.types, strict=False):
        if len(old.shape) == len(new.shape):
            names = ((axis.name, other.name) for axis, other in zip(old.shape, new.shape, strict=True))
            yield from ((name, other) for name, other in names if name and other)
        yield from ((one.name, other.name) for one, other in zip(old.ends, new.ends, strict=False))
        if old.of and new.of:
            yield old.of, new.of
