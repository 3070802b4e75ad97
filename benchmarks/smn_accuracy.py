"""Measures how the Scalable Modular Network generalises and adapts, and compares it with its paper: the tables of
docs/results.md.

    python benchmarks/smn_accuracy.py --out runs/smn_accuracy            # an hour on one core
    python benchmarks/smn_accuracy.py --out runs/quick --seeds 1 -s data.train=2000 -s train.epochs=2

Every run is an ordinary run directory of `modgraph train`. Finished runs are not repeated.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from options import parse_options
from runs import add_settings, percent, settings_of, train

SMN, PARITY = Path("specs/smn.mod"), Path("specs/smn_parity.mod")
ROUTER = "agreement(iterations, bias=bias, update=update, residual=residual)"


@dataclass(frozen=True)
class Variant:
    """smn.mod with another router, and the paper's accuracy out of distribution."""

    paper: float
    router: str = ROUTER
    settings: dict[str, Any] = field(default_factory=dict)


VARIANTS = {
    "agreement, T = 0": Variant(44.6, settings={"iterations": 0}),
    "agreement, T = 2": Variant(47.6, settings={"iterations": 2}),
    "agreement, T = 4": Variant(54.5, settings={"iterations": 4}),
    "noisy top-1": Variant(42.9, "noisy_top_k(1) loss balance * load(agree)", {"balance": 0.01, "over": "batch"}),
    "truncated kernel": Variant(43.8, "truncated_kernel()", {"balance": 0.0}),
}
TRAINING = {"train.epochs": 10}
ADAPTING = {"data.in_distribution": 2000, "data.per_test_pair": 100}


def generalisation(out: Path, seeds: int, given: dict[str, Any]) -> Iterator[str]:
    """Measure the accuracy on training pairs of digits and on unseen pairs."""
    yield "| router | in distribution | out of distribution | paper |\n|---|---|---|---|"
    for name, variant in VARIANTS.items():
        spec = out / f"{named(name)}.mod"
        spec.write_text(SMN.read_text().replace(ROUTER, variant.router))
        settings = {**variant.settings, **TRAINING, **given}
        runs = [
            train(spec, SMN.with_suffix(".yaml"), {**settings, "train.seed": seed}, out / f"{named(name)}-{seed}")
            for seed in range(seeds)
        ]
        yield f"| {name} | {both(runs)} | {variant.paper} |"


def adaptation(out: Path, seeds: int, draws: int, given: dict[str, Any]) -> Iterator[str]:
    """Measure parity from few labels: a new head only, by rounds of agreement."""
    yield "| labels | T | in distribution | out of distribution |\n|---|---|---|---|"
    for labels, iterations in product((15, 30, 60), (0, 2, 4)):
        runs = parity(out, seeds, draws, {"iterations": iterations, "data.labelled": labels, "added": 0, **given})
        yield f"| {labels} | {iterations} | {both(runs)} |"


def growth(out: Path, seeds: int, draws: int, given: dict[str, Any]) -> Iterator[str]:
    """Measure parity from 30 labels, T = 4: by the number of added modules, with the router frozen and trained."""
    yield "| added | router | in distribution | out of distribution |\n|---|---|---|---|"
    for tuned, added in product((False, True), (0, 2, 4)):
        settings = {"iterations": 4, "data.labelled": 30, "added": added, "tune_router": tuned}
        runs = parity(out, seeds, draws, {**settings, **given})
        yield f"| {added} | {'tuned' if tuned else 'frozen'} | {both(runs)} |"


def parity(out: Path, seeds: int, draws: int, settings: dict[str, Any]) -> list[dict[str, float]]:
    """Train runs that start from each trained one, with several choices of the labelled examples."""
    name = "parity-" + "-".join(str(value) for value in settings.values())
    return [
        train(
            PARITY,
            PARITY.with_suffix(".yaml"),
            {
                **ADAPTING,
                **settings,
                "start.run": str(out / f"agreement-T-{settings['iterations']}-{seed}"),
                "data.labelled_seed": draw,
                "train.seed": seed,
            },
            out / f"{named(name)}-{seed}-{draw}",
        )
        for seed, draw in product(range(seeds), range(draws))
    ]


def named(title: str) -> str:
    """Turn a title into the name of a folder."""
    return "-".join("".join(char if char.isalnum() else " " for char in title).split())


def both(runs: list[dict[str, float]]) -> str:
    """Format mean and standard deviation of both accuracies in percent."""
    return " | ".join(percent([run[f"{split}.accuracy"] for run in runs]) for split in SPLITS)


SPLITS = ("in_distribution", "out_of_distribution")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/smn_accuracy"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=3, help="choices of the labelled examples for each seed")
    add_settings(parser)
    options = parse_options(parser, seeds=1, draws=1, settings=["data.train=200", "train.epochs=1"])
    options.out.mkdir(parents=True, exist_ok=True)
    given = settings_of(options)
    for lines in (
        generalisation(options.out, options.seeds, given),
        adaptation(options.out, options.seeds, options.draws, given),
        growth(options.out, options.seeds, options.draws, given),
    ):
        print()
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
