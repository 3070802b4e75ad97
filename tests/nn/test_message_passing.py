"""Message passing leaves nothing behind."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing as PlainMessagePassing

from modgraph.nn.message_passing import MessagePassing


class SumOfNeighbours(MessagePassing):
    def __init__(self) -> None:
        super().__init__(aggr="add")

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.propagate(edge_index, x=x)


def test_nothing_stays_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    layer = SumOfNeighbours()
    generated = sys.modules[f"{__name__}_SumOfNeighbours_propagate"]
    assert generated.__file__ is not None and Path(generated.__file__).parent == tmp_path
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    x, edges = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([[0, 1, 2], [2, 2, 0]])
    assert layer(x, edges).squeeze(1).tolist() == [4.0, 0.0, 3.0]
    assert SumOfNeighbours()(x, edges).squeeze(1).tolist() == [4.0, 0.0, 3.0]


def test_all_message_passing_of_ours_is_such() -> None:
    ours = [each for each in _below(PlainMessagePassing) if each.__module__.startswith("modgraph.")]
    assert len(ours) > 3
    assert all(issubclass(each, MessagePassing) for each in ours)


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
