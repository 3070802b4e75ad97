"""The work of checking a loop is in proportion to its rounds."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from modgraph.diagnostics import Report, Source
from modgraph.elaboration import elaborate
from modgraph.syntax import parse

SPECS = Path(__file__).parents[2] / "specs"
ROUNDS = 12, 24, 48

ROUTED = """
model m(rounds=2) {
  input  x: float[4, 8]
  target label: class[3]
  h = x
  repeat layers[i] in 0..rounds {
    pool   p[4] = linear(8)
    router r = linear(k=1)
    h = h -> p by r
    output seen[i] = h -> mean
    loss balance[i] = 0.01 * importance(r)
  }
  logits = h -> mean -> linear(3)
  output logits
  loss cross_entropy(logits, label)
}
"""
MEMBERS = """
model m(rounds=2) {
  input  x: float[8]
  target label: class[3]
  h = x
  for i in 0..rounds {
    h = h -> linear(8)
    s[i] = h
    w[i] = s[i] -> linear(3)
    output w[i]
    loss cross_entropy(w[i], label)
  }
}
"""
SCANS = """
model m(rounds=2) {
  input  x: float[time, 8]
  target label: class[3]
  h = x
  repeat layers[i] in 0..rounds {
    pool p[4] = linear(8)
    scan h as v with s: float[8] {
      s = (v + s) -> linear(8) -> p -> mean
      yield s
    } as h
  }
  logits = h -> mean(axis="time") -> linear(3)
  output logits
  loss cross_entropy(logits, label)
}
"""
SHARED = """
model m(rounds=2) {
  input  x: float[4, 8]
  target label: class[3]
  pool   p[4] = linear(8)
  router r = linear(k=1)
  module f = linear(8) -> relu
  h = x
  repeat layers[i] in 0..rounds {
    h = h -> f -> p by r
    s[i] = h -> mean
  }
  logits = s -> stack -> mean -> linear(3)
  output logits
  loss cross_entropy(logits, label)
  loss 0.01 * importance(r)
}
"""


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ((SPECS / "zoo/mixtral.mod").read_text(), "num_hidden_layers"),
        ((SPECS / "smn.mod").read_text(), "iterations"),
        (ROUTED, "rounds"),
        (SHARED, "rounds"),
        (MEMBERS, "rounds"),
        (SCANS, "rounds"),
    ],
    ids=["mixtral", "agreement", "routed", "shared", "members", "scans"],
)
def test_twice_the_rounds_are_at_most_twice_the_work(text: str, parameter: str) -> None:
    _lines_run(text, {parameter: ROUNDS[0]})  # what is done once in a process
    few, more, most = (_lines_run(text, {parameter: rounds}) for rounds in ROUNDS)
    growth = (most - more) / (more - few)
    assert growth < 2.01, f"twice as many rounds more take {growth:.2f} times the work"


def _lines_run(text: str, parameters: dict[str, Any]) -> int:
    """How many lines Python runs to elaborate a spec, those in a loop as often as it turns.

    Without the collector: it would run, and count, finalizers of what other tests have left.
    """
    report, lines = Report(), 0

    def count(frame: FrameType, event: str, value: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    file = parse(Source(str(SPECS / "zoo/m.mod"), text), report)
    assert file is not None, report.diagnostics
    before = sys.gettrace()
    gc.disable()
    sys.settrace(count)
    try:
        graph = elaborate(file, parameters, report)
    finally:
        sys.settrace(before)
        gc.enable()
    assert graph is not None, report.diagnostics
    return lines
