"""Pictures of all specs, against golden files (made anew with --refresh), and read by other readers than ours."""

from __future__ import annotations

import asyncio
import atexit
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from py_mini_racer import MiniRacer

from modgraph.cli import main
from modgraph.inspect.drawing import write_svg
from modgraph.inspect.graph_text import write_dot, write_mermaid
from modgraph.inspect.page import document
from modgraph.inspect.page.content import FITTING, Pane
from modgraph.inspect.scene import Box, Scene, scene_of
from modgraph.program import load, loads
from modgraph.version import VERSION

GOLDEN = Path(__file__).parent / "golden"
SPECS = sorted(Path("specs").glob("*.mod"))
DRAW = {".svg": write_svg, ".dot": write_dot, ".mmd": write_mermaid}
HOSTILE = '<script>alert(1)</script>"]; x -> y; click n0 "javascript:alert(1)" -->'


@pytest.mark.some(7)
@pytest.mark.parametrize("suffix", DRAW)
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_spec_is_rendered_as_it_was(path: Path, suffix: str, request: pytest.FixtureRequest) -> None:
    drawing = DRAW[suffix](scene_of(load(path).ir)).replace(VERSION, "VERSION")
    golden = GOLDEN / (path.stem + suffix)
    if request.config.getoption("--refresh"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(drawing)
    assert drawing == golden.read_text()


def test_edges_from_one_repetition_of_a_block_into_the_next_are_not_rendered() -> None:
    block = "block mlp() { input x: float[dim] y = x -> linear(8) -> relu output y } "
    body = "input x: float[8] x = x -> mlp x = x -> mlp x = x -> mlp output x"
    drawing = write_mermaid(scene_of(loads(f"{block} model m() {{ {body} }}").ir))
    assert drawing.count("-->") == 3, "into the first, within it, and to the output"


def hostile() -> Scene:
    """A scene whose texts would be markup anywhere."""
    text = f"model m(note={_string(HOSTILE)}) {{ input x: float[4] y = x -> linear(4) -> relu output y }}"
    scene = scene_of(loads(text).ir)
    boxes = tuple(_renamed(box) for box in scene.boxes)
    return Scene(HOSTILE, scene.parameters, boxes, (), scene.cost)


def _string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _renamed(box: Box) -> Box:
    return replace(box, label=HOSTILE, detail=HOSTILE, short=HOSTILE)


def test_hostile_texts_stay_texts() -> None:
    scene = hostile()
    root = ElementTree.fromstring(write_svg(scene))
    assert {element.tag.rpartition("}")[2] for element in root.iter()}.isdisjoint({"script", "a", "foreignObject"})
    strings = r'"(?:[^"\\]|\\.)*"'
    assert "script" not in re.sub(strings, "", write_dot(scene))
    assert "script" not in re.sub(r'"[^"]*"', "", write_mermaid(scene))
    assert "<" not in write_mermaid(scene)


def test_equals_stand_in_the_order_of_the_source() -> None:
    names = ("left", "middle", "right", "outer")
    lines = [f"  {name} = x -> linear(2)\n  output {name}\n" for name in names]
    program = loads("model m() {\n  input x: float[3]\n" + "".join(lines) + "}\n")
    record = document.render(Pane(scene_of(program.ir)).as_json(), None, FITTING)
    outputs = {record["positions"]["boxes"][f"output.{name}"][0]: name for name in names}
    assert [outputs[x] for x in sorted(outputs)] == [*names]
    multi_task = document.render(Pane(scene_of(load("specs/mt_rmn.mod").ir)).as_json(), 30, FITTING)["positions"][
        "boxes"
    ]
    heads = sorted((place[0], id) for id, place in multi_task.items() if id.startswith("output.prediction"))
    assert [id.rpartition(".")[2] for _, id in heads] == ["first", "second", "third", "fourth"]


def test_pictures_name_each_repetition_once() -> None:
    scene = scene_of(load("specs/gmoe.mod").ir)
    for drawing in (write_dot(scene), write_mermaid(scene)):
        assert drawing.count("attention") == 3, "not those of blocks 0, 8 and 9, or what is in them"
        assert "× 8" in drawing


@pytest.mark.parametrize("suffix", [".html", *DRAW])
def test_visualize_writes_what_the_suffix_says(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"smn{suffix}"
    assert main(["visualize", "specs/smn.mod", "-s", "modules=3", "-o", str(path)]) == 0
    assert capsys.readouterr().out == f"wrote {path}\n"
    first = path.read_text()
    assert main(["visualize", "specs/smn.mod", "-s", "modules=3", "-o", str(path)]) == 0
    assert path.read_text() == first
    path.write_text("mine")
    assert main(["visualize", "specs/smn.mod", "-o", str(path)]) == 1
    assert "MG121" in capsys.readouterr().err
    assert main(["visualize", "specs/smn.mod", "-o", str(path), "--force"]) == 0


def test_without_a_file_it_is_a_page_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = str(Path("specs/smn.mod").resolve())
    monkeypatch.chdir(tmp_path)
    assert main(["visualize", spec]) == 0
    assert capsys.readouterr().out == "wrote smn.html\n"
    assert (tmp_path / "smn.html").read_text().startswith("<!DOCTYPE html>")


def test_another_suffix_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["visualize", "specs/smn.mod", "-o", "smn.pptx"]) == 1
    errors = capsys.readouterr().err
    assert "MG140" in errors
    assert ".html, .svg, .dot or .mmd" in errors


def test_what_draws_outlives_the_loop_of_events_in_which_it_began() -> None:
    """As in a notebook, or in a program of coroutines, which draws again from elsewhere."""

    async def begin() -> MiniRacer:
        return document._engine.__wrapped__()

    engine = asyncio.run(begin())
    try:
        assert engine.eval("6 * 7", timeout_sec=60) == 42
    finally:
        atexit.unregister(engine.close)
        engine.close()
