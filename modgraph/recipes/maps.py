"""The maps of weights that come with modgraph: a recipe that names one can stand elsewhere, with the map beside it."""

from __future__ import annotations

import re
from pathlib import Path

from modgraph.files import list_shipped_specs

MAP = re.compile(r"^ +map: specs/(\S+\.yaml)$", re.MULTILINE)  # named from the folder above the shipped specs


def place_maps(recipe: str) -> tuple[str, dict[str, str]]:
    """The text of a recipe that names its shipped maps as files beside it, and these by name."""
    shipped, maps = list_shipped_specs(), dict[str, str]()
    folder = shipped["smn"].parent if "smn" in shipped else None
    for name in MAP.findall(recipe):
        if folder is not None and (folder / name).is_file():
            maps[Path(name).name] = (folder / name).read_text(encoding="utf-8")
            recipe = recipe.replace(f"map: specs/{name}", f"map: {Path(name).name}")
    return recipe, maps
