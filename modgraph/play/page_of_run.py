"""Reads a page of `export --web` and checks it: a bundle, its examples, and the spec that it was trained from."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph.declare import format_value
from modgraph.diagnostics import ModgraphError
from modgraph.files import explain_error, read_file
from modgraph.ir import Graph
from modgraph.play.documents import Documents, NotInFolder
from modgraph.play.errors import BadPage, GrownOtherwise, NotAPage
from modgraph.store.architecture import Architecture, read_architecture
from modgraph.web.folder import FORMAT, RECORD
from modgraph.web.write import EXAMPLES, MODEL, PARAMETERS, SPEC


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


def to_json(value: Any) -> bytes:
    """Raises `ValueError` and `RecursionError`."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def computes_as(spec: Architecture, bundle: Architecture) -> bool:
    """Whether a spec gives what a bundle computes, whatever is frozen or was added."""
    from modgraph.differences import differences
    from modgraph.inspect.diff.architecture_diff import drop_marks

    return not drop_marks(differences(spec, bundle)).is_different


@dataclass(frozen=True)
class StoredPage:
    """A page in a folder. Messages name it by `path`, which it was made of."""

    path: Path
    folder: Path

    def read(self) -> PageOfRun:
        """Raises `ModgraphError` for a page that cannot be used."""
        record = self._read_record()
        texts, parameters = record.pop(SPEC, None), record.pop(PARAMETERS, {})
        if not _is_texts(texts):
            raise self._fault(f"{RECORD} has no texts of a spec")
        if parameters is None:
            raise ModgraphError([GrownOtherwise(path=str(self.path))])
        if not isinstance(parameters, dict):
            raise self._fault(f"{RECORD} has no parameters")
        examples = self._check_examples()
        graph, values = self._elaborate(texts, parameters)
        label = self.path.resolve().name.removesuffix(".onnx").encode("utf-8", "replace").decode()
        bundle = read_file(self.folder / MODEL)
        return PageOfRun(label, graph.name, graph.hash(), texts, values, bundle, record, examples)

    def _fault(self, reason: str) -> ModgraphError:
        return ModgraphError([BadPage(path=str(self.path), reason=reason)])

    def _read_record(self) -> dict[str, Any]:
        """The record of a page, without the names of its files."""
        if not (self.folder / MODEL).is_file():
            there = "it is a file" if self.folder.is_file() else "there is no such file or folder"
            reason = f"it has no {MODEL}" if self.folder.is_dir() else there
            raise ModgraphError([NotAPage(path=str(self.path), reason=reason)])
        record = self._read_json(RECORD)
        if record.pop("format", None) != FORMAT or not isinstance(record.pop("files", None), list):
            raise self._fault(f"{RECORD} has another format")
        return record | {"format": FORMAT}

    def _read_json(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads(read_file(self.folder / name))
            to_json(found)  # it is written again
        except (OSError, ValueError, RecursionError) as error:
            raise self._fault(f"{name}: {explain_error(error)}") from error
        if not isinstance(found, dict):
            raise self._fault(f"{name} is no object")
        return found

    def _check_examples(self) -> dict[str, Any]:
        """The examples, the first of which the bundle computes as they say."""
        from modgraph_runtime import Bundle, BundleError

        from modgraph.web.examples import find_fault

        examples = self._read_json(EXAMPLES)
        try:
            reason = find_fault(Bundle(self.folder / MODEL), examples)
        except BundleError as error:
            raise self._fault(str(error)) from error
        if reason:
            raise self._fault(f"its examples: {reason}")
        return examples

    def _elaborate(self, texts: Mapping[str, str], parameters: Mapping[str, Any]) -> tuple[Graph, dict[str, str]]:
        """The graph of the spec, and the parameters that are not its defaults. Raises `ModgraphError` if the bundle has
        another graph."""
        with tempfile.TemporaryDirectory() as temporary:
            files = Documents(Path(temporary))
            for name, text in texts.items():
                files.write(name, text)
            spec = Path(temporary) / next(iter(texts))
            try:
                found = read_architecture(spec, parameters)
            except ModgraphError as error:
                raise self._fault(f"its spec: {error.diagnostics[0].text()}") from error
            if not computes_as(found, read_architecture(self.folder / MODEL)):
                raise self._fault("its spec is not that of its model")
            defaults = _read_defaults(spec)
        changed = {name: value for name, value in found.graph.parameters.items() if defaults.get(name) != value}
        return found.graph, {
            name: value if isinstance(value, str) else format_value(value) for name, value in changed.items()
        }


def _is_texts(texts: Any) -> bool:
    """Whether these are texts of files below a folder, by name, a spec first."""
    if not isinstance(texts, dict) or not all(isinstance(each, str) for each in texts.values()):
        return False
    try:
        names = [Documents(Path("/")).check_name(name) for name in texts]
    except NotInFolder:
        return False
    return bool(names) and all(name.endswith(".mod") for name in names)


def _read_defaults(spec: Path) -> Mapping[str, Any]:
    """The parameters of a spec without any given; none if one has no default."""
    try:
        return read_architecture(spec).graph.parameters
    except ModgraphError:
        return {}
