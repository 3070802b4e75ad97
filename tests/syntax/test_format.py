"""The one layout: it keeps comments and meaning, and applying it twice changes nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modgraph.cli import main
from modgraph.diagnostics import Report, Source
from modgraph.program import loads
from modgraph.syntax import ast, parse
from modgraph.syntax.format import WIDTH, format_source
from tests.examples import OP_EXAMPLES, SEQUENCE, TRANSFORMER
from tests.ordinary_run import some_examples
from tests.syntax.test_syntax import WHOLE_LANGUAGE

TEXTS = [WHOLE_LANGUAGE, TRANSFORMER, SEQUENCE, Path("specs/smn.mod").read_text(), *OP_EXAMPLES.values()]


def formatted(text: str) -> str:
    result = format_source(Source("t.mod", text), Report())
    assert result is not None
    return result


def tree(text: str) -> ast.File | None:
    return parse(Source("t.mod", text), Report())


@pytest.mark.parametrize("text", TEXTS)
def test_the_layout_keeps_the_tree_and_is_final(text: str) -> None:
    once = formatted(text)
    assert tree(once) == tree(text)
    assert formatted(once) == once


@pytest.mark.parametrize("path", sorted(Path("specs").rglob("*.mod")), ids=lambda path: path.stem)
def test_the_specs_are_in_the_layout(path: Path) -> None:
    assert main(["fmt", "--check", str(path)]) == 0


def scattered(text: str, rng: random.Random) -> tuple[str, list[str]]:
    """A text with its white space changed and comments put wherever they may stand."""
    from modgraph.syntax.tokens import tokens

    comments, parts = [], []
    for token in tokens(Source("t.mod", text), Report()):
        if rng.random() < 0.08:
            comments.append(f"# note {len(comments)}")
            parts.append(f"  {comments[-1]}\n")
        parts.append(str(token) + rng.choice([" ", "\n", "  ", "\n\n\n", "\t"]))
    return "".join(parts), comments


@some_examples(150)
@given(seed=st.integers(0, 2**32), which=st.integers(0, len(TEXTS) - 1))
def test_comments_stay_wherever_they_stand(seed: int, which: int) -> None:
    text, comments = scattered(TEXTS[which], random.Random(seed))
    once = formatted(text)
    assert tree(once) == tree(text) == tree(TEXTS[which])
    assert [line[line.index("# note") :] for line in once.splitlines() if "# note" in line] == comments
    assert formatted(once) == once


def test_the_layout_never_changes_the_hash() -> None:
    for text in TEXTS[1:]:
        assert loads(formatted(text)).ir.hash() == loads(text).ir.hash()


def test_lines_are_filled_and_keywords_aligned() -> None:
    text = (
        "model m("
        + ", ".join(f"parameter{i}={i}" for i in range(30))
        + ") { input x: float[4] target y: class[3] output x }"
    )
    lines = formatted(text).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert "  input  x: float[4]" in lines
    assert "  target y: class[3]" in lines


def test_the_command_rewrites_or_only_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mod"
    path.write_text("model m(){input x:float[4] output x}")
    assert main(["fmt", "--check", str(path)]) == 1
    assert "needs formatting" in capsys.readouterr().err
    assert main(["fmt", str(path)]) == 0
    assert path.read_text() == "model m() {\n  input x: float[4]\n  output x\n}\n"
    assert main(["fmt", "--check", str(path)]) == 0
    (tmp_path / "bad.mod").write_text("model m(){")
    path.write_text("model  m(){}")
    assert main(["fmt", str(path), str(tmp_path / "bad.mod")]) == 1
    assert path.read_text() == "model  m(){}"
