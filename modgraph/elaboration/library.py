"""Blocks that no model uses: what can be told of them as they stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from modgraph.diagnostics import Diagnostic, Report
from modgraph.elaboration import errors
from modgraph.elaboration.bodies import BlockCall, Decision
from modgraph.elaboration.calls import given
from modgraph.elaboration.context import Abandoned, Context, Observer, observe_nothing
from modgraph.elaboration.entities import POISON
from modgraph.elaboration.imports import Imports
from modgraph.elaboration.language import RULES
from modgraph.elaboration.scope import Naming, Scope
from modgraph.elaboration.site import Site
from modgraph.ir import Graph
from modgraph.syntax import ast
from modgraph.types import Axis

OF_SHAPES: tuple[type[Diagnostic], ...] = (
    errors.DoesNotFit,
    errors.LossIsNotNumber,
    errors.NoTimeAxis,
    errors.SharedWithOtherShapes,
    errors.StateType,
)


def elaborate_blocks(file: ast.File, report: Report, observe: Observer = observe_nothing) -> None:
    """Tell the mistakes of each block of a file by itself: its names and arguments, and its shapes if each parameter
    has a default and each axis of its inputs a number; else they are known where it is used.

    `observe` is told what the names and stages of the text stand for.
    """
    path = Path(file.span.source.name)
    scope = Imports.of_spec(path, report).scope_of(file, path)
    for block in (*file.blocks, *file.routers):
        of_block = Report()
        _elaborate(block, scope, Context(of_block, observe, without_use=True))
        for each in of_block.diagnostics:
            if _has_known_shapes(block) or not isinstance(each, OF_SHAPES):
                report.add(each)


def _elaborate(block: ast.Definition, blocks: Scope, context: Context) -> None:
    scope, graph, call = Scope(outer=blocks), Graph(block.name), BlockCall(block.name, None, defining=(id(block),))
    if block.keyword == "block":
        known = {parameter.name for parameter in block.parameters}
        call.axes |= {name: Axis(None, name) for name in _axes_of_inputs(block) if name not in known}
    if block.keyword == "router":
        call.decision = Decision(block.name, block.name_span, block.axis_words, Naming("axes", "axes", scope))
        for name in (*block.pools, *_axes_of_inputs(block)):
            scope.declare(name, POISON)
    site = Site(context, RULES, graph, scope, scope.next_binding(""), call)
    try:
        for parameter in block.parameters:
            value = POISON if parameter.default is None else given(parameter.default, site)
            scope.declare(parameter.name, value)
        site.elaborate(block.body)
        context.tell_held()
    except Abandoned:
        return
    if not call.outputs and not context.report.errors:
        context.tell(errors.NoOutput(span=block.name_span, name=block.name, kind=block.keyword))


def _axes_of_inputs(block: ast.Definition) -> Iterator[str]:
    """What a body calls the axes of its inputs, which only a use tells."""
    inputs = [each for each in block.body.statements if isinstance(each, ast.Input)]
    yield from (axis.name for each in inputs for axis in each.type.axes if isinstance(axis, ast.Name))


def _has_known_shapes(block: ast.Definition) -> bool:
    return not any(_axes_of_inputs(block)) and all(parameter.default is not None for parameter in block.parameters)
