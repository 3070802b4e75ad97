"""The Python packages that the playground runs, as archives: what a first check needs, and what few requests need."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from modgraph.diagnostics import ModgraphError
from modgraph.play.errors import NoPackage

TORCH = ("backends", "nn", "prediction", "study", "trace", "web", "api")  # rooms that need torch, but for messages
EVER = (1980, 1, 1, 0, 0, 0)  # the date of all files, so that equal packages are equal archives
FIRST = ("modgraph", "modgraph_grammar", "modgraph_runtime", "lark", "yaml", "filelock")
MORE = ("networkx",)
TESTS = "tests"
SUFFIXES = (".py", ".lark", ".mod", ".txt", ".json")


def pack(packages: Iterable[str]) -> bytes:
    """An archive of packages. Raises `ModgraphError`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in packages:
            for path, target in list_files(name):
                archive.writestr(zipfile.ZipInfo(target, EVER), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def list_files(package: str) -> Iterator[tuple[Path, str]]:
    """The files of an installed package that it runs on, with their paths in the archive."""
    found = find_spec(package)
    folders = [] if found is None else [*(found.submodule_search_locations or ())]
    if not folders:
        raise ModgraphError([NoPackage(package=package, reason="it is not installed as a folder")])
    home = Path(folders[0])
    for path in sorted(home.rglob("*")):
        inside = path.relative_to(home)
        if package == "modgraph" and inside.parts[0] in TORCH and path.name not in ("errors.py", "__init__.py"):
            continue
        if path.suffix in SUFFIXES and TESTS not in inside.parts and path.is_file():
            yield path, f"{package}/{inside.as_posix()}"
