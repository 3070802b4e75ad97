"""Elaborates the rounds of a `repeat`, and copies a round whose surroundings equal those of the round before.

Surroundings are equal if every name that the body may read has an equal meaning, or a value of equal type that an op of
an equal declaration computes, and if each `if` of the body that asks for the key takes the same branch. Then the names
of the two rounds differ only by the path of the round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import Entity, Family, PoolEntity, RouterEntity, RouterUse, Template, Tensor
from modgraph.elaboration.scope import Scope, join
from modgraph.elaboration.sparsity import find_support
from modgraph.frozen import replace_fields
from modgraph.ir import Call, Graph, LossNode, Node, OpNode, PoolNode, Result, RouteNode, RouterNode
from modgraph.ir.program.relative import rename, rename_axes
from modgraph.ops.array import NextState, State
from modgraph.syntax import ast
from modgraph.types import TensorType

SIMPLE = (ast.Binding, ast.If, ast.Frozen, ast.Module, ast.Pool, ast.Router, ast.Loss, ast.Array)
MOST_TRIED = 4  # rounds to elaborate, of each branch, before a loop counts as irregular
NAMED = {ast.Loss: ("loss.",), ast.Output: ("", "output.")}  # prefixes of node names before the name in the statement
KINDS = (OpNode, PoolNode, RouterNode, RouteNode, LossNode)


@dataclass(frozen=True)
class Round:
    """An elaborated round: the meaning of names before it, its call and nodes, and its effects.

    Effects are the names that it bound in its own scope and in the enclosing body, its entries in the tables of the
    context, and counts.
    """

    before: Mapping[str, Any]
    call: Call
    nodes: tuple[Node, ...]
    own: Mapping[str, Any]
    bound: Mapping[str, Any]
    entries: tuple[tuple[tuple[Any, Any], ...], ...]
    tensors: int

    @cached_property
    def with_own_axes(self) -> frozenset[str]:
        """The nodes that name an axis of the round."""
        return frozenset(node.name for node in self.nodes if self._names_own(node))

    @property
    def has_own_names_in_modules(self) -> bool:
        """Whether modules of its pools name a pool or an axis of the round, as a pool in a pool does."""
        pools = [node for node in self.nodes if isinstance(node, PoolNode)]
        return any(self._names_own(node) for pool in pools for graph in pool.graphs() for node in graph)

    def _names_own(self, node: Node) -> bool:
        """Whether a node names a pool or an axis of the round."""
        paths, mark = (f"{self.call.path}.", f"{self.call.weights}."), f"{self.call.path}~"
        return rename(node, node.name, lambda name: mark * name.startswith(paths) + name) != node


class Rounds:
    """The rounds of one loop."""

    def __init__(self, statement: ast.Loop, elaborator: Elaborator) -> None:
        self.statement = statement
        self.elaborator = elaborator
        self.keyed = frozenset(_find_keyed_names(statement))
        trees = [*ast.walk(statement.body)]
        names = [each.name for each in trees if isinstance(each, ast.Name)]
        self.names = sorted({*names, *statement.body.bound} - {statement.variable})
        statements = [each for each in trees if isinstance(each, ast.Statement)]
        simple = all(isinstance(each, SIMPLE) and getattr(each, "keyword", "") != "state" for each in statements)
        plain = elaborator.scan is None and not elaborator.region and not elaborator.context.is_observed
        members = [each for each in trees if isinstance(each, ast.Reference) and each.index is not None]
        losses = [each.reference for each in trees if isinstance(each, ast.Loss)]
        keyed = all(
            any(each is loss for loss in losses) and _is_variable(each.index, statement.variable) for each in members
        )
        self.conditions = [*_find_keyed_conditions(statement)]
        asked = [each for tree in self.conditions for each in ast.walk(tree) if isinstance(each, ast.Name)]
        uses = len(members) + [each.name for each in asked].count(statement.variable)
        self.possible = simple and plain and keyed and names.count(statement.variable) == uses
        self.tried = 0
        self.last: dict[tuple[Any, ...], Round | None] = {}  # by the branches that conditions on the key take

    def elaborate(self, key: Any, scope: Scope) -> None:
        """Elaborate a round in its scope, or copy it from the last one."""
        facts: Any = {"key": key, "members": self.keyed, "span": self.statement.span}
        call = Call("round", self.statement.name, scope.node_path, scope.path, self.elaborator.context.call, **facts)
        branches = self._find_branches(scope) if self.possible else None
        if branches is None:
            self._elaborate(call, scope)
            return
        before, last = {name: self.elaborator.scope.find(name) for name in self.names}, self.last.get(branches)
        values = _match_values(last.before, before, self.elaborator) if last is not None else None
        if last is not None and values is not None:
            _copy(last, call, values, scope, self.elaborator)
        else:
            self.last[branches] = self._record_round(before, call, scope)

    def _find_branches(self, scope: Scope) -> tuple[Any, ...] | None:
        """Evaluate the conditions on the key; None if one is neither true nor false, which the round then reports."""
        elaborator = self.elaborator.with_scope(scope)
        found = tuple(elaborator.evaluate_constant(each, "a condition") for each in self.conditions)
        self.possible = all(isinstance(each, bool) for each in found)
        return found if self.possible else None

    def _elaborate(self, call: Call, scope: Scope) -> None:
        with self.elaborator.context.enter_call(call):
            self.elaborator.with_scope(scope).elaborate(self.statement.body)

    def _record_round(self, before: Mapping[str, Any], call: Call, scope: Scope) -> Round | None:
        """Elaborate a round and record it; None if it cannot be copied."""
        context, graph = self.elaborator.context, self.elaborator.graph
        self.tried += 1
        reported, nodes, tensors = _count_reported(self.elaborator), len(graph), context.counts["weights"]
        lengths = [len(table) for table in _list_tables(self.elaborator)]
        self._elaborate(call, scope)
        new = tuple(islice(graph, nodes, None))
        bound = {
            name: self.elaborator.scope.find(name) for name in self.statement.body.bound if name not in scope.names
        }
        found = Round(
            before,
            call,
            tuple(node for node in new if call in node.calls),
            {name: value for name, value in scope.names.items() if name != self.statement.variable},
            {name: value for name, value in bound.items() if value is not before.get(name)},
            tuple(
                tuple(islice(table.items(), length, None))
                for table, length in zip(_list_tables(self.elaborator), lengths, strict=True)
            ),
            context.counts["weights"] - tensors,
        )
        self.possible = self.tried < MOST_TRIED * max(1, len(self.last))
        plain = all(isinstance(node, KINDS) for node in new)
        moved = any(isinstance(node, OpNode) and isinstance(node.op, State | NextState) for node in new)
        silent = reported == _count_reported(self.elaborator)
        sound = plain and not moved and silent and not found.has_own_names_in_modules
        return found if sound and _is_known(found, self.elaborator) else None


def _find_keyed_conditions(statement: ast.Loop) -> Iterator[ast.Expression]:
    """Find the conditions on the variable of a loop that no name of its body decides, of no `if` within another."""
    for each in statement.body.statements:
        if isinstance(each, ast.If):
            names = {tree.name for tree in ast.walk(each.condition) if isinstance(tree, ast.Name)}
            if statement.variable in names and not names & {*statement.body.bound}:
                yield each.condition


def _find_keyed_names(statement: ast.Loop) -> set[str]:
    """Find the names whose members a loop keys by its variable, `h[i] = …`, as prefixes of node names."""
    found: set[str] = set()
    for each in statement.body.every_statement():
        if isinstance(each, ast.Binding | ast.Loss | ast.Output | ast.Input | ast.Target):
            references = each.references if isinstance(each, ast.Binding) else (each.reference,)
            if any(
                reference is not None and _is_variable(reference.index, statement.variable) for reference in references
            ):
                name = "_".join(reference.name for reference in references if reference is not None)
                found.update(before + name for before in NAMED.get(type(each), ("",)))
    return found


def _is_variable(index: ast.Expression | None, variable: str) -> bool:
    return isinstance(index, ast.Name) and index.name == variable


def _count_reported(elaborator: Elaborator) -> tuple[int, ...]:
    """Count the diagnostics and the facts about lengths and growth, none of which can be copied."""
    context = elaborator.context
    said: Any = (context.report.diagnostics, context.deferred, context.lengths, context.may_grow, context.of_any_length)
    return tuple(map(len, said))


def _list_tables(elaborator: Elaborator) -> tuple[dict[Any, Any], ...]:
    """Return the tables of the context that are keyed by paths."""
    context = elaborator.context
    owners = context.owners.setdefault(elaborator.home, {})
    tables: Any = (context.messages, context.yields, context.first_used, context.weights)
    return (*tables, owners, context.declared, context.shorter, context.used)


def _is_known(found: Round, elaborator: Elaborator) -> bool:
    """Whether a round can be copied.

    It must read only inputs and named values, its names must have renamable meanings, and no choice of modules may
    enter or leave it.
    """

    def is_known(value: Any) -> bool:
        match value:
            case Tensor():
                return True
            case Family():
                return all(map(is_known, value.members.values()))
            case PoolEntity():
                return value.path in elaborator.context.used
            case RouterEntity(router=RouterUse() as use):
                return not any(isinstance(each, Template) for each in use.parameters.values())
            case _:
                return isinstance(value, RouterEntity) or not isinstance(value, Entity)

    own = {node.name for node in found.nodes}
    entering = [value for value in found.before.values() if isinstance(value, Tensor)]
    leaving = [value for value in found.bound.values() if isinstance(value, Tensor)]
    results = {value.result for value in entering}
    read = {
        each for node in found.nodes for each in elaborator.graph.inputs(node.name).values() if each.node not in own
    }
    return (
        all(each in results or elaborator.graph[each.node].kind == "input" for each in read)
        and all(map(is_known, found.own.values()))
        and len(leaving) == len(found.bound)
        and all(find_support(value.result, elaborator.graph) is None for value in (*entering, *leaving))
    )


def _match_values(
    before: Mapping[str, Any], now: Mapping[str, Any], elaborator: Elaborator
) -> dict[Result, Result] | None:
    """Map the values that a round read to those of the current round; None if another round would differ."""
    found: dict[Result, Result] = {}
    for name, was in before.items():
        here = now[name]
        if isinstance(was, Tensor) and isinstance(here, Tensor):
            is_same = was.type == here.type and _find_maker(was.result, elaborator.graph) == _find_maker(
                here.result, elaborator.graph
            )
            if not is_same or found.setdefault(was.result, here.result) != here.result:
                return None
        elif isinstance(was, RouterEntity | Template) or (
            was is not here and (type(was) is not type(here) or was != here)
        ):
            return None
    return found


def _find_maker(result: Result, graph: Graph) -> Any:
    """Return what makes results equal: the op that computes them, a route, or else the result itself."""
    node = graph[result.node]
    return node.op if isinstance(node, OpNode) else RouteNode if isinstance(node, RouteNode) else result


class _Renaming:
    """Renames the things of a round for the next one, whose operands are other `values`."""

    def __init__(self, old: Call, new: Call, values: Mapping[Result, Result], body: Scope) -> None:
        paths = [(old.path, new.path), (old.weights, new.weights)]
        for member in new.members:
            named = f"{member}.{old.key}", f"{member}.{new.key}"
            paths += [(join(path, named[0]), join(path, named[1])) for path in {body.path, body.node_path}]
        self.moves = [(before, f"{before}.", after) for before, after in dict.fromkeys(paths)]
        self.values = values
        self.names: dict[str, str] = {}
        self.calls: dict[Call | None, Call | None] = {old: new, new.outer: new.outer}

    def name(self, name: str) -> str:
        if name not in self.names:
            found = name
            for before, prefix, after in self.moves:
                if found == before or found.startswith(prefix):
                    found = after + found[len(before) :]
            self.names[name] = found
        return self.names[name]

    def call(self, call: Call | None) -> Call | None:
        if call not in self.calls:
            assert call is not None
            paths = {"path": self.name(call.path), "weights": self.name(call.weights)}
            self.calls[call] = replace_fields(call, **paths, outer=self.call(call.outer))
        return self.calls[call]

    def value(self, value: Any) -> Any:
        """Rename an entity or an entry of the context."""
        match value:
            case str():
                return self.name(value)
            case Result():
                moved = self.values.get(value)
                return Result(self.name(value.node), value.index) if moved is None else moved
            case Call():
                return self.call(value)
            case TensorType():
                return rename_axes(value, self.name)
            case tuple():
                return tuple(map(self.value, value))
            case Family():
                return replace_fields(value, members={key: self.value(each) for key, each in value.members.items()})
            case Tensor() | PoolEntity() | RouterEntity():
                return replace_fields(value, **{name: self.value(each) for name, each in vars(value).items()})
            case _:
                return value


def _copy(last: Round, call: Call, values: Mapping[Result, Result], scope: Scope, elaborator: Elaborator) -> None:
    """Copy a round: add its nodes, and update the scope and the context."""
    context, graph, span = elaborator.context, elaborator.graph, last.call.span
    assert span is not None
    renaming = _Renaming(last.call, call, values, elaborator.scope.body)
    context.count("nodes", len(last.nodes), span)
    for node in last.nodes:
        inputs = {slot: renaming.value(each) for slot, each in graph.inputs(node.name).items()}
        uses = {role: renaming.name(name) for role, name in graph.uses(node.name).items()}
        facts: dict[str, Any] = {"name": renaming.name(node.name), "within": renaming.call(node.within)}
        if isinstance(node, OpNode):
            facts["owner"] = renaming.name(node.owner)
        like = rename(node, node.name, renaming.name) if node.name in last.with_own_axes else node
        known = graph.find_signature(node.name) if isinstance(like, OpNode) and like is node else None
        added = graph.add(replace_fields(like, **facts), inputs, uses, known)
        context.named[added.name] = added
    for table, entries in zip(_list_tables(elaborator), last.entries, strict=True):
        table.update((renaming.value(key), renaming.value(value)) for key, value in entries)
    context.count("weights", last.tensors, span)
    context.spend(len(last.nodes), span)
    for name, value in last.own.items():
        scope.declare(name, renaming.value(value))
    for name, value in last.bound.items():
        elaborator.scope.rebind(name, renaming.value(value))
