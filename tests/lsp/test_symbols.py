"""Names across files, as an editor asks for them: rename, references, outline."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from modgraph import load
from tests.lsp.editor import Editor, apply, drive

FFN = """block ffn(dim, hidden=8) {
  input x: float[tokens, dim]
  y = x -> linear(hidden) -> relu -> linear(dim)
  output y
}
"""
NET = """import ffn from "ffn.mod"

model net(width=8) {
  input image: float[3, 4]
  pool  p[3] = ffn(width, hidden=2 * width)
  router r = agreement(2)
  hidden = image -> linear(width) -> p by r
  for i in 0..2 { hidden = hidden + i }
  for i in 0..2 { side[i] = image -> linear(width + i) }
  output hidden
  output total = hidden -> mean(axis="p")
}
"""
OTHER = 'import ffn from "ffn.mod"\nmodel other() { input x: float[2, 4] y = x -> ffn(4, hidden=3) output y }\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"ffn.mod": FFN, "net.mod": NET, "other.mod": OTHER}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_rename_reaches_every_occurrence_in_every_file(folder: Path) -> None:
    async def work(editor: Editor) -> None:
        await editor.write(NET)
        assert await editor.renamed("  hid", "h") == {"net.mod": NET.replace("hidden", "h").replace("h=2", "hidden=2")}
        block = await editor.renamed("= ff", "mlp")
        assert block == {
            "ffn.mod": FFN.replace("ffn", "mlp"),
            "net.mod": NET.replace("import ffn", "import mlp").replace("= ffn", "= mlp"),
            "other.mod": OTHER.replace("import ffn", "import mlp").replace("> ffn", "> mlp"),
        }
        argument = await editor.renamed("ffn(width, hid", "inner")
        assert argument == {
            "ffn.mod": FFN.replace("hidden", "inner"),
            "net.mod": NET.replace("hidden=2", "inner=2"),
            "other.mod": OTHER.replace("hidden", "inner"),
        }
        pool = await editor.renamed("pool  p", "expert")
        assert 'axis="expert"' in pool["net.mod"] and "-> expert by r" in pool["net.mod"]
        loop = await editor.renamed("for i", "k")
        assert "for k in 0..2 { hidden = hidden + k }" in loop["net.mod"], "the first loop"
        assert "for i in 0..2 { side[i] " in loop["net.mod"], "the second loop has a variable of its own"
        for name, text in block.items():
            (folder / name).write_text(text)
        assert load(folder / "net.mod").ir.hash() != "", "the renamed files go together"

    drive(folder, work)


REFUSED = [
    ("  hid", "image", 'the name "image" is taken: net.mod:4'),
    ("  hid", "loss", '"loss" is a word of the language'),
    ("  hid", "2x", '"2x" must be a name'),
    ("  hid", "a b", '"a b" must be a name'),
    ("= ff", "linear", 'the name "linear" is taken: ffn.mod:3'),
    ("image -> lin", "map", '"linear" is not declared in a spec'),
    ("\nmod", "map", '"model" is not declared in a spec'),
]


def test_a_rename_that_cannot_be_is_refused_with_its_reason(folder: Path) -> None:
    async def work(editor: Editor) -> None:
        await editor.write(NET)
        for before, new, reason in REFUSED:
            with pytest.raises(JsonRpcException, match=re.escape(reason)):
                await editor.renamed(before, new)

    drive(folder, work)


def test_a_rename_that_changes_a_meaning_is_refused(folder: Path) -> None:
    text = "model m(load=2) { input x: float[4] y = x -> linear(load)\n  output y\n}\n"

    async def work(editor: Editor) -> None:
        await editor.write(text)
        assert (await editor.renamed("m(lo", "size"))["net.mod"] == text.replace("load", "size")
        axis = "model m() {\n  input x: float[4]\n  target t: class[kind=3]\n  y = x -> linear(kind)\n  output y\n}\n"
        await editor.write(axis)
        with pytest.raises(JsonRpcException) as refused:
            await editor.renamed("kin", "sort")
        assert '"kind" names an axis' in str(refused.value)

    drive(folder, work)


def test_a_record_keeps_its_name_when_its_value_gets_another(folder: Path) -> None:
    text = """router pick() for p {
  input x: float[tokens, dim]
  gates = x -> linear(p) -> softmax
  record gates
  y = x -> p by gates
  output y
}
"""

    async def work(editor: Editor) -> None:
        await editor.write(text)
        renamed = (await editor.renamed("  gates", "shares"))["net.mod"]
        assert "  record gates = shares\n" in renamed and "p by shares" in renamed

    drive(folder, work)


def test_references_are_found_in_every_file_that_imports(folder: Path) -> None:
    async def work(editor: Editor) -> None:
        await editor.write(NET)
        found = await editor.references("= ff")
        assert sorted(found) == [
            ("ffn.mod", "block ffn(dim, hidden=8) {"),
            ("net.mod", 'import ffn from "ffn.mod"'),
            ("net.mod", "pool  p[3] = ffn(width, hidden=2 * width)"),
            ("other.mod", 'import ffn from "ffn.mod"'),
            ("other.mod", "model other() { input x: float[2, 4] y = x -> ffn(4, hidden=3) output y }"),
        ]
        uses = await editor.references("router r", declarations=False)
        assert uses == [("net.mod", "hidden = image -> linear(width) -> p by r")]
        assert await editor.references("image -> lin") == []

    drive(folder, work)


def test_a_definition_is_that_of_the_name_in_its_own_block(folder: Path) -> None:
    text = FFN + "model m() {\n  input x: float[3, 4]\n  for i in 0..2 { x = x -> ffn(4) }\n  output x\n}\n"

    async def work(editor: Editor) -> None:
        await editor.write(text)
        places = []
        for before in ("  y = x", "  output x", "-> ffn", "linear(hid"):
            found = await editor.client.text_document_definition_async(types.DefinitionParams(**editor.at(before)))
            assert isinstance(found, types.Location)
            places.append((found.range.start.line, found.range.start.character))
        assert places == [(1, 8), (7, 18), (0, 6), (0, 15)]

    drive(folder, work)


def test_the_outline_lists_what_definitions_declare(folder: Path) -> None:
    async def work(editor: Editor) -> None:
        await editor.write(NET)
        found = await editor.client.text_document_document_symbol_async(types.DocumentSymbolParams(editor.document))
        assert found is not None
        (model,) = (each for each in found if isinstance(each, types.DocumentSymbol))
        assert (model.name, model.kind, model.detail) == ("net", types.SymbolKind.Class, "model")
        names = [(each.name, each.detail) for each in model.children or ()]
        assert names[:5] == [
            ("width", "parameter"),
            ("image", "input"),
            ("p", "pool"),
            ("r", "router"),
            ("hidden", "value"),
        ]
        assert model.range.end.line == NET.count("\n") - 1

    drive(folder, work)


def test_names_are_known_while_a_line_is_broken(folder: Path) -> None:
    broken = NET.replace("  output hidden", "  extra = hidden -> \n  output hidden")

    async def work(editor: Editor) -> None:
        await editor.write(broken)
        assert [each.code for each in editor.messages] == ["MG104"]
        renamed = (await editor.renamed("  hid", "h"))["net.mod"]
        assert "  h = image" in renamed and "  output h\n" in renamed
        assert ("net.mod", "output hidden") in await editor.references("  hid")
        assert (await editor.hints())["hidden"] == ": float[p=3, 8]"
        assert "`float[p=3, 8]`" in await editor.hovered("output hid")

    drive(folder, work)


def test_a_change_of_an_imported_file_is_seen(folder: Path) -> None:
    async def work(editor: Editor) -> None:
        await editor.write(NET)
        assert "`block ffn(dim, hidden=8)`" in await editor.hovered("= ff")
        (folder / "ffn.mod").write_text(FFN.replace("hidden=8", "hidden=9"))
        changed = types.FileEvent((folder / "ffn.mod").as_uri(), types.FileChangeType.Changed)
        editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([changed]))
        assert "`block ffn(dim, hidden=9)`" in await editor.hovered("= ff")

    drive(folder, work)


def test_a_workspace_behind_a_link_is_one_workspace(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = tmp_path_factory.mktemp("links") / "specs"
    link.symlink_to(folder)

    async def work(editor: Editor) -> None:
        await editor.write(NET)
        found = {name for name, _ in await editor.references("= ff")}
        assert found == {"ffn.mod", "net.mod", "other.mod"}
        assert set(await editor.renamed("= ff", "mlp")) == found

    drive(link, work)


def test_a_text_that_no_file_has_yet_is_known_too(folder: Path) -> None:
    text = "model m() {\n  input x: float[4]\n  y = x -> relu\n  output y\n}\n"

    async def work(editor: Editor) -> None:
        editor.uri = "untitled:Untitled-1"
        await editor.write(text)
        place = editor.at("  y")
        found = await editor.client.text_document_rename_async(types.RenameParams(**place, new_name="z"))
        assert found is not None and found.changes is not None
        assert list(found.changes) == [editor.uri] and len(found.changes[editor.uri]) == 2

    drive(folder, work)


def test_places_count_letters_as_editors_do(folder: Path) -> None:
    text = 'model m() { input x: float[4] z = x -> softmax(axis="😀") word = x -> relu output word }\n'

    async def work(editor: Editor) -> None:
        await editor.write(text)
        place = editor.at("word")
        place["position"].character += 1  # of the two units of the sign, Python counts one
        found = await editor.client.text_document_rename_async(types.RenameParams(**place, new_name="name"))
        assert found is not None and found.changes is not None
        assert apply(text, found.changes[editor.uri]) == text.replace("word", "name")

    drive(folder, work)
