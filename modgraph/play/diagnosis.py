"""The messages of the texts that an editor has open, by file, as the language server protocol publishes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from modgraph.checking import check_spec
from modgraph.diagnostics import Diagnostic, render
from modgraph.elaboration import resolve_path
from modgraph.lsp.places import START, message_of
from modgraph.play.documents import Documents


class Publisher:
    """Checks the open specs after a change, and publishes what has changed for any file."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self._published: dict[str, list[dict[str, Any]]] = {}

    def publish(self, changed: str) -> Iterator[dict[str, Any]]:
        """The parameters of `publishDiagnostics`: for the changed file always, for others where they differ.

        Mistakes of the changed file come before other specs are checked, and again if those add to them.
        """
        found: dict[str, list[dict[str, Any]]] = {changed: []}
        early: list[dict[str, Any]] = []
        specs = self._list_specs(changed)
        for spec in specs[:1]:
            self._check(spec, found)
        if specs[1:] and found[changed]:
            early = [*found[changed]]
            yield self._describe(changed, early)
        for spec in specs[1:]:
            self._check(spec, found)
        gone = {name: list[dict[str, Any]]() for name in self._published if name not in found}
        before, self._published = self._published, {name: each for name, each in found.items() if each}
        for name, messages in (found | gone).items():
            known = early or None if name == changed else before.get(name, [])
            if known != messages:
                yield self._describe(name, messages)

    def _describe(self, name: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
        return {"uri": self.documents.uri_of(name), "diagnostics": messages}

    def _check(self, spec: str, found: dict[str, list[dict[str, Any]]]) -> None:
        """Add the messages of a spec to those of the files that they belong to."""
        for diagnostic in check_spec(spec, {}, needs=False).diagnostics:
            name, message = self._place(diagnostic, spec)
            messages = found.setdefault(name, [])
            if message not in messages:
                messages.append(message)

    def _list_specs(self, changed: str) -> list[str]:
        """The specs to check: that of the changed file, then those of the other open ones."""
        names = [changed, *map(self.documents.name_of, self.documents.open)]
        return [*dict.fromkeys(spec for name in names if (spec := self.documents.spec_of(name)) is not None)]

    def _place(self, diagnostic: Diagnostic, spec: str) -> tuple[str, dict[str, Any]]:
        """The file that a diagnostic belongs to, and its message. One without a place in a file stands at the start of
        the spec."""
        said = {"rendered": render(diagnostic), "diagnostic": diagnostic.as_json()}
        message = message_of(diagnostic) | {"data": said}
        name = spec if diagnostic.span is None else self._file_of(diagnostic.span.source.name, spec)
        if name is None:
            return spec, message | {"range": {"start": START, "end": START}}
        return name, message

    def _file_of(self, source: str, spec: str) -> str | None:
        """The name of the file that a source was read from, or None: imports have whole paths, or are named from the
        folder of the spec."""
        root = self.documents.root
        paths = (resolve_path(root / each) for each in (source, PurePosixPath(spec).parent / source))
        found = (path for path in paths if path.is_relative_to(root) and path.is_file())
        return next((path.relative_to(root).as_posix() for path in found), None)
