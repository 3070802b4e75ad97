"""The toy regression of modular networks: two linear maps, told apart by where x lies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import modgraph
from modgraph.cli import main
from modgraph.data import TwoGaussians
from modgraph.diagnostics import ModgraphError
from modgraph.training.recipe import read_recipe

SPEC = """
model toy(width=16, modules=2) {
  input  x: float[2]
  target y: float[2]
  pool   expert[modules] = linear(2)
  router choose = linear(1)
  h = x -> linear(width) -> tanh -> linear(2)
  f = h + (x -> expert by choose)
  output f
  loss mse(f, y)
}
"""
GRAPH = modgraph.loads(SPEC).ir


def test_each_point_is_mapped_by_its_component() -> None:
    data = TwoGaussians(train=4000, angle=30.0, scales=(3.0, -1.0), spread=0.5)
    train = data.splits(GRAPH)["train"]
    x, y = train.values["x"].astype(float), train.values["y"].astype(float)
    rotated = train.groups["component"] == "rotation"
    assert 0.45 < rotated.mean() < 0.55
    turned = (x[:, 0] + 1j * x[:, 1]) * np.exp(1j * np.pi / 6)
    np.testing.assert_allclose(y[rotated], np.stack([turned.real, turned.imag], 1)[rotated], atol=1e-5)
    np.testing.assert_allclose(y[~rotated], x[~rotated] * [3, -1], atol=1e-5)
    for here, mean in ((rotated, data.rotated_mean), (~rotated, data.scaled_mean)):
        np.testing.assert_allclose(x[here].mean(0), mean, atol=0.05)
        np.testing.assert_allclose(x[here].std(0), 0.5, atol=0.05)


def test_points_are_those_of_the_seed_and_the_test_is_of_others() -> None:
    first, again, other = (TwoGaussians(seed=seed).splits(GRAPH) for seed in (0, 0, 1))
    assert np.array_equal(first["train"].values["x"], again["train"].values["x"])
    assert not np.array_equal(first["train"].values["x"], other["train"].values["x"])
    assert not np.array_equal(first["train"].values["x"][:1000], first["test"].values["x"])
    assert {split: len(arrays) for split, arrays in first.items()} == {"train": 2000, "test": 1000}


@pytest.mark.parametrize("mistake", ["scales: [1.0]", "rotated_mean: [1, 2, 3]", "spread: -1", "angle: wide"])
def test_what_is_no_plane_is_reported(tmp_path: Path, mistake: str) -> None:
    (tmp_path / "r.yaml").write_text(f"data: {{name: two_gaussians, {mistake}}}\n")
    with pytest.raises(ModgraphError) as caught:
        read_recipe(tmp_path / "r.yaml")
    assert [each.code for each in caught.value.diagnostics] == ["MG504"]


def test_a_net_learns_it_and_groups_have_metrics_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "toy.mod").write_text(SPEC)
    (tmp_path / "toy.yaml").write_text(
        "data: {name: two_gaussians, train: 500, test: 300}\n"
        "train: {epochs: 15, batch: 50, optimizer: {name: adam, lr: 0.02}}\n"
    )
    out = tmp_path / "run"
    assert main(["train", str(tmp_path / "toy.mod"), "--out", str(out)]) == 0
    metrics = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert metrics["test.mse"] == pytest.approx(metrics["test.total_loss"], rel=1e-5)
    assert metrics["test.mse"] < 0.2
    assert main(["eval", str(out), "--json", "--detail"]) == 0
    found = json.loads(capsys.readouterr().out)
    by_component = found["test.mse_by_component"]
    groups = TwoGaussians(train=500, test=300).splits(GRAPH)["test"].groups["component"]
    shares = {name: (groups == name).mean() for name in by_component}
    assert set(by_component) == {"rotation", "scaling"}
    assert sum(by_component[name] * share for name, share in shares.items()) == pytest.approx(found["test.mse"])
    use = [sum(found[f"test.use.{j}_by_component"][name] * share for name, share in shares.items()) for j in range(2)]
    assert use == pytest.approx([found["test.use.0"], found["test.use.1"]])
    assert main(["eval", str(out), "--detail"]) == 0
    table = [line.split() for line in capsys.readouterr().out.splitlines() if "of" in line.split()]
    assert {row[0]: float(row[1]) for row in table} == pytest.approx(by_component, abs=1e-4)
