"""Compares a mixture of experts with the plain transformer on unseen domains: leave one domain out.

    python benchmarks/rotated_digits.py --out runs/rotated_digits           # 36 trainings of about a minute each
    python benchmarks/rotated_digits.py --out runs/quick --seeds 1 -s train.epochs=2

Each of the six angles is held out in turn. The best epoch has the highest mean validation accuracy on the five others,
as in DomainBed's train-validation selection. Finished runs are not repeated, interrupted ones are resumed.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from options import parse_options
from runs import add_settings, percent, settings_of, train

from modgraph.data.digits import ANGLES

SPEC = Path("specs/gmoe_digits.mod")
MODELS: dict[str, dict[str, Any]] = {"mixture of experts": {}, "plain transformer": {"sparse": ()}}


def table(out: Path, seeds: int, given: dict[str, Any]) -> Iterator[str]:
    """Print the accuracy on each held-out domain, their mean over the domains, and that on the training domains."""
    yield f"| model | {' | '.join(f'{angle}°' for angle in ANGLES)} | mean | in domain |"
    yield "|---|" + "---|" * (len(ANGLES) + 2)
    for name, settings in MODELS.items():
        runs = {
            (angle, seed): train(
                SPEC,
                SPEC.with_suffix(".yaml"),
                {**settings, **given, "data.held_out": angle, "train.seed": seed, "data.seed": seed},
                out / f"{name.replace(' ', '-')}-{angle}-{seed}",
            )
            for seed in range(seeds)
            for angle in ANGLES
        }
        columns = [[runs[angle, seed]["held_out.accuracy"] for seed in range(seeds)] for angle in ANGLES]
        inside = [[runs[angle, seed]["validation.domain.accuracy"] for seed in range(seeds)] for angle in ANGLES]
        cells = [percent(each) for each in (*columns, over_domains(columns), over_domains(inside))]
        yield f"| {name} | {' | '.join(cells)} |"


def over_domains(columns: list[list[float]]) -> list[float]:
    """Compute the mean over the domains for each seed."""
    return [statistics.mean(of_seed) for of_seed in zip(*columns, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/rotated_digits"))
    parser.add_argument("--seeds", type=int, default=3)
    add_settings(parser)
    options = parse_options(parser, seeds=1, settings=["train.epochs=1", "train.steps_per_epoch=2"])
    options.out.mkdir(parents=True, exist_ok=True)
    for line in table(options.out, options.seeds, settings_of(options)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
