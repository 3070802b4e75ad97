"""The editor's grammar belongs to the language."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from editors.textmate import textmate
from modgraph.ops import Op
from modgraph.routers import Router
from modgraph.syntax import keywords

FOLDER = Path("editors/vscode")
PATTERNS = {entry["name"]: re.compile(entry["match"], re.M) for entry in json.loads(textmate())["patterns"]}


def test_the_files_are_whole_and_the_grammar_is_that_of_the_vocabulary() -> None:
    package = json.loads((FOLDER / "package.json").read_text())
    grammar = FOLDER / package["contributes"]["grammars"][0]["path"]
    assert grammar.read_text() == textmate(), "run: python editors/textmate.py"
    assert (FOLDER / package["contributes"]["languages"][0]["configuration"]).exists()
    assert (FOLDER / package["main"]).exists()


def scope_of(word: str) -> str:
    """The first pattern that takes a word, as an editor would choose."""
    return next(name for name, pattern in PATTERNS.items() if pattern.fullmatch(word))


@pytest.mark.parametrize("word", [*keywords(), *Op.registry, *Router.registry, "#  note", '"text"', "1e-3", "->"])
def test_every_word_of_the_language_has_a_colour(word: str) -> None:
    assert scope_of(word)


def test_a_spec_is_coloured_by_kind() -> None:
    assert scope_of("router").startswith("storage")
    assert scope_of("by").startswith("keyword.control")
    assert scope_of("conv").startswith("support.function")
    assert scope_of("agreement").startswith("support.class")
