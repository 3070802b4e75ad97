"""The language server, driven by a client over standard input and output as an editor would."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

FFN = "block ffn(dim) {\n  input x: float[tokens, dim]\n  y = x -> linear(dim)\n  output y\n}\n"
TEXT = """import ffn from "ffn.mod"
model net(width=8) {
  input image: float[3, 4]
  pool  p[3] = ffn(width)
  router r = agreement(2)
  hidden = image -> linear(width) -> p by r
  output hidden
}
"""


class Editor:
    """A client that keeps the messages it was sent, and looks for places by the text before them."""

    def __init__(self, folder: Path) -> None:
        self.client = LanguageClient("tests", "1")
        self.path = folder / "net.mod"
        self.uri = self.path.as_uri()
        self.messages: list[types.Diagnostic] = []
        self.arrived = asyncio.Event()
        self.text = ""
        self.version = 0

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.messages = list(params.diagnostics)
            self.arrived.set()

    async def start(self) -> None:
        await self.client.start_io(sys.executable, "-m", "modgraph", "lsp")
        await self.client.initialize_async(
            types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=self.path.parent.as_uri())
        )

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

    def at(self, before: str) -> dict[str, Any]:
        head = self.text[: self.text.index(before) + len(before)]
        position = types.Position(head.count("\n"), len(head) - head.rfind("\n") - 1)
        return {"text_document": types.TextDocumentIdentifier(self.uri), "position": position}

    async def completions(self, before: str) -> set[str]:
        found = await self.client.text_document_completion_async(types.CompletionParams(**self.at(before)))
        assert isinstance(found, types.CompletionList)
        return {item.label for item in found.items}

    async def hovered(self, before: str) -> str:
        found = await self.client.text_document_hover_async(types.HoverParams(**self.at(before)))
        assert found is not None
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value


async def session(folder: Path) -> None:
    editor = Editor(folder)
    await editor.start()
    await editor.write(TEXT)
    assert editor.messages == []

    assert "`float[3, 8]`" in await editor.hovered("image -> lin")
    assert "op linear(width" in await editor.hovered("image -> lin")
    assert "`float[3, 4]`" in await editor.hovered("hidden = ima")
    assert "router agreement(iterations=4" in await editor.hovered("router r = agree")

    location = await editor.client.text_document_definition_async(types.DefinitionParams(**editor.at("p[3] = ff")))
    assert isinstance(location, types.Location)
    assert (Path(location.uri).name, location.range.start) == ("ffn.mod", types.Position(0, 6))
    location = await editor.client.text_document_definition_async(types.DefinitionParams(**editor.at("output hidd")))
    assert isinstance(location, types.Location)
    assert (location.uri, location.range.start) == (editor.uri, types.Position(5, 2))

    await editor.write(TEXT.replace("linear(width) -> p by r", "liner(width) -> "))
    assert [message.code for message in editor.messages] == ["MG104"]
    assert {"linear", "conv", "p"} <= await editor.completions("liner(width) -> ")
    await editor.write(TEXT.replace("linear(width)", "liner(width)"))
    (message,) = editor.messages
    assert (message.code, message.range.start) == ("MG202", types.Position(5, 20))
    assert 'did you mean "linear"?' in message.message
    await editor.write(TEXT.replace("linear(width) -> p by r", "conv(4, ) -> p by "))
    assert {"kernel=", "stride=", "width"} <= await editor.completions("conv(4, ")
    assert await editor.completions("p by ") == {"r"}
    await editor.write(TEXT.replace("agreement(2)", "linear(1, )"))
    found = await editor.completions("linear(1, ")
    assert {"k=", "noise="} <= found and "bias=" not in found  # the router of that name, not the op

    await editor.write(TEXT.replace("  input image", "      input    image"))
    options = types.FormattingOptions(tab_size=2, insert_spaces=True)
    document = types.TextDocumentIdentifier(editor.uri)
    edits = await editor.client.text_document_formatting_async(types.DocumentFormattingParams(document, options))
    assert edits is not None
    assert "\n  input image: float[3, 4]\n" in edits[0].new_text
    await editor.client.shutdown_async(None)
    editor.client.exit(None)


def test_an_editor_opens_completes_hovers_jumps_and_formats(tmp_path: Path) -> None:
    (tmp_path / "ffn.mod").write_text(FFN)
    asyncio.run(asyncio.wait_for(session(tmp_path), 120))
