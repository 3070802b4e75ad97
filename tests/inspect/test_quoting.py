"""Texts that a spec, data or files bring along stay texts in all that is written for people."""

from __future__ import annotations

import html
import json
import re
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from modgraph_runtime.streams import keep_streams_open, printable
from PIL import Image

import modgraph
from modgraph.cli import main
from modgraph.declare import format_value
from modgraph.diagnostics import Source
from modgraph.inspect.drawing import write_svg
from modgraph.inspect.graph_text import write_dot, write_mermaid
from modgraph.inspect.page.content import Pane, Section, Text
from modgraph.inspect.page.document import page_of
from modgraph.inspect.quote import UNSEEN, escape_html, quote_dot, quote_mermaid, script_json
from modgraph.inspect.scene import Box, Scene, scene_of
from tests.hostile import TEXTS, texts
from tests.ordinary_run import some_examples

MANY = some_examples(200)
DOT_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
MERMAID_TEXT = re.compile(r'"[^"\n\r]*"')


class Page(HTMLParser):
    """The tags of a page, and the text within each kind."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.tags[-1][0] if self.tags else "", []).append(data)


def seen(text: str) -> str:
    return UNSEEN.sub("\ufffd", text)


@given(texts)
@MANY
def test_html_has_a_text_as_text_and_in_attributes(text: str) -> None:
    page = Page(f'<p title="{escape_html(text)}">{escape_html(text)}</p>')
    assert [tag for tag, _ in page.tags] == ["p"], "a text became an element"
    assert html.unescape(escape_html(text)) == seen(text)


@given(texts)
@MANY
def test_a_script_of_json_ends_where_the_page_ends_it(text: str) -> None:
    page = Page(f'<script type="application/json">{script_json({text: [text]})}</script><p>after</p>')
    assert [tag for tag, _ in page.tags] == ["script", "p"]
    assert json.loads("".join(page.texts["script"])) == {text: [text]}


@given(texts)
@MANY
def test_graphviz_and_mermaid_read_one_text(text: str) -> None:
    assert DOT_TEXT.fullmatch(quote_dot(text))
    assert "\n" not in quote_dot(text)
    assert MERMAID_TEXT.fullmatch(quote_mermaid(text))
    marks = re.sub(r"#(\w+);", "", quote_mermaid(text)[1:-1])
    assert not {*marks} & {*'"<>`%\\#&'}, "Mermaid obeys some characters in quotes too"


def test_what_a_command_prints_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    with keep_streams_open():
        print(*TEXTS)
        print("".join(TEXTS), file=sys.stderr)
    output = capsys.readouterr()
    assert output.out == printable(" ".join(TEXTS)) + "\n"
    assert output.err == printable("".join(TEXTS)) + "\n"


@given(texts)
@MANY
def test_a_terminal_is_given_no_orders(text: str) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", printable(text))
    assert printable("plain äöü 表 👩‍🚀\n\t") == "plain äöü 表 👩‍🚀\n\t"


# ---------------------------------------------------------------- of whole specs, data and files

SPEC = """# {text}
model m(note={quoted}) {{
  input  image: float[3, 8, 8]  # {text}
  target label: class[2]
  pool   expert[2] = linear(8)
  router gate = noisy_top_k(1)
  h = image -> flatten -> expert by gate
  logits = h -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}}
"""


def spec(text: str) -> str:
    comment = re.sub(r"[\n\r\x0b\x0c]", " ", text)
    return SPEC.format(text=comment, quoted=format_value(text))


def hostile(scene: Scene, text: str) -> Scene:
    """A scene with a text behind each of its own."""

    def texts(box: Box) -> Box:
        return replace(
            box,
            id=box.id + text,
            label=box.label + text,
            detail=box.detail and box.detail + text,
            types=tuple(type_ + text for type_ in box.types),
            short=box.short and box.short + text,
            settings=tuple((name + text, value + text) for name, value in box.settings),
            weights=tuple(replace(row, name=row.name + text, type=row.type + text) for row in box.weights),
            notes=(*box.notes, text),
            children=tuple(map(texts, box.children)),
        )

    edges = [
        replace(each, source=each.source + text, target=each.target + text, short=each.short and each.short + text)
        for each in scene.edges
    ]
    return replace(scene, name=scene.name + text, boxes=tuple(map(texts, scene.boxes)), edges=tuple(edges))


@pytest.fixture(scope="module")
def plain() -> Scene:
    return scene_of(modgraph.loads(spec("plain")).ir)


@pytest.mark.some(2)
@pytest.mark.parametrize("at", range(4))
def test_pictures_are_what_they_are_whatever_their_texts(at: int, plain: Scene) -> None:
    text = " ".join(TEXTS[at::4])
    scene, plain = hostile(plain, text), hostile(plain, "x" * len(text))
    assert tags_of_svg(write_svg(scene)) == tags_of_svg(write_svg(plain)), "a text became an element of a drawing"
    assert outside(DOT_TEXT, write_dot(scene)) == outside(DOT_TEXT, write_dot(plain))
    assert outside(MERMAID_TEXT, write_mermaid(scene)) == outside(MERMAID_TEXT, write_mermaid(plain))
    source = Source(text, spec(text))
    page = Page(page_of(text, [Pane(scene, source, label=text, notes=(text,))], [Section(text, [Text(text)])]))
    other = Page(page_of("plain", [Pane(plain, source, label="plain")], [Section("plain", [Text("plain")])]))
    assert kinds(page) == kinds(other), "a text became an element of a page"


def kinds(page: Page) -> dict[str, int]:
    """How many elements of each kind are outside of drawings, in which a text may have more lines than another."""
    found = Counter(tag for tag, _ in page.tags)
    return {tag: 0 if tag in ("g", "text", "rect", "path", "polygon", "title") else many for tag, many in found.items()}


def tags_of_svg(text: str) -> set[tuple[str, ...]]:
    """The kinds of elements in a drawing, with their attributes."""
    return {(each.tag, *sorted(each.keys())) for each in ElementTree.fromstring(text).iter()}


def outside(texts: re.Pattern[str], source: str) -> str:
    """A source without what its texts say."""
    return texts.sub('""', source)


CLASSES = ("red\u202e", "<script>&\"'$\\frac$")


@pytest.mark.slow
def test_names_of_classes_reach_a_terminal_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for at, name in enumerate(CLASSES):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(6):
            Image.new("RGB", (8, 8), (100 * at + number, 0, 0)).save(tmp_path / "images" / name / f"{number}.png")
    (tmp_path / "m.mod").write_text(spec("\x1b[2J"))
    (tmp_path / "m.yaml").write_text("data: {name: class_folders, train: images}\ntrain: {epochs: 1, batch: 4}\n")
    commands = (
        "train m.mod --out run",
        "eval run --detail",
        "trace run --view groups -o trace.svg",
        "visualize run -o run.html",
        "export run -o model.onnx",
        "run model.onnx --info",
        "run model.onnx --input x.npz",
        "run nothing\x1b[31m.onnx --info",
    )
    np.savez(tmp_path / "x.npz", image=np.zeros((3, 3, 8, 8), np.float32))
    printed = ""
    for command in commands:
        code = main(command.split(" "))
        output = capsys.readouterr()
        assert code == (1 if "nothing" in command else 0), output.err
        printed += output.out + output.err
    assert "red" in printed
    assert printable(printed) == printed, "a name reached the terminal as it is"
    ElementTree.parse(tmp_path / "trace.svg")
