"""Several processes on one batch: the result of one process, up to the order of sums; checkpoints go both ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from modgraph import load
from modgraph.backends.torch.instance import units
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.ir import grow
from modgraph.store.growth import read_edits
from modgraph.store.journal import Journal
from modgraph.store.run_directory import RunDirectory
from modgraph.training.continual import Continual
from modgraph.training.run import start_run
from modgraph.training.sections import Train
from modgraph.training.state import train_state
from tests import continual_runs
from tests.several_processes import close, run_two, with_forks, with_torchrun
from tests.small_runs import begin, go_on

SPEC = """
model net() {
  input  image: float[1, 8, 8]
  input  seen: float[time, 3]
  target label: class[10]
  target size: float[2]
  state  warmth: float = constant(4)
  pool   expert[3] = linear(24) -> relu -> linear(24)
  pool   other[3] = linear(24)
  router choose = noisy_top_k(2)
  weight sharpness: float = constant(1.5)  # a single number
  state  offset: float[other] = zeros
  state  shares: float[other, 30] = zeros
  x = image -> conv(6, kernel=3) -> batch_norm -> relu -> tokens -> dropout(0.2) -> expert by choose
  scores = sharpness * (x -> linear(other))
  taken = (scores, scores + offset + (scores -> normal_noise(0.1)) -> sinkhorn(3) -> top_k) -> within_capacity(0.8)
  share = taken -> batch_mean(-2)
  next shares = (shares, taken -> mean(axis=-2)) -> keep_recent
  next offset = offset + 0.1 * (((share -> mean(axis=-1)) - share) -> sign)
  late = seen + (seen -> normal_noise(0.1)) -> dropout(0.2) -> mean -> linear(10)  # noise as long as the longest
  logits = late + (x + (x -> other by ((scores -> softmax) * taken)) -> mean -> linear(10))
  output logits
  loss cross_entropy(logits / warmth, label)
  loss mse(x -> mean -> linear(2), size)
  loss 0.1 * (x -> batch_variance(-2) -> mean(axis=-1))
  loss 0.1 * importance(choose)
  loss 0.1 * load(choose)
  loss 0.01 * importance(choose, over="example")
  loss balance = 0.1 * sum(batch_mean(choose.gates) ** 2, axis=-1)
}
"""


@pytest.fixture
def routed(spec: Path) -> Path:
    """Noise, dropout, sums and statistics over the batch, a state, a capacity; lengths by which batches are made; and a
    batch of a single example."""
    spec.write_text(SPEC)
    data = np.load(spec.with_name("digits.npz"))
    size = np.where(np.arange(101)[:, None] % 7 < 2, [1, np.nan], np.nan)  # some parts of batches have none
    lengths, seen = np.arange(101) * 7 % 9, data["image"][:101, 0, :, :3]
    np.savez(
        spec.with_name("digits.npz"),
        image=data["image"][:101],
        label=np.where(np.arange(101) % 3, data["label"][:101], -1),
        size=size,
        seen=seen,
        time_length=np.minimum(lengths, 8),
    )
    recipe = spec.with_suffix(".yaml")
    tasks = "losses: {mse: 0.5}, labels: {label: {missing: true}, size: {missing: true}}, states: {warmth: cosine}"
    text = recipe.read_text().replace("batch: 50", f"batch: 20, bucket: 2, clip: 1.0, validation: 0.25, {tasks}")
    recipe.write_text(text)
    return spec


@pytest.mark.parametrize(
    ("strategy", "with_two"),
    [
        ("fsdp", with_forks),
        *(pytest.param("ddp", each, marks=pytest.mark.slow) for each in (with_forks, with_torchrun)),
    ],
)
def test_two_processes_give_what_one_gives_and_one_goes_on_from_where_they_were(
    routed: Path, tmp_path: Path, strategy: str, with_two: Callable[..., None]
) -> None:
    begin(routed, tmp_path / "one", train__precision="float64")
    settings = ("-s", "train.precision=float64", "-s", "train.checkpoint_every=3", "-s", f"train.strategy={strategy}")
    with_two(routed, "--out", tmp_path / "two", *settings, "-s", "train.pools=stored")  # as the one does not
    close(tmp_path / "two", tmp_path / "one")
    for name in sorted(path.name for path in (tmp_path / "two/checkpoints").iterdir())[-2:]:
        (tmp_path / "two/checkpoints" / name).unlink()
    go_on(tmp_path / "two")
    close(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
def test_all_stop_where_the_data_have_changed(routed: Path, tmp_path: Path) -> None:
    begin(routed, tmp_path / "run", train__epochs=1)
    data = dict(np.load(routed.with_name("digits.npz")))
    np.savez(routed.with_name("digits.npz"), **{**data, "image": data["image"][::-1]})
    done = run_two("-m", "modgraph", "train", "--resume", tmp_path / "run")
    assert done.returncode == 1
    assert done.stderr.count("error[MG620]: the data of") == 2 * 3  # of each process, for each split


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_all_processes_stop_where_the_loss_of_one_is_no_number(routed: Path, tmp_path: Path, strategy: str) -> None:
    """One example, which only one of them sees, is too large for any sum: the other would wait for it for ever."""
    data = dict(np.load(routed.with_name("digits.npz")))
    data["image"][:] = np.where(np.arange(101)[:, None, None, None] == 50, 3e38, data["image"])
    np.savez(routed.with_name("digits.npz"), **data)
    settings = ("-s", "train.validation=0.0", "-s", "data.test_fraction=0.05", "-s", f"train.strategy={strategy}")
    done = run_two("-m", "modgraph", "train", routed, "--out", tmp_path / "run", *settings)
    assert done.returncode == 1, done.stderr
    assert "error[MG604]: the loss is nan at step" in done.stderr
    assert "Traceback" not in done.stderr.split("torch/distributed")[0]


@pytest.mark.slow
def test_a_model_grows_the_same_way_in_two_processes(tmp_path: Path) -> None:
    spec = continual_runs.lay_out_run(tmp_path)
    begin(spec, tmp_path / "one", train__precision="float64")
    with_forks(spec, "--out", tmp_path / "two", "-s", "train.precision=float64")
    close(tmp_path / "two", tmp_path / "one")
    hashes = [
        [line["hash"] for line in Journal(RunDirectory(tmp_path / run).growth).read(read_edits)]
        for run in ("one", "two")
    ]
    assert hashes[0] == hashes[1] and len(hashes[0]) == 5


# ------------------------------------------------------------ weights that are divided

DIVIDED = """
import sys
from modgraph.training.run import finish, start_run

with start_run(sys.argv[1], None, {"train.strategy": "fsdp", "train.precision": "float64"}, sys.argv[2]) as engine:
    finish(engine)
    own = {name: each.to_local() for name, each in engine.state.named.items()}
    states = engine.state.optimizer.state_dict()["state"].values()
    kept = sum(each["exp_avg"].to_local().numel() for each in states)
    whole = engine.state.weights
    sizes = [sum(each.numel() for each in own.values()), kept, sum(whole[name].numel() for name in own)]
    parts = engine.processes.gather(sizes)
    if engine.processes.is_rank_zero:
        print("sizes", *(size for part in parts for size in part))
"""


@pytest.mark.slow
def test_each_process_keeps_its_part_and_the_run_is_one_like_any_other(routed: Path, tmp_path: Path) -> None:
    begin(routed, tmp_path / "one", train__precision="float64")
    (tmp_path / "script.py").write_text(DIVIDED)
    done = run_two(tmp_path / "script.py", routed, tmp_path / "two")
    assert done.returncode == 0, done.stderr
    printed = [int(each) for each in done.stdout.partition("sizes")[2].split()]
    sizes = [printed[:3], printed[3:]]
    assert {whole for _, _, whole in sizes} == {sum(own for own, _, _ in sizes)} == {sum(kept for _, kept, _ in sizes)}
    assert all(own < 0.6 * whole and kept == own for own, kept, whole in sizes)
    close(tmp_path / "two", tmp_path / "one")
    # taken up by two again, from where one was
    for name in sorted(path.name for path in (tmp_path / "two/checkpoints").iterdir())[-2:]:
        (tmp_path / "two/checkpoints" / name).unlink()
    with_forks("--resume", tmp_path / "two")
    close(tmp_path / "two", tmp_path / "one")
    assert main(["eval", str(tmp_path / "two"), "--json"]) == 0
    assert main(["export", str(tmp_path / "two"), "-o", str(tmp_path / "two.onnx")]) == 0


ROUNDS = """
model net() {
  input  image: float[1, 8, 8]
  target label: class[10]
  x = image -> flatten -> linear(16)
  repeat layer[i] in 0..3 {
    h[i] = x -> linear(16) -> relu
    x = x + h[i]
  }
  logits = x -> linear(10)
  output logits
  loss cross_entropy(logits, label)
}
"""


@pytest.mark.slow
def test_rounds_that_are_divided_by_themselves_compute_what_one_process_does(spec: Path, tmp_path: Path) -> None:
    spec.write_text(ROUNDS)
    assert len([*units(load(spec).build())]) == 3, "a unit for each round"
    begin(spec, tmp_path / "one", train__precision="float64")
    with_forks(spec, "--out", tmp_path / "two", "-s", "train.precision=float64", "-s", "train.strategy=fsdp")
    close(tmp_path / "two", tmp_path / "one")


def test_a_model_that_has_grown_is_not_divided(routed: Path, tmp_path: Path) -> None:
    with start_run(str(routed), None, {}, str(tmp_path / "run")) as engine:
        checkpoint, processes = engine.checkpoint(), engine.processes
        processes.divides = True
        with pytest.raises(ModgraphError) as caught:
            train_state(grow(engine.graph, "expert", 1), engine.train, engine.phase, processes, checkpoint)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "MG880"


def test_a_training_that_may_grow_is_not_divided() -> None:
    assert "may grow" in (Train(strategy="fsdp", algorithm=Continual()).contradiction() or "")
