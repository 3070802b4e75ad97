"""What the vocabulary says of itself, and `explain` and `new`."""

from __future__ import annotations

from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.cli.explain_command import load_all
from modgraph.declare import Registry
from modgraph.diagnostics import Diagnostic
from modgraph.inspect.reference import explain, reference

load_all()


@pytest.mark.some(250)
@pytest.mark.parametrize(
    "name",
    [
        *(name for kind, registry in Registry.all.items() if kind != "primitive" for name in registry),
        *Diagnostic.catalogue,
    ],
)
def test_everything_has_a_page(name: str) -> None:
    page = explain(name)
    assert page is not None
    assert name in page


def test_the_reference_is_that_of_the_declarations() -> None:
    assert Path("docs/reference.md").read_text() == reference() + "\n", (
        "run: modgraph explain --all > docs/reference.md"
    )


def test_a_name_that_is_an_op_a_router_and_a_schedule_has_three_pages() -> None:
    page = explain("linear")
    assert page is not None
    assert "schedule linear" in page
    assert "op linear(width" in page
    assert "router linear(k=1" in page


def test_explain_prints_a_page_or_says_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "conv"]) == 0
    assert "op conv(width, kernel=3" in capsys.readouterr().out
    assert main(["explain", "mg202"]) == 0
    assert "MG202 (error)" in capsys.readouterr().out
    assert main(["explain", "convv"]) == 1
    assert 'did you mean "conv"' in capsys.readouterr().err
    assert main(["explain", "cifar10"]) == 0
    assert "written {name: cifar10" in capsys.readouterr().out


def test_new_begins_a_spec_that_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    smn = Path("specs/smn.mod").resolve()
    monkeypatch.chdir(tmp_path)
    assert main(["new", "first"]) == 0
    assert main(["check", "first.mod"]) == 0
    assert main(["fmt", "--check", "first.mod"]) == 0
    assert main(["new", "second", "--from", str(smn)]) == 0
    assert "model second(" in (tmp_path / "second.mod").read_text()
    assert (tmp_path / "second.yaml").exists()
    capsys.readouterr()
    for wrong in (["new", "first"], ["new", "model"], ["new", "a-b"], ["new", "x", "--from", "none.mod"]):
        assert main(wrong) == 1
        assert "error[MG" in capsys.readouterr().err
