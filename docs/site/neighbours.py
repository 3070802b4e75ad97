"""Updates the last line of each page, with links to the pages before and after it: python docs/site/neighbours.py."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parents[1]
CONFIGURATION = Path(__file__).parent / "mkdocs.yml"
GENERATED = {"commands.md", "python.md", "reference.md"}
RULE = "\n---\n\n"


def list_pages(entries: list[Any]) -> list[str]:
    """List the files of a navigation, in order."""
    found = []
    for entry in entries:
        inner = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found += list_pages(inner) if isinstance(inner, list) else [inner]
    return found


def neighbours_of(place: int, pages: list[str]) -> str:
    """Write the line with the links to the pages before and after one."""

    def link(name: str, before: str, after: str) -> str:
        heading = re.search(r"^# (.*)$", (DOCS / name).read_text(), re.MULTILINE)
        title = "Home" if name == "index.md" or heading is None else heading[1].replace("`", "")
        return f"[{before}{title}{after}]({os.path.relpath(name, Path(pages[place]).parent)})"

    links = [link(name, "← ", "") for name in pages[place - 1 : place]]
    return " · ".join(links + [link(name, "", " →") for name in pages[place + 1 : place + 2]])


if __name__ == "__main__":
    pages = list_pages(yaml.safe_load(CONFIGURATION.read_text())["nav"])
    for place, name in enumerate(pages):
        if place > 0 and name not in GENERATED:
            text = (DOCS / name).read_text()
            body = re.split(re.escape(RULE) + r"(?=\[← |\[[^\]]* →\])", text)[0].rstrip()
            (DOCS / name).write_text(f"{body}\n{RULE}{neighbours_of(place, pages)}\n")
