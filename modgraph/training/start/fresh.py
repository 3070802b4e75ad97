"""Finds the weights that a run or a migration starts anew although the old run has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase

from modgraph.diagnostics import did_you_mean
from modgraph.training.start.errors import NoWeightToRenew


def is_fresh(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern matches a weight, or a module or block of it."""
    return any(fnmatchcase(name, each) or fnmatchcase(name, f"{each}.*") for each in patterns)


def find_unknown_fresh(names: Collection[str], patterns: Sequence[str], spec: str) -> Iterator[NoWeightToRenew]:
    """Yield an error for each pattern that matches none of a spec's weights."""
    words = [name.split(".") for name in names]
    owners = dict.fromkeys(".".join(each[:at]) for each in words for at in range(1, len(each)))
    for pattern in patterns:
        if not any(is_fresh(name, [pattern]) for name in names):
            yield NoWeightToRenew(spec=spec, name=pattern, suggestion=did_you_mean(pattern, [*owners, *names]))
