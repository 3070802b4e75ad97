"""Specs as one types them: sound ones that were changed, cut off, or that hold a hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from random import Random

from tests.assault.mutated import mutated
from tests.hostile import TEXTS
from tests.lsp.test_broken_texts import spoil

WORDS = ("linear", "relu", "input", "output", "softmax", "x", "->", "{", "mean")  # in whose place hostile texts stand


@cache
def broken_specs(count: int, seed: int = 0) -> list[str]:
    """So many texts, of which a few are sound."""
    return list(islice(_generate(Random(seed)), count))


def _generate(rng: Random) -> Iterator[str]:
    while True:
        yield mutated(rng)
        yield spoil(f"{mutated(rng)} ", rng)
        yield mutated(rng).replace(rng.choice(WORDS), rng.choice(TEXTS), 1)
