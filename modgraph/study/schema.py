"""The JSON schema of sweep files, by which editors complete and check them."""

from __future__ import annotations

from typing import Any

from modgraph.recipes.json_schema import Schema, Schemas
from modgraph.study.file import OneSweep, SeveralSweeps, SweepSection
from modgraph.study.space import INTEGERS, KINDS
from modgraph.training.recipe_schema import DRAFT

LIST: Schema = {"type": "array", "minItems": 1}


def sweep_schema() -> Schema:
    """The schema of a sweep file (draft 7): one sweep, or several under `sweeps`."""
    schemas = Schemas()
    one, several = schemas.section(OneSweep), schemas.section(SeveralSweeps)
    schemas.section(SweepSection)
    for name in (OneSweep.__name__, SweepSection.__name__):
        grid = schemas.definitions[name]["properties"]["grid"]
        (mapping,) = (each for each in grid["anyOf"] if each["type"] == "object")
        mapping["additionalProperties"] = {"anyOf": [LIST, *map(_describe_range, KINDS)]}
    return {
        "$schema": DRAFT,
        "title": "modgraph sweep",
        "description": "Many trainings: of which spec, what they vary, and tables of their results.",
        "if": {"required": ["sweeps"]},
        "then": several,
        "else": one,
        "definitions": schemas.definitions,
    }


def _describe_range(kind: str) -> Schema:
    number = {"type": "integer" if kind == INTEGERS else "number"}
    ends: dict[str, Any] = {"type": "array", "items": number, "minItems": 2, "maxItems": 2}
    return {"type": "object", "properties": {kind: ends}, "required": [kind], "additionalProperties": False}
