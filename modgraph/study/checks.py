"""Checks a point as its training will read it, and points to the sweep file where it has the mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from modgraph.declare import format_briefly
from modgraph.diagnostics import Diagnostic, ModgraphError, Span
from modgraph.elaboration.errors import BadParameter, UnknownParameter
from modgraph.recipes.errors import BadValue
from modgraph.store.run_directory import locate_recipe
from modgraph.study import errors
from modgraph.study.point import Point
from modgraph.study.points import Draft, locate
from modgraph.study.specs import Elaborated, Specs
from modgraph.study.sweep import Sweep
from modgraph.training.fit import find_missing_extras, find_missing_files, find_next_token_leaks, refuse_unfit
from modgraph.training.recipe import OPTION, Recipe, key_overrides, read_with_spec
from modgraph.training.start.weight_map import read_map

START = "start.run"


def locate_base(sweep: Sweep) -> Path | Mapping[str, Any]:
    """Return the recipe of a sweep, by default the YAML file next to its spec."""
    return locate_recipe(sweep.spec) if sweep.recipe is None else sweep.recipe


def check_draft(sweep: Sweep, draft: Draft, specs: Specs) -> tuple[Recipe, Elaborated, Sequence[Diagnostic]]:
    """Read the recipe and the spec of a point, with cautions. Raises `ModgraphError` with every mistake that shows
    before the data are read."""
    overrides = key_overrides(draft.overrides)
    recipe, program = read_with_spec(locate_base(sweep), sweep.spec, overrides, read_spec=specs.load)
    elaborated = specs.elaborate(sweep.spec, recipe.model)
    if not draft.is_first:  # checked with the first seed
        return recipe, elaborated, ()
    refuse_unfit(program.ir, recipe)
    if recipe.start is not None and recipe.start.map is not None:
        read_map(recipe.start.map, program.ir)
    missing = [vars(each) for each in find_missing_files(recipe)]
    missing = [each for each in missing if sweep.start is None or each["key"] != START]
    if missing:
        raise ModgraphError(errors.NeedsFile(**each) for each in missing)
    leaks = find_next_token_leaks(program.ir, recipe.data)
    return recipe, elaborated, [*program.warnings, *leaks, *find_missing_extras(recipe)]


def refuse_changed(point: Point) -> None:
    """Raises `ModgraphError` where a point is another training than when it was planned, since a file has changed."""
    specs, overrides = Specs(), key_overrides(point.overrides)
    recipe, _ = read_with_spec(point.recipe, point.spec, overrides, read_spec=specs.load)
    if specs.identify(specs.elaborate(point.spec, recipe.model), recipe) != point.identity:
        raise ModgraphError([errors.PointChanged(point=point.run, spec=str(point.spec))])


def explain(diagnostic: Diagnostic, sweep: Sweep, draft: Draft) -> Diagnostic:
    """Point to the sweep file where it has the value of a mistake, and explain single values of a list."""
    span = _find_place(diagnostic.span, sweep, draft)
    match diagnostic:
        case UnknownParameter():
            return diagnostic.replace(span=locate(sweep, draft.label, vars(diagnostic)["name"]) or span)
        case BadParameter():
            key, wants_list = vars(diagnostic)["name"], vars(diagnostic)["wanted"].startswith("a list")
            span = locate(sweep, draft.label, key) or span
        case BadValue():
            key, wants_list = vars(diagnostic)["key"], vars(diagnostic)["problem"].startswith("must be a list")
        case _:
            key, wants_list = "", False
    tried = sweep.grid.get(key.removeprefix("model."))
    if wants_list and isinstance(tried, tuple):
        given = ", ".join(map(format_briefly, tried))
        return errors.ListIsAlternatives(span=locate(sweep, draft.label, key) or span, key=key, given=given)
    return diagnostic.replace(span=span)


def _find_place(span: Span | None, sweep: Sweep, draft: Draft) -> Span | None:
    """Return the place of an override in the sweep file; any other place as it is."""
    if span is None or span.source.name != OPTION:
        return span
    return locate(sweep, draft.label, span.source.text.partition("=")[0].removeprefix("model.")) or span
