"""Every message that has an example: the example provokes it, and it reads as it did (refresh with --refresh)."""

from __future__ import annotations

from pathlib import Path

import pytest

from modgraph.diagnostics import Diagnostic, ModgraphError, render_all
from modgraph.program import loads

HOME = Path(__file__).parent / "golden"
EXAMPLES = {code: each.example for code, each in Diagnostic.catalogue.items() if each.example}


def diagnose(text: str) -> list[Diagnostic]:
    try:
        return list(loads(text, "example.mod").warnings)
    except ModgraphError as error:
        return list(error.diagnostics)


@pytest.mark.parametrize("code", sorted(EXAMPLES))
def test_an_example_provokes_its_message_and_no_other(code: str, request: pytest.FixtureRequest) -> None:
    diagnostics = diagnose(EXAMPLES[code])
    assert {diagnostic.code for diagnostic in diagnostics} == {code}
    path = HOME / f"{code}.txt"
    text = render_all(diagnostics) + "\n"
    if request.config.getoption("--refresh"):
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.parametrize("code", sorted(Diagnostic.catalogue))
def test_every_message_explains_itself_and_offers_a_way_out(code: str) -> None:
    declaration = Diagnostic.catalogue[code]
    assert declaration.__doc__
    assert declaration.message
    assert declaration.help
