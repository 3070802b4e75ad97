"""What a step, and an evaluation, waits for: nothing on the device, but the sizes of a sparse form's slices."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from modgraph.diagnostics import ModgraphError
from modgraph.metrics.accumulators import Accumulators
from modgraph.metrics.metrics import evaluate
from modgraph.training.divergence import CHECK_EVERY, FiniteCheck
from modgraph.training.engine import Engine
from modgraph.training.run import finish, resume_run, start_run
from tests.small_runs import dotted, lay_out_run, take_step
from tests.training.test_algorithms import TOY, TOY_RECIPE
from tests.training.test_divergence import message_of, spoil
from tests.waiting import Waits

SPECS = Path(__file__).parents[2] / "specs"
TASKS = ("first", "second", "third", "fourth")
SIZES = Counter({"nn/choice_routes.py: aten.nonzero.default": 2, "nn/grouped.py: tolist": 2})  # of two sparse layers


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Sequences of unequal lengths for several tasks, some labels missing."""
    rng = np.random.default_rng(0)
    labels = {f"label.{name}": rng.integers(-1, 2, 40) for name in TASKS}
    arrays = {"series": rng.normal(size=(40, 9, 10)), "time_length": rng.integers(2, 10, 40), **labels}
    np.savez(tmp_path / "series.npz", **arrays)
    return tmp_path / "series.npz"


def waits_of_a_step(engine: Engine) -> Counter[str]:
    """What a step waits for that looks at its loss later, as on an accelerator."""
    engine.finite.every = CHECK_EVERY
    order = engine.order.draw(0, 0)
    take_step(engine, next(order))
    with Waits() as waits:
        take_step(engine, next(order))
    assert {each.step for each in engine.finite.seen} == {0, 1}
    engine.finite.check()
    return Counter(waits.found)


@pytest.mark.some(1)
@pytest.mark.parametrize(("spec", "expected"), [("smn", Counter()), ("gmoe_digits", SIZES), ("mt_rmn", Counter())])
def test_a_step_waits_only_for_the_sizes_of_slices(
    spec: str, expected: Counter[str], series: Path, tmp_path: Path
) -> None:
    data = {"data.train": str(series)} if spec == "mt_rmn" else {}
    options: dict[str, Any] = {"train.batch": 8, "train.clip": 1.0, **data}
    with start_run(str(SPECS / f"{spec}.mod"), None, options, str(tmp_path / "run")) as engine:
        assert waits_of_a_step(engine) == expected
        arrays = engine.phase.data.take(np.arange(20))
        with Waits() as waits:
            accumulators = evaluate(engine.state.model, arrays)
        assert Counter(waits.found) == expected
        with Waits() as waits:
            accumulators.fetch()
        assert set(waits.found) == {"metrics/accumulators.py: cpu", "metrics/accumulators.py: tolist"}


def test_reinforce_waits_for_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((60, 4, 2)) for name in ("xs", "ys")}
    np.savez(tmp_path / "toy.npz", **arrays, time_length=rng.integers(1, 5, 60))
    (tmp_path / "toy.mod").write_text(TOY)
    (tmp_path / "toy.yaml").write_text(TOY_RECIPE.format(folder=tmp_path, algorithm="reinforce"))
    with start_run(str(tmp_path / "toy.mod"), None, {}, str(tmp_path / "run")) as engine:
        found = waits_of_a_step(engine)
    assert not [each for each in found if "algorithms" in each or "metrics" in each], found


# ------------------------------------------------------------ what is looked at later


@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("value", [float("nan"), -float("inf")])
def test_what_is_checked_later_is_reported_the_same_way_and_for_the_right_step(
    tmp_path: Path, clip: float | None, value: float
) -> None:
    with start_run(str(lay_out_run(tmp_path)), None, dotted({"train__clip": clip}), str(tmp_path / "run")) as engine:
        engine.finite = FiniteCheck(7)
        name = list(engine.state.named)[1]
        spoil(engine, 25, name, value)
        with pytest.raises(ModgraphError) as caught:
            finish(engine)
        assert engine.progress.step == 26  # the seventh of an epoch
    assert message_of(caught) == f"the gradient of {name} is not finite at step 25"
    with resume_run(str(tmp_path / "run")) as engine:
        assert engine.progress.step == 20
        assert all(each.isfinite().all() for each in engine.state.weights.values())


def test_no_checkpoint_and_no_line_is_written_after_a_step_that_went_astray(tmp_path: Path) -> None:
    """The look that is due comes long after the epoch's end."""
    options = dotted({"train__optimizer__name": "sgd", "train__optimizer__lr": 1e30})
    with start_run(str(lay_out_run(tmp_path)), None, options, str(tmp_path / "run")) as engine:
        engine.finite = FiniteCheck(1000)
        with pytest.raises(ModgraphError) as caught:
            finish(engine)
    with (
        start_run(str(tmp_path / "digits.mod"), None, options, str(tmp_path / "other")) as engine,
        pytest.raises(ModgraphError) as at_once,
    ):
        finish(engine)
    assert message_of(caught) == message_of(at_once)
    assert not list((tmp_path / "run/checkpoints").glob("*"))
    assert not (tmp_path / "run/metrics.jsonl").exists()


def test_looking_later_changes_no_bit(tmp_path: Path) -> None:
    spec, found = lay_out_run(tmp_path), []
    for every in (1, 7):
        options = dotted({"train__clip": 0.5, "train__epochs": 2})
        with start_run(str(spec), None, options, str(tmp_path / f"run{every}")) as engine:
            engine.finite = FiniteCheck(every)
            finish(engine)
            found.append({name: each.clone() for name, each in engine.state.weights.items()})
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_a_norm_that_overflows_is_reported_later_only_where_clipping_needs_it() -> None:
    for clip in (None, 1.0):
        weight = torch.nn.Parameter(torch.zeros(4))
        weight.grad = torch.full((4,), 1e30)
        later = FiniteCheck(10)
        later.loss(torch.tensor(1.0), 5)
        later.gradients({"w": weight}, 5, clip)
        if clip is None:
            later.check()
            continue
        with pytest.raises(ModgraphError) as caught:
            later.check()
        assert message_of(caught) == "the norm of the gradient, which clipping needs, is inf at step 5"


# ------------------------------------------------------------ sums


def test_sums_come_to_the_same_number_whenever_they_are_reported() -> None:
    rng, names = np.random.default_rng(0), ("a", "b.0", "b.1")
    values = rng.random((30, 3)).astype(np.float32) / 3
    weights = rng.integers(1, 9, 30)
    accumulators = {every: Accumulators() for every in (1, 4, 100)}
    for at, (row, weight) in enumerate(zip(values, weights, strict=True)):
        for every, each in accumulators.items():
            each.add_tensors(names[:1], torch.tensor(row[0]), int(weight))
            each.add_tensors(names[1:], torch.from_numpy(row[1:]), torch.tensor(weight))
            if at % every == every - 1:
                accumulators[every] = Accumulators.read(json.loads(json.dumps(each.facts())))
    sums = [0.0] * 3
    for row in values:
        sums = [total + float(each) for total, each in zip(sums, row, strict=True)]
    for each in accumulators.values():
        assert each.fetch().sums == dict(zip(names, sums, strict=True))
        assert each.weights == dict.fromkeys(names, float(weights.sum()))


# ------------------------------------------------------------ on an accelerator

ASKED = "read by choice_routes.find_edges"
SEVERAL: dict[str, dict[str, int]] = {
    "gmoe_digits bfloat16": {},
    "zoo/gcn bfloat16": {},
    # Modules run one after another, so that each route asks once how many tokens each of them has.
    "gmoe_digits float32": {ASKED: 2},
    # Modules that are not of one kind have no grouped product, so that each route asks for sizes.
    "zoo/graph_moe bfloat16": {ASKED: 3},
}


@pytest.mark.slow
@pytest.mark.parametrize("expected", [{"zoo/mixtral bfloat16": {}}, pytest.param(SEVERAL, marks=pytest.mark.slow)])
def test_a_step_on_an_accelerator_waits_for_nothing_but_sizes(expected: dict[str, Any], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.pretend", str(tmp_path), *expected]
    done = subprocess.run(command, capture_output=True, text=True, cwd=SPECS.parent)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == expected


@pytest.mark.cuda
def test_no_step_on_an_accelerator_waits(tmp_path: Path) -> None:
    with start_run(str(SPECS / "smn.mod"), None, {"train.device": "cuda"}, str(tmp_path / "run")) as engine:
        order = engine.order.draw(0, 0)
        take_step(engine, next(order))
        try:
            torch.cuda.set_sync_debug_mode("error")
            for _ in range(3):
                take_step(engine, next(order))
        finally:
            torch.cuda.set_sync_debug_mode("default")
        engine.finite.check()
