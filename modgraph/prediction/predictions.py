"""The predictions of a model for files: names of classes and their probabilities, or numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from modgraph_runtime import Port
from modgraph_runtime.ports import LENGTH, Array

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.prediction.errors import NoClassNames, NothingToPredict
from modgraph.prediction.examples import Examples, examples_of
from modgraph.prediction.facts import Facts
from modgraph.prediction.files import read_examples

Compute = Callable[[Mapping[str, Array]], Mapping[str, Array]]
Record = dict[str, str | float]
MOST_CLASSES = 100  # classes whose probabilities a record has
BEST = 3  # classes in a line
MOST_NUMBERS = 6  # numbers of an output in a line


@dataclass(frozen=True)
class Predictions:
    """Predictions by example, in the order of the files.

    Each record is a plain dictionary; `input` is the origin of the example. An output over the classes of a target
    gives the target with the name of the most likely class, `TARGET.probability`, and for up to 100 classes
    `TARGET.CLASS` with the probability of each. Sequences have words and numbers between blanks. Any other output has
    its numbers, as `NAME`, or `NAME.0`, `NAME.1`, …. `lines` are the same for people.
    """

    records: Sequence[Record]
    lines: Sequence[Sequence[str]]
    warnings: tuple[Diagnostic, ...] = ()

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.lines, strict=True)]
        rows = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in self.lines)
        return "\n".join(row.rstrip() for row in rows)

    def to_csv(self) -> str:
        """Write the records as a table with a line of names."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [*dict.fromkeys(key for each in self.records for key in each)], restval="")
        writer.writeheader()
        writer.writerows(self.records)
        return text.getvalue()


def predict(path: str | Path, inputs: Any, check: bool = True) -> Predictions:
    """Predict files, a folder of images, or arrays by input (examples first), by a run's folder or a bundle.

    A bundle needs no torch; with `check` it must be unchanged since its export. Raises `ModgraphError`, and `TypeError`
    for inputs of another kind.
    """
    facts, compute = _open_bundle(path, check) if Path(path).suffix == ".onnx" else _open_run(path)
    if isinstance(inputs, Mapping):
        return _predict([examples_of(inputs, facts)], facts, compute)
    paths = [inputs] if isinstance(inputs, str | Path) else [*inputs] if isinstance(inputs, Iterable) else [None]
    if not all(isinstance(each, str | Path) for each in paths):
        expected = ", ".join(f'"{name}": …' for name in facts.needed)
        wanted = f"paths, or a dictionary of arrays by input, {{{expected}}}"
        raise TypeError(f"predict takes {wanted}, not {type(inputs).__name__}")
    return _predict(read_examples(map(str, paths), facts), facts, compute)


def _open_run(path: str | Path) -> tuple[Facts, Compute]:
    from modgraph.prediction.of_run import find_facts_and_model

    return find_facts_and_model(str(path))


def _open_bundle(path: str | Path, check: bool) -> tuple[Facts, Compute]:
    from modgraph.prediction.of_bundle import open_bundle

    facts, bundle = open_bundle(path, check)
    return facts, bundle.run


def _predict(every: Iterable[Examples], facts: Facts, compute: Compute) -> Predictions:
    if not facts.outputs or not facts.needed:
        raise ModgraphError([NothingToPredict(origin=facts.origin)])
    titles = _titles_of(facts)
    records, lines = list[Record](), [["input", *titles.values()]]
    for examples in every:
        values = compute(examples.arrays)
        for at, source in enumerate(examples.sources):
            record, line = Record(input=source), [source]
            for name, title in titles.items():
                value = _cut(values[name][at], facts.outputs[name], at, examples, facts)
                line.append(_describe(record, title, value, facts.outputs[name], name in facts.normalised))
            records.append(record)
            lines.append(line)
    unnamed = dict.fromkeys(port.target for port in facts.outputs.values() if port.target and not port.classes)
    warnings = tuple(NoClassNames(origin=facts.origin, target=target) for target in unnamed)
    return Predictions(records, lines, warnings)


def _titles_of(facts: Facts) -> dict[str, str]:
    """Name each output after its target, if no other output has the same."""
    targets = [port.target for port in facts.outputs.values()]
    return {
        name: each.target or name if targets.count(each.target) == 1 else name for name, each in facts.outputs.items()
    }


def _cut(value: Array, port: Port, at: int, examples: Examples, facts: Facts) -> Array:
    """Cut the padding from the value of an example."""
    for axis, name in enumerate(port.shape):
        for length, each in facts.inputs.items():
            if each.dtype == LENGTH and each.along == name and length in examples.arrays:
                value = value.take(range(int(examples.arrays[length][at])), axis)
    return value


def _describe(record: Record, title: str, value: Array, port: Port, normalised: bool) -> str:
    """Add an output of an example to its record, and describe it in a line."""
    if port.target is None:
        return _describe_numbers(record, title, value)
    shares = value if normalised else _softmax(value)
    names = port.classes or [*map(str, range(value.shape[-1]))]
    best = shares.argmax(-1)
    found, likely = [names[each] for each in best.ravel()], [f"{each:.4f}" for each in shares.max(-1).ravel()]
    if value.ndim > 1:
        record |= {title: " ".join(found), f"{title}.probability": " ".join(likely)}
        return str(record[title])
    record |= {title: found[0], f"{title}.probability": round(float(shares.max()), 6)}
    if len(names) <= MOST_CLASSES:
        record |= {f"{title}.{name}": round(float(share), 6) for name, share in zip(names, shares, strict=True)}
    order = np.argsort(-shares, kind="stable")[:BEST]
    return ", ".join(f"{names[each]} {shares[each]:.3f}" for each in order)


def _describe_numbers(record: Record, title: str, value: Array) -> str:
    numbers = value.ravel().tolist()
    keys = [title] if value.ndim == 0 else [f"{title}.{'.'.join(map(str, at))}" for at in np.ndindex(value.shape)]
    record |= dict(zip(keys, numbers, strict=True))
    more = ", …" if len(numbers) > MOST_NUMBERS else ""
    return ", ".join(f"{each:.4g}" for each in numbers[:MOST_NUMBERS]) + more


def _softmax(logits: Array) -> Array:
    powers: Array = np.exp(logits - logits.max(-1, keepdims=True))
    shares: Array = powers / powers.sum(-1, keepdims=True)
    return shares
