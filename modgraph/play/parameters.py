"""The parameters of a model, with what a page needs to offer a change of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modgraph.declare import format_value
from modgraph.diagnostics import Report
from modgraph.elaboration import read_value
from modgraph.syntax import ast, parse, read

TIMES = 4  # how far above its default a number goes
LEAST = 8  # how far the smallest integers go
STEPS = 100  # of a number between its ends


def list_parameters(spec: str, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The parameters of the model of a spec in the order of the text, also of one with mistakes elsewhere; none if it
    cannot be parsed. `values` are their defaults where an elaborated graph knows them."""
    report = Report()
    source = read(spec, report)
    file = None if source is None else parse(source, report)
    models = () if file is None else file.models
    return [_describe(each, values or {}) for model in models[:1] for each in model.parameters]


def _describe(parameter: ast.Parameter, values: Mapping[str, Any]) -> dict[str, Any]:
    text = "" if parameter.default is None else parameter.default.span.text
    value = values.get(parameter.name, read_value(text) if text else None)
    kind = _kind_of(value)
    facts = {"name": parameter.name, "kind": kind, "default": value, "text": "" if value is None else _type(value)}
    return facts | (_range_of(value) if kind in ("integer", "number") else {})


def _type(value: Any) -> str:
    """A value as one types it after `-s name=`."""
    return value if isinstance(value, str) else format_value(value)


def _kind_of(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "text", type(None): "none"}
    return kinds.get(type(value), "list")


def _range_of(value: int | float) -> dict[str, float]:
    """Ends and a step for a slider, between which the default lies. A share stays one, a count above zero too."""
    if isinstance(value, int):
        least, most = (min(value, 1), max(TIMES * value, LEAST)) if value >= 0 else (TIMES * value, 0)
        return {"minimum": least, "maximum": most, "step": 1}
    low, high = (0.0, 1.0) if 0 <= value <= 1 else sorted((0.0, TIMES * value))
    return {"minimum": low, "maximum": high, "step": (high - low) / STEPS}
