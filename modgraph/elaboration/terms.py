"""What a term right of an arrow stands for: an op, a block, a module or a pool."""

from __future__ import annotations

from typing import Any

from modgraph.elaboration import errors
from modgraph.elaboration.blocks import use_block
from modgraph.elaboration.calls import arguments_of, settle
from modgraph.elaboration.entities import POISON, BlockEntity, Poison, described, is_block, is_callable
from modgraph.elaboration.site import Site
from modgraph.syntax import ast
from modgraph.vocabulary import find_op, op_meant


def callable_of(term: ast.Expression, site: Site) -> Any:
    """What a term right of an arrow stands for."""
    match term:
        case ast.Name():
            return _named(term, site)
        case ast.Call(callee=ast.Name() as callee):
            block = site.scope.find(callee.name, is_block)
            if isinstance(block, BlockEntity):
                return use_block(block, arguments_of(term, site), site, term.span)
            op = find_op(callee.name)
            if op is None:
                _tell_unknown(callee, site)
                return POISON
            return settle(op, arguments_of(term, site), site, term.span)
        case _:
            value = site.evaluate(term)
            if is_callable(value) or isinstance(value, Poison):
                return value
            found = f"this is {described(value)}"
            site.tell(errors.WrongKind(span=term.span, needed="an op, a module or a pool", found=found))
            return POISON


def _named(term: ast.Name, site: Site) -> Any:
    found = site.scope.find(term.name, is_callable)
    if isinstance(found, BlockEntity):
        return use_block(found, [], site, term.span)
    if found is not None:
        return found
    op = find_op(term.name)
    if op is None:
        _tell_unknown(term, site)
        return POISON
    return settle(op, [], site, term.span)


def _tell_unknown(term: ast.Name, site: Site) -> None:
    other = site.scope.find(term.name)
    if isinstance(other, Poison):
        return
    if other is not None:
        found = f'"{term.name}" is {described(other)}'
        site.tell(errors.WrongKind(span=term.span, needed="an op, a module or a pool", found=found))
        return
    suggestion = op_meant(term.name, site.visible(term.span, is_callable))
    site.tell(errors.UnknownOp(span=term.span, name=term.name, suggestion=suggestion))
