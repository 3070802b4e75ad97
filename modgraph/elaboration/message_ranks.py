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
            rank, stays = term.op.message_rank, _keeps_rank(type(term.op))
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
            found = tuple(max(int(said), each) for each in _ranks_of_inputs(term))
            return found if len(found) == count else (1,) * count
    return (1,) * count


def _ranks_of_inputs(use: BlockUse) -> Iterator[int]:
    """A block's inputs say their axes; outer named ones are those of the senders and beyond, the last is never, and
    none that the first op on an input needs."""
    body = use.block.definition.body
    scope = Scope(outer=use.block.scope, names=dict(use.parameters), arguments=dict(use.spans))
    for each in (statement for statement in body.statements if isinstance(statement, ast.Input)):
        axes = each.type.axes
        named = [isinstance(axis, ast.Name) and axis.name not in use.parameters for axis in axes]
        outer = next((at for at, is_name in enumerate(named[:-1]) if not is_name), max(0, len(axes) - 1))
        sent = (
            line for line in body.pipelines if isinstance(line.head, ast.Name) and line.head.name == each.reference.name
        )
        needed = max((_needed_by(line.stages, scope)[0] for line in sent), default=1)
        yield max(len(axes) - outer, min(len(axes), needed))


def _needed_by(stages: tuple[ast.Stage, ...], scope: Scope) -> tuple[int, bool]:
    """The axes that the first stage needs, or the first that needs several behind those that leave all axes there, 1
    where that is not known; and whether all leave them."""
    for stage in stages:
        callee = stage.term.callee if isinstance(stage.term, ast.Call) else stage.term
        if stage.sent is not None or not isinstance(callee, ast.Name):
            return 1, False
        known = scope.find(callee.name)
        op = find_op(callee.name) if known is None else type(known.op) if isinstance(known, OpUse) else None
        needed, stays = 1, False
        if op is not None:
            needed = max(1, sum(axis != "..." for axis in op.operands[0].axes.split()))
            stays = _keeps_rank(op)
        elif isinstance(known, Template):
            needed, stays = _needed_by(known.stages, known.scope)
        if needed > 1 or not stays:
            return needed, stays
    return 1, True


def _keeps_rank(op: type[Op]) -> bool:
    """Whether the result of an op has as many axes as its operand, whatever its settings."""
    same = len(op.results[0].split()) == len(op.operands[0].axes.split())
    return same and op.infer is Declaration.infer and not op.along
