"""What an editor displays and offers while one types: signatures, fixes, types, kinds of words, hovers."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from modgraph import loads
from modgraph.inspect.reference import signature_of
from modgraph.ops import Op
from tests.lsp.editor import Editor, drive

SPECS = Path("specs").absolute()
TEXT = """block ffn(dim, hidden=8) {
  input x: float[tokens, dim]
  y = x -> linear(hidden) -> relu -> linear(dim)
  output y
}
model net(width=8) {
  input image: float[3, 4]
  pool  p[3] = ffn(width)
  router r = noisy_top_k(k=1)
  hidden = image -> linear(width)
  repeat layer[i] in 0..2 { hidden = hidden + (hidden -> ffn(width)) }
  y = hidden -> p by r
  output y
}
"""


async def signature(editor: Editor, before: str) -> tuple[str, str] | None:
    """The label of the call around a place, and its active parameter."""
    found = await editor.client.text_document_signature_help_async(types.SignatureHelpParams(**editor.at(before)))
    if found is None:
        return None
    (each,) = found.signatures
    parameters = [str(parameter.label) for parameter in each.parameters or ()]
    active = found.active_parameter if isinstance(found.active_parameter, int) else -1
    return each.label, parameters[active] if 0 <= active < len(parameters) else ""


def test_a_call_has_a_signature_with_the_parameter_that_is_written(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        await editor.write(TEXT)
        assert await signature(editor, "x -> linear(") == (f"op {signature_of(Op.registry.get('linear'))}", "width")
        assert await signature(editor, "noisy_top_k(k=") is not None
        assert await signature(editor, "(hidden -> ffn(") == ("block ffn(dim, hidden=8)", "dim")
        assert await signature(editor, "float[3, ") is None
        for typed, expected in {
            "y = hidden -> ffn(8, hidden=": ("block ffn(dim, hidden=8)", "hidden"),
            "y = hidden -> ffn(8, ": ("block ffn(dim, hidden=8)", "hidden"),
            "y = hidden -> conv(8, padding=(1 + 1), kernel=": ("op conv", "kernel"),
        }.items():
            await editor.write(TEXT.replace("  y = hidden -> p by r\n", f"  {typed}\n"))
            found = await signature(editor, typed)
            assert found is not None and found[0].startswith(expected[0]) and found[1] == expected[1], typed

    drive(tmp_path, work)


FIXES = [
    ("image -> linear(width)", "image -> liner(width)", 'replace "liner" by "linear"'),
    ("hidden -> p by r", "hiden -> p by r", 'replace "hiden" by "hidden"'),
    ("noisy_top_k(k=1)", "noisy_topk(k=1)", 'replace "noisy_topk" by "noisy_top_k"'),
    ("linear(hidden)", "linear(hidden, bais=false)", 'replace "bais" by "bias"'),
    ("pool  p[3]", "pol  p[3]", 'replace "pol" by "pool"'),
]


def test_the_help_of_a_message_can_be_applied(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        for right, wrong, title in FIXES:
            await editor.write(TEXT.replace(right, wrong))
            assert editor.messages, f"{wrong} is a mistake"
            found = dict(await editor.fixed())
            assert title in found
            await editor.write(found[title])
            errors = [each for each in editor.messages if each.severity == types.DiagnosticSeverity.Error]
            assert errors == [], title

    drive(tmp_path, work)


def test_a_message_without_a_replacement_offers_none(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        await editor.write(TEXT.replace("float[3, 4]", "float[3, 4, 5, 6]").replace("p by r", "p by p"))
        assert editor.messages
        assert await editor.fixed() == []
        await editor.write(TEXT)
        assert (editor.messages, await editor.fixed()) == ([], [])

    drive(tmp_path, work)


def test_values_have_their_inferred_types(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        await editor.write(TEXT)
        hints = await editor.hints()
        assert hints["hidden"] == ": float[3, 8]"
        assert hints["repeat layer[i] in 0..2 { hidden"] == ": float[3, 8]", "both rounds agree"
        graph = loads(TEXT).ir
        assert hints["y"] == f": {graph.type_of(graph.outputs['y'])}"
        await editor.write(TEXT.replace("image -> linear(width)", "image -> linear(7)\n    -> linear(width)"))
        hints = await editor.hints()
        assert hints["hidden = image -> linear(7)"] == ": float[3, 7]", "behind a stage at the end of a line"
        assert "input image" not in await editor.hints()

    drive(tmp_path, work)


def test_every_word_has_a_kind(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        await editor.write(TEXT + "# a remark\n")
        found = await editor.words()
        kinds = {word: kind for word, kind, _ in found}
        assert (
            kinds.items()
            >= {
                "model": "keyword",
                "net": "class",
                "width": "parameter",
                "hidden": "variable",
                "linear": "function",
                "noisy_top_k": "function",
                "k": "property",
                "float": "type",
                "layer": "namespace",
                "3": "number",
            }.items()
        )
        assert [word for word, _, declares in found if declares][:5] == ["ffn", "dim", "hidden", "x", "y"]
        await editor.write(TEXT.replace("-> p by r", "-> p by"))
        assert dict((word, kind) for word, kind, _ in await editor.words())["ffn"] == "class", "while a line is broken"

    drive(tmp_path, work)


def test_names_of_every_kind_say_what_they_are(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        await editor.write(TEXT)
        assert "`float[3, 4]`" in await editor.hovered("input imag")
        assert await editor.hovered("net(wid") == "`parameter width=8`"
        assert "`block ffn(dim, hidden=8)`" in await editor.hovered("block ff")
        pool = await editor.hovered("pool  p")
        assert "`pool p[3]`" in pool and "432 parameters" in pool, "three times two maps of 8 * 8 + 8"
        assert "router r = noisy_top_k" in await editor.hovered("router r")
        value = await editor.hovered("  hidden")
        assert "`float[3, 8]`" in value and "40 parameters, 96 MACs" in value
        assert "in 2 rounds" in await editor.hovered("{ hidden")

    drive(tmp_path, work)


@pytest.mark.some(1)
@pytest.mark.parametrize("spec", ["gmoe_digits", "smn", "mt_rmn", "sema", "modular_networks_lm"])
def test_a_shipped_spec_has_answers_for_every_name(spec: str) -> None:
    context = types.ReferenceContext(include_declaration=True)

    async def work(editor: Editor) -> None:
        editor.switch_to(SPECS / f"{spec}.mod")
        await editor.write(editor.path.read_text())
        assert editor.messages == []
        assert await editor.hints()
        assert {kind for _, kind, _ in await editor.words()} >= {"keyword", "class", "function"}
        for name, position in editor.declared.items():
            place = editor.place(position)
            assert await editor.client.text_document_hover_async(types.HoverParams(**place)) is not None, name
            places = types.ReferenceParams(**place, context=context)
            assert await editor.client.text_document_references_async(places), name

    drive(SPECS, work)
