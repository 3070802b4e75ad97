"""The tour: each step begins unmet, its answer meets it, and a wrong answer is refused with words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.play.tour import read_tour
from tests.play.service import Page

STEPS = read_tour()
IDS = [f"{number}-{step['file']}" for number, step in enumerate(STEPS)]
INVALID = -32602
WRONG = {
    "parameter": ("(hidden=32", "(hiden=32"),
    "parameters": ("linear(hidden)", "linear(hidden + 1)"),
    "modules": ("experts=4", "experts=3"),
    "choice": ("k=1", "k=2"),
    "input": ("24, 24]", "20, 24]"),
    "causal": ("causal=true", "causal=false"),
}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    monkeypatch.chdir(tmp_path)
    return Page(tmp_path)


def ask(page: Page, step: dict[str, Any], text: str) -> Any:
    page.open(step["file"], text)
    given = {"check": step["check"], "warnings": step["warnings"]}
    return page.ask("modgraph/tour", uri=page.uri(step["file"]), **given)


def test_the_tour_has_steps_of_all_pages_that_a_browser_can_do() -> None:
    assert [*dict.fromkeys(step["page"][:2] for step in STEPS)] == ["01", "03", "04", "05", "06", "07", "08", "09"]
    for step in STEPS:
        assert step["text"] and step["answer"] not in step["text"], f"{step['page']}: the answer is not given away"
        assert "pip install" not in step["text"], f"{step['page']}: a browser installs nothing"


@pytest.mark.parametrize("step", STEPS, ids=IDS)
def test_a_step_begins_unmet_and_its_answer_meets_it(page: Page, step: dict[str, Any]) -> None:
    before = ask(page, step, step["begin"])
    assert not before["met"]
    unmet = [each for each in before["facts"] if not each["met"]]
    assert before["first"] or unmet, "it says why"
    assert all(each["missing"] and each["hint"] for each in unmet)
    after = ask(page, step, step["answer"])
    assert after["met"], after
    assert all(each["met"] and not each["missing"] for each in after["facts"])


@pytest.mark.parametrize("step", STEPS, ids=IDS)
def test_an_answer_with_one_fault_is_refused_with_words(page: Page, step: dict[str, Any]) -> None:
    tried = 0
    for fact in step["check"]:
        for old, new in [WRONG[kind] for kind in fact if kind in WRONG]:
            if old in step["answer"]:
                found = ask(page, step, step["answer"].replace(old, new))
                assert not found["met"] and (found["first"] or any(each["missing"] for each in found["facts"]))
                tried += 1
    broken = ask(page, step, step["answer"].replace("linear", "liner"))
    assert not broken["met"] and "liner" in broken["first"]
    assert tried or not {*WRONG} & {kind for fact in step["check"] for kind in fact}, "a fault was tried"


@pytest.mark.parametrize("check", [None, [], "x", [{}], [{"nothing": 1}], [{"choice": "1"}], [{"pools": True}]])
def test_a_check_of_another_kind_is_refused(page: Page, check: Any) -> None:
    page.open("a.mod", STEPS[0]["answer"])
    assert page.fail("modgraph/tour", uri=page.uri("a.mod"), check=check)["code"] == INVALID


@pytest.mark.parametrize(
    "mark", ["begin: a", "[", "begin: n.mod\nanswer: n.mod\ncheck: [{pools: 1}]", "begin: n\nanswer: n\ncheck: 1"]
)
def test_a_mark_that_cannot_be_read_is_a_message(tmp_path: Path, mark: str) -> None:
    (tmp_path / "01.md").write_text(f"# 1. A\n\ntext\n\n<!-- tour\n{mark}\n-->\n")
    with pytest.raises(ModgraphError, match=r"MG945.*01\.md"):
        read_tour([tmp_path / "01.md"])
