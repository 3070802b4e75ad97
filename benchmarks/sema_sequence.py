"""Compares SEMA on a sequence of tasks with no growth, with growth at every task, and with one adapter that keeps
learning.

    python benchmarks/sema_sequence.py --out runs/sema                        # 3 backbones, 12 sequences
    python benchmarks/sema_sequence.py --out runs/sema --seeds 1 --methods SEMA "no expansion"
    python benchmarks/sema_sequence.py --out runs/clothes --recipes fashion   # Fashion-MNIST, where it is installed

For each seed all methods start from one backbone, which is trained first; `-s` applies to the sequences. Finished runs
are not repeated, interrupted ones are resumed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from options import parse_options
from runs import add_settings, percent, read_settings, settings_of, train

from modgraph.data.batches import batch_of
from modgraph.inspect.cost import compute_cost
from modgraph.store.growth import read_growth
from modgraph.store.run_directory import RunDirectory
from modgraph.training.stored_run import load_run

SPEC, BACKBONE = Path("specs/sema.mod"), Path("specs/sema_backbone.mod")
RECIPES = {
    "digits": (Path("specs/sema_digits.yaml"), Path("specs/sema_backbone.yaml")),
    "fashion": (Path("specs/sema_fashion.yaml"), Path("specs/sema_backbone_fashion.yaml")),
}
ADAPTERS = ("blocks.*.adapter.*", "blocks.*.mixture.*")
METHODS: dict[str, dict[str, Any]] = {
    "SEMA": {},
    "no expansion": {"train.algorithm.expand": "never"},
    "expansion at every task": {"train.algorithm.expand": "always"},
    "one fine-tuned adapter": {"train.algorithm.expand": "never", "train.algorithm.learns": ADAPTERS},
}
MEASURED = {"Ā": "average_accuracy", "A_N": "last_accuracy", "forgetting": "forgetting"}


def trained(out: Path, seed: int, method: str, recipe: Path, given: dict[str, Any]) -> dict[str, float]:
    """Return the metrics of a method's run from the backbone of a seed, trained if it does not exist yet."""
    backbone = backbone_of(out, seed).absolute()
    settings = {**METHODS[method], "start.run": str(backbone), "train.seed": seed, **given}
    found = train(SPEC, recipe, settings, run_of(out, method, seed))
    print(f"{method}, seed {seed}: A_N {found['last_accuracy']:.3f}", file=sys.stderr, flush=True)
    return found


def backbone_of(out: Path, seed: int) -> Path:
    return out / f"backbone-{seed}"


def run_of(out: Path, method: str, seed: int) -> Path:
    return out / f"{method.replace(' ', '-')}-{seed}"


def accuracies(runs: dict[str, list[dict[str, float]]], out: Path, seeds: Sequence[int]) -> Iterator[str]:
    """Print the results of each method: accuracies and forgetting in %, and the number of adapters in the blocks that
    may grow."""
    yield f"| method | {' | '.join(MEASURED)} | task known | adapters |"
    yield "|---|" + "---|" * (len(MEASURED) + 2)
    for method, metrics in runs.items():
        places = [run_of(out, method, seed) for seed in seeds]
        cells = [percent([each[name] for each in metrics]) for name in MEASURED.values()]
        cells.append(percent([task_known(place) for place in places]))
        yield f"| {method} | {' | '.join(cells)} | {', '.join(map(adapters, places))} |"


@torch.no_grad()
def task_known(place: Path) -> float:
    """Compute the mean final accuracy on each task among its own classes."""
    run = load_run(place)
    model, test = run.model(), run.test_data()["test"]
    found = []
    for task in test.names_of_groups("task"):
        batch = batch_of(test, np.flatnonzero(test.groups["task"] == task))
        logits, classes = model(batch["image"]), batch["label"].unique()
        found.append((classes[logits[:, classes].argmax(1)] == batch["label"]).float().mean().item())
    return sum(found) / len(found)


def adapters(run: Path) -> str:
    """Count the final adapters in each block that may grow, as 1+2+1."""
    growth = read_growth(RunDirectory(run))
    assert growth is not None, "it has been trained on tasks"
    return "+".join(str(pool["modules"][-1]) for pool in growth["pools"].values())


def sizes(runs: dict[str, list[dict[str, float]]], out: Path, seeds: Sequence[int]) -> Iterator[str]:
    """Count the initial and final parameters of each method's models, averaged over seeds."""
    yield "| method | parameters at first | in the end | added |"
    yield "|---|---|---|---|"
    for method in runs:
        directories = [RunDirectory(run_of(out, method, seed)) for seed in seeds]
        first = [compute_cost(each.read_graph()).parameters for each in directories]
        last = [compute_cost(each.graph_now()).parameters for each in directories]
        before, after = (sum(each) / len(each) for each in (first, last))
        yield f"| {method} | {before:,.0f} | {after:,.0f} | {after - before:+,.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/sema"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="seeds, such as 0 1 2")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument(
        "--backbone", action="append", default=[], metavar="KEY=VALUE", help="overrides for the backbone's run"
    )
    parser.add_argument(
        "--recipes", choices=RECIPES, default="digits", help="name of the recipes of the backbone and of the sequence"
    )
    add_settings(parser)
    phases = [f"train.algorithm.phases.{name}.epochs=1" for name in ("functional", "descriptors")]
    options = parse_options(parser, seeds=[0], methods=["SEMA"], settings=phases, backbone=["train.epochs=1"])
    options.out.mkdir(parents=True, exist_ok=True)
    recipe, of_backbone = RECIPES[options.recipes]
    for seed in options.seeds:
        settings = {"train.seed": seed, **read_settings(options.backbone)}
        train(BACKBONE, of_backbone, settings, backbone_of(options.out, seed))
    runs = {
        method: [trained(options.out, seed, method, recipe, settings_of(options)) for seed in options.seeds]
        for method in options.methods
    }
    for table in (accuracies, sizes):
        print("\n".join(table(runs, options.out, options.seeds)), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
