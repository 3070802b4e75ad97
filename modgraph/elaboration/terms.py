"""What a term right of an arrow stands for: an op, a block, a module or a pool."""

from __future__ import annotations

from typing import Any

from modgraph.declare import shown_value
from modgraph.elaboration import errors
from modgraph.elaboration.blocks import use_block
from modgraph.elaboration.calls import CallArgument, arguments_for_block, arguments_of, settle
from modgraph.elaboration.entities import POISON, BlockEntity, Family, Poison, Template, described, is_callable
from modgraph.elaboration.site import Site
from modgraph.syntax import ast
from modgraph.vocabulary import find_op, op_meant

NEEDED = "an op, a block, a module or a pool"


def callable_of(term: ast.Expression, site: Site) -> Any:
    """What a term right of an arrow stands for."""
    match term:
        case ast.Name() | ast.Call(callee=ast.Name()):
            return _named(term, (), site)
        case _:
            value = site.evaluate(term)
            if is_callable(value) or isinstance(value, Poison):
                return value
            return site.tell(errors.WrongKind(span=term.span, needed=NEEDED, found=f"this is {described(value)}"))


def _named(term: ast.Name | ast.Call, further: tuple[CallArgument, ...], site: Site) -> Any:
    """What a name or a call stands for, given further arguments where it was passed as one itself."""
    callee = term.callee if isinstance(term, ast.Call) else term
    assert isinstance(callee, ast.Name)
    found = site.scope.find(callee.name, is_callable)
    called = isinstance(term, ast.Call) or bool(further)
    if isinstance(found, BlockEntity):
        return use_block(found, [*arguments_for_block(term, site), *further], site, term.span)
    if isinstance(found, Template) and called:
        return with_arguments(found, (*arguments_for_block(term, site), *further), term, site)
    if found is not None and not called:
        return found
    op = find_op(callee.name)
    if op is None:
        _tell_unknown(callee, site)
        return POISON
    own = arguments_of(term, site) if isinstance(term, ast.Call) else []
    return settle(op, [*own, *further], site, term.span)


def with_arguments(
    template: Template, arguments: tuple[CallArgument, ...], term: ast.Name | ast.Call, site: Site
) -> Any:
    """What was passed as an argument, given further ones where it is used: an op or a block."""
    if template.term is not None:
        with site.context.applying(template.span, term.span):
            return _named(template.term, arguments, site.where_written(template))
    callee = term.callee if isinstance(term, ast.Call) else term
    span, notes = site.at_fault(callee)
    found, way_out = "this is a pipeline, which takes no arguments", "give an op or a block by its name"
    return site.tell(errors.WrongKind(span=span, notes=notes, needed="an op or a block", found=found, way_out=way_out))


def _tell_unknown(term: ast.Name, site: Site) -> None:
    other = site.scope.find(term.name)
    if isinstance(other, Poison):
        return
    if other is not None:
        span, notes = site.at_fault(term)
        found = f'"{term.name}" is {described(other)}'
        way_out = f"for example: {term.name}=relu" if notes else ""
        if isinstance(other, Family) and other.members:
            way_out = f"take one of its members: {term.name}[{shown_value(next(iter(other.members)))}]"
        site.tell(errors.WrongKind(span=span, notes=notes, needed=NEEDED, found=found, way_out=way_out))
        return
    if site.report_ended(term.name, term.span):
        return
    suggestion = op_meant(term.name, site.visible(term.span, is_callable))
    site.tell(errors.UnknownOp(span=term.span, name=term.name, suggestion=suggestion))
