"""Arrays of a file that a spec does not know: a misspelt one would be left unread, and padding learnt from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from modgraph.data.npz import Npz
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.program import loads

SPEC = """
model series() {
  input  x: float[time, 3]
  target label: class[2]
  logits = x -> linear(4) -> tanh -> mean -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return loads(SPEC).ir


def arrays() -> dict[str, NDArray[np.generic]]:
    label, ends = np.array([0, 1] * 5), np.arange(10) % 4 + 1
    return {"x": np.ones((10, 4, 3), np.float32), "label": label, "time_length": ends}


def splits_of(folder: Path, graph: Graph, **given: NDArray[np.generic]) -> object:
    np.savez(folder / "data.npz", **given)
    return Npz(train=str(folder / "data.npz")).splits(graph)


@pytest.mark.parametrize("name", ["time_length", "label", "x"])
def test_a_misspelt_array_is_refused_with_the_name_that_is_meant(tmp_path: Path, graph: Graph, name: str) -> None:
    given = arrays()
    assert splits_of(tmp_path, graph, **given), "it does not fit as it is"
    given[f"{name}s"] = given.pop(name)
    with pytest.raises(ModgraphError, match=f'array "{name}s"(.|\n)*did you mean "{name}"') as caught:
        splits_of(tmp_path, graph, **given)
    assert [each.code for each in caught.value.diagnostics] == ["MG521"]


def test_an_array_that_resembles_none_is_refused_and_to_be_left_out(tmp_path: Path, graph: Graph) -> None:
    given = {**arrays(), "weights": np.ones(10)}
    assert splits_of(tmp_path, graph, **given), "nothing is missing: another spec may read it"
    del given["time_length"]
    with pytest.raises(ModgraphError, match=r'array "weights"(.|\n)*remove it'):
        splits_of(tmp_path, graph, **given)


def test_a_value_that_is_no_number_is_refused_at_its_place(tmp_path: Path, graph: Graph) -> None:
    given = arrays()
    given["x"][1, 1, 2] = given["x"][0, 3, 0] = np.nan  # type: ignore[index]
    with pytest.raises(ModgraphError, match=r"first at \[1, 1, 2\]"):  # the other is padding
        splits_of(tmp_path, graph, **given)
