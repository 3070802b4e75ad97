"""The recipe of a training: which data, which algorithm, how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from modgraph.data import DataSet
from modgraph.diagnostics import ModgraphError, Report, did_you_mean
from modgraph.files import exists
from modgraph.recipes import errors
from modgraph.recipes.schema import read_section
from modgraph.recipes.yaml_tree import Branch, read_tree
from modgraph.syntax import read
from modgraph.training.sections import Start, Train, mapping_of, parameters_in

SECTIONS = ("model", "start", "data", "train")


@dataclass(frozen=True)
class Recipe:
    """A recipe, whole and checked. `model` holds parameters of the spec."""

    model: Mapping[str, Any]
    data: DataSet
    train: Train
    start: Start | None = None

    def to_yaml(self) -> str:
        """Every key, defaults included; reads back as the same recipe."""
        model = {name: list(value) if isinstance(value, tuple) else value for name, value in self.model.items()}
        start = {} if self.start is None else {"start": self.start.plain()}
        record = {"model": model, **start, "data": self.data.plain(), "train": self.train.plain()}
        return yaml.safe_dump(record, sort_keys=False)


def keyed(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides by dotted key: a plain name sets a parameter of the model, a dotted one is a key already."""
    return {name if "." in name else f"model.{name}": value for name, value in overrides.items()}


def read_recipe(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """The recipe of a file under overrides by dotted key. Raises `ModgraphError` with every mistake."""
    report = Report()
    if not exists(path):
        raise ModgraphError([errors.NoRecipe(path=str(path))])
    source = read(path, report)
    if source is None:
        raise ModgraphError(report.diagnostics)
    tree = read_tree(source)
    for key, value in (overrides or {}).items():
        tree.put(key, value)
    recipe = _recipe(tree, report)
    if recipe is None or report.errors:
        raise ModgraphError(report.in_order())
    return recipe


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
    return Recipe(model, data, train, start) if data is not None and train is not None else None
