"""Trains Modular Networks by EM and other algorithms, and compares them with their paper: the tables of
docs/results.md.

    python benchmarks/modular_networks.py toy --out runs/modular_networks        # a quarter of an hour on one core
    python benchmarks/modular_networks.py language --out runs/modular_networks   # an hour on one core

Every run is an ordinary run directory of `modgraph train`. Finished runs are not repeated.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from options import parse_options
from runs import add_settings, settings_of, train

TOY, LANGUAGE = Path("specs/modular_networks.mod"), Path("specs/modular_networks_lm.mod")
ROUTER = "categorical(slots)"
SOLVED = {"mse": 1e-3, "H_a": 0.02, "H_b": 0.68}


@dataclass(frozen=True)
class Variant:
    """The language model with another router, the algorithm, and the paper's perplexity for M = 5 and 15."""

    paper: tuple[float | None, float | None]
    router: str = ROUTER
    settings: dict[str, Any] = field(default_factory=dict)


VARIANTS = {
    "EM": Variant((236.8, 229.7)),
    "REINFORCE": Variant((240.5, 240.8), settings={"train.algorithm": "reinforce"}),
    "noisy top-4": Variant(
        (338.3, 422.6), "noisy_top_k(4) loss 0.01 * importance(controller)", {"train.algorithm": "backprop"}
    ),
    "the same module": Variant((247.4, None), "fixed(slots)", {"train.algorithm": "backprop"}),
}


def toy(out: Path, seeds: int, restarts: int, given: dict[str, Any]) -> Iterator[str]:
    """Train the regression on fresh data for every seed. Of several starts the one with the best training loss
    counts."""
    yield "| seed | starts that solve it | of the chosen: mse | H_a | H_b | solved |\n|---|---|---|---|---|---|"
    count = 0
    for seed in range(seeds):
        runs = []
        for start in range(restarts):
            settings = {"data.seed": 100 + seed, "train.seed": 1000 * seed + start, **given}
            metrics = train(TOY, TOY.with_suffix(".yaml"), settings, out / f"toy-{seed}-{start}")
            runs.append((training_loss(out / f"toy-{seed}-{start}"), metrics))
        solved = sum(solves(metrics) for _, metrics in runs)
        best = min(runs, key=lambda run: run[0])[1]
        count += solves(best)
        found = f"{best['test.mse']:.1e} | {best['test.H_a']:.4f} | {best['test.H_b']:.4f}"
        yield f"| {seed} | {solved} of {restarts} | {found} | {'yes' if solves(best) else 'no'} |"
    yield f"\nsolved: {count} of {seeds}"


def training_loss(run: Path) -> float:
    """Read the loss of the last epoch on the training data."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return float([line["total_loss"] for line in lines if line["split"] == "train"][-1])


def solves(metrics: dict[str, float]) -> bool:
    """Whether a run separates the two maps: both learnt, each decision certain, both modules used."""
    low = all(metrics[f"test.{name}"] < SOLVED[name] for name in ("mse", "H_a"))
    return low and metrics["test.H_b"] > SOLVED["H_b"]


def language(out: Path, seeds: int, given: dict[str, Any]) -> Iterator[str]:
    """Train the language model, K = 1, with equal steps and parameters."""
    yield "| | M | perplexity | H_a | H_b | paper |\n|---|---|---|---|---|---|"
    for modules, (name, variant) in product((5, 15), VARIANTS.items()):
        spec = out / f"{name.replace(' ', '-')}.mod"
        spec.write_text(LANGUAGE.read_text().replace(ROUTER, variant.router))
        settings = {"modules": modules, **variant.settings, **given}
        runs = [
            train(
                spec,
                LANGUAGE.with_suffix(".yaml"),
                {**settings, "train.seed": seed},
                out / f"{name.replace(' ', '-')}-{modules}-{seed}",
            )
            for seed in range(seeds)
        ]
        columns = " | ".join(spread(runs, f"test.{metric}") for metric in ("perplexity", "H_a", "H_b"))
        yield f"| {name} | {modules} | {columns} | {variant.paper[modules == 15] or ''} |"


def spread(runs: list[dict[str, float]], metric: str) -> str:
    """Format mean and standard deviation; nothing without a measurement."""
    values = [run[metric] for run in runs if metric in run]
    if not values:
        return ""
    digits = 1 if metric.endswith("perplexity") else 2
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{deviation}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("toy", "language"))
    parser.add_argument("--out", type=Path, default=Path("runs/modular_networks"))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--restarts", type=int, default=3, help="initialisations of the regression for each seed")
    add_settings(parser)
    quick = {"train.epochs": 1, "train.steps_per_epoch": 2}
    options = parse_options(parser, seeds=1, restarts=1, settings=[f"{k}={v}" for k, v in quick.items()])
    options.out.mkdir(parents=True, exist_ok=True)
    given = settings_of(options)
    lines = (
        toy(options.out, options.seeds or 10, options.restarts, given)
        if options.what == "toy"
        else language(options.out, options.seeds or 3, given)
    )
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
