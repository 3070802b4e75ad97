"""What is read of runs and sweeps: every folder below one, damaged ones with their reason, nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.inspect.cost import compute_cost
from modgraph.tables.collect import collect, read_run
from modgraph.tables.keys import find_differences
from tests.tables.runs_for_tables import HISTORY, build_graph, write_run, write_sweep


def test_a_run_gives_its_settings_metrics_costs_and_seconds(tmp_path: Path) -> None:
    write_run(tmp_path / "a", experts=4, seed=3, metrics={"test.accuracy": 0.9}, history=HISTORY, seconds=12.5)
    (run,) = collect([tmp_path])
    assert (run.name, run.state, run.model) == ("a", "finished", "net"), run
    wanted = {"experts": 4, "train.seed": 3, "train.optimizer.lr": 0.001, "test.accuracy": 0.9, "seconds": 12.5}
    wanted |= {"train.total_loss": 0.5, "steps": 20, "epochs": 2}
    assert {key: run.find(key) for key in wanted} == wanted, "each by its own name"
    counts = compute_cost(build_graph(4)).counts
    assert {name: run.costs[name] for name in counts} == counts, "as modgraph cost counts them"


def test_parameters_have_their_defaults(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    assert read_run(folder).find("experts") == 2


def test_runs_are_found_at_any_depth_in_the_order_of_numbers(tmp_path: Path) -> None:
    for name in ("e=16", "e=2", "deep/er/one", ".hidden/x"):
        write_run(tmp_path / name)
    write_run(tmp_path / "e=2/checkpoints/inside")
    assert [run.name for run in collect([tmp_path])] == ["deep/er/one", "e=2", "e=16"]
    assert [run.name for run in collect([tmp_path / "e=2"])] == ["e=2"], "the folder itself is a run"
    assert len(collect([tmp_path, tmp_path / "e=2"])) == 3, "each once"


def break_record(folder: Path) -> None:
    (folder / "run.json").write_text((folder / "run.json").read_text().replace("0.9", "0.95"))


def remove_record(folder: Path) -> None:
    (folder / "run.json").unlink()


def change_recipe(folder: Path) -> None:
    (folder / "recipe.yaml").write_text("train: {epochs: 1}")


def add_line(folder: Path) -> None:
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 30, "split": "train"}\n')


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (break_record, "run.json is damaged"),
        (remove_record, "its run.json is missing"),
        (change_recipe, "missing or changed: recipe.yaml"),
        (add_line, "its logs have changed"),
    ],
)
def test_a_damaged_run_is_listed_with_its_reason(damage: object, reason: str, tmp_path: Path) -> None:
    write_run(tmp_path / "good")
    folder = write_run(tmp_path / "bad", metrics={"test.accuracy": 0.9}, history=HISTORY)
    damage(folder)  # type: ignore[operator]
    bad, good = collect([tmp_path])
    assert good.state == "finished", "the others are read"
    assert bad.state == "damaged" and reason in bad.reason, bad.reason


def test_any_cut_of_any_file_is_listed_and_never_raises(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", metrics={"test.accuracy": 0.9}, history=HISTORY)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for size in {0, 1, len(content) // 2, len(content) - 2}:
            path.write_bytes(content[:size])
            (run,) = collect([tmp_path])
            assert run.state == "damaged" and run.reason, f"{path.name} cut to {size} bytes: {run.state}"
        path.write_bytes(content)
    assert collect([tmp_path])[0].state == "finished", "as it was"


def test_nothing_is_written(tmp_path: Path) -> None:
    write_run(tmp_path / "a", history=HISTORY)
    write_run(tmp_path / "b", status="started", history=HISTORY)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    collect([tmp_path])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_an_unfinished_run_has_the_metrics_of_its_log(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", status="started", history=HISTORY)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 30, "epo')  # still being written
    run = read_run(folder)
    assert (run.state, run.find("train.total_loss"), run.find("steps")) == ("unfinished", 0.5, 20)


POINTS = [
    {"run": "a", "sweep": "s", "label": "two", "values": {"experts": 2, "train.seed": 0}, "about": {"paper": 44.6}},
    {"run": "b", "sweep": "s", "label": "four", "values": {"experts": 4, "train.seed": 0}},
    {"run": "c", "sweep": "s", "label": "eight", "values": {"experts": 8, "train.seed": 0}},
    {"run": "d", "sweep": "t", "label": "same", "values": {"experts": 2, "train.seed": 0}},
    {"run": "e", "sweep": "s", "label": "two", "values": {"experts": 2, "train.seed": 0}},
]


def test_points_of_a_sweep_have_its_facts_whatever_their_state(tmp_path: Path) -> None:
    write_sweep(tmp_path, POINTS, repeats={"d": "a", "e": "a"})
    write_run(tmp_path / "a")
    write_run(tmp_path / "other")
    failures = [{"run": "b", "identity": "b", "codes": ["MG720"], "message": m} for m in ("old", "it diverged")]
    (tmp_path / "failures.jsonl").write_text("".join(json.dumps(each) + "\n" for each in failures) + '{"run": "c"')
    runs = {(run.sweep, run.name): run for run in collect([tmp_path])}
    states = {key: run.state for key, run in runs.items()}
    assert states == {
        ("s", "a"): "finished",
        ("s", "b"): "failed",
        ("s", "c"): "planned",
        ("t", "d"): "finished",
        ("", "other"): "finished",
    }, "a point that repeats one of another sweep counts there, one of its own row does not count twice"
    assert runs["s", "b"].reason == "MG720 it diverged", "the newest failure"
    assert runs["s", "a"].find("paper") == 44.6 and runs["s", "a"].find("about.paper") == 44.6
    assert runs["t", "d"].path == runs["s", "a"].path, "the run that it repeats"


def test_a_run_inside_of_a_sweep_has_the_facts_of_its_point(tmp_path: Path) -> None:
    write_sweep(tmp_path, POINTS[:2])
    write_run(tmp_path / "a")
    (run,) = collect([tmp_path / "a"])
    assert (run.sweep, run.label) == ("s", "two")


def test_the_start_of_a_run_is_described_without_its_seed(tmp_path: Path) -> None:
    points = [{"run": f"first/{n}", "sweep": "s", "values": {"experts": 2, "train.seed": n}} for n in (0, 1)]
    write_sweep(tmp_path, points)
    for seed in (0, 1):
        start = write_run(tmp_path / f"first/{seed}", seed=seed)
        write_run(tmp_path / f"then/{seed}", seed=seed, start=start)
    runs = [run for run in collect([tmp_path]) if run.name.startswith("then")]
    assert {run.start for run in runs} == {"s experts=2"}
    assert find_differences(runs) == [], "they differ in their seeds alone"


def test_a_damaged_record_of_a_sweep_says_so(tmp_path: Path) -> None:
    write_sweep(tmp_path, POINTS)
    path = tmp_path / "sweep.json"
    path.write_text(path.read_text().replace("44.6", "54.6"))
    with pytest.raises(ModgraphError) as caught:
        collect([tmp_path])
    assert caught.value.diagnostics[0].code == "MG920", caught.value
