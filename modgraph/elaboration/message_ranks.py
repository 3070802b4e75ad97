"""How many trailing axes a template takes as one message: what its first op or block says, or needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modgraph.declare import Declaration
from modgraph.elaboration.entities import BlockUse, ModuleEntity, OpUse, Template
from modgraph.elaboration.scope import Scope
from modgraph.elaboration.site import Site
from modgraph.ops import Op
from modgraph.syntax import ast
from modgraph.vocabulary import find_op


def message_ranks(template: Any, count: int, site: Site) -> tuple[int, ...]:
    """How many trailing axes the modules of a pool take of each value: as many as the first op or block says, or the
    first op that needs several behind those that leave all axes there."""
    terms: list[Any] = [template]
    seen: set[str] = set()
    said = False
    while terms:
        term = terms.pop(0)
        if isinstance(term, OpUse):
            rank, stays = term.op.message_rank, _stays(type(term.op))
            if rank is not None and (rank > 1 or not (said or stays)):
                return (int(rank),) * count
            if said and not stays:
                break
            said = said or rank is not None
        if isinstance(term, Template):
            inside = site.where_written(term)
            terms = [inside.callable(stage.term) for stage in term.stages] + terms
        if isinstance(term, ModuleEntity) and term.path not in seen:
            seen.add(term.path)
            terms.insert(0, term.template)
        if isinstance(term, BlockUse):
            found = tuple(max(int(said), each) for each in _of_inputs(term))
            return found if len(found) == count else (1,) * count
    return (1,) * count


def _of_inputs(use: BlockUse) -> Iterator[int]:
    """A block's inputs say their axes; outer named ones are those of the senders and beyond, the last is never, and
    none that the first op on an input needs."""
    body = use.block.definition.body
    scope = Scope(outer=use.block.scope)
    scope.declare_parameters(use.parameters, use.spans)
    for each in (statement for statement in body.statements if isinstance(statement, ast.Input)):
        axes = each.type.axes
        named = [isinstance(axis, ast.Name) and axis.name not in use.parameters for axis in axes]
        outer = next((at for at, is_name in enumerate(named[:-1]) if not is_name), max(0, len(axes) - 1))
        yield max(len(axes) - outer, min(len(axes), _needed(each.reference.name, body, scope)))


def _needed(name: str, body: ast.Body, scope: Scope) -> int:
    """How many axes the first ops need that a body sends an input through."""
    sent = (each for each in body.pipelines if isinstance(each.head, ast.Name) and each.head.name == name)
    return max((_along(each.stages, scope)[0] for each in sent), default=1)


def _along(stages: tuple[ast.Stage, ...], scope: Scope) -> tuple[int, bool]:
    """The axes that the first stage needs, or the first that needs several behind those that leave all axes there; and
    whether all leave them."""
    needed, stays = 1, True
    for stage in stages:
        needed, stays = (1, False) if stage.sent is not None else _of_term(stage.term, scope)
        if needed > 1 or not stays:
            break
    return needed, stays


def _of_term(term: ast.Expression, scope: Scope) -> tuple[int, bool]:
    """How many axes something to be applied needs, and whether its result has as many; 1 where that is not known."""
    callee = term.callee if isinstance(term, ast.Call) else term
    if not isinstance(callee, ast.Name):
        return 1, False
    match scope.find(callee.name):
        case None:
            op = find_op(callee.name)
            return (1, False) if op is None else _of_op(op)
        case OpUse(op=used):
            return _of_op(type(used))
        case Template(stages=stages, scope=outer):
            return _along(stages, outer)
        case _:
            return 1, False


def _of_op(op: type[Op]) -> tuple[int, bool]:
    needed = sum(axis != "..." for axis in op.operands[0].axes.split())
    return max(1, needed), _stays(op)


def _stays(op: type[Op]) -> bool:
    """Whether its result has as many axes as its operand, whatever its settings."""
    return (
        op.infer is Declaration.infer
        and not op.along
        and len(op.results[0].split()) == len(op.operands[0].axes.split())
    )
