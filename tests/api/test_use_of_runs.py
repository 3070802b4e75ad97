"""What runs are good for in Python: predictions, and going on as another spec says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import modgraph
from modgraph.cli import main
from tests.api.digits import RECIPE, SPEC, own_data, tensors
from tests.small_runs import final_weights, lay_out_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> modgraph.Run:
    return modgraph.train(modgraph.loads(SPEC), RECIPE, data=own_data(), out=tmp_path_factory.mktemp("used") / "run")


def test_a_run_and_its_bundle_predict_what_the_model_says(run: modgraph.Run, tmp_path: Path) -> None:
    images, _ = tensors()
    expected = run.model()(images[:5]).softmax(1)
    run.export(tmp_path / "m.onnx")
    for found in (
        run.predict({"image": images[:5].numpy()}),
        run.predict({"image": images[:5]}),
        modgraph.predict(run, {"image": images[:5].numpy()}),
        modgraph.predict(run.path, {"image": images[:5].numpy()}),
        modgraph.predict(tmp_path / "m.onnx", {"image": images[:5].numpy()}),
    ):
        assert [int(each["label"]) for each in found] == expected.argmax(1).tolist()
        assert [each["input"] for each in found][:2] == ["arrays[0]", "arrays[1]"]
        shares = [each["label.probability"] for each in found.records]
        assert np.abs(np.array(shares, float) - expected.max(1).values.detach().numpy()).max() < 1e-3


def test_a_run_goes_on_as_another_spec_says_bit_for_bit_as_by_the_command(tmp_path: Path) -> None:
    spec = lay_out_run(tmp_path)
    run = modgraph.train(spec, out=tmp_path / "run", overrides={"train.epochs": 1})
    longer = spec.with_name("longer.mod")
    longer.write_text(spec.read_text().replace("-> linear(10)", "-> linear(16) -> relu -> linear(10)"))
    migrated = modgraph.migrate(run, longer, out=tmp_path / "python", overrides={"train.epochs": 2})
    arguments = ["migrate", str(run.path), "--to", str(longer), "--out", str(tmp_path / "command")]
    assert main([*arguments, "-s", "train.epochs=2"]) == 0
    assert final_weights(migrated.path) == final_weights(tmp_path / "command")
    kept = "logits.linear.weight"
    assert torch.equal(migrated.model().state_dict()[kept], run.model().state_dict()[kept]), "what it learnt is kept"
    assert migrated.resume().metrics["epochs"] == 2, "it goes on where the run stood"


def test_what_begins_anew_is_named_by_patterns(tmp_path: Path) -> None:
    spec = lay_out_run(tmp_path)
    run = modgraph.train(spec, out=tmp_path / "run", overrides={"train.epochs": 1})
    fresh = modgraph.migrate(run, spec, out=tmp_path / "fresh", fresh=["logits.linear"], restart=True)
    own, old = fresh.model().state_dict(), run.model().state_dict()
    same = {name for name in own if torch.equal(own[name], old[name])}
    assert same == {"logits.linear2.weight", "logits.linear2.bias"}
    with pytest.raises(modgraph.ModgraphError, match="unknown weight"):
        modgraph.migrate(run, spec, out=tmp_path / "other", fresh=["logit"])
