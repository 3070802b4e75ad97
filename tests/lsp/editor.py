"""An editor for tests: a client of the language server over standard input and output."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.children import Forked


class Editor:
    """A client that keeps the messages it receives, and finds places by the text before them."""

    def __init__(self, folder: Path, name: str = "net.mod") -> None:
        self.client = LanguageClient("tests", "1")
        self.path = folder / name
        self.uri = self.path.as_uri()
        self.messages: list[types.Diagnostic] = []
        self.arrived = asyncio.Event()
        self.text = ""
        self.version = 0
        self.declared: dict[str, types.Position] = {}

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.messages = list(params.diagnostics)
            self.arrived.set()

    async def start(self) -> types.InitializeResult:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(subprocess, "Popen", Forked)
            await self.client.start_io(sys.executable, "-m", "modgraph", "lsp")
        return await self.client.initialize_async(
            types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=self.path.parent.as_uri())
        )

    def switch_to(self, path: Path) -> None:
        """Leave the document for another one."""
        self.path, self.uri, self.version = path, path.as_uri(), 0
        self.declared = {}

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)

    async def write(self, text: str) -> None:
        """Open the document, or change it whole, and wait for the messages."""
        self.arrived.clear()
        self.text, self.version = text, self.version + 1
        if self.version == 1:
            item = types.TextDocumentItem(self.uri, "modgraph", self.version, text)
            self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        else:
            document = types.VersionedTextDocumentIdentifier(uri=self.uri, version=self.version)
            change = types.TextDocumentContentChangeWholeDocument(text=text)
            self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        await asyncio.wait_for(self.arrived.wait(), 30)

    @property
    def document(self) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri)

    @property
    def whole(self) -> types.Range:
        return types.Range(types.Position(0, 0), types.Position(self.text.count("\n") + 1, 0))

    def at(self, before: str) -> dict[str, Any]:
        """The place behind the first occurrence of a text."""
        head = self.text[: self.text.index(before) + len(before)]
        position = types.Position(head.count("\n"), len(head) - head.rfind("\n") - 1)
        return {"text_document": self.document, "position": position}

    async def completions(self, before: str) -> set[str]:
        found = await self.client.text_document_completion_async(types.CompletionParams(**self.at(before)))
        assert isinstance(found, types.CompletionList)
        return {item.label for item in found.items}

    async def hovered(self, before: str) -> str:
        found = await self.client.text_document_hover_async(types.HoverParams(**self.at(before)))
        assert found is not None, f"nothing is displayed behind {before!r}"
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    async def references(self, before: str, declarations: bool = True) -> list[tuple[str, str]]:
        """The file and the line of each reference to the name at a place."""
        context = types.ReferenceContext(include_declaration=declarations)
        found = await self.client.text_document_references_async(
            types.ReferenceParams(**self.at(before), context=context)
        )
        return [(Path(each.uri).name, self.line_of(each)) for each in found or ()]

    def line_of(self, place: types.Location) -> str:
        path = self.path.with_name(Path(place.uri).name)
        text = self.text if path == self.path else path.read_text()
        return text.split("\n")[place.range.start.line].strip()

    async def renamed(self, before: str, new: str) -> dict[str, str]:
        """The texts of all files that a rename changes, by name."""
        found = await self.client.text_document_rename_async(types.RenameParams(**self.at(before), new_name=new))
        assert found is not None and found.changes is not None
        texts = {}
        for uri, edits in found.changes.items():
            path = self.path.with_name(Path(uri).name)
            texts[path.name] = apply(self.text if path == self.path else path.read_text(), edits)
        return texts

    async def fixed(self) -> list[tuple[str, str]]:
        """The title of each code action, and the text after it."""
        context = types.CodeActionContext(diagnostics=self.messages)
        found = await self.client.text_document_code_action_async(
            types.CodeActionParams(self.document, self.whole, context)
        )
        actions = [each for each in found or () if isinstance(each, types.CodeAction)]
        edits = [each.edit.changes[self.uri] for each in actions if each.edit is not None and each.edit.changes]
        return [(each.title, apply(self.text, edit)) for each, edit in zip(actions, edits, strict=True)]

    async def hints(self) -> dict[str, str]:
        """The text before each hint on its line, with the hint."""
        found = await self.client.text_document_inlay_hint_async(types.InlayHintParams(self.document, self.whole))
        lines = self.text.split("\n")
        return {lines[each.position.line][: each.position.character].strip(): str(each.label) for each in found or ()}

    def place(self, position: types.Position) -> dict[str, Any]:
        return {"text_document": self.document, "position": position}

    async def words(self) -> list[tuple[str, str, bool]]:
        """Each word with its type, and whether it declares a symbol; `declared` has the places of those that do."""
        found = await self.client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(self.document))
        assert found is not None
        lines, words, line, column = self.text.split("\n"), [], 0, 0
        for at in range(0, len(found.data), 5):
            down, ahead, length, kind, modifiers = found.data[at : at + 5]
            line, column = line + down, ahead + (0 if down else column)
            words.append((lines[line][column : column + length], TYPES[kind], bool(modifiers)))
            if modifiers:
                self.declared.setdefault(words[-1][0], types.Position(line, column))
        return words


TYPES = "namespace class function type parameter variable property keyword string number operator".split()


def apply(text: str, edits: Any) -> str:
    """A text after the edits of one document."""
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True):
        start, end = edit.range.start, edit.range.end
        assert start.line == end.line, "a name lies on one line"
        units = lines[start.line].encode("utf-16-le")
        before, after = units[: 2 * start.character], units[2 * end.character :]
        lines[start.line] = before.decode("utf-16-le") + edit.new_text + after.decode("utf-16-le")
    return "\n".join(lines)


def drive(folder: Path, work: Callable[[Editor], Awaitable[None]], name: str = "net.mod") -> None:
    """Start a server for the specs of a folder, do some work in an editor, and stop the server."""

    async def session() -> None:
        editor = Editor(folder, name)
        await editor.start()
        await work(editor)
        await editor.stop()

    asyncio.run(asyncio.wait_for(session(), 120))
