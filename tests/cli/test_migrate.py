"""Going on with another spec: what both have goes on as it was, bit for bit; all else is told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from modgraph.cli import main
from modgraph.training.run import finish, start_run
from modgraph.training.stored_run import load_run
from tests import continual_runs
from tests.small_runs import begin, dotted, final_weights, go_on, interrupt_at, lay_out_run

EXPERTS = """
model digits(experts=3, hidden=6) {
  input  image: float[64]
  target label: class[10]
  x = image -> linear(8) -> relu
  pool   expert[experts] = linear(hidden) -> relu -> linear(8)
  router gate = linear(k=2, load="paper")
  y = x -> expert by gate
  logits = y -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return lay_out_run(tmp_path)


@pytest.fixture
def experts(tmp_path: Path) -> Path:
    """A spec with a pool beside its recipe, and a run of it, `run`, of two epochs."""
    lay_out_run(tmp_path)
    data = np.load(tmp_path / "digits.npz")
    np.savez(tmp_path / "experts.npz", image=data["image"].reshape(-1, 64), label=data["label"])
    path = tmp_path / "experts.mod"
    path.write_text(EXPERTS)
    recipe = (tmp_path / "digits.yaml").read_text().replace("digits.npz", "experts.npz")
    (tmp_path / "experts.yaml").write_text(recipe)
    begin(path, tmp_path / "run", train__epochs=2)
    return path


def newest(run: Path) -> dict[str, np.ndarray]:
    return load_file(sorted((run / "checkpoints").glob("*.safetensors"))[-1])


def test_a_run_that_goes_on_with_its_own_spec_is_as_if_it_were_resumed(spec: Path, tmp_path: Path) -> None:
    begin(spec, tmp_path / "whole")
    with (
        pytest.raises(KeyboardInterrupt),
        start_run(str(spec), None, dotted({}), str(tmp_path / "broken")) as engine,
    ):
        interrupt_at(engine, 27)
        finish(engine)
    assert main(["migrate", str(tmp_path / "broken"), "--to", str(spec), "--out", str(tmp_path / "on")]) == 0
    go_on(tmp_path / "on")
    assert final_weights(tmp_path / "on") == final_weights(tmp_path / "whole")


def test_more_modules_leave_the_old_ones_as_they_are(
    experts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", f"{tmp_path}/run", "--to", str(experts), "--out", f"{tmp_path}/on", "-s", "experts=5"]) == 0
    old, new = newest(tmp_path / "run"), newest(tmp_path / "on")
    assert all(name in new and np.array_equal(old[name], new[name]) for name in old if ".expert." in name)
    rows = {name: values for name, values in old.items() if "gate.weight" in name and values.ndim == 2}
    assert len(rows) == 3, "the weight and the two averages of adam"
    for name, values in rows.items():
        assert np.array_equal(new[name][:3], values), name
        assert new[name].shape == (5, 8)
        assert (new[name][3:] == 0).all() == name.startswith("optimizer."), name
    printed = capsys.readouterr()
    assert "expert" in printed.out
    assert "gate.weight: expert 3→5" in printed.out
    assert "1 reshaped" in printed.err
    assert "8 new" in printed.err
    go_on(tmp_path / "on")


def test_names_and_widths_may_change_together(experts: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.mod"
    moved = "moved expert -> specialist moved gate -> choice\n}"
    text = EXPERTS.replace("expert", "specialist").replace("specialists", "experts").replace("gate", "choice")
    other.write_text(text.rstrip().removesuffix("}") + moved)
    command = ["migrate", f"{tmp_path}/run", "--to", str(other), "--out", f"{tmp_path}/on", "-s", "hidden=4"]
    assert main(command) == 0
    old, new = newest(tmp_path / "run"), newest(tmp_path / "on")
    assert np.array_equal(old["weight.gate.weight"], new["weight.choice.weight"])
    for module in range(3):
        first, then = (f"weight.{pool}.{module}.linear.weight" for pool in ("expert", "specialist"))
        assert np.array_equal(old[first][:4], new[then])
        moment = old[f"optimizer.exp_avg.expert.{module}.linear.weight"][:4]
        assert np.array_equal(moment, new[f"optimizer.exp_avg.specialist.{module}.linear.weight"])
    assert json.loads((tmp_path / "on/start.json").read_text())["weights"]["new"] == 0


def test_another_optimizer_begins_afresh(spec: Path, tmp_path: Path) -> None:
    begin(spec, tmp_path / "run", train__epochs=1)
    recipe = tmp_path / "sgd.yaml"
    recipe.write_text((tmp_path / "digits.yaml").read_text().replace("adam", "sgd, momentum: 0.9"))
    options = ["--recipe", str(recipe), "-s", "train.epochs=2"]
    assert main(["migrate", f"{tmp_path}/run", "--to", str(spec), "--out", f"{tmp_path}/on", *options]) == 0
    assert not any(name.startswith("optimizer.") for name in newest(tmp_path / "on"))
    go_on(tmp_path / "on")


def test_a_parameter_that_the_spec_has_no_more_is_reported(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(spec, tmp_path / "run", train__epochs=1, hidden=12)
    spec.write_text(spec.read_text().replace("(hidden=16)", "").replace("linear(hidden)", "linear(12)"))
    assert main(["migrate", f"{tmp_path}/run", "--to", str(spec), "--out", f"{tmp_path}/on"]) == 0
    printed = capsys.readouterr()
    assert "hidden=12 of the recipe is left out" in printed.err
    assert "the architectures are the same" in printed.out


def test_what_cannot_be_is_reported_and_leaves_nothing(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(spec, tmp_path / "run", train__epochs=1)
    foreign = tmp_path / "foreign.mod"
    foreign.write_text("model m() { input image: float[1, 8, 8] y = image -> conv(2, 3) output y }")
    run, out = str(tmp_path / "run"), str(tmp_path / "on")
    for words, code in (
        ([run, "--to", str(spec), "--out", run], "MG601"),
        ([str(spec), "--to", str(spec), "--out", out], "MG833"),
        ([run, "--to", run, "--out", out], "MG833"),
        ([str(tmp_path / "none"), "--to", str(spec), "--out", out], "MG602"),
        ([run, "--to", str(tmp_path / "none.mod"), "--out", out], "MG101"),
        ([run, "--to", str(foreign), "--out", out], "MG834"),
        ([run, "--to", str(spec), "--out", out, "-s", "none=3"], "MG2"),
        ([run, "--to", str(spec), "--out", out, "-s", "train.none=3"], "MG5"),
        ([run, "--to", str(spec), "--out", out, "-s", "train.batch=7"], "MG620"),
    ):
        assert main(["migrate", *words]) == 1
        assert code in capsys.readouterr().err, words
    assert not (tmp_path / "on/run.json").exists()


def test_a_migration_that_was_cut_off_can_be_done_again(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(spec, tmp_path / "run", train__epochs=1)
    words = ["migrate", f"{tmp_path}/run", "--to", str(spec), "--out", f"{tmp_path}/on"]
    with monkeypatch.context() as patch:
        patch.setattr("modgraph.store.run_directory.RunDirectory.mark", interrupted)
        assert main(words) == 130
    assert json.loads((tmp_path / "on/run.json").read_text())["status"] == "starting"
    assert list((tmp_path / "on/checkpoints").iterdir())
    assert main(words) == 0


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_what_a_training_froze_stays_frozen_and_the_rest_goes_on_as_it_would_have(tmp_path: Path) -> None:
    spec = continual_runs.lay_out_run(tmp_path, expand="always")
    whole, broken, grown = tmp_path / "whole", tmp_path / "broken", tmp_path / "grown"
    with start_run(str(spec), None, {}, str(whole)) as engine:
        finish(engine)
    with pytest.raises(KeyboardInterrupt), start_run(str(spec), None, {}, str(broken)) as engine:
        interrupt_at(engine, 13)
        finish(engine)
    now = load_run(broken).checkpoint(best=False)
    sizes = [now.graph.pools()[f"layer.{i}.adapter"].size for i in range(2)] if now.graph else []
    assert sizes == [1, 2], "it has grown once"
    settings = ["-s", "layers=[1,2]", "-s", "classes=4"]
    assert main(["migrate", str(broken), "--to", str(spec), "--out", str(grown), *settings]) == 0
    go_on(grown)
    expected, found = newest(whole), newest(grown)
    assert expected.keys() == found.keys() and all(np.array_equal(found[name], expected[name]) for name in expected)
