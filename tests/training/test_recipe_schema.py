"""The JSON schema of recipes agrees with what reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from editors.recipe_schema import PLACE, format_schema
from modgraph.declare import Registry
from modgraph.diagnostics import ModgraphError, Report, Source
from modgraph.recipes.schema import Named
from modgraph.recipes.yaml_tree import Branch, Leaf, read_tree
from modgraph.training.recipe import read_recipe

SCHEMA = json.loads(PLACE.read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
DATA = {"name": "digits"}
WRONG: dict[str, dict[str, Any]] = {
    "no data": {"train": {"epochs": 3}},
    "another section": {"data": DATA, "training": {}},
    "data of no name": {"data": {"test": 0.2}},
    "a data set that there is not": {"data": "digitz"},
    "a misspelt key": {"data": DATA, "train": {"epoch": 3}},
    "a string for a number": {"data": DATA, "train": {"epochs": "three"}},
    "a number below its bound": {"data": DATA, "train": {"batch": 0}},
    "a number at what it must be below": {"data": DATA, "train": {"optimizer": {"name": "sgd", "momentum": 1}}},
    "an optimizer that there is not": {"data": DATA, "train": {"optimizer": {"name": "adamm"}}},
    "a key of another optimizer": {"data": DATA, "train": {"optimizer": {"name": "adam", "momentum": 0.9}}},
    "a choice that there is not": {"data": DATA, "train": {"precision": "float8"}},
    "a mapping for a parameter": {"data": DATA, "model": {"width": {"of": 3}}},
    "a list of words for numbers": {"data": DATA, "train": {"labels": {"y": {"weights": ["a", "b"]}}}},
}


def plain(tree: Branch | Leaf) -> Any:
    """A recipe as the plain values that a validator takes."""
    if isinstance(tree, Branch):
        return {key: plain(each) for key, each in tree.items.items()}
    return to_lists(tree.value)


def to_lists(value: Any) -> Any:
    return [*map(to_lists, value)] if isinstance(value, tuple | list | range) else value


def read(path: Path) -> Any:
    return plain(read_tree(Source(str(path), path.read_text()), Report()))


def test_the_schema_is_generated_from_the_declarations() -> None:
    assert PLACE.read_text() == format_schema(), "run: python editors/recipe_schema.py"
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_every_shipped_recipe_is_valid() -> None:
    recipes = {path: record for path in sorted(Path("specs").rglob("*.yaml")) if "data" in (record := read(path))}
    assert len(recipes) > 20, "the others are maps of weights"
    for path, record in recipes.items():
        assert [each.message for each in VALIDATOR.iter_errors(record)] == [], path


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_recipe_is_refused_by_the_schema_and_by_the_reader(case: str) -> None:
    assert not VALIDATOR.is_valid(WRONG[case])
    with pytest.raises(ModgraphError):
        read_recipe(WRONG[case])


def kinds() -> list[type[Named]]:
    registries = [each for each in Registry.all.values() if f"{each.kind} " in " ".join(SCHEMA["definitions"])]
    return [kind for registry in registries for kind in registry.every() if issubclass(kind, Named)]


def test_every_kind_of_section_is_valid_with_its_defaults() -> None:
    checked = 0
    for kind in kinds():
        name = f"{kind.registry.kind} {kind.name}"
        schema = {"$ref": f"#/definitions/{name}".replace(" ", "%20"), "definitions": SCHEMA["definitions"]}
        if any(each.required for each in kind.settings().values()) or (section := kind()).contradiction():
            continue
        errors = [each.message for each in jsonschema.Draft7Validator(schema).iter_errors(to_plain(section.plain()))]
        assert errors == [], name
        checked += 1
    assert checked > 15


def to_plain(value: Any) -> Any:
    return {key: to_plain(each) for key, each in value.items()} if isinstance(value, dict) else to_lists(value)
