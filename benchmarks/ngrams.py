"""Bits per character of n-grams on the text of a language model: what a model must beat that counts and learns nothing.

    python benchmarks/ngrams.py [--spec specs/story.mod] [--order 5]

Interpolated Kneser-Ney (Kneser and Ney, 1995; Chen and Goodman, 1999), one discount n₁ / (n₁ + 2 n₂) for each order,
backs off from the last four units to none. A unit is a character, or a piece of the model's tokenizer. It counts the
training text, and predicts all of the test text but its first piece. Where a window of the model begins, the model has
one piece to predict from, and the n-gram all that it reads.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from options import parse_options

import modgraph
from modgraph.data import Text
from modgraph.data.tokenizer import Tokenizer


class KneserNey:
    """Counts of the n-grams of a text, whose letters are the units. Below the highest order, an n-gram counts once for
    each unit that stands before it."""

    def __init__(self, text: str, order: int, units: int) -> None:
        self.units = units
        self.counts = [Counter(text[at : at + order] for at in range(len(text) - order + 1))]
        while len(self.counts) < order:
            self.counts.insert(0, Counter(gram[1:] for gram in self.counts[0]))
        self.totals = [Counter[str]() for _ in self.counts]  # of n-grams that go on from a context
        self.kinds = [Counter[str](gram[:-1] for gram in counts) for counts in self.counts]
        for counts, totals in zip(self.counts, self.totals, strict=True):
            for gram, count in counts.items():
                totals[gram[:-1]] += count
        self.discounts = [discount_of(counts) for counts in self.counts]

    def probability(self, gram: str) -> float:
        """The probability of the last unit of an n-gram after the others."""
        found = 1 / self.units
        for n in range(1, len(gram) + 1):
            context = gram[-n:-1]
            total, discount = self.totals[n - 1][context], self.discounts[n - 1]
            if total:
                kept = max(self.counts[n - 1][gram[-n:]] - discount, 0)
                found = (kept + discount * self.kinds[n - 1][context] * found) / total
        return found

    def bits(self, text: str, since: int) -> float:
        """The bits of the units of a text from a place on."""
        order = len(self.counts)
        grams = (text[max(0, at + 1 - order) : at + 1] for at in range(since, len(text)))
        return -sum(math.log2(self.probability(gram)) for gram in grams)


def discount_of(counts: Counter[str]) -> float:
    once, twice = (sum(count == n for count in counts.values()) for n in (1, 2))
    return once / (once + 2 * twice) if once else 0.5


def read_splits(spec: Path, quick: bool) -> tuple[Tokenizer, dict[str, list[int]]]:
    """Return the tokenizer of a spec's recipe, and the ids of training and test."""
    settings = yaml.safe_load(spec.with_suffix(".yaml").read_text())["data"]
    graph = modgraph.load(str(spec)).ir
    data = Text(**{name: each for name, each in settings.items() if name != "name"})
    tokenizer = Tokenizer(data.keeps(graph)["tokenizer.json"].decode())
    splits = data.splits(graph)
    found = {name: [*join_windows(splits[name].values)] for name in ("train", "test")}
    return tokenizer, {name: ids[: 20_000 if quick else None] for name, ids in found.items()}


def join_windows(values: Any) -> Iterator[int]:
    (name,) = values.keys() - {"words", "next"}
    yield int(values["words"][0, 0])
    for row, length in zip(values["next"], values[name], strict=True):
        yield from np.asarray(row[:length]).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", type=Path, default=Path("specs/story.mod"))
    parser.add_argument("--order", type=int, default=5)
    options = parse_options(parser, order=3)
    tokenizer, ids = read_splits(options.spec, options.quick)
    texts = {name: tokenizer.decode(each) for name, each in ids.items()}
    first = len(tokenizer.decode(ids["test"][:1]))  # what no model predicts
    characters = len(texts["test"]) - first
    pieces = {name: "".join(map(chr, each)) for name, each in ids.items()}
    print(
        f"{len(texts['train']):,} characters of training, {characters:,} of the test, {len(ids['test']) - 1:,} pieces"
    )
    for unit, text, since, units in (
        ("characters", texts, first, len({*texts["train"]}) + 1),
        ("pieces", pieces, 1, len(tokenizer)),
    ):
        model = KneserNey(text["train"], options.order, units)
        print(f"{options.order} {unit}: {model.bits(text['test'], since) / characters:.4f} bits per character")


if __name__ == "__main__":
    main()
