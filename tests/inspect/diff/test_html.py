"""The page of a comparison: marks lie on boxes that are there, counterparts lead to each other, names are only text."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest

from modgraph.inspect.diff import Side, compare_sides
from modgraph.inspect.diff.html import write_html
from modgraph.program import Program, load, loads


def page(before: Program, after: Program, path: str = "a.mod") -> str:
    found = compare_sides(Side(path, "spec", before.ir), Side("b.mod", "spec", after.ir), {}, {})
    return write_html(found, (before.source, after.source))


def data_of(page: str) -> dict[str, Any]:
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert data is not None
    record: dict[str, Any] = json.loads(data[1])
    return record


def ids(boxes: list[dict[str, Any]]) -> set[str]:
    return {box["id"] for box in boxes} | {id for box in boxes for id in ids(box.get("children", []))}


@pytest.mark.parametrize(
    ("name", "parameters", "kinds"),
    [
        ("gmoe_digits", {"depth": 5, "k": 2}, ({"changed"}, {"changed", "added"})),
        ("modular_networks_lm", {"modules": 6}, ({"changed"}, {"changed"})),
        ("modular_networks", {"layers": 2}, ({"changed"}, {"changed", "added"})),
    ],
)
def test_marks_lie_on_boxes_and_lead_to_each_other(
    name: str, parameters: dict[str, Any], kinds: tuple[set[str], set[str]]
) -> None:
    data = data_of(page(load(f"specs/{name}.mod"), load(f"specs/{name}.mod", **parameters)))
    panes = data["panes"]
    for pane, other, known in zip(panes, reversed(panes), kinds, strict=True):
        assert {mark["kind"] for mark in pane["marks"].values()} == known
        assert set(pane["marks"]) <= ids(pane["scene"]["boxes"])
        for id, mark in pane["marks"].items():
            assert mark["lines"]
            if mark["counterpart"]:
                assert other["marks"][mark["counterpart"]]["counterpart"] == id
    assert [section["title"] for section in data["sections"]][-2:] == ["Costs", "Trained weights"]


def test_nodes_of_pools_in_scans_and_of_unlike_modules_are_marked() -> None:
    text = (
        "model m() {{ input x: float[4] pool p = [linear({0}) -> relu -> linear(4), linear(4)] y = x -> p output y }}"
    )
    panes = data_of(page(loads(text.format(3)), loads(text.format(5))))["panes"]
    assert "p/0/linear" in panes[0]["marks"]
    lm = load("specs/modular_networks_lm.mod"), load("specs/modular_networks_lm.mod", hidden=16)
    assert any(id.startswith("transition/") for id in data_of(page(*lm))["panes"][1]["marks"])


def test_what_has_moved_is_reported_with_both_names() -> None:
    text = "model m() {{ input x: float[4] {0} = x -> linear(3) y = {0} -> relu output y }}"
    before, after = data_of(page(loads(text.format("one")), loads(text.format("two"))))["panes"]
    assert before["marks"]["one.linear"] == {
        "kind": "moved",
        "lines": ["one.linear → two.linear"],
        "counterpart": "two.linear",
    }
    assert after["marks"]["two.linear"]["counterpart"] == "one.linear"


def test_a_path_cannot_bring_markup_into_the_page() -> None:
    program = load("specs/modular_networks.mod")
    html = page(program, program, "</script><img src=x onerror=alert(1)>.mod")
    assert "<img" not in html
    assert "<img src=x onerror=alert(1)>" in unescape(html)
