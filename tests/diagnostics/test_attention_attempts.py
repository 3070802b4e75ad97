"""Wrong attempts at attention as a route: each message has the place, the cause and a way out (refresh with
--refresh)."""

from __future__ import annotations

from pathlib import Path

import pytest

from modgraph.diagnostics import ModgraphError, render_all
from modgraph.program import loads

GOLDEN = Path(__file__).parent / "golden" / "attention.txt"
RIGHT = """model m(width=16, heads=2) {
  input words: token[time, 100]
  x = words -> embedding(width)
  keys = x -> rename(time="key")
  q = x -> linear(width) -> unmerge([heads, width // heads], into=["head", ""])
  k = keys -> linear(width) -> unmerge([heads, width // heads], into=["head", ""])
  v = keys -> linear(width) -> unmerge([heads, width // heads], into=["head", ""])
  weight sink: float[head=heads] = zeros
  back = (x -> positions(axis=time)) - (keys -> positions(axis=key))
  near = (back >= 0) * (back < 8)
  scores = ((q, k) -> contract) / sqrt(width // heads)
  gates = (scores, near, sink) -> masked_softmax(axis=key)
  y = v by gates over key -> merge("head", -1) -> linear(100)
  require causal(y, words)
  output y
}
"""
ATTEMPTS = {
    "keys are not read again": ("k = keys", "k = x"),
    "values are not read again": ("v = keys", "v = x"),
    "the softmax runs over queries": ("masked_softmax(axis=key)", "masked_softmax(axis=time)"),
    "the sum runs over queries": ("over key", "over time"),
    "the mask has other axes": ("near = (back >= 0)", "input seen: float[place]\n  near = (seen > 0) * (back >= 0)"),
    "the mask has fixed lengths": ("near = (back >= 0)", "constant seen: float[8, 8] = 1\n  near = seen * (back >= 0)"),
    "later keys are not hidden": ("(back >= 0) * (back < 8)", "back < 8"),
    "the window lies ahead": ("(back >= 0) * (back < 8)", "(back <= 0) * (back > -8)"),
    "later keys have small weights": (
        "(scores, near, sink) -> masked_softmax(axis=key)",
        "where(near, scores, -1e9) -> softmax(axis=key)",
    ),
    "keys get a name in use": ('keys = x -> rename(time="key")', 'keys = x -> rename(["-1", "time"])'),
    "positions of an unknown axis": ("positions(axis=key)", "positions(axis=keys)"),
    "heads have two names": ('k = keys -> linear(width) -> unmerge([heads, width // heads], into=["head"', "group"),
    "a sink for each number": ("sink: float[head=heads]", "sink: float[width]"),
    "a name is misspelt": ("masked_softmax(axis=key)", "masked_softmax(axis=kye)"),
}


def attempt(name: str) -> str:
    before, after = ATTEMPTS[name]
    after = before.replace('"head', f'"{after}') if before.startswith("k = keys ->") else after
    assert before in RIGHT, f'"{name}" changes nothing'
    return RIGHT.replace(before, after)


def render(text: str) -> str:
    with pytest.raises(ModgraphError) as caught:
        loads(text, "attempt.mod")
    errors = [each for each in caught.value.diagnostics if each.severity == "error"]
    assert len(errors) == 1, f"{len(errors)} messages of one mistake"
    assert errors[0].advice(), "no way out"
    return render_all(errors)


def test_the_right_attempt_has_no_message() -> None:
    assert not loads(RIGHT).warnings


def test_wrong_attempts_read_as_they_did(request: pytest.FixtureRequest) -> None:
    found = "\n".join(f"# {name}\n\n{render(attempt(name))}\n" for name in ATTEMPTS)
    if request.config.getoption("--refresh"):
        GOLDEN.write_text(found)
    assert GOLDEN.read_text() == found
