"""Ops of the incremental form refuse operands that lack the axis of tokens."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import ModgraphError, Report, Source
from modgraph.elaboration import read_model

TEXT = "model m() {{ input x: float[5, 6] input h: float[6] y = {stage} output y }}"


@pytest.mark.parametrize("stage", ["(h, x) -> append", "(x, h) -> append", "(h, x) -> tail", "(h, x) -> recent(5)"])
def test_each_operand_needs_the_axis(stage: str) -> None:
    with pytest.raises(ModgraphError, match=r"unknown axis -2 in \[6\]"):
        read_model(Source("m.mod", TEXT.format(stage=stage)), {}, Report())
