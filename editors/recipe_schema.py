"""Writes the JSON schema of recipes for editors: python editors/recipe_schema.py."""

from __future__ import annotations

import json
from pathlib import Path

from modgraph.training.recipe_schema import recipe_schema

PLACE = Path(__file__).parent / "recipe.schema.json"


def format_schema() -> str:
    """The schema as JSON."""
    return json.dumps(recipe_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PLACE.write_text(format_schema(), encoding="utf-8")
