"""What rounding a model's weights to eight bits changes: measured on examples, in ONNX Runtime on both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from modgraph.backends.errors import NothingFinite
from modgraph.backends.onnx.examples import Arrays, Examples
from modgraph.backends.onnx.selection import choices_of
from modgraph.backends.onnx.trace import Traced
from modgraph.backends.onnx.verify import Values, errors_alone, of_runtime, relative_errors, session_of
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph

BATCH = 1024  # as a bundle computes large batches, since what else is in one has its effect
TOGETHER = 8  # examples compared with themselves alone


@dataclass(frozen=True)
class Test:
    """Examples to measure on, inputs by name, and what metrics follow from the outputs of them all."""

    inputs: Arrays
    metrics: Callable[[Values], Mapping[str, float]] = lambda outputs: {}


@dataclass(frozen=True)
class Change:
    """What eight bits save and cost; of pairs, what was comes first.

    `size` is in bytes, of graph and weights; `metrics` are those of the tests, by `test.metric`; `routes` the share of
    tokens that a router sends to other modules. `outputs` tells how far each moves, and `alone` how far the example
    does that moves most when it is computed alone: both relative to the tensor's largest magnitude.
    """

    size: tuple[int, int]
    examples: int
    metrics: dict[str, tuple[float, float]]
    routes: dict[str, float]
    outputs: dict[str, float]
    alone: float

    def __str__(self) -> str:
        before, after = (f"{size / 1e6:.2f}" for size in self.size)
        lines = [f"int8: graph and weights take {after} MB instead of {before}; on {self.examples} examples:"]
        lines += [f"int8: {name} {after:.4f} instead of {before:.4f}" for name, (before, after) in self.metrics.items()]
        lines += [
            f"int8: route {name} sends {share:.2%} of the tokens elsewhere" for name, share in self.routes.items()
        ]
        lines += [f"int8: {name} moves by {moved:.2%} of its largest value" for name, moved in self.outputs.items()]
        return "\n".join([*lines, f"int8: an example moves by {self.alone:.2%} with the batch that it is in"])

    def as_json(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return {
            "bytes": _pair(self.size),
            "examples": self.examples,
            "metrics": {name: _pair(values) for name, values in self.metrics.items()},
            "routes": {name: _short(share) for name, share in self.routes.items()},
            "outputs": {name: _short(moved) for name, moved in self.outputs.items()},
            "alone": _short(self.alone),
        }


def change(graph: Graph, before: Traced, after: Traced, tests: Mapping[str, Test]) -> Change:
    """Compare two forms of a model, both with the records of its routers as outputs. Raises `ModgraphError`."""
    forms = (before, after)
    sessions = [session_of(form.proto.SerializeToString()) for form in forms]
    examples, metrics, tally = 0, dict[str, tuple[float, float]](), _Tally(graph)
    for name, test in tests.items():
        inputs = Examples.of(graph, test.inputs).given
        assert inputs is not None
        parts = [
            [of_runtime(session, form, batch) for session, form in zip(sessions, forms, strict=True)]
            for batch in _batches(inputs)
        ]
        for part in parts:
            tally.see_routes(*part)
        was, is_ = (_joined([part[side] for part in parts], graph) for side in range(2))
        tally.see_outputs(was, is_)
        tally.see_alone(errors_alone(sessions[1], after, next(_batches(inputs, TOGETHER))))
        old, new = test.metrics(was), test.metrics(is_)
        metrics |= {f"{name}.{metric}": (old[metric], new[metric]) for metric in old}
        examples += len(next(iter(inputs.values())))
    size = len(before.proto.SerializeToString()), len(after.proto.SerializeToString())
    return Change(size, examples, metrics, tally.routes(), tally.outputs, tally.alone)


class _Tally:
    """What differs, over batches and tests."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.choices = {decision.label: choice for choice, decision in choices_of(graph).items()}
        self.counts = {name: np.zeros(2, int) for name in self.choices}
        self.outputs = dict.fromkeys(graph.outputs, 0.0)
        self.alone = 0.0

    def see_routes(self, was: Values, is_: Values) -> None:
        """Padding, which goes nowhere, is left out."""
        for name, counts in self.counts.items():
            old, new = (values[self.choices[name]] != 0 for values in (was, is_))
            counts += (old != new).any(-1).sum(), (old | new).any(-1).sum()

    def see_outputs(self, was: Values, is_: Values) -> None:
        """Raises `ModgraphError` where int8 gives no number any more."""
        for name, moved in relative_errors(was, is_).items():
            if not np.isfinite(moved):
                raise ModgraphError([NothingFinite(what=f'"{name}", with weights of eight bits,')])
            self.outputs[name] = max(self.outputs[name], moved)

    def see_alone(self, errors: Mapping[str, float]) -> None:
        self.alone = max(self.alone, *(errors[name] for name in self.outputs))

    def routes(self) -> dict[str, float]:
        return {name: changed / max(1, total) for name, (changed, total) in self.counts.items()}


def _batches(inputs: Arrays, size: int = BATCH) -> Iterator[Values]:
    for at in range(0, len(next(iter(inputs.values()))), size):
        yield {name: array[at : at + size] for name, array in inputs.items()}


def _joined(parts: list[Values], graph: Graph) -> Values:
    return {name: np.concatenate([part[name] for part in parts]) for name in graph.outputs}


def _pair(values: tuple[float, float]) -> dict[str, float]:
    return dict(zip(("float", "int8"), values, strict=True))


def _short(share: float) -> float:
    return float(f"{share:.3g}")
