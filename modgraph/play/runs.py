"""Reads pages of `export --web`, so that the playground runs their models: a bundle, its examples, and its spec."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph.declare import format_value
from modgraph.diagnostics import ModgraphError
from modgraph.files import explain_error, read_file
from modgraph.play.documents import Documents, NotInFolder
from modgraph.play.errors import BadPage, NotAPage
from modgraph.web.folder import FORMAT, PAGE, RECORD
from modgraph.web.write import EXAMPLES, MODEL, SPEC, write_frame, write_scripts

FOLDER = "runs"  # of the playground, with the scripts of pages and a folder for each run


@dataclass(frozen=True)
class PageOfRun:
    """A page that was checked. `texts` are the spec and its imports, `values` the parameters whose defaults the
    training changed, as one types them, and `program` the hash of the graph."""

    label: str
    model: str
    program: str
    texts: Mapping[str, str]
    values: Mapping[str, str]
    bundle: bytes
    record: Mapping[str, Any]
    examples: Mapping[str, Any]

    def describe(self, place: str) -> dict[str, Any]:
        """What the page of the playground knows of it: an entry of the library, and where its own page is."""
        about = ", ".join((self.label, *(f"{name}={value}" for name, value in self.values.items())))
        entry = {"group": "Runs", "title": self.model, "about": about, "open": next(iter(self.texts))}
        run = {"place": place, "model": self.model, "program": self.program}
        return {**entry, "files": dict(self.texts), "values": dict(self.values), "run": run}


def read_pages(folders: Sequence[str | Path]) -> list[PageOfRun]:
    """Read and check pages. Raises `ModgraphError` for all that cannot be used."""
    found, faults, known = list[PageOfRun](), list[Any](), set[Path]()
    for folder in map(Path, folders):
        try:
            if folder.resolve() in known:
                raise ModgraphError([BadPage(path=str(folder), reason="it is given twice")])
            known.add(folder.resolve())
            found.append(_read_page(folder))
        except ModgraphError as error:
            faults += error.diagnostics
    if faults:
        raise ModgraphError(faults)
    return found


def write_pages(folder: Path, pages: Sequence[PageOfRun]) -> list[dict[str, Any]]:
    """Write pages below the folder of a playground, the scripts of all of them once: what the playground's page knows
    of them."""
    if not pages:
        return []
    shared = folder / FOLDER
    shared.mkdir()
    write_scripts(shared)
    for number, page in enumerate(pages, 1):
        place = shared / str(number)
        place.mkdir()
        (place / MODEL).write_bytes(page.bundle)
        (place / RECORD).write_bytes(_to_json(page.record))
        (place / EXAMPLES).write_bytes(_to_json(page.examples))
        write_frame(place / PAGE, page.label, "../", "part")
    return [page.describe(f"{FOLDER}/{number}/{PAGE}") for number, page in enumerate(pages, 1)]


def _read_page(folder: Path) -> PageOfRun:
    record = _read_record(folder)
    texts = record.pop(SPEC, None)
    if not _is_texts(texts):
        raise ModgraphError([BadPage(path=str(folder), reason=f"{RECORD} has no texts of a spec")])
    manifest, examples = _check_bundle(folder)
    graph, values = _elaborate(folder, texts, manifest)
    label = folder.resolve().name.encode("utf-8", "replace").decode()
    bundle = read_file(folder / MODEL)
    return PageOfRun(label, graph.name, graph.hash(), texts, values, bundle, record, examples)


def _read_record(folder: Path) -> dict[str, Any]:
    """The record of a page, without the names of its files."""
    if not folder.is_dir():
        raise ModgraphError([NotAPage(path=str(folder), reason="there is no such folder")])
    if not (folder / MODEL).is_file():
        raise ModgraphError([NotAPage(path=str(folder), reason=f"it has no {MODEL}")])
    record = _read_json(folder, RECORD)
    if record.pop("format", None) != FORMAT or not isinstance(record.pop("files", None), list):
        raise ModgraphError([BadPage(path=str(folder), reason=f"{RECORD} has another format")])
    return record | {"format": FORMAT}


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    try:
        found = json.loads(read_file(folder / name))
    except (OSError, ValueError, RecursionError) as error:
        raise ModgraphError([BadPage(path=str(folder), reason=f"{name}: {explain_error(error)}")]) from error
    if not isinstance(found, dict):
        raise ModgraphError([BadPage(path=str(folder), reason=f"{name} is no object")])
    return found


def _is_texts(texts: Any) -> bool:
    """Whether these are texts of files below a folder, by name, a spec first."""
    if not isinstance(texts, dict) or not all(isinstance(each, str) for each in texts.values()):
        return False
    try:
        names = [Documents(Path("/")).check_name(name) for name in texts]
    except NotInFolder:
        return False
    return bool(names) and all(name.endswith(".mod") for name in names)


def _check_bundle(folder: Path) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """The manifest of the bundle, and the examples, the first of which it computes as they say."""
    from modgraph_runtime import Bundle, BundleError

    from modgraph.web.examples import find_fault

    examples = _read_json(folder, EXAMPLES)
    try:
        bundle = Bundle(folder / MODEL)
        reason = find_fault(bundle, examples)
    except BundleError as error:
        raise ModgraphError([BadPage(path=str(folder), reason=str(error))]) from error
    if reason:
        raise ModgraphError([BadPage(path=str(folder), reason=f"its examples: {reason}")])
    return bundle.manifest, examples


def _elaborate(folder: Path, texts: Mapping[str, str], manifest: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """The graph of the spec with the parameters of the bundle, and those that are not its defaults. Raises
    `ModgraphError` if the bundle has another graph."""
    from modgraph.differences import differences
    from modgraph.inspect.diff import Fate
    from modgraph.store.architecture import read_architecture

    with tempfile.TemporaryDirectory() as temporary:
        files = Documents(Path(temporary))
        for name, text in texts.items():
            files.write(name, text)
        spec = Path(temporary) / next(iter(texts))
        given = {name: value for name, value in manifest["parameters"].items()}
        found, plain = read_architecture(spec, given), read_architecture(spec)
        bundle = read_architecture(folder / MODEL)
        compared = differences(found, bundle)
        # The nodes of a stepwise bundle are those of single tokens, so its weights alone are compared.
        changed_weights = any(weight.fate is not Fate.KEPT for weight in compared.weights)
        if changed_weights if "stepwise" in manifest else compared.is_different:
            raise ModgraphError([BadPage(path=str(folder), reason="its spec is not that of its model")])
    changed = {name: value for name, value in given.items() if plain.graph.parameters.get(name) != value}
    return found.graph, {
        name: value if isinstance(value, str) else format_value(value) for name, value in changed.items()
    }


def _to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
