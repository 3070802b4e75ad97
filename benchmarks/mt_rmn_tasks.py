"""Compares MT-RMN on a multi-task LSTM with that LSTM by itself, with an LSTM for each task, and with rrn-RMN. It also
measures the value of its encoder for an unseen task.

    python benchmarks/mt_rmn_tasks.py --out runs/weather [--quick]               # three seeds of each method
    python benchmarks/mt_rmn_tasks.py --out runs/tags --recipe specs/mt_rmn_tagging.yaml -s data.train=it.conllu
    python benchmarks/mt_rmn_tasks.py --out runs/weather --unseen wind --examples data.stride=364,91,28,7

All methods have about as many parameters as MT-RMN, by the width of their LSTMs. `--unseen` is a task that the encoder
is trained without, `--examples` a key of the recipe with values for few labelled sequences to many. Finished runs are
not repeated, interrupted ones are resumed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from options import parse_options
from runs import add_settings, settings_of, train

from modgraph.cli import main as main_of_modgraph
from modgraph.declare import format_value
from modgraph.elaboration import read_value
from modgraph.program import load
from modgraph.training.recipe import key_overrides, read_recipe

SPEC = Path("specs/mt_rmn.mod")
WITHOUT: dict[str, Any] = {"attached": False, "train.states": None}
METHODS: dict[str, dict[str, Any]] = {
    "MT-RMN": {},
    "rrn-RMN": {"recursive": True},
    "multi-task LSTM": WITHOUT,
    "an LSTM for each task": WITHOUT,
}
TRANSFERS: dict[str, dict[str, Any]] = {
    "trained encoder": {"frozen_encoder": True},
    "untrained encoder": {"frozen_encoder": True},
    "LSTM alone": WITHOUT,
}
WIDEST = 400


@dataclass(frozen=True)
class Benchmark:
    """A recipe with the values of `-s`, and the folder of its runs."""

    recipe: Path
    given: dict[str, Any]
    out: Path

    @property
    def model(self) -> dict[str, Any]:
        """The parameters of the spec."""
        return dict(read_recipe(self.recipe, key_overrides(self.given)).model)

    @property
    def tasks(self) -> dict[str, int]:
        """The number of classes of each task."""
        return dict(zip(self.model["tasks"], self.model["classes"], strict=True))

    def of_tasks(self, names: list[str]) -> Benchmark:
        """Restrict the benchmark to some tasks: drops the recipe's labels of the others."""
        record = yaml.safe_load(self.recipe.read_text())
        record["model"] |= {"tasks": names, "classes": [self.tasks[name] for name in names]}
        for section, key in (("data", "targets"), ("train", "metrics"), ("train", "labels")):
            said = record[section].get(key) or {}
            record[section][key] = {each: value for each, value in said.items() if each.removeprefix("label.") in names}
        path = self.out / f"{'-'.join(names)}.yaml"
        path.write_text(yaml.safe_dump(record, sort_keys=False))
        return replace(self, recipe=path)

    def parameters(self, settings: dict[str, Any]) -> int:
        """Count the parameters of a model."""
        own = {name: value for name, value in {**self.given, **settings}.items() if "." not in name}
        return load(SPEC, **{**self.model, **own}).cost().parameters

    def as_wide_as_cells(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Make sub-encoders that read each other as wide as the cells."""
        if not settings.get("recursive"):
            return settings
        return {**settings, "widths": [*self.model["widths"][:-1], self.model["hidden"]]}

    def fitted(self, settings: dict[str, Any], budget: float) -> dict[str, Any]:
        """Choose the width of the LSTM for this number of parameters."""
        low, high = 1, WIDEST
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.parameters({**settings, "state": middle}) < budget else (low, middle)
        width = min((max(1, low - 1), low), key=lambda each: abs(self.parameters({**settings, "state": each}) - budget))
        return {**settings, "state": width}

    def place(self, name: str, seed: int) -> Path:
        """Return the folder of a run."""
        return self.out / f"{name.replace(' ', '-')}-{seed}"

    def trained(self, name: str, seed: int, settings: dict[str, Any]) -> dict[str, float]:
        """Return the metrics of a run, trained if it does not exist yet."""
        place = self.place(name, seed)
        found = train(SPEC, self.recipe, {**self.given, **settings, "train.seed": seed}, place)
        print(f"{place.name}: total loss {found['test.total_loss']:.4f}", file=sys.stderr, flush=True)
        return found


def compared(benchmark: Benchmark, seeds: list[int]) -> Iterator[str]:
    """Compute each method's metrics of each task, mean and standard deviation over seeds."""
    budget = benchmark.parameters({})
    rows: dict[str, tuple[int, list[dict[str, float]]]] = {}
    for method, settings in METHODS.items():
        if method == "an LSTM for each task":
            rows[method] = _one_per_task(benchmark, budget, seeds)
            continue
        own = benchmark.fitted(benchmark.as_wide_as_cells(settings), budget)
        runs = [benchmark.trained(method, seed, own) for seed in seeds]
        rows[method] = benchmark.parameters(own), runs
    yield from table(rows)


def _one_per_task(benchmark: Benchmark, budget: int, seeds: list[int]) -> tuple[int, list[dict[str, float]]]:
    """Train a model for each task, together with as many parameters as one model for all tasks."""
    each = {task: benchmark.of_tasks([task]) for task in benchmark.tasks}
    settings = {**WITHOUT, "embedded": max(1, benchmark.model.get("embedded", 50) // len(each))}
    own = {task: of_one.fitted(settings, budget / len(each)) for task, of_one in each.items()}
    found = []
    for seed in seeds:
        runs = {task: of_one.trained(f"{task} alone", seed, own[task]) for task, of_one in each.items()}
        found.append(
            {
                f"test.label.{task}.{measure}": run[f"test.{measure}"]
                for task, run in runs.items()
                for measure in MEASURES
                if f"test.{measure}" in run
            }
        )
    return sum(of_one.parameters(own[task]) for task, of_one in each.items()), found


MEASURES = ("accuracy", "f1", "auc", "mse")


def table(rows: dict[str, tuple[int, list[dict[str, float]]]]) -> Iterator[str]:
    """Print a row for each method: parameters, metrics of each task, and their mean over tasks."""
    first = next(iter(rows.values()))[1][0]
    own = [name for name in first if name.startswith("test.label.") and name.rpartition(".")[2] in MEASURES]
    columns = [name.removeprefix("test.label.") for name in own]
    yield f"| method | parameters | {' | '.join(columns)} |"
    yield "|---|" + "---|" * (len(columns) + 1)
    for method, (parameters, runs) in rows.items():
        cells = [mean_and_deviation([run[name] for run in runs]) for name in own]
        yield f"| {method} | {parameters:,} | {' | '.join(cells)} |"


def mean_and_deviation(values: list[float]) -> str:
    """Format mean and standard deviation."""
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{spread}"


def transferred(benchmark: Benchmark, unseen: str, key: str, values: list[Any], seeds: list[int]) -> Iterator[str]:
    """Compute the loss of the unseen task by the number of labelled sequences."""
    seen = benchmark.of_tasks([task for task in benchmark.tasks if task != unseen])
    new = benchmark.of_tasks([unseen])
    budget = new.parameters({})
    yield f"| {key} | {' | '.join(TRANSFERS)} |"
    yield "|---|" + "---|" * len(TRANSFERS)
    for value in values:
        cells = []
        for method, settings in TRANSFERS.items():
            own = {**settings, key: value}
            own = own if settings.get("frozen_encoder") else new.fitted(own, budget)
            before = seen if method == "trained encoder" else None
            name = f"{unseen} by {method} of {value}"
            cells.append(mean_and_deviation([_of_unseen(new, before, name, own, seed) for seed in seeds]))
        yield f"| {value} | {' | '.join(cells)} |"


def _of_unseen(new: Benchmark, seen: Benchmark | None, name: str, settings: dict[str, Any], seed: int) -> float:
    """Compute the loss of the unseen task on the test data."""
    (task,) = new.tasks
    if seen is not None:
        seen.trained(f"without {task}", seed, {})
        migrate(seen.place(f"without {task}", seed), new, {**settings, "train.seed": seed}, new.place(name, seed))
    found = new.trained(name, seed, settings)
    return found.get(f"test.loss.task.{task}", found["test.total_loss"])  # an LSTM has no other loss


def migrate(source: Path, new: Benchmark, settings: dict[str, Any], out: Path) -> None:
    """Migrate a run to another task, unless that exists."""
    if out.exists():
        return
    given = [f"-s{name}={format_value(value)}" for name, value in {**new.given, **settings}.items()]
    command = ["migrate", str(source), "--to", str(SPEC), "--out", str(out), "--recipe", str(new.recipe), *given]
    command += ["--fresh", "shared"]  # the task has an LSTM of its own, and the encoder
    with contextlib.redirect_stdout(io.StringIO()):
        if main_of_modgraph(command):
            raise SystemExit(f"modgraph {' '.join(command)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/weather"))
    parser.add_argument("--recipe", type=Path, default=Path("specs/mt_rmn_weather.yaml"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="seeds, such as 0 1 2")
    parser.add_argument("--unseen", metavar="TASK", help="a task that the encoder is trained without")
    parser.add_argument(
        "--examples", default="data.stride=364,91,28,7", metavar="KEY=VALUES", help="number of labelled examples"
    )
    add_settings(parser)
    options = parse_options(parser, seeds=[0], settings=["train.epochs=1", "data.stride=364"])
    options.out.mkdir(parents=True, exist_ok=True)
    benchmark = Benchmark(options.recipe, settings_of(options), options.out)
    if options.unseen is None:
        print("\n".join(compared(benchmark, options.seeds)))
        return
    key, _, values = options.examples.partition("=")
    print(
        "\n".join(transferred(benchmark, options.unseen, key, list(map(read_value, values.split(","))), options.seeds))
    )


if __name__ == "__main__":
    main()
