"""All messages have one voice: docs/contributing.md, "How a message reads"."""

from __future__ import annotations

import re

import pytest

from modgraph.diagnostics import Diagnostic
from tests.diagnostics.test_facts import SOURCES

AVOIDED = (
    "there is no ",
    "is there already",
    "and this is",
    "is needed here",
    " is told",
    "besides",
    "nothing is called",
)
LONGEST = {"message": 100, "help": 115}


@pytest.mark.parametrize("code", sorted(Diagnostic.catalogue))
def test_a_message_is_one_short_sentence_in_lower_case(code: str) -> None:
    assert SOURCES, "the files with messages are imported"
    declaration = Diagnostic.catalogue[code]
    for part, longest in LONGEST.items():
        text = str(getattr(declaration, part))
        assert not re.match("[A-Z][a-z]", text) and not re.search(r"[^.]\.$", text), (
            f"the {part} is no sentence: {text}"
        )
        assert len(text) <= longest, f"the {part} has {len(text)} characters, more than {longest}: {text}"
        assert not [words for words in AVOIDED if words in text], f"the {part} has another construction: {text}"
