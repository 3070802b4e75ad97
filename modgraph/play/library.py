"""What the playground opens: starting points, specs with their recipes and imports, and the texts of the prelude."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from modgraph.diagnostics import ModgraphError, Report
from modgraph.elaboration import read_standalone
from modgraph.files import exists, list_shipped_specs
from modgraph.prelude import blocks, routers
from modgraph.recipes.maps import place_maps
from modgraph.store.run_directory import locate_recipe
from modgraph.syntax import parse, read

Entry = dict[str, Any]
STARTERS = ("images", "texts", "table")
GROUPS = {"": "Published systems", "zoo": "Zoo", "parts": "Parts", "zoo/parts": "Parts"}


def read_library() -> list[Entry]:
    """The entries of the library, in groups: `group`, `title`, `about`, `open` (the name of the file to open) and
    `files`, texts by name."""
    shipped = (_read_shipped(name, path) for name, path in list_shipped_specs().items())
    return [*map(_read_starter, STARTERS), *shipped, *_list_prelude()]


def read_entry(path: Path, group: str) -> Entry:
    """A spec, its recipe and all that it imports, imports without mistakes. Raises `ModgraphError` if it cannot be
    read."""
    report = Report()
    source = read(path, report)
    if source is None:
        raise ModgraphError(report.list_diagnostics())
    file = parse(source, Report())
    copy = None if file is None else read_standalone(file, Report())
    files = {path.name: source.text if copy is None else copy.text, **({} if copy is None else copy.imports)}
    recipe = locate_recipe(path)
    if exists(recipe):
        text = read(recipe, report)
        if text is None:
            raise ModgraphError(report.list_diagnostics())
        files[f"{path.stem}.yaml"], maps = place_maps(text.text)
        files |= maps
    return {"group": group, "title": path.stem, "about": _about(source.text), "open": path.name, "files": files}


def _read_shipped(name: str, path: Path) -> Entry:
    return read_entry(path, GROUPS.get(name.rpartition("/")[0], "Specs"))


def _read_starter(task: str) -> Entry:
    """What `modgraph new TASK --task TASK` writes, without the data that it makes up."""
    folder = files("modgraph").joinpath("cli", "starters")
    texts = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in (f"{task}.mod", f"{task}.yaml")}
    written = {name: text.replace("NAME", task) for name, text in texts.items()}
    about = _about(written[f"{task}.mod"])
    return {"group": "Starting points", "title": task, "about": about, "open": f"{task}.mod", "files": written}


def _list_prelude() -> list[Entry]:
    entries = []
    for kind, known in (("Routers", routers()), ("Blocks", blocks())):
        for written in known.values():
            name = f"{written.name}.mod"
            about = _about(written.text)
            entries.append(
                {"group": kind, "title": written.name, "about": about, "open": name, "files": {name: written.whole}}
            )
    return entries


def _about(text: str) -> str:
    """The first sentence of the comment that a text begins with."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return " ".join(lines).partition(". ")[0].rstrip(".")
