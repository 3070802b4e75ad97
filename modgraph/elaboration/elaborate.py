"""Elaborates a model with its parameters into a graph, or checks blocks that no model uses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from modgraph.declare import format_briefly, load_extensions
from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source, did_you_mean
from modgraph.elaboration import constants, errors
from modgraph.elaboration.calls import evaluate_argument
from modgraph.elaboration.causes import BATCH, drop_axis
from modgraph.elaboration.context import Abandoned, BlockCall, Context, Decision, Observer
from modgraph.elaboration.demands import check_demands
from modgraph.elaboration.elaborator import Elaborator
from modgraph.elaboration.entities import POISON, DeclaredEntity, Family, Poison
from modgraph.elaboration.findings import check_moves, find_leaks, find_moves, find_weaknesses
from modgraph.elaboration.imports import Imports, Standalone
from modgraph.elaboration.scope import Naming, Scope, join
from modgraph.elaboration.statements import RULES
from modgraph.ir import Graph, InputNode, OutputNode, TargetNode, sort_by_body
from modgraph.syntax import ast, parse
from modgraph.syntax.errors import NothingHere, SeveralModels
from modgraph.types import Axis


def elaborate(
    file: ast.File, overrides: Mapping[str, Any], report: Report, imports: Imports | None = None
) -> Graph | None:
    """Elaborate the file's model under some parameters; None, with every mistake reported.

    `imports` reads imported files, by default from the folder of the file.
    """
    context = Context(report)
    graph = _elaborate_file(file, overrides, context, imports)
    if graph is None:
        return None
    for name, decision in context.unbound.items():  # nodes that rename the axes of a record belong to the router's text
        if name in graph:
            graph.replace(replace(graph[name], within=graph[decision].within))
    _label_decisions(graph, context.shorter)
    return sort_by_body(graph)


def diagnose(
    file: ast.File, overrides: Mapping[str, Any], report: Report, observe: Observer | None = None
) -> Graph | None:
    """Report every mistake and caution of the file's model, and return its graph if there is no mistake.

    `observe` is called with the meaning of names and stages, for language tools.
    """
    return _elaborate_file(file, overrides, Context(report, observe))


def _elaborate_file(
    file: ast.File, overrides: Mapping[str, Any], context: Context, imports: Imports | None = None
) -> Graph | None:
    report, path = context.report, Path(file.span.source.name)
    blocks = (imports or Imports.from_spec(path, report)).read_definitions(file, path)
    for extra in file.models[1:]:
        report.add(SeveralModels(span=extra.name_span, name=extra.name))
    if not file.models:
        report.add(NothingHere(span=file.span))
        return None
    graph = _elaborate_model(file.models[0], blocks, overrides, context)
    if any(isinstance(each, errors.UnknownOp) for each in report.errors):
        report.extend(load_extensions())
    return None if report.errors else graph


@dataclass(frozen=True)
class Reading:
    """A spec that was read: its graph, new names by earlier ones, and its text with the imported ones."""

    graph: Graph
    moved: Mapping[str, str]
    standalone: Standalone


def read_model(
    source: Source | None, overrides: Mapping[str, Any], report: Report, file: ast.File | None = None
) -> Reading:
    """Read a model. `file` is its tree where it is parsed already. Raises `ModgraphError` with all mistakes."""
    file = parse(source, report) if file is None and source is not None else file
    if source is None or file is None:
        raise ModgraphError(report.list_diagnostics())
    imports = Imports.from_spec(Path(source.name), report)
    graph = elaborate(file, overrides, report, imports=imports)
    if graph is None:
        raise ModgraphError(report.list_diagnostics())
    return Reading(graph, find_moves(file), Standalone.from_file(file, imports))


def _elaborate_model(model: ast.Definition, blocks: Scope, overrides: Mapping[str, Any], context: Context) -> Graph:
    report, scope, graph = context.report, Scope(outer=blocks), Graph(model.name)
    for statement in model.body.every_statement():
        match statement:
            case ast.Input(reference=reference) | ast.Target(reference=reference):
                context.given.add(reference.name)
            case ast.Scan(names=names):
                context.given.update(names)
    elaborator = Elaborator(context, RULES, graph, scope, scope.next_binding(""))
    try:
        graph.parameters = _bind_parameters(model, overrides, elaborator)
        elaborator.elaborate(model.body)
        context.report_deferred()
    except Abandoned:
        return graph
    if not report.errors:
        if not graph.nodes_of(OutputNode):
            report.add(errors.NoOutput(span=model.name_span, name=model.name))
        _warn_of_unused(scope, context)
        _check_ends(graph, report)
        _warn_of_batch(graph, report)
        check_moves(model.body, graph, report)
        find_leaks(graph, report)
        check_demands(context.demands)
        find_weaknesses(graph, context.declared, context.may_grow, report)
    return graph


def _warn_of_unused(scope: Scope, context: Context) -> None:
    pending = list(scope.names.values())
    for entity in pending:
        if isinstance(entity, Family):
            pending.extend(entity.members.values())
        elif isinstance(entity, DeclaredEntity) and entity.path not in context.used:
            context.report.add(errors.Unused(span=entity.span, what=entity.kind, name=entity.path))


def _check_ends(graph: Graph, report: Report) -> None:
    """Report edges between nodes of which the model has no value."""
    given = (*graph.nodes_of(InputNode), *graph.nodes_of(TargetNode))
    known = {axis.lengths for node in given for axis in node.types[0].shape}
    for node in given:
        for axis in node.types[0].ends:
            if axis.is_padded and axis.lengths not in known and node.span is not None:
                names = sorted(known - {node.types[0].shape[0].name, ""})
                meant = did_you_mean(axis.name, names, f"declare one: input x: float[{axis.name}, 8]")
                report.add(errors.NoNodes(span=node.span, name=node.name, axis=axis.name, suggestion=meant))
                break


def _warn_of_batch(graph: Graph, report: Report) -> None:
    """Warn of axes that are called like the batch, which no type has."""
    for node in (*graph.nodes_of(InputNode), *graph.nodes_of(TargetNode)):
        for axis in node.types[0].shape:
            if axis.name in BATCH and node.span is not None:
                corrected = drop_axis(node.span.text, axis.name)
                report.add(errors.BatchAxis(span=node.span, name=axis.name, corrected=corrected))


OF_SHAPES: tuple[type[Diagnostic], ...] = (
    errors.DoesNotFit,
    errors.LossIsNotNumber,
    errors.NoTimeAxis,
    errors.SharedWithOtherShapes,
    errors.StateType,
)


def elaborate_blocks(file: ast.File, report: Report, observe: Observer | None = None) -> None:
    """Report the mistakes of each block of a file by itself.

    Mistakes of shapes count only if each parameter has a default and each axis of the inputs a number.
    """
    path = Path(file.span.source.name)
    scope = Imports.from_spec(path, report).read_definitions(file, path)
    for block in (*file.blocks, *file.routers):
        inputs = [each for each in block.body.statements if isinstance(each, ast.Input)]
        axes = [axis.name for each in inputs for axis in each.type.axes if isinstance(axis, ast.Name)]
        shapes_known = not axes and all(parameter.default is not None for parameter in block.parameters)
        of_block = Report()
        _elaborate_block(block, axes, scope, Context(of_block, observe, without_use=True))
        report.extend(each for each in of_block.diagnostics if shapes_known or not isinstance(each, OF_SHAPES))


def _elaborate_block(block: ast.Definition, axes: list[str], blocks: Scope, context: Context) -> None:
    """Elaborate a block or a router without a use, and so without the sizes of the `axes` of its inputs."""
    scope, graph, call = Scope(outer=blocks), Graph(block.name), BlockCall(block.name, None, defining=(id(block),))
    if block.keyword == "block":
        known = {parameter.name for parameter in block.parameters}
        call.axes |= {name: Axis(None, name) for name in axes if name not in known}
    if block.keyword == "router":
        call.decision = Decision(block.name, block.name_span, block.axis_words, Naming("axes", "axes", scope))
        scope.names |= dict.fromkeys((*block.pools, *axes), POISON)
    elaborator = Elaborator(context, RULES, graph, scope, scope.next_binding(""), call)
    try:
        for parameter in block.parameters:
            scope.declare(
                parameter.name,
                POISON if parameter.default is None else evaluate_argument(parameter.default, elaborator),
            )
        elaborator.elaborate(block.body)
        context.report_deferred()
    except Abandoned:
        return
    if not call.outputs and not context.report.errors:
        context.add_diagnostic(errors.NoOutput(span=block.name_span, name=block.name, kind=block.keyword))


def _bind_parameters(model: ast.Definition, overrides: Mapping[str, Any], elaborator: Elaborator) -> dict[str, Any]:
    """Declare the parameters in the model's scope and return their values; report mistakes."""
    known = [parameter.name for parameter in model.parameters]
    for name in overrides:
        if name not in known:
            suggestion = did_you_mean(name, known, "its parameters are: {known}")
            elaborator.report(
                errors.UnknownParameter(span=model.name_span, model=model.name, name=name, suggestion=suggestion)
            )
    values: dict[str, Any] = {}
    for parameter in model.parameters:
        name, span = parameter.name, parameter.span
        if name in values:
            elaborator.report(errors.DuplicateName(span=span, name=name))
            continue
        default = POISON if parameter.default is None else elaborator.evaluate_constant(parameter.default, "a default")
        value: Any = _to_tuples(overrides[name]) if name in overrides else default
        if parameter.default is None and name not in overrides:
            elaborator.report(errors.ParameterWithoutValue(span=span, name=name))
        elif isinstance(default, float) and constants.has_kind(default, value):
            value = float(value)
        elif not isinstance(default, Poison) and not constants.has_kind(default, value):
            facts: Any = {"wanted": constants.describe_kind(default), "default": format_briefly(default)}
            value = elaborator.report(errors.BadParameter(span=span, name=name, given=format_briefly(value), **facts))
        values[name] = value
        elaborator.scope.declare(name, value)
    return values


def _to_tuples(value: Any) -> Any:
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value


DATE = r"\d{4}-\d\d-\d\d"  # a date is no difference of numbers


def read_value(text: str) -> Any:
    """Read the value of `-s name=TEXT`: a constant of the language, or the text itself as a string, such as a date."""
    if re.fullmatch(DATE, text):
        return text
    report = Report()
    file = parse(Source("<command line>", f"model m(value={text}) {{ }}"), report)
    if file is None or len(file.definitions[0].parameters) != 1 or file.definitions[0].body.statements:
        return text
    default = file.definitions[0].parameters[0].default
    if default is None:
        return text
    elaborator = Elaborator(Context(report), RULES, Graph(""), Scope(), Scope().next_binding(""))
    try:
        value = elaborator.evaluate_constant(default, "a value")
    except Abandoned:
        return text
    return text if isinstance(value, Poison) or report.errors else value


def _label_decisions(graph: Graph, shorter: Mapping[str, tuple[str, str]]) -> None:
    """Label the decisions of a graph with the shortest unambiguous names; `shorter` holds candidates for each name.

    A use of the pool `expert` in the round `layer.0` is `layer.0.expert`. If the round has several, the name that the
    statement binds distinguishes them (`layer.0.x.expert`), and then its number (`x2`). The names of enclosing calls
    are shortened in the same way.
    """
    decisions = [each for each in graph.decisions() if each.declared]
    around: dict[str, str] = {}  # by the path of a use or call, the path of the enclosing call
    for each in decisions:
        calls = [call.path for call in each.node.calls]
        if calls[:1] == [each.name]:  # the call of the router's text
            calls = calls[1:]
        for inner, outer in pairwise([each.name, *calls, ""]):
            around.setdefault(inner, outer)
    short = _shorten(around, shorter)
    labels = {each.name: _make_label(each.name, around, short) for each in decisions}
    taken = {*graph.outputs, *graph.input_types, *graph.target_types}
    records = {each.name: [record.name for record in each.declared] for each in decisions}
    unclear = labels
    while unclear:  # an ambiguous label becomes the full name
        count = Counter(labels.values())
        unclear = {
            name: name
            for name, label in labels.items()
            if label != name and (count[label] > 1 or any(f"{label}.{record}" in taken for record in records[name]))
        }
        labels |= unclear
    for decision in decisions:
        if labels[decision.name] != decision.name:
            decision.part.graph.replace(replace(decision.node, label=labels[decision.name]))


def _shorten(around: Mapping[str, str], shorter: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Find the shortest name of each path that is unique in its call."""
    found: dict[str, str] = {}
    for tried in (0, 1):
        names = {path: shorter.get(path, (path, path))[tried] for path in around if path not in found}
        count = Counter((around[path], name) for path, name in names.items())
        found |= {path: name for path, name in names.items() if count[around[path], name] == 1}
    return {path: path for path in around} | found


def _make_label(path: str, around: Mapping[str, str], short: Mapping[str, str]) -> str:
    """Join a name with the label of the enclosing call."""
    outer, name = around[path], short[path]
    if not outer:
        return name
    below = f"{outer}."
    return join(_make_label(outer, around, short), name.removeprefix(below)) if name.startswith(below) else path
