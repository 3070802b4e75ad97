"""Stored graphs with parts dropped, doubled, exchanged or replaced: unreadable, or graphs like any other."""

from __future__ import annotations

import pytest

from tests.assault.campaign import campaign
from tests.assault.graphs import judge, judged

PARTS = 20


def test_damaged_graphs_are_unreadable_or_usable() -> None:
    outcomes = [judge(n) for n in range(400)]
    assert outcomes.count("unreadable") > 300
    assert outcomes.count("read") > 5


@pytest.mark.slow
def test_twenty_thousand_damaged_graphs() -> None:
    assert campaign("graphs", judged, PARTS)["unreadable"] > PARTS * 800
