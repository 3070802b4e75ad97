"""What is known of a metric by its name: whether larger is better, and how much it says of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from modgraph.inspect.cost import natural
from modgraph.ops.op import ACCURACY, MEASURES
from modgraph.tables.facts import RunFacts

RANKS = {measure.name: rank for rank, measure in enumerate(MEASURES)}
LARGER = {measure.name for measure in MEASURES if measure.larger_is_better}
PROGRESS = {"epochs", "steps", "best_step", "train.phase", "train.task"}  # where a training is, no measures
NEITHER = re.compile(r"(^|\.)(H_a|H_b|use\.[^.]+|state\..+|best_step)$|^modules\.")  # neither good nor bad
SHARES = {ACCURACY.name, "forgetting"}  # from 0 to 1, so also percentages
SEEN = ("train.", "validation.")  # splits that a training has seen


def find_measure(name: str) -> str:
    """Return the measure that a metric ends with: `accuracy` of `test.label.accuracy` and of `average_accuracy`."""
    return re.split(r"[._]", name)[-1] if name.rpartition(".")[2] not in RANKS else name.rpartition(".")[2]


def is_larger_better(name: str) -> bool | None:
    """Whether a metric is better when larger, as recipes have it: accuracies, f1, auc and r2; None where neither is
    better."""
    return None if NEITHER.search(name) else find_measure(name) in LARGER


def is_share(name: str) -> bool:
    """Whether a metric is a share, from 0 to 1."""
    return find_measure(name) in SHARES


def rank_metrics(runs: Iterable[RunFacts]) -> list[str]:
    """Return the metrics of the runs that say how good they are, the main ones first: those of test data before those
    of data that the training saw, measures before losses, totals before parts."""
    at_end = dict.fromkeys(name for run in runs for name in run.metrics if name not in PROGRESS)
    latest = dict.fromkeys(name for run in runs for name in run.latest if name not in PROGRESS)
    found = [*at_end, *(name for name in latest if name not in at_end)]
    return sorted((name for name in found if is_larger_better(name) is not None), key=_rank)


def is_main(name: str) -> bool:
    """Whether a metric is one of a whole split, and no part of a loss."""
    return name.count(".") < 2


def _rank(name: str) -> tuple[object, ...]:
    measure = find_measure(name)
    return name.startswith(SEEN), not is_main(name), RANKS.get(measure, len(RANKS)), natural(name)
