"""Callbacks: what they hear, and that they may stop a training but not change it."""

from __future__ import annotations

from pathlib import Path

import pytest

import modgraph
from tests.api.digits import RECIPE, SPEC, own_data
from tests.small_runs import final_weights


class Listener(modgraph.Callback):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.steps: list[modgraph.Step] = []
        self.epochs: list[modgraph.Epoch] = []

    def on_begin(self, run: modgraph.Run) -> None:
        self.heard.append(f"begin {run.path.name}")

    def on_step(self, step: modgraph.Step) -> None:
        self.steps.append(step)

    def on_epoch(self, epoch: modgraph.Epoch) -> None:
        self.epochs.append(epoch)

    def on_end(self, run: modgraph.Run) -> None:
        self.heard.append(f"end {run.metrics['steps']}")


def test_callbacks_hear_of_steps_and_epochs_and_change_nothing(tmp_path: Path) -> None:
    listener = Listener()
    heard = modgraph.train(modgraph.loads(SPEC), RECIPE, data=own_data(), out=tmp_path / "heard", callbacks=[listener])
    quiet = modgraph.train(modgraph.loads(SPEC), RECIPE, data=own_data(), out=tmp_path / "quiet")
    assert final_weights(heard.path) == final_weights(quiet.path), "the same training, to the bit"
    assert listener.heard == ["begin heard", "end 20"]
    assert [(each.epoch, each.step) for each in listener.steps] == [(1 + at // 10, 1 + at) for at in range(20)]
    assert [each.step for each in listener.epochs] == [10, 20]
    assert {each.lr for each in listener.steps} == {0.01}
    assert [*listener.steps[0].losses] == ["loss.cross_entropy"]
    mean = sum(each.loss for each in listener.steps[:10]) / 10
    assert listener.epochs[0].metrics["train.total_loss"] == pytest.approx(mean, rel=1e-6), "the mean of the steps"
    assert listener.epochs[1].metrics["train.accuracy"] == heard.history[1]["accuracy"]


def test_a_function_hears_of_epochs(tmp_path: Path) -> None:
    heard: list[int] = []
    modgraph.train(
        modgraph.loads(SPEC),
        RECIPE,
        data=own_data(),
        out=tmp_path / "run",
        callbacks=[lambda epoch: heard.append(epoch.epoch)],
    )
    assert heard == [1, 2]


def test_a_callback_that_returns_true_stops_the_training(tmp_path: Path) -> None:
    run = modgraph.train(
        modgraph.loads(SPEC), RECIPE, data=own_data(), out=tmp_path / "run", callbacks=[lambda epoch: epoch.epoch == 1]
    )
    assert (run.metrics["epochs"], run.metrics["steps"]) == (1, 10)
    assert "test.accuracy" in run.metrics, "what was learnt is tested"


@pytest.mark.parametrize("wrong", [3, "print", [3], [Listener], [object()]])
def test_what_is_no_callback_is_a_type_error(wrong: object, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="callback"):
        modgraph.train(modgraph.loads(SPEC), RECIPE, data=own_data(), out=tmp_path / "run", callbacks=wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists(), "refused before all work"


@pytest.mark.parametrize(
    ("name", "meant"),
    {
        "on_epoch_end": "on_epoch",
        "on_train_begin": "on_begin",
        "on_train_end": "on_end",
        "on_batch_end": "on_step",
        "on_fit_start": "on_begin",
        "on_epcoh": "on_epoch",
        "on_weather": None,
    }.items(),
)
@pytest.mark.parametrize("base", [modgraph.Callback, object])
def test_a_method_that_is_never_called_is_a_type_error(
    name: str, meant: str | None, base: type, tmp_path: Path
) -> None:
    callback = type("Mine", (base,), {name: lambda self, value: None})()
    with pytest.raises(TypeError, match=f"Mine.{name} is never called") as caught:
        modgraph.train(modgraph.loads(SPEC), RECIPE, data=own_data(), out=tmp_path / "run", callbacks=[callback])
    assert meant is None or f'did you mean "{meant}"?' in str(caught.value), caught.value
    assert "on_begin, on_step, on_epoch, on_end" in str(caught.value), "all that are"
    assert not (tmp_path / "run").exists(), "refused before all work"
