"""What stands behind the end of an example: whoever reads a file takes the same arrays, and computes the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle, BundleError

import modgraph
from modgraph.backends.torch import Model
from modgraph.data.declaration import Arrays, check
from modgraph.diagnostics import ModgraphError
from modgraph.program import loads
from tests.traces import shared_traces

SPEC = """
model series() {
  input  x: float[time, 3]
  input  words: token[time, 7]
  logits = (x -> linear(4)) + (words -> embedding(4)) -> tanh -> mean -> linear(2)
  output logits
}
"""
BEHIND = {"zero": (0, 0), "not a number": (np.nan, -1), "infinite": (-np.inf, 7), "too large": (1e300, 2**40)}


@pytest.fixture(scope="module")
def model() -> Model:
    return loads(SPEC).build().eval()


@pytest.fixture(scope="module")
def bundle(model: Model, tmp_path_factory: pytest.TempPathFactory, traces: Path) -> Bundle:
    path = tmp_path_factory.mktemp("padding") / "series.onnx"
    with shared_traces(traces):
        modgraph.export(model, path)
    return Bundle(path, threads=1)


def inputs(number: float, word: int) -> dict[str, np.ndarray]:
    """Three series of 2, 4 and 1 steps, with a number and a word behind the end of each."""
    rng, ends = np.random.default_rng(0), np.array([2, 4, 1])
    behind = np.arange(4) >= ends[:, None]
    x, words = rng.random((3, 4, 3)), rng.integers(0, 7, (3, 4))
    return {
        "x": np.where(behind[..., None], number, x),
        "words": np.where(behind, word, words),
        "time_length": ends,
    }


@pytest.mark.parametrize("kind", BEHIND)
def test_anything_may_stand_behind_the_end_of_an_example(model: Model, bundle: Bundle, kind: str) -> None:
    given, clean = inputs(*BEHIND[kind]), inputs(0, 0)
    np.testing.assert_array_equal(bundle.run(given)["logits"], bundle.run(clean)["logits"])
    checked = check(Arrays(given), model.graph, "test").read(slice(None))
    with torch.no_grad():
        found = model(**{name: torch.from_numpy(array) for name, array in checked.items()})
    np.testing.assert_allclose(bundle.run(given)["logits"], found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("x", np.nan, r"first at \[1, 3, 0\]"), ("x", np.inf, "infinite"), ("words", 7, "allows 0 to 6")],
)
def test_before_the_end_the_same_values_are_refused_by_all(
    model: Model, bundle: Bundle, name: str, value: float, words: str
) -> None:
    given = inputs(np.nan, -1)
    given[name][1, 3] = value
    with pytest.raises(BundleError, match=words):
        bundle.run(given)
    with pytest.raises(ModgraphError, match=words):
        check(Arrays(given), model.graph, "test")
    without = {key: array for key, array in inputs(np.nan, -1).items() if key != "time_length"}
    with pytest.raises(BundleError):
        bundle.run(without)
    with pytest.raises(ModgraphError):
        check(Arrays(without), model.graph, "test")
