"""Files of blocks alone: what can be told of them without a use."""

from __future__ import annotations

from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.diagnostics import Report, Source
from modgraph.elaboration import elaborate_blocks
from modgraph.lsp.analysis import analyse
from modgraph.syntax import parse

SOUND = [
    "block b() { input x: float[4] y = x -> linear(4) output y }",
    "block b(width) { input x: float[n, width] y = x -> layer_norm -> linear(4 * width) -> linear(width) output y }",
    "block b() { input x: float[n, d] y = x -> linear(4) -> position output x + y }",
    "block b(k=2) { input x: float[n, d] input z: float[n, d] for i in 0..k { x = (x, z) -> concat -> a } output x }"
    " block a() { input x: float[d] y = x -> relu output y }",
    "block b(size) { input x: float[n, 4] pool p[size] = linear(4) router r = linear(k=1) y = x -> p by r output y "
    "loss importance(r) }",
    "block b(depth) { input x: float[4] repeat l[i] in 0..depth { x = x -> linear(4) } output x }",
    "block b(width) { input x: float[time, 4] scan x as v with h: float[width] { h = (h, v) -> concat -> linear(width) "
    "yield h } as s output s }",
]

WRONG = {
    "block b(width) { input x: float[n, width] y = x -> liner(4) -> lnear(width) output y }": ["MG202", "MG202"],
    "block b(width) { input x: float[n, width] y = x -> linear(4, biass=false) output z }": ["MG204", "MG201"],
    "block b() { input x: float[4] y = x -> b output y }": ["MG222"],
    "block b() { input x: float[4] y = x -> conv(4) output y }": ["MG301"],
    "block b(width=3) { input x: float[4] y = x -> dropout(width) output y }": ["MG206"],
    "block b() { input x: float[4] y = x -> relu }": ["MG217"],
    "block b() { target x: float[4] output x }": ["MG218"],
    "block a() { input x: float[4] y = x -> liner output y } block b() { input x: float[4] y = x -> a output y }": [
        "MG202"
    ],
    "block b() { output x } block b() { input x: float[4] output x }": ["MG208", "MG201"],
}


def codes(text: str) -> list[str]:
    report = Report()
    file = parse(Source("blocks.mod", text), report)
    assert file is not None
    elaborate_blocks(file, report)
    return [each.code for each in report.list_diagnostics()]


@pytest.mark.parametrize("text", SOUND)
def test_sound_blocks_need_no_model(text: str) -> None:
    assert codes(text) == []


@pytest.mark.parametrize("text", WRONG)
def test_mistakes_in_blocks_are_reported_without_a_use(text: str) -> None:
    assert sorted(codes(text)) == sorted(WRONG[text])


def test_check_says_what_it_could_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "blocks.mod"
    path.write_text(" ".join(SOUND[:2]).replace("block b()", "block a()"))
    assert main(["check", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith(f"{path}: ok: the names and arguments of 2 blocks")
    assert "shapes" in printed.out
    assert main(["check", "--json", str(path)]) == 0
    assert capsys.readouterr().out == "[]\n"
    path.write_text("block a() { input x: float[4] y = x -> liner output y }")
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out == ""


def test_what_builds_a_model_wants_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "blocks.mod"
    path.write_text(SOUND[0])
    assert main(["show", str(path)]) == 1
    assert "MG107" in capsys.readouterr().err
    assert main(["check", str(path), "-s", "width=3"]) == 1
    assert "MG107" in capsys.readouterr().err


def test_an_editor_gets_the_same_diagnostic() -> None:
    assert analyse(Source("blocks.mod", SOUND[0])).diagnostics == ()
    analysis = analyse(Source("blocks.mod", "block b() { input x: float[4] y = x -> relu output y }"))
    assert str(analysis.value_at(analysis.source.text.index("y ="))) != "None"
