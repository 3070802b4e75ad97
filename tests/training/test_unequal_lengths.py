"""Examples of unequal lengths: how much padding a file has moves nothing, whatever stands there; runs go on alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modgraph
from modgraph.data import Arrays
from modgraph.data.batches import batch_of, batches
from modgraph.data.declaration import check
from modgraph.diagnostics import ModgraphError
from modgraph.metrics.metrics import measure
from modgraph.training.run import finish, start_run
from tests.small_runs import begin, dotted, final_weights, go_on, interrupt_at

SPEC = """
model tagger(vocabulary=7, tags=3) {
  input  words: token[time, vocabulary]
  input  seen: float[time, 2]
  target tag: class[time, tags]
  target whole: float[2]
  pool   expert[3] = linear(8) -> relu -> linear(6)
  router gate = linear(2, noise=0.5, capacity=0.9)
  state  centre: float[6] = zeros
  x = (words -> embedding(4), seen + (seen -> normal_noise(0.1))) -> concat -> dropout(0.1)
  next centre = 0.9 * centre + 0.1 * (x -> batch_mean("time"))
  h = x - centre -> expert by gate
  scores = h -> linear(tags)
  guess = h -> mean(axis="time") -> linear(2)
  output scores
  output guess
  loss cross_entropy(scores, tag)
  loss mse(guess, whole)
  loss penalty = 0.1 * ((gate.gates -> sum(axis=expert)) - 0.8 -> relu -> batch_mean("time"))
  loss balance = 0.1 * importance(gate)
}
"""
RECIPE = """
data: {{name: npz, train: {folder}/{file}.npz}}
train: {{epochs: 2, batch: 4, validation: 0.2, optimizer: {{name: adam, lr: 0.01}}, checkpoint_every: 1}}
"""
LENGTHS = np.random.default_rng(5).integers(0, 8, 29)


def arrays_of(longest: int, rubbish: bool) -> dict[str, np.ndarray[Any, Any]]:
    """The same examples with more padding or less, which holds zeros or what is no value at all."""
    rng = np.random.default_rng(1)
    rows = {
        "words": rng.integers(0, 7, (29, 7)),
        "seen": rng.standard_normal((29, 7, 2)),
        "tag": rng.integers(0, 3, (29, 7)),
    }
    filling = {"words": -1, "seen": np.nan, "tag": 99} if rubbish else dict.fromkeys(rows, 0)
    found = {}
    for name, row in rows.items():
        widened = np.full((29, longest, *row.shape[2:]), filling[name], row.dtype)
        widened[:, :7] = np.where(
            (np.arange(7) < LENGTHS[:, None])[(..., *[None] * (row.ndim - 2))], row, filling[name]
        )
        found[name] = widened
    return {**found, "whole": rng.standard_normal((29, 2)), "time_length": LENGTHS}


@pytest.fixture
def tagger(tmp_path: Path) -> Path:
    np.savez(tmp_path / "short.npz", **arrays_of(7, rubbish=False))  # type: ignore[arg-type]
    np.savez(tmp_path / "long.npz", **arrays_of(19, rubbish=True))  # type: ignore[arg-type]
    (tmp_path / "tagger.mod").write_text(SPEC)
    (tmp_path / "tagger.yaml").write_text(RECIPE.format(folder=tmp_path, file="short"))
    return tmp_path / "tagger.mod"


def test_a_run_is_the_same_however_much_padding_its_files_have(tagger: Path, tmp_path: Path) -> None:
    """Noise, dropout, a capacity, a state and statistics over the batch are those of the longest example alone."""
    expected = begin(tagger, tmp_path / "short")
    found = begin(tagger, tmp_path / "long", data__train=str(tmp_path / "long.npz"))
    assert found == expected
    assert final_weights(tmp_path / "long") == final_weights(tmp_path / "short")


def test_a_run_in_buckets_goes_on_from_any_step(tagger: Path, tmp_path: Path) -> None:
    overrides = {"train__bucket": 3}
    expected = begin(tagger, tmp_path / "whole", **overrides)
    for step in (1, 9):
        broken = tmp_path / f"broken{step}"
        with pytest.raises(KeyboardInterrupt), start_run(str(tagger), None, dotted(overrides), str(broken)) as engine:
            interrupt_at(engine, step)
            finish(engine)
        assert go_on(broken) == expected
        assert final_weights(broken) == final_weights(tmp_path / "whole")


def test_metrics_of_cut_batches_are_those_of_whole_ones() -> None:
    model = modgraph.loads(SPEC).build().double()
    arrays = check(Arrays(arrays_of(19, rubbish=True)), model.graph, "train")
    found, expected = measure(model, arrays), measure(model, replace(arrays, padded={}))
    assert found == pytest.approx(expected, rel=1e-12)
    assert next(batches(arrays))[1]["seen"].shape[1] == 7 < 19


def test_a_batch_is_as_long_as_its_longest_example_over_all_processes() -> None:
    graph = modgraph.loads(SPEC).ir
    arrays = check(Arrays(arrays_of(19, rubbish=False)), graph, "train")
    rng = np.random.default_rng(2)
    for _ in range(20):
        whole = rng.choice(29, 5, replace=False)
        longest = max(1, *(LENGTHS[each] for each in whole))
        batch = batch_of(arrays, whole[:2], among=whole)
        assert {name: each.shape[1] for name, each in batch.items() if each.dim() > 1} == {
            "words": longest,
            "seen": longest,
            "tag": longest,
            "whole": 2,
        }
        assert all(torch.equal(each, torch.from_numpy(arrays.values[name])[whole[:2]][:, :longest]) for name, each in
                   batch.items() if name != "whole" and each.dim() > 1)  # fmt: skip


def test_a_bucket_needs_lengths(tagger: Path, tmp_path: Path) -> None:
    whole = dict(np.load(tmp_path / "short.npz"))
    del whole["time_length"]
    np.savez(tmp_path / "short.npz", **whole)  # type: ignore[arg-type]
    with pytest.raises(ModgraphError, match=r"MG544(.|\n)*remove train.bucket"):
        begin(tagger, tmp_path / "run", train__bucket=3)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"time_length": None}, "give the length of each example: the array time_length"),
        ({"time_length": np.full(29, 19)}, "NaN or too large"),
        ({"time_length": LENGTHS + 13}, "holds 13 to 20; lengths along it are 0 to 19"),
        ({"time_length": -LENGTHS}, "lengths along it are 0 to 19"),
        ({"time_length": LENGTHS[:7]}, 'array "time_length" of'),
        ({"time_length": LENGTHS / 1}, "holds float64, not whole numbers"),
        (
            {"seen": np.array([np.zeros((n, 2)) for n in LENGTHS], object)},
            "filled up to the longest, their lengths in an",
        ),
    ],
)
def test_lengths_that_cannot_be_are_reported(
    tagger: Path, tmp_path: Path, change: dict[str, Any], expected: str
) -> None:
    arrays = {name: each for name, each in {**arrays_of(19, rubbish=True), **change}.items() if each is not None}
    np.savez(tmp_path / "short.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(ModgraphError) as caught:
        begin(tagger, tmp_path / "run")
    assert expected in str(caught.value)
