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
FORMS = ("float", "int8")
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
            "bytes": dict(zip(FORMS, self.size, strict=True)),
            "examples": self.examples,
            "metrics": {name: dict(zip(FORMS, values, strict=True)) for name, values in self.metrics.items()},
            "routes": {name: float(f"{share:.3g}") for name, share in self.routes.items()},
            "outputs": {name: float(f"{moved:.3g}") for name, moved in self.outputs.items()},
            "alone": float(f"{self.alone:.3g}"),
        }


def change(graph: Graph, before: Traced, after: Traced, tests: Mapping[str, Test]) -> Change:
    """Compare two forms of a model, both with the records of its routers as outputs. Raises `ModgraphError`."""
    forms = (before, after)
    sessions = [session_of(form.proto.SerializeToString()) for form in forms]
    examples, alone, metrics = 0, 0.0, dict[str, tuple[float, float]]()
    outputs = dict.fromkeys(graph.outputs, 0.0)
    choices = {decision.label: choice for choice, decision in choices_of(graph).items()}
    counts = {name: np.zeros(2, int) for name in choices}  # of tokens that go elsewhere, and that go anywhere
    for name, test in tests.items():
        inputs = Examples.of(graph, test.inputs).given
        assert inputs is not None
        parts = [
            [of_runtime(session, form, batch) for session, form in zip(sessions, forms, strict=True)]
            for batch in _batches(inputs, BATCH)
        ]
        for part in parts:
            for label, count in counts.items():
                old, new = (values[choices[label]] != 0 for values in part)
                count += (
                    (old != new).any(-1).sum(),
                    (old | new).any(-1).sum(),
                )  # padding, which goes nowhere, in neither
        was, is_ = (
            {output: np.concatenate([part[side][output] for part in parts]) for output in outputs} for side in range(2)
        )
        for output, moved in relative_errors(was, is_).items():
            if not np.isfinite(moved):
                raise ModgraphError([NothingFinite(what=f'"{output}", with weights of eight bits,')])
            outputs[output] = max(outputs[output], moved)
        errors = errors_alone(sessions[1], after, next(_batches(inputs, TOGETHER)))
        alone = max(alone, *(errors[output] for output in outputs))
        old_metrics, new_metrics = test.metrics(was), test.metrics(is_)
        metrics |= {f"{name}.{metric}": (old_metrics[metric], new_metrics[metric]) for metric in old_metrics}
        examples += len(next(iter(inputs.values())))
    size = len(before.proto.SerializeToString()), len(after.proto.SerializeToString())
    routes = {name: changed / max(1, total) for name, (changed, total) in counts.items()}
    return Change(size, examples, metrics, routes, outputs, alone)


def _batches(inputs: Arrays, size: int) -> Iterator[Values]:
    for at in range(0, len(next(iter(inputs.values()))), size):
        yield {name: array[at : at + size] for name, array in inputs.items()}
