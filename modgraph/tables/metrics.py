"""Which metrics of runs say most of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from modgraph.inspect.cost import natural
from modgraph.ops.measures import (
    ABSOLUTE_ERROR,
    ACCURACY,
    AUC,
    BITS_PER_CHARACTER,
    DETERMINATION,
    F1,
    OF_TASKS,
    PERPLEXITY,
    SQUARED_ERROR,
)
from modgraph.ops.measures import is_larger_better as is_larger_better
from modgraph.tables.facts import RunFacts

# the main ones first
ORDER = (ACCURACY, F1, AUC, DETERMINATION, BITS_PER_CHARACTER, PERPLEXITY, SQUARED_ERROR, ABSOLUTE_ERROR)
RANKS = {measure.name: rank for rank, measure in enumerate(ORDER)}
SHARES = (ACCURACY.name, *(measure.name for measure in OF_TASKS))  # from 0 to 1, so also percentages
SEEN = ("train.", "validation.")  # splits that a training has seen


def is_share(name: str) -> bool:
    """Whether a metric is a share, from 0 to 1."""
    return name.rpartition(".")[2] in SHARES


def is_main(name: str) -> bool:
    """Whether a metric is one of a whole split, and no part of a loss."""
    return name.count(".") < 2


def rank_metrics(runs: Iterable[RunFacts]) -> list[str]:
    """Return the metrics of the runs that say how good they are, the main ones first: those of test data before those
    of data that the training saw, measures before losses, totals before parts."""
    found = dict.fromkeys(name for run in runs for name in (*run.metrics, *run.latest))
    return _sort_measures(found)


def rank_measures(records: Iterable[Mapping[str, object]]) -> list[str]:
    """Return what the records of a log measure of whole splits, as `rank_metrics` orders it; of parts and of single
    routes only where there is nothing else."""
    found = dict.fromkeys(name for record in records for name in record)
    measures = _sort_measures(found)
    return [name for name in measures if "." not in name] or measures


def _sort_measures(names: Iterable[str]) -> list[str]:
    return sorted((name for name in names if is_larger_better(name) is not None), key=_rank)


def _rank(name: str) -> tuple[object, ...]:
    measure = name.rpartition(".")[2]
    return name.startswith(SEEN), not is_main(name), RANKS.get(measure, len(RANKS)), natural(name)
