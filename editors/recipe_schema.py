"""Writes the JSON schemas of recipes and sweep files for editors: python editors/recipe_schema.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from modgraph.study.schema import sweep_schema
from modgraph.training.recipe_schema import recipe_schema

HERE = Path(__file__).parent
PLACE, SWEEPS = HERE / "recipe.schema.json", HERE / "sweep.schema.json"


def format_schema(schema: Callable[[], dict[str, Any]] = recipe_schema) -> str:
    """The schema as JSON."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PLACE.write_text(format_schema(), encoding="utf-8")
    SWEEPS.write_text(format_schema(sweep_schema), encoding="utf-8")
