"""Writes the folder of the playground: the page, the engine, the packages, the library, and a spec to open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.log import log
from modgraph.play.errors import NoPlayground, NotAFolder
from modgraph.play.library import read_entry, read_library
from modgraph.play.packages import FIRST, MORE, pack
from modgraph.play.runs import ExportRun, read_pages, write_pages
from modgraph.play.screen import write_screen
from modgraph.play.tour import read_tour
from modgraph.version import VERSION
from modgraph.web.folder import FORMAT, RECORD, check_place, list_files_in, replacing_folder

PACKAGES, LATER, LOCK = "packages.zip", "more.zip", "pyodide-lock.json"
LIBRARY, OPENED, RUNS, TOUR = "library.json", "opened.json", "runs.json", "tour.json"
FIRST_LOADED = ("pyodide/pyodide.js", "pyodide/pyodide.asm.js", "pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip")


def write_playground(
    folder: str | Path,
    spec: str | Path | None = None,
    pages: Sequence[str | Path] = (),
    force: bool = False,
    home: str | None = None,
    export_run: ExportRun | None = None,
) -> str:
    """Write the folder, and report the sizes of its parts. With a spec, the page opens with it, its imports and its
    recipe; it may have mistakes. It runs the models of `pages`: folders that `export --web` wrote, bundles of the spec,
    and runs, whose pages `export_run` writes. `home` is the address of the documents, for links. Raises `ModgraphError`
    and then leaves everything as it was."""
    target = Path(folder)
    if target.suffix and not target.is_dir():
        raise ModgraphError([NotAFolder(path=str(folder), suffix=target.suffix)])
    vendored = _list_vendored()
    check_place(target, force)
    opened = None if spec is None else read_entry(Path(spec), "Yours")
    runs = read_pages(pages, spec, export_run)
    log.info(f"{target}: writing the engine, the editor and the library")
    with replacing_folder(target, force) as new:
        for name, path in vendored.items():
            if not name.endswith(LOCK):
                _write(new / name, path.read_bytes())
        write_screen(new)
        _write(new / PACKAGES, pack(FIRST))
        _write(new / LATER, pack(MORE))
        _write(new / LIBRARY, _json({"entries": read_library()}))
        _write(new / OPENED, _json({"entry": opened}))
        _write(new / TOUR, _json({"steps": read_tour(), "home": home}))
        _write(new / RUNS, _json({"entries": write_pages(new, runs)}))
        python = json.loads(vendored[f"pyodide/{LOCK}"].read_text(encoding="utf-8"))["info"]
        sizes = {name: (new / name).stat().st_size for name in sorted(list_files_in(new))}
        record = {"files": sorted({*sizes, RECORD}), "bytes": sizes, "modgraph": VERSION, "format": FORMAT}
        _write(new / RECORD, _json(record | {"python": python}))
    return _describe(target, sizes)


def _list_vendored() -> dict[str, Path]:
    """The engine and the editor, by name. Raises `ModgraphError` if they are not installed."""
    try:
        import modgraph_web
    except ImportError as error:
        raise ModgraphError([NoPlayground(reason="it is not installed")]) from error
    try:
        return modgraph_web.playground()
    except FileNotFoundError as error:
        raise ModgraphError([NoPlayground(reason=str(error))]) from error


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _describe(target: Path, sizes: dict[str, int]) -> str:
    whole, first = sum(sizes.values()), sum(sizes[name] for name in (*FIRST_LOADED, PACKAGES))
    editor = sum(size for name, size in sizes.items() if name.startswith("editor/"))
    return (
        f"{target}: {whole / 1e6:.1f} MB, of which Python {(first - sizes[PACKAGES]) / 1e6:.1f}, its packages "
        f"{(sizes[PACKAGES] + sizes[LATER]) / 1e6:.1f}, the editor {editor / 1e6:.1f}\n"
        f"to look at it: python -m http.server -d {target} 8000"
    )
