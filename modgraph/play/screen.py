"""Writes what the visitor of the playground sees: the frame, its scripts and styles, and the words of the language."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path

from modgraph.inspect.page.document import DRAWER, read_style_of_drawing, text_of
from modgraph.inspect.page.libraries import Library
from modgraph.inspect.quote import escape_html, script_json
from modgraph.inspect.words import list_words
from modgraph.version import VERSION

GRAPH_SCRIPTS = (*DRAWER, "dom.js", "theme.js", "zoom.js", "source.js", "panel.js", "pane.js")
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval' {hash}; style-src 'self'; img-src data:; "
    "connect-src 'self'; worker-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'"
)


def write_screen(folder: Path) -> None:
    """Write the screen into a folder that has the library and the modules of the editor."""
    place, own = folder / "page", files("modgraph.play").joinpath("page")
    place.mkdir(exist_ok=True)
    for each in own.iterdir():
        if each.name.endswith(".js"):
            (place / each.name).write_bytes(each.read_bytes())
    (place / "graph.js").write_text("\n".join(map(text_of, GRAPH_SCRIPTS)), encoding="utf-8")
    (place / "elk.js").write_text(f"/* {Library.ELK.value} */\n{Library.ELK.script()}", encoding="utf-8")
    style = read_style_of_drawing() + text_of("changes.css") + own.joinpath("page.css").read_text(encoding="utf-8")
    (place / "page.css").write_text(style, encoding="utf-8")
    (place / "words.json").write_text(json.dumps(list_words(), separators=(",", ":")), encoding="utf-8")
    frame = own.joinpath("index.html").read_text(encoding="utf-8")
    imports = write_import_map()
    page = frame.format(policy=escape_html(write_policy(imports)), version=VERSION, imports=imports)
    (folder / "index.html").write_text(page, encoding="utf-8")


def write_import_map() -> str:
    """Map the names by which the modules of the editor import each other to their files."""
    from modgraph_web import EDITOR

    return script_json({"imports": {package: f"./editor/{file}" for package, file in EDITOR.items()}})


def write_policy(imports: str) -> str:
    """The content security policy: everything comes from the folder, and nothing is evaluated but the import map."""
    digest = base64.b64encode(hashlib.sha256(imports.encode()).digest()).decode()
    return POLICY.format(hash=f"'sha256-{digest}'")
