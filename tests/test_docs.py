"""What the documents show is true: every spec in them checks, trains a step and is in the layout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import modgraph
from modgraph.backends.report import random_batch
from modgraph.cli import main
from modgraph.diagnostics import Report, Source
from modgraph.syntax.format import format_source
from tests.pages import read_blocks, read_command, run_page

LANGUAGE = Path("docs/language.md").read_text()
EXAMPLES = re.findall(r"```mod\n(.*?)```", LANGUAGE, re.S)


def name_of(text: str) -> str:
    found = re.search(r"model (\w+)", text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("text", EXAMPLES, ids=name_of)
def test_an_example_of_the_language_is_sound(text: str) -> None:
    program = modgraph.loads(text)
    assert [warning.code for warning in program.warnings if warning.code != "MG406"] == []
    model = program.build()
    computed = model.compute(random_batch(model))
    if computed.losses:
        computed.loss.backward()
    assert format_source(Source("t.mod", text), Report()) == text


def test_what_the_language_page_prints_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path("docs/language.md").resolve()
    monkeypatch.chdir(tmp_path)
    run_page(page, without="mod")


def test_the_language_page_lists_the_reserved_words() -> None:
    grammar = Path("grammar/modgraph_grammar/modgraph.lark").read_text()
    reserved, names = grammar.split("// names wherever", 1)
    listed = re.search(r"reserved everywhere: `(.*?)`.*?elsewhere: `(.*?)`", LANGUAGE, re.S)
    assert listed is not None
    for text, documented in zip((reserved, names), listed.groups(), strict=True):
        assert documented.split() == sorted(re.findall(r'^[A-Z]+: "([a-z]+)"$', text, re.M))


def blocks_of_readme(language: str) -> list[str]:
    return [block.text for block in read_blocks(Path("README.md")) if block.language == language]


def test_the_spec_of_the_readme_is_that_of_the_specs() -> None:
    [text] = blocks_of_readme("mod")
    assert modgraph.loads(text).ir == modgraph.load("specs/smn.mod").ir


def test_the_message_of_the_readme_is_what_is_reported() -> None:
    with pytest.raises(modgraph.ModgraphError) as caught:
        modgraph.loads(
            "model net() {\n  input image: float[4]\n  \n  \n  logits = image -> liner(10)\n  output logits\n}",
            "net.mod",
        )
    assert str(caught.value).strip().startswith(blocks_of_readme("text")[0])


def test_the_lowering_of_the_readme_is_what_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    [spec] = [block.text for block in read_blocks(Path("docs/tutorial/03-mixture.md")) if block.language == "mod"]
    (tmp_path / "mixture.mod").write_text(spec)
    assert main(["compile", str(tmp_path / "mixture.mod")]) == 0
    assert blocks_of_readme("text")[1].removesuffix("...\n") in capsys.readouterr().out


def test_the_commands_of_the_readme_are_commands() -> None:
    for text in blocks_of_readme("sh"):
        for line in text.splitlines():
            read_command(line.removesuffix(" &&"), "README.md")


def test_the_python_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [script] = blocks_of_readme("python")
    specs = Path("specs").resolve()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").symlink_to(specs)
    names: dict[str, object] = {"images": torch.rand(2, 1, 28, 28)}
    exec(compile(script, "README.md", "exec"), names)
    logits = names["logits"]
    assert isinstance(logits, torch.Tensor)
    assert logits.shape == (2, 10)
    assert names["program"].cost().parameters == 131_594  # type: ignore[attr-defined]
    assert capsys.readouterr().out.startswith("131594\n"), "the comment of the README is not what is printed"


def test_no_merge_is_left_half_done() -> None:
    texts = [Path("README.md"), *Path("docs").glob("*.md"), *Path("specs").glob("*.*")]
    marks = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.M)
    assert [str(path) for path in texts if marks.search(path.read_text())] == []
