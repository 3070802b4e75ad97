"""Pools divided among processes: the result of one process; checkpoints move between any numbers of processes."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.training.fit import diagnose_training
from modgraph.training.processes import refuse_experts
from tests import continual_runs
from tests.several_processes import close, run_forks, with_forks, with_torchrun
from tests.small_runs import begin

SPEC = """
block inner(width) {
  input x: float[width]
  pool few[2] = linear(width)
  s = x -> linear(few)
  y = x -> few by ((s, (s, s -> top_k(1)) -> within_capacity(0.7)) -> masked_softmax)
  output y
}
model net() {
  input  image: float[1, 8, 8]
  target label: class[10]
  pool   expert[5] = linear(12) -> relu -> linear(12)
  pool   unlike = [linear(12) -> relu, linear(20) -> relu -> linear(12), layer_norm -> linear(12)]
  pool   nested[2] = inner(12)
  pool   dense[4] = linear(12) -> tanh
  pool   maps[3] = conv(2, kernel=3) -> batch_norm
  router noisy = noisy_top_k(2)
  f = image -> conv(2, kernel=3)
  w = f -> flatten -> linear(maps)
  a = (f -> maps by ((w, w -> top_k(1)) -> masked_softmax)) -> tokens -> linear(12)
  s = a -> linear(expert)
  b = a + (a -> expert by ((s, (s, s -> top_k(2)) -> within_capacity(0.8, 2)) -> masked_softmax))
  u = b -> linear(unlike)
  c = b + (b -> unlike by ((u, u -> top_k(1)) -> masked_softmax)) + (b -> dense by noisy)
  n = c -> mean
  v = n -> linear(nested)
  d = n + (n -> nested by ((v, v -> top_k(1)) -> masked_softmax)) + (n -> dense[1]) + (n -> dense -> mean(axis="dense"))
  logits = d -> dropout(0.2) -> linear(10)
  output logits
  loss cross_entropy(logits, label)
  loss balance = 0.1 * sum(batch_mean(s -> softmax) ** 2, axis=-1)
  loss 0.1 * importance(noisy)
}
"""
EXPERTS = "train.experts"


@pytest.fixture
def routed(spec: Path) -> Path:
    """Unlike modules, capacities, nested pools, statistics of the batch; the last batch has a single example."""
    spec.write_text(SPEC)
    data = np.load(spec.with_name("digits.npz"))
    np.savez(spec.with_name("digits.npz"), **{name: each[:108] for name, each in data.items()})
    recipe = spec.with_suffix(".yaml")
    text = recipe.read_text().replace("batch: 50", "batch: 16, clip: 1.0, validation: 0.25, precision: float64")
    recipe.write_text(text.replace("epochs: 4", "epochs: 4, checkpoint_every: 3"))
    return spec


def drop_newest(run: Path, count: int) -> None:
    """Delete the newest checkpoints of a run."""
    for path in sorted((run / "checkpoints").iterdir())[-2 * count :]:
        path.unlink()


def go_on_in(run: Path, processes: int, **overrides: Any) -> None:
    """Resume a run before its newest checkpoint in some processes."""
    drop_newest(run, 1)
    settings = [word for name, value in overrides.items() for word in ("-s", f"train.{name}={value}")]
    if processes == 1:
        assert main(["train", "--resume", str(run), *settings]) == 0
    else:
        with_forks("--resume", run, *settings, processes=processes)


@pytest.mark.slow
def test_two_processes_give_what_one_gives_and_one_goes_on_from_where_they_were(routed: Path, tmp_path: Path) -> None:
    begin(routed, tmp_path / "one")
    with_forks(routed, "--out", tmp_path / "two", "-s", f"{EXPERTS}=2")
    close(tmp_path / "two", tmp_path / "one")
    metrics = [(tmp_path / run / "metrics.jsonl").read_text() for run in ("one", "two")]
    assert len(metrics[0].splitlines()) == len(metrics[1].splitlines()) == 8
    go_on_in(tmp_path / "two", 1)
    close(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
def test_four_processes_and_any_number_that_goes_on(routed: Path, tmp_path: Path) -> None:
    begin(routed, tmp_path / "one")
    for processes, experts, strategy in ((4, 2, "ddp"), (4, 4, "ddp"), (4, 2, "fsdp"), (2, 2, "fsdp")):
        run = tmp_path / f"{processes}-{experts}-{strategy}"
        settings = ("-s", f"{EXPERTS}={experts}", "-s", f"train.strategy={strategy}")
        with_forks(routed, "--out", run, *settings, processes=processes)
        close(run, tmp_path / "one")
    for processes, settings in ((2, {}), (4, {}), (1, {}), (2, {"experts": 1}), (4, {"experts": 4, "strategy": "ddp"})):
        go_on_in(run, processes, **settings)
        close(run, tmp_path / "one")


SEQUENCES = """
block scaled(width) {
  input x: float[width]
  state temperature: float = constant(2)
  y = (x / temperature) -> linear(width) -> relu
  output y
}
model net() {
  input  x: float[time, 6]
  target label: class[time, 5]
  target kind: class[3]
  pool   expert[4] = scaled(8)
  pool   step[3] = linear(8) -> tanh
  pool   ponder = [linear(8) -> tanh, linear(4) -> relu -> layer_norm -> linear(8)]
  h = x -> linear(8)
  s = h -> linear(expert)
  a = h + (h -> expert by ((s, s -> top_k(2)) -> masked_softmax))
  scan a as row with m: float[8] {
    g = m + row -> linear(step)
    m = m + (row -> step by ((g, g -> top_k(1)) -> masked_softmax))
    yield m
  } as b
  scan 0..5 as n with z: float[time, 8] = b {
    q = z -> linear(ponder)
    z = z + (z -> ponder by ((q, q -> top_k(1)) -> masked_softmax)) + (z -> ponder[1])
    yield z
  } until (z -> mean(axis=-1)) > 0.2 as c
  logits = c -> linear(5)
  output logits
  k = c -> mean -> linear(3)
  output k
  loss cross_entropy(logits, label)
  loss cross_entropy(k, kind)
}
"""


@pytest.mark.slow
def test_sequences_of_unequal_lengths_loops_and_states_that_a_recipe_moves(tmp_path: Path) -> None:
    random, examples = np.random.default_rng(0), 70
    np.savez(
        tmp_path / "data.npz",
        x=random.normal(size=(examples, 8, 6)).astype("float32"),
        label=random.integers(0, 5, (examples, 8)),
        kind=random.integers(0, 3, examples),
        time_length=random.integers(1, 9, examples),
    )
    spec = tmp_path / "net.mod"
    spec.write_text(SEQUENCES)
    train = "epochs: 2, batch: 12, bucket: 2, validation: 0.3, clip: 0.5, precision: float64, optimizer: adamw"
    states = "states: {'expert.*.temperature': cosine}"
    text = f"data: {{name: npz, train: {tmp_path}/data.npz}}\ntrain: {{{train}, {states}}}\n"
    spec.with_suffix(".yaml").write_text(text)
    begin(spec, tmp_path / "one")
    for processes, experts in ((2, 2), (3, 3), (4, 2)):
        run = tmp_path / f"{processes}"
        with_forks(spec, "--out", run, "-s", f"{EXPERTS}={experts}", processes=processes)
        close(run, tmp_path / "one")
        found, expected = (
            [json.loads(line) for line in (each / "metrics.jsonl").open()] for each in (run, tmp_path / "one")
        )
        assert "state.expert.3.scaled.temperature" in expected[0]
        for own, line in zip(found, expected, strict=True):
            assert own.pop("split") == line.pop("split")
            assert own == pytest.approx(line, rel=1e-5)
    with_forks(spec, "--out", tmp_path / "mixed", "-s", f"{EXPERTS}=2", "-s", "train.precision=bfloat16")


@pytest.mark.slow
def test_processes_of_torchrun_divide_pools(routed: Path, tmp_path: Path) -> None:
    begin(routed, tmp_path / "one")
    with_torchrun(routed, "--out", tmp_path / "two", "-s", f"{EXPERTS}=2")
    close(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_pools_that_grow_are_divided_anew(tmp_path: Path, processes: int) -> None:
    spec = continual_runs.lay_out_run(tmp_path)
    grows = {"train.precision": "float64", "layers": [1, 3], "train.algorithm.expand": "always"}
    begin(spec, tmp_path / "one", **{name.replace(".", "__"): value for name, value in grows.items()})
    settings = [word for name, value in grows.items() for word in ("-s", f"{name}={value}")]
    with_forks(spec, "--out", tmp_path / "two", *settings, "-s", f"{EXPERTS}=2", processes=processes)
    close(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
def test_a_process_that_is_killed_ends_the_others_with_a_message(routed: Path, tmp_path: Path) -> None:
    def die_in_time(rank: int) -> None:
        from modgraph.training.engine import Engine

        plain = Engine._descend

        def descend(engine: Engine, *arguments: Any) -> Any:
            if rank == 1 and engine.progress.step == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(engine, *arguments)

        Engine._descend = descend  # type: ignore[method-assign]

    start = time.monotonic()
    codes, text = run_forks(routed, "--out", tmp_path / "run", "-s", f"{EXPERTS}=2", of_rank=die_in_time)
    assert codes == [1, -signal.SIGKILL]
    assert time.monotonic() - start < 60
    assert "error[MG622]: another process of this training has ended" in text
    assert "fault of modgraph" not in text


@pytest.mark.slow
def test_all_processes_stop_where_a_gradient_of_one_is_no_number(routed: Path, tmp_path: Path) -> None:
    def break_one(rank: int) -> None:
        from modgraph.training.experts import Experts

        plain = Experts.average

        def average(experts: Experts, weights: Any) -> None:
            plain(experts, weights)
            if rank == 1:
                weights[0].grad.fill_(float("nan"))

        Experts.average = average  # type: ignore[method-assign]

    codes, text = run_forks(routed, "--out", tmp_path / "run", "-s", f"{EXPERTS}=2", of_rank=break_one)
    assert codes == [1, 1], text
    assert text.count("error[MG604]: the gradient of maps.1.conv.weight is not finite at step 0") == 2, text


# ------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({EXPERTS: 0}, "must be at least 1"),
        ({EXPERTS: 5000}, "must be at most 4096"),
        ({EXPERTS: 1.5}, "must be a whole number"),
        ({EXPERTS: "two"}, "must be a whole number"),
        ({EXPERTS: 6}, 'is more than the modules of any pool: the largest, "expert", has 5'),
        ({EXPERTS: 2, "train.compile": True}, "cannot combine compile with experts"),
        ({EXPERTS: 2, "train.algorithm": "em"}, "cannot combine experts with em, which runs in one process"),
        ({"train.expert": 2}, "experts"),
    ],
)
def test_contradictions_are_found_before_a_training(routed: Path, settings: dict[str, Any], words: str) -> None:
    found = diagnose_training(routed, routed.with_suffix(".yaml"), settings)
    assert any(words in f"{each.text()} {each.advice()}" for each in found), found


def test_a_spec_without_pools_has_nothing_to_divide(spec: Path) -> None:
    (found,) = diagnose_training(spec, spec.with_suffix(".yaml"), {EXPERTS: 2})
    assert found.code == "MG881"


@pytest.mark.parametrize(
    ("processes", "experts", "words"),
    [
        (1, 2, "needs several processes"),
        (4, 3, "does not divide the number of processes, 4"),
        (2, 4, "does not divide"),
    ],
)
def test_the_number_of_processes_must_be_a_multiple(
    processes: int, experts: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    with pytest.raises(ModgraphError, match=words):
        refuse_experts(experts, resumes=False)
    if processes == 1:
        refuse_experts(experts, resumes=True)  # it holds all modules


def test_a_run_is_resumed_with_no_other_key(routed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--resume", "run", "-s", "train.batch=3"]) == 1
    assert "but for train.experts and train.strategy" in capsys.readouterr().err
