"""The service of the playground in plain Python, over a folder of a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from modgraph.cli.explain_command import explain
from modgraph.play.documents import Documents
from modgraph.play.service import Service


class Page:
    """A page that talks to the service: what it asks, and what it hears."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.service = Service(explain, Documents(self.folder))
        self.number = 0

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def receive(self, **message: Any) -> list[dict[str, Any]]:
        found = [json.loads(each) for each in self.service.receive(json.dumps({"jsonrpc": "2.0", **message}))]
        assert all(each["jsonrpc"] == "2.0" for each in found)
        return found

    def respond(self, method: str, **params: Any) -> dict[str, Any]:
        """The response to a request."""
        self.number += 1
        (response,) = self.receive(id=self.number, method=method, params=params)
        assert response["id"] == self.number
        return response

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        response = self.respond(method, **params)
        assert "error" not in response, response["error"]
        return response["result"]

    def fail(self, method: str, **params: Any) -> dict[str, Any]:
        """The error of a request."""
        error: dict[str, Any] = self.respond(method, **params)["error"]
        return error

    def open(self, name: str, text: str) -> dict[str, list[dict[str, Any]]]:
        """Open a document: the published messages by file."""
        return self._notify("textDocument/didOpen", textDocument={"uri": self.uri(name), "text": text})

    def change(self, name: str, text: str) -> dict[str, list[dict[str, Any]]]:
        document = {"uri": self.uri(name), "version": 2}
        return self._notify("textDocument/didChange", textDocument=document, contentChanges=[{"text": text}])

    def close(self, name: str) -> None:
        assert self._notify("textDocument/didClose", textDocument={"uri": self.uri(name)}) == {}

    def _notify(self, method: str, **params: Any) -> dict[str, list[dict[str, Any]]]:
        found = {}
        for each in self.receive(method=method, params=params):
            assert each["method"] == "textDocument/publishDiagnostics"
            name = Path(each["params"]["uri"]).name
            found[name] = each["params"]["diagnostics"]
        return found

    def place(self, name: str, text: str, before: str) -> dict[str, Any]:
        """The parameters of a request at the place behind a text."""
        head = text[: text.index(before) + len(before)]
        position = {"line": head.count("\n"), "character": len(head) - head.rfind("\n") - 1}
        return {"textDocument": {"uri": self.uri(name)}, "position": position}
