"""What eight bits change: outputs, metrics, choices of modules and continued texts, in ONNX Runtime on both sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from modgraph.backends.errors import NothingFinite
from modgraph.backends.onnx.decisions import choices_of
from modgraph.backends.onnx.examples import Arrays, Examples
from modgraph.backends.onnx.int8 import Rounding
from modgraph.backends.onnx.int8_scales import cut_batches
from modgraph.backends.onnx.steps import StepPorts
from modgraph.backends.onnx.trace import Traced
from modgraph.backends.onnx.verify import Session, Values
from modgraph.backends.torch.generation import find_logits
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph

BATCH = 64  # of the examples that are measured
TOGETHER = 8  # examples that also run one by one
WRITTEN, PROMPTS, PROMPT = 200, 8, 16  # tokens that both continue prompts by, the most prompts, and their most tokens
PRECISIONS = ("float", "int8")


@dataclass(frozen=True)
class Test:
    """Examples to measure on: inputs by name, and metrics of their outputs."""

    inputs: Arrays
    metrics: Callable[[Values], Mapping[str, float]] = lambda outputs: {}


@dataclass(frozen=True)
class Written:
    """The likeliest tokens after prompts: how many, the share that is equal, and how many are equal before the first
    that is not, on average."""

    tokens: int
    prompts: int
    equal: float
    before: float


@dataclass(frozen=True)
class Change:
    """The savings and costs of eight bits; pairs have the old value first.

    `size` is the bytes of graph and weights; `metrics` are by `test.metric`; `routes` has the share of tokens that a
    router sends to other modules, `outputs` the largest change of each output and `average` the mean one.
    `standalone` is the largest change of an example that runs in a batch of its own. All three are relative to the
    tensor's largest magnitude. `written` is of stepwise bundles that continue
    texts.
    """

    rounding: Rounding
    size: tuple[int, int]
    examples: int
    metrics: dict[str, tuple[float, float]]
    routes: dict[str, float]
    outputs: dict[str, float]
    average: dict[str, float]
    standalone: float
    written: Written | None = None

    def __str__(self) -> str:
        before, after = (f"{size / 1e6:.2f}" for size in self.size)
        rounding, found = self.rounding, self.written
        many = len(rounding.products) + len(rounding.gathered)
        lines = [
            f"int8: {many} weights in bytes, {len(rounding.fitted)} with scales fitted on {rounding.examples} examples;"
            f" {len(rounding.exact['routers'])} of routers and {len(rounding.exact['others'])} others stay float",
            f"int8: graph and weights take {after} MB instead of {before}; on {self.examples} examples:",
        ]
        lines += [f"int8: {name} {after:.4f} instead of {before:.4f}" for name, (before, after) in self.metrics.items()]
        lines += [
            f"int8: route {name} sends {share:.2%} of the tokens elsewhere" for name, share in self.routes.items()
        ]
        lines += [
            f"int8: {name} moves by at most {moved:.2%} of its largest value, by {self.average[name]:.3%} on average"
            for name, moved in self.outputs.items()
        ]
        if found is not None:
            lines.append(
                f"int8: {found.equal:.1%} of {found.tokens} likeliest tokens after {found.prompts} prompts are equal, "
                f"the first {found.before:.1f} on average"
            )
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The entry of the manifest."""
        found = self.written
        written = {} if found is None else {"written": {**vars(found), "equal": _shorten(found.equal)}}
        return {
            **self.rounding.as_json(),
            "bytes": dict(zip(PRECISIONS, self.size, strict=True)),
            "examples": self.examples,
            "metrics": {name: dict(zip(PRECISIONS, values, strict=True)) for name, values in self.metrics.items()},
            "routes": {name: _shorten(share) for name, share in self.routes.items()},
            "outputs": {name: _shorten(moved) for name, moved in self.outputs.items()},
            "means": {name: _shorten(moved) for name, moved in self.average.items()},
            "alone": _shorten(self.standalone),
            **written,
        }


def _shorten(number: float) -> float:
    return float(f"{number:.3g}")


def measure_change(
    graph: Graph,
    before: Traced,
    after: Traced,
    rounding: Rounding,
    tests: Mapping[str, Test],
    steps: StepPorts | None = None,
) -> Change:
    """Compare a model before and after quantisation, both with records as outputs.

    `graph` is for whole sequences, `steps` of a stepwise bundle. Raises `ModgraphError`.
    """
    sessions = Session(before), Session(after)
    measured = _Measured(graph)
    for name, test in tests.items():
        inputs = fit_inputs(graph, test.inputs, steps)
        parts = [tuple(session.run(batch) for session in sessions) for batch in cut_batches(inputs, BATCH)]
        measured.add(parts)
        few = next(cut_batches(inputs, TOGETHER))
        measured.run_singly(sessions[1], few)
        olds, news = (test.metrics(_join(parts, side, graph.outputs)) for side in range(2))
        measured.metrics |= {f"{name}.{metric}": (olds[metric], news[metric]) for metric in olds}
        measured.examples += len(next(iter(inputs.values())))
    written = None if steps is None else _continue_both(sessions, steps, next(iter(tests.values())))
    size = len(before.proto.SerializeToString()), len(after.proto.SerializeToString())
    return measured.conclude(rounding, size, written)


def fit_inputs(graph: Graph, arrays: Arrays, steps: StepPorts | None) -> Arrays:
    """Arrays as inputs of the graph of a bundle. Raises `ModgraphError` if they do not fit."""
    inputs = Examples.from_arrays(graph, arrays).given
    assert inputs is not None
    return inputs if steps is None else steps.complete(inputs)


def _join(parts: list[tuple[Values, ...]], side: int, outputs: Mapping[str, Any]) -> Values:
    return {output: np.concatenate([part[side][output] for part in parts]) for output in outputs}


class _Measured:
    """What changes, summed over batches of tests."""

    def __init__(self, graph: Graph) -> None:
        self.outputs = {name: [0.0, 0.0, 0, 0.0] for name in graph.outputs}  # largest, sum, count, largest magnitude
        self.choices = {decision.label: choice for choice, decision in choices_of(graph).items()}
        self.counts = {name: np.zeros(2, int) for name in self.choices}  # tokens with a new choice, and all tokens
        self.metrics: dict[str, tuple[float, float]] = {}
        self.examples, self.standalone = 0, 0.0

    def add(self, parts: list[tuple[Values, ...]]) -> None:
        for old, new in parts:
            for label, count in self.counts.items():
                was, is_ = old[self.choices[label]] != 0, new[self.choices[label]] != 0
                count += (was != is_).any(-1).sum(), (was | is_).any(-1).sum()  # padding has no choice
            for output, sums in self.outputs.items():
                self._add_output(output, sums, old[output], new[output])

    def _add_output(self, output: str, sums: list[Any], old: NDArray[Any], new: NDArray[Any]) -> None:
        finite = np.isfinite(old)
        if not np.array_equal(new[~finite], old[~finite], equal_nan=True) or not np.isfinite(new[finite]).all():
            raise ModgraphError([NothingFinite(what=f'"{output}", with weights of eight bits,')])
        moved = np.abs(new[finite].astype(np.float64) - old[finite])
        sums[0] = max(sums[0], float(moved.max(initial=0)))
        sums[1] += float(moved.sum())
        sums[2] += moved.size
        sums[3] = max(sums[3], float(np.abs(old[finite]).max(initial=0)))

    def run_singly(self, session: Session, few: Values) -> None:
        errors = session.standalone_errors(few, session.run(few))
        self.standalone = max(self.standalone, *(errors[output] for output in self.outputs))

    def conclude(self, rounding: Rounding, size: tuple[int, int], written: Written | None) -> Change:
        scales = {name: max(scale, 1e-6) for name, (_, _, _, scale) in self.outputs.items()}
        outputs = {name: largest / scales[name] for name, (largest, *_) in self.outputs.items()}
        average = {name: total / max(count, 1) / scales[name] for name, (_, total, count, _) in self.outputs.items()}
        routes = {name: float(changed / max(1, total)) for name, (changed, total) in self.counts.items()}
        return Change(rounding, size, self.examples, self.metrics, routes, outputs, average, self.standalone, written)


def _continue_both(sessions: tuple[Session, Session], steps: StepPorts, test: Test) -> Written | None:
    """Continue the first tokens of examples before and after, always by the likeliest token."""
    try:
        logits = find_logits(steps.whole)
    except ModgraphError:  # it continues no texts
        return None
    inputs = fit_inputs(steps.whole, test.inputs, None)
    given = {name: array[:PROMPTS] for name, array in inputs.items() if name in steps.graph.input_types}
    tokens = given.pop(steps.tokens)
    room = WRITTEN + PROMPT if steps.longest is None else steps.longest
    prompts = tokens[:, : max(1, min(PROMPT, room // 2))]
    count = min(WRITTEN, room - prompts.shape[1])
    if count < 1:
        return None
    lengths = {*steps.lengths.values()}
    others = {name: array for name, array in given.items() if name not in lengths}
    old, new = (_continue(session, steps, logits, prompts, count, others) for session in sessions)
    equal = old == new
    before = np.where(equal.all(1), count, (~equal).argmax(1))
    return Written(count, len(prompts), float(equal.mean()), float(before.mean()))


def _continue(
    session: Session, steps: StepPorts, logits: str, prompts: NDArray[Any], count: int, others: Values
) -> NDArray[Any]:
    """The likeliest tokens [B, count] after prompts [B, T]."""
    found, tokens, past = list[NDArray[Any]](), prompts, 0
    caches = {name: each.numpy() for name, each in steps.begin(len(prompts)).items()}
    for _ in range(count):
        new = tokens.shape[1]
        lengths: dict[str, torch.Tensor] = steps.list_lengths([new] * len(prompts), [past] * len(prompts))
        feed = {**others, **{name: each.numpy() for name, each in lengths.items()}, steps.tokens: tokens, **caches}
        results = session.run({name: feed[name] for name in steps.graph.input_types})
        caches = {name: results[name] for name in caches}
        past += new
        tokens = results[logits][:, -1].argmax(-1)[:, None].astype(prompts.dtype)
        found.append(tokens)
    return np.concatenate(found, axis=1)
