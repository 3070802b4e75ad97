"""The JSON schema of recipes, by which editors complete and check them."""

from __future__ import annotations

from typing import Any

from modgraph.data import DataSet
from modgraph.recipes.json_schema import Schemas
from modgraph.training.sections import Start, Train

DRAFT = "http://json-schema.org/draft-07/schema#"
PLAIN = {"not": {"type": "object"}}
MODEL = {
    "type": ["object", "null"],
    "description": "Parameters of the spec, by name.",
    "additionalProperties": PLAIN,
}


def recipe_schema() -> dict[str, Any]:
    """The schema of a recipe (draft 7), with the kinds of data, optimizers and algorithms that are registered."""
    schemas = Schemas()
    sections: dict[str, Any] = {
        "model": MODEL,
        "start": {"anyOf": [schemas.section(Start), {"type": "null"}]},
        "data": schemas.section(DataSet),
        "train": {"anyOf": [schemas.section(Train), {"type": "null"}]},
    }
    return {
        "$schema": DRAFT,
        "title": "modgraph recipe",
        "description": "How a model is trained: parameters of its spec, data, where weights come from, training.",
        "type": "object",
        "properties": sections,
        "required": ["data"],
        "additionalProperties": False,
        "definitions": schemas.definitions,
    }
