"""A campaign that was cut off goes on where it was, and never counts what other sources were tried with."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.assault import campaign as module
from tests.assault.campaign import campaign


def odd_or_even(part: int) -> Counter[str]:
    return Counter(odd=part % 2, tried=1)


def fails_at_three(part: int) -> Counter[str]:
    assert part != 3, "part 3 fails"
    return odd_or_even(part)


@pytest.fixture(autouse=True)
def journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "JOURNALS", tmp_path)
    return tmp_path


def test_parts_add_up_and_what_is_done_is_not_done_again(journals: Path) -> None:
    with pytest.raises(AssertionError, match="part 3 fails"):
        campaign("numbers", fails_at_three, 4)
    kept = (journals / "numbers.jsonl").read_text().splitlines()
    assert campaign("numbers", odd_or_even, 6) == Counter(odd=3, tried=6)
    lines = (journals / "numbers.jsonl").read_text().splitlines()
    assert lines[: len(kept)] == kept
    assert sorted(json.loads(line)["part"] for line in lines) == [0, 1, 2, 3, 4, 5]


def test_other_sources_are_tried_anew(journals: Path) -> None:
    line = {"part": 0, "sources": "others", "counts": {"odd": 100}}
    (journals / "numbers.jsonl").write_text(json.dumps(line) + "\n")
    assert campaign("numbers", odd_or_even, 2) == Counter(odd=1, tried=2)
