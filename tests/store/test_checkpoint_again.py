"""A checkpoint that takes the place of another of the same step: whatever cuts it off, one of the two is whole."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from modgraph.ir import Graph
from modgraph.store import checkpoint as checkpoints
from modgraph.store.checkpoint import Checkpoint, read_newest_checkpoint, write_checkpoint
from modgraph.store.checkpoint_record import tidy


def at_step_3(value: int) -> Checkpoint:
    graph = Graph("empty", {})
    weights = {"w": torch.tensor([value])}
    return Checkpoint(epoch=1, step=3, weights=weights, optimizer={}, graph=graph, origin=graph.hash())


def newest(folder: Path) -> int:
    found = read_newest_checkpoint(folder)
    assert found is not None
    return int(found.weights["w"])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_last_of_a_step_counts_and_nothing_is_left_of_those_before(tmp_path: Path) -> None:
    for value in range(4):
        write_checkpoint(tmp_path, at_step_3(value))
        assert newest(tmp_path) == value
        assert len(names(tmp_path)) == 2


@pytest.mark.parametrize("writes", range(1, 5))
def test_one_that_is_cut_off_leaves_that_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Cut off before the first file, between the two, or before what was there is deleted; twice over."""
    write_checkpoint(tmp_path, at_step_3(0))
    done = 0

    def cut(*arguments: object) -> None:
        nonlocal done
        done += 1
        if done == writes:
            raise KeyboardInterrupt
        plain[done % 3 if done % 3 else 3](*arguments)  # type: ignore[operator]

    plain = {1: checkpoints.write_atomically, 2: checkpoints.write_atomically, 3: tidy}
    for name in ("write_atomically", "tidy"):
        monkeypatch.setattr(checkpoints, name, cut)
    with pytest.raises(KeyboardInterrupt):
        for value in (1, 2):
            write_checkpoint(tmp_path, at_step_3(value))
    assert newest(tmp_path) == {1: 0, 2: 0, 3: 1, 4: 1}[writes]
    monkeypatch.undo()
    tidy(tmp_path, keep=2, best=None)
    assert newest(tmp_path) == {1: 0, 2: 0, 3: 1, 4: 1}[writes]
    assert len(names(tmp_path)) == 2
    write_checkpoint(tmp_path, at_step_3(7))
    assert newest(tmp_path) == 7
