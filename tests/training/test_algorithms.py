"""EM and REINFORCE: two modular layers of three modules and two slots, against numpy; resuming; what is refused."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modgraph
from modgraph import ModgraphError
from modgraph.backends.torch import Model, build
from modgraph.cli import main
from modgraph.data import Arrays
from modgraph.data.batches import batch_of
from modgraph.training.algorithms import EM, Backprop, Reinforce
from modgraph.training.algorithms.algorithm import Learner, Setup
from modgraph.training.algorithms.decisions import ViterbiEM
from modgraph.training.run import finish, start_run
from tests.children import output_of_child
from tests.small_runs import begin, dotted, final_weights, go_on, interrupt_at
from tests.training.modular_in_numpy import (
    LAYERS,
    SLOTS,
    SPEC,
    em_objective,
    every_choice,
    forward,
    joint,
    log_likelihood,
    reinforce_objective,
    slope,
)

EXAMPLES, DECAY = 12, 0.01
ROUTES = [f"layer.{layer}.z.expert" for layer in range(LAYERS)]


def data(seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    return Arrays({"x": rng.standard_normal((EXAMPLES, 2)), "y": rng.standard_normal((EXAMPLES, 2))})


def made(algorithm: Any, seed: int = 0) -> tuple[Any, Model, dict[str, Any]]:
    """A learner, its model in double precision with weights away from zero, and these weights."""
    graph = modgraph.loads(SPEC).ir
    learner = algorithm.learner(Setup(graph, {"train": data(seed)}, seed, batch=5, epochs=1))
    model = build(learner.graph, seed, asked=learner.wanted).double()
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.8, generator=generator)
    return learner, model, {name: each.detach().numpy().copy() for name, each in model.named_parameters()}


def as_choices(table: dict[str, torch.Tensor]) -> np.ndarray[Any, Any]:
    """[examples, L, K]."""
    assert sorted(table) == ROUTES
    return np.stack([table[name].numpy().reshape(-1, SLOTS) for name in ROUTES], axis=1)


def gradients(learner: Learner, model: Model, places: torch.Tensor) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """The gradient of a step's objective by every weight, and what was chosen in it."""
    model.train()
    batch = {name: torch.from_numpy(array[places.numpy()]) for name, array in data().values.items()}
    wanted = (*learner.wanted, *model.graph.losses.values())
    found = model.results({**batch, **learner.force_choices(places, batch)}, wanted)
    losses = dict(zip(model.graph.losses, found[len(learner.wanted) :], strict=True))
    parts = learner.objective(losses, found[: len(learner.wanted)], len(places))
    sum(each.mean() for each in parts.values()).backward()  # type: ignore[union-attr]
    likelihood = learner.likelihood  # type: ignore[attr-defined]
    picks = {name: each for name, each in likelihood.choices(found[: len(learner.wanted)]).items()}
    return {name: each.grad for name, each in model.named_parameters()}, as_choices(picks)


def compare(grads: dict[str, Any], weights: dict[str, Any], objective: Any) -> None:
    for name, array in weights.items():
        for place in list(np.ndindex(array.shape))[:3]:
            expected = slope(objective, weights, name, place)
            found = 0.0 if grads[name] is None else float(grads[name][place])
            assert found == pytest.approx(expected, abs=1e-6), name


def test_an_em_step_descends_on_the_joint_likelihood_of_what_is_kept() -> None:
    learner, model, weights = made(EM())
    places = torch.arange(7)
    grads, picks = gradients(learner, model, places)
    np.testing.assert_array_equal(picks, as_choices(learner.table)[:7])
    xs, ys = (array[:7] for array in data().values.values())
    compare(grads, weights, lambda moved: em_objective(moved, xs, ys, picks, DECAY))


def test_a_reinforce_step_weighs_log_probabilities_by_how_much_better_than_usual_it_went() -> None:
    learner, model, weights = made(Reinforce(memory=0.9))
    xs, ys = data().values.values()
    average = 0.0
    for step in range(3):
        torch.manual_seed(step)
        model.zero_grad()
        grads, picks = gradients(learner, model, torch.arange(EXAMPLES))
        likelihoods = np.array(
            [log_likelihood(forward(weights, x, a)[0], y) for x, y, a in zip(xs, ys, picks, strict=True)]
        )
        baseline = average / (1 - 0.9**step) if step else likelihoods.mean()
        average = 0.9 * average + 0.1 * likelihoods.mean()
        fixed = partial(
            reinforce_objective, xs=xs, ys=ys, choices=picks, advantages=likelihoods - baseline, decay=DECAY
        )
        compare(grads, weights, fixed)


def test_an_e_step_keeps_the_best_of_what_is_sampled_and_what_was_kept() -> None:
    learner, model, weights = made(EM(samples=4, batch=5))
    before = as_choices(learner.table)
    samples: list[Any] = []
    picks = learner.likelihood.choices

    def recording(found: Any) -> Any:
        samples.append(as_choices(picks(found)))
        return picks(found)

    object.__setattr__(learner.likelihood, "choices", recording)
    learner.expectation(model, 0)
    (candidates,) = samples
    candidates = candidates.reshape(5, 5, LAYERS, SLOTS)  # candidates, examples
    after = as_choices(learner.table)
    xs, ys = data().values.values()
    seen = learner._indices(0).tolist()
    assert all((before[place] == candidates[0, at]).all() for at, place in enumerate(seen))
    for at, place in enumerate(seen):
        values = [joint(weights, xs[place], ys[place], each) for each in candidates[:, at]]
        np.testing.assert_array_equal(after[place], candidates[int(np.argmax(values)), at])
    untouched = sorted(set(range(EXAMPLES)) - set(seen))
    np.testing.assert_array_equal(after[untouched], before[untouched])


def test_e_steps_end_at_the_best_decisions_there_are_and_visit_every_example() -> None:
    learner, model, weights = made(EM(samples=60, batch=5))
    for at in range(90):
        learner.expectation(model, at)
    xs, ys = data().values.values()
    for x, y, kept in zip(xs, ys, as_choices(learner.table), strict=True):
        best = max(joint(weights, x, y, each) for each in every_choice())
        assert joint(weights, x, y, kept) == pytest.approx(best, abs=1e-9)


def test_of_equally_good_decisions_the_one_that_is_kept_stays() -> None:
    learner, model, _ = made(EM(samples=20, batch=EXAMPLES))
    for parameter in model.parameters():
        parameter.data.zero_()
    before = {name: table.clone() for name, table in learner.table.items()}
    for at in range(3):
        learner.expectation(model, at)
    assert all(torch.equal(before[name], table) for name, table in learner.table.items())


def test_the_table_is_compact_and_begins_uniform() -> None:
    graph = modgraph.loads(SPEC).ir
    rows = Arrays({name: np.zeros((3000, 2)) for name in ("x", "y")})
    learner: Any = EM().learner(Setup(graph, {"train": rows}, 0, 100, 1))
    assert {table.dtype for table in learner.table.values()} == {torch.uint8}
    assert "4 decisions for each of 3,000 examples: 0.01 MB" in learner.describe()
    counts = torch.stack([table.flatten().bincount(minlength=3) for table in learner.table.values()])
    assert ((counts - 2000).abs() < 150).all()


TOY = """
model toy(modules=2) {
  input  xs: float[time, 2]
  target ys: float[time, 2]
  pool   expert[modules] = linear(2)
  router controller = categorical(1)
  scan xs as x { yield x -> expert by controller } as z
  output z
  loss gaussian(z, ys, variance=0.1)
}
"""
TOY_RECIPE = """
data: {{name: npz, train: {folder}/toy.npz}}
train: {{algorithm: {algorithm}, epochs: 3, batch: 16, optimizer: adam, checkpoint_every: 2}}
"""
ALGORITHMS = {"em": "{name: em, samples: 3, m_steps: 2}", "reinforce": "reinforce"}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((100, 4, 2)) for name in ("xs", "ys")}
    np.savez(tmp_path / "toy.npz", **arrays, time_length=rng.integers(1, 5, 100))
    (tmp_path / "toy.mod").write_text(TOY)
    (tmp_path / "toy.yaml").write_text(TOY_RECIPE.format(folder=tmp_path, algorithm=ALGORITHMS["em"]))
    return tmp_path / "toy.mod"


OWN = """
router mine() for p {
  input x: float[tokens, dim]
  preference = x -> linear(p)
  taken = preference -> draw
  record preference: logits, taken: choice
  y = x -> p by taken
  output y
}
"""


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_definition_of_ones_own_that_draws_learns_by_either(toy: Path, tmp_path: Path, algorithm: str) -> None:
    toy.write_text(OWN + TOY.replace("categorical(1)", "mine"))
    settings = {"train.algorithm": algorithm, "train.epochs": 6}
    with start_run(str(toy), None, settings, str(tmp_path / "run")) as engine:
        before = {name: each.clone() for name, each in engine.state.weights.items()}
        finish(engine)
        moved = {name for name, each in engine.state.weights.items() if not torch.equal(each, before[name])}
    assert moved == before.keys()
    first, *_, last = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    assert last["total_loss"] < first["total_loss"]
    assert {"H_a", "H_b"} <= last.keys()


def dies_in_an_e_step(calls: int, arguments: list[str]) -> int:
    """A training that is killed as it tries candidates for this time, from 1, with half of its table spoiled."""
    original, left = ViterbiEM._candidates, iter(range(calls - 1))

    def dying(self: Any, kept: Any) -> Any:
        if next(left, None) is None:
            for table in self.table.values():
                table[: len(table) // 2] = 0
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, kept)

    ViterbiEM._candidates = dying  # type: ignore[method-assign]
    return main(arguments)


@pytest.mark.some(1)
@pytest.mark.parametrize("calls", [1, 4, 7])
def test_a_training_killed_in_the_middle_of_an_e_step_ends_as_if_it_had_not_been(
    toy: Path, tmp_path: Path, calls: int
) -> None:
    begin(toy, tmp_path / "whole")
    arguments = ["train", str(toy), "--out", str(tmp_path / "killed")]
    code, printed = output_of_child(partial(dies_in_an_e_step, calls, arguments))
    assert code == -signal.SIGKILL, printed
    go_on(tmp_path / "killed")
    assert final_weights(tmp_path / "killed") == final_weights(tmp_path / "whole")
    assert (tmp_path / "killed/metrics.jsonl").read_text() == (tmp_path / "whole/metrics.jsonl").read_text()


def test_what_reinforce_keeps_is_taken_up_again(toy: Path, tmp_path: Path) -> None:
    begin(toy, tmp_path / "whole", train__algorithm="reinforce")
    with (
        pytest.raises(KeyboardInterrupt),
        start_run(str(toy), None, {"train.algorithm": "reinforce"}, str(tmp_path / "broken")) as engine,
    ):
        interrupt_at(engine, 9)
        finish(engine)
    go_on(tmp_path / "broken")
    assert final_weights(tmp_path / "broken") == final_weights(tmp_path / "whole")
    facts = json.loads(next((tmp_path / "whole/checkpoints").glob("*.json")).read_text())["facts"]
    assert facts["algorithm"]["steps"] > 0


def test_batches_of_short_examples_keep_decisions_for_short_examples(toy: Path, tmp_path: Path) -> None:
    """The table is as wide as the longest example; a batch that is cut reads and writes what it has places for."""
    overrides = {"train__bucket": 3, "train__epochs": 2}
    begin(toy, tmp_path / "whole", **overrides)
    with (
        pytest.raises(KeyboardInterrupt),
        start_run(str(toy), None, dotted(overrides), str(tmp_path / "broken")) as engine,
    ):
        rows = np.flatnonzero(engine.phase.data.values["time_length"] <= 2)
        batch = batch_of(engine.phase.data, rows)
        forced = engine.state.learner.force_choices(torch.from_numpy(rows), batch)
        assert {each.shape[:2] for each in forced.values()} == {(len(rows), 2)}
        interrupt_at(engine, 5)
        finish(engine)
    go_on(tmp_path / "broken")
    assert final_weights(tmp_path / "broken") == final_weights(tmp_path / "whole")


def test_a_checkpoint_without_the_table_is_refused(toy: Path, tmp_path: Path) -> None:
    begin(toy, tmp_path / "run", train__epochs=1)
    begin(toy, tmp_path / "other", train__epochs=1, train__algorithm="reinforce")
    for file in (*(tmp_path / "other/checkpoints").iterdir(), *(tmp_path / "other").glob("*.jsonl")):
        (tmp_path / "run" / file.relative_to(tmp_path / "other")).write_bytes(file.read_bytes())
    with pytest.raises(ModgraphError, match="no assignments of"):
        go_on(tmp_path / "run")


GRADIENT = "model m() { input x: float[2] target y: float[2] z = x -> linear(2) output z loss mse(z, y) }"


@pytest.mark.parametrize(
    ("algorithm", "spec", "code"),
    [
        (Backprop(), SPEC, "MG540"),
        (EM(), GRADIENT, "MG541"),
        (Reinforce(), GRADIENT, "MG541"),
        (EM(), SPEC.replace("loss gaussian", "loss 0.5 * gaussian"), "MG542"),
        (Reinforce(), OWN.replace("logits", "scores") + SPEC.replace("categorical(slots)", "mine"), "MG260"),
        (Backprop(), OWN + SPEC.replace("categorical(slots)", "mine"), "MG540"),
    ],
)
def test_a_spec_that_is_not_for_an_algorithm_is_reported(algorithm: Any, spec: str, code: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        algorithm.learner(Setup(modgraph.loads(spec).ir, {"train": data()}, 0, 5, 1))
    assert [each.code for each in caught.value.diagnostics] == [code]


def test_em_runs_in_one_process() -> None:
    with pytest.raises(ModgraphError, match="runs in one process"):
        EM().learner(Setup(modgraph.loads(SPEC).ir, {"train": data()}, 0, 5, 1, processes=2))
