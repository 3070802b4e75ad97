"""The language server, driven by a client over standard input and output as an editor would."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lsprotocol import types

from tests.lsp.editor import Editor

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
