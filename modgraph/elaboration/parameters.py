"""The values of a model's parameters: defaults, and what is set from outside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from modgraph.declare import shown_briefly
from modgraph.diagnostics import Report, Source, did_you_mean
from modgraph.elaboration import constants, errors
from modgraph.elaboration.context import Abandoned, Context
from modgraph.elaboration.entities import POISON, Poison
from modgraph.elaboration.scope import Scope
from modgraph.elaboration.site import Site
from modgraph.elaboration.statements import RULES
from modgraph.ir import Graph
from modgraph.syntax import ast, parse

DATE = r"\d{4}-\d\d-\d\d"  # and not a number less two others


def bind_parameters(model: ast.Definition, overrides: Mapping[str, Any], site: Site) -> dict[str, Any]:
    """Every parameter with its value, declared in the model's scope; mistakes are told."""
    known = [parameter.name for parameter in model.parameters]
    for name in overrides:
        if name not in known:
            suggestion = did_you_mean(name, known, "its parameters are: {known}")
            site.tell(errors.UnknownParameter(span=model.name_span, model=model.name, name=name, suggestion=suggestion))
    values: dict[str, Any] = {}
    for parameter in model.parameters:
        if parameter.name in values:
            site.tell(errors.DuplicateName(span=parameter.span, name=parameter.name))
            continue
        values[parameter.name] = _value(parameter, overrides, site)
        site.scope.declare(parameter.name, values[parameter.name])
    return values


def _value(parameter: ast.Parameter, overrides: Mapping[str, Any], site: Site) -> Any:
    default = POISON if parameter.default is None else site.constant(parameter.default, "a default")
    if parameter.name not in overrides:
        if parameter.default is None:
            site.tell(errors.ParameterWithoutValue(span=parameter.span, name=parameter.name))
        return default
    value = _plain(overrides[parameter.name])
    if isinstance(default, Poison) or constants.same_kind(default, value):
        return float(value) if isinstance(default, float) else value
    return site.tell(
        errors.BadParameter(
            span=parameter.span,
            name=parameter.name,
            wanted=constants.kind_of(default),
            given=shown_briefly(value),
            default=shown_briefly(default),
        )
    )


def _plain(value: Any) -> Any:
    return tuple(_plain(item) for item in value) if isinstance(value, list) else value


def read_value(text: str) -> Any:
    """The value of `-s name=TEXT`: a constant of the language, or else the text itself as a string; a date is one."""
    if re.fullmatch(DATE, text):
        return text
    report = Report()
    file = parse(Source("<command line>", f"model m(value={text}) {{ }}"), report)
    if file is None or len(file.definitions[0].parameters) != 1 or file.definitions[0].body.statements:
        return text
    default = file.definitions[0].parameters[0].default
    if default is None:
        return text
    site = Site(Context(report), RULES, Graph(""), Scope(), Scope().next_binding(""))
    try:
        value = site.constant(default, "a value")
    except Abandoned:
        return text
    return text if isinstance(value, Poison) or report.errors else value
