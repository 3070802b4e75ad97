"""The recipe of a training: which data, which algorithm, how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modgraph.data import DataSet
from modgraph.declare import shown_briefly
from modgraph.diagnostics import ModgraphError, Report, Source, Span, did_you_mean
from modgraph.ir import NotReadBack
from modgraph.program import Program, load
from modgraph.recipes import errors
from modgraph.recipes.schema import read_section
from modgraph.recipes.yaml_tree import Branch, Leaf, dump_yaml, read_tree
from modgraph.syntax import parse, read
from modgraph.training.sections import Start, Train, mapping_of, parameters_in, tree_of

SECTIONS = ("model", "start", "data", "train")


@dataclass(frozen=True)
class Recipe:
    """A recipe, whole and checked. `model` holds parameters of the spec, `places` the span of each dotted key."""

    model: Mapping[str, Any]
    data: DataSet
    train: Train
    start: Start | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    def to_yaml(self) -> str:
        """Every key, defaults included. Raises `NotReadBack` where this reads back as another recipe, or as none."""
        text, report = dump_yaml(self._record()), Report()
        found = _recipe(read_tree(Source("recipe.yaml", text), report), report)
        if found is None or report.errors or found._record() != self._record():
            raise NotReadBack(f"the recipe is read back as another:\n{text}")
        return text

    def _record(self) -> dict[str, Any]:
        start = {} if self.start is None else {"start": self.start.plain()}
        model = {name: _listed(value) for name, value in self.model.items()}
        return {"model": model, **start, "data": self.data.plain(), "train": self.train.plain()}


def _listed(value: Any) -> Any:
    """A constant with lists in place of ranges and tuples."""
    return [*map(_listed, value)] if isinstance(value, tuple | range) else value


def keyed(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides by dotted key: a plain name sets a parameter of the model, a dotted one is a key already."""
    return {name if "." in name else f"model.{name}": value for name, value in overrides.items()}


def read_recipe(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """The recipe of a file under overrides by dotted key. Raises `ModgraphError` with every mistake."""
    report = Report()
    recipe = _recipe(_override(tree_of(path, report), overrides or {}), report)
    if recipe is None or report.errors:
        raise ModgraphError(report.in_order())
    return recipe


def read_with_spec(path: str | Path, spec: str | Path, overrides: Mapping[str, Any]) -> tuple[Recipe, Program]:
    """A recipe and the spec under its parameters. Raises `ModgraphError` with every mistake of both."""
    report, of_spec = Report(), Report()
    recipe, parameters = None, None
    source = read(spec, of_spec)
    if source is None:
        raise ModgraphError(of_spec.in_order())
    try:
        tree = _override(tree_of(path, report), overrides)
        section = mapping_of(tree, "model", report)
        parameters = parameters_in(section, report) if section.whole else None
        recipe = _recipe(tree, report)
    except ModgraphError as error:
        report.extend(error.diagnostics)
    if parameters is None:
        parse(source, of_spec)
        raise ModgraphError([*of_spec.in_order(), *report.in_order()])
    try:
        program = load(spec, **parameters)
    except ModgraphError as error:
        raise ModgraphError([*error.diagnostics, *report.in_order()]) from error
    if recipe is None or report.errors:
        raise ModgraphError(report.in_order())
    return recipe, program


def _override(tree: Branch, overrides: Mapping[str, Any]) -> Branch:
    """Set values of the command line in a tree, with spans in the text of their `-s`."""
    for key, value in overrides.items():
        source = Source("-s", f"{key}={'null' if value is None else shown_briefly(value)}")
        leaf = Leaf(value, Span(source, len(key) + 1, max(len(source.text), len(key) + 2)))
        tree.put(key, leaf, Span(source, 0, len(key)))
    return tree


def _places(tree: Branch, path: str = "") -> Iterator[tuple[str, Span]]:
    """The span of each key of a recipe, by its dotted path."""
    for key, item in tree.items.items():
        if key in tree.keys:
            yield f"{path}{key}", tree.keys[key]
        if isinstance(item, Branch):
            yield from _places(item, f"{path}{key}.")


def _recipe(tree: Branch, report: Report) -> Recipe | None:
    for key in tree.items:
        if key not in SECTIONS:
            suggestion = did_you_mean(key, SECTIONS, "its sections are: {known}")
            span = tree.keys.get(key)
            report.add(errors.UnknownKey(span=span, section="a recipe", key=key, suggestion=suggestion))
    sections = {name: mapping_of(tree, name, report) for name in SECTIONS}
    data = read_section(DataSet, sections["data"], "data", report)  # type: ignore[type-abstract]
    train = read_section(Train, sections["train"], "train", report)
    model = parameters_in(sections["model"], report)
    start = read_section(Start, sections["start"], "start", report) if sections["start"].items else None
    if data is None or train is None:
        return None
    return Recipe(model, data, train, start, dict(_places(tree)))
