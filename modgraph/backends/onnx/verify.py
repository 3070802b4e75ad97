"""Compares an exported model with torch before an export counts.

Faults of an export are silent: a Python loop over a dynamic axis keeps the traced length, and
`scatter_reduce(..., "mean", include_self=False)` computes something else. So this compares at several batch sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from modgraph_runtime.bundle import ORT_ERRORS, Bundle
from modgraph_runtime.ports import LENGTH
from modgraph_runtime.steps import Cache
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.errors import CannotExport, DependsOnBatch, Disagrees, NothingFinite, SelectsOtherwise
from modgraph.backends.onnx.decisions import Decisions
from modgraph.backends.onnx.examples import Examples, Lengths
from modgraph.backends.onnx.permute import (
    find_axes_of_inner_modules,
    find_axes_of_modules,
    permute_modules,
    permute_proto,
)
from modgraph.backends.onnx.trace import PAST, Traced
from modgraph.backends.torch import Computed, Model
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.inspect.cost import compute_cost
from modgraph.ir import weights_of

MANY, LESS = 64, 4  # bounds of the largest batch, which `MACS` limits
MACS = 25_000_000_000  # multiply-accumulates of a batch
TOGETHER = 3  # examples that also run one by one
TOLERANCE = 1e-4  # of the tensor's largest magnitude

Values = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Verified:
    """The result of a verification.

    `worst` is the largest error relative to a tensor's largest magnitude. `replaced` counts examples with close calls.
    `unreached` are modules that no example reached, `permuted` those that only permutations of modules reached.
    `inputs` is a batch of the comparison, `computed` what a bundle computes for it: torch's results, or those of ONNX
    Runtime with rounded weights.
    """

    batches: tuple[int, ...]
    lengths: tuple[Mapping[str, int], ...]
    worst: float
    replaced: int
    unreached: dict[str, list[int]]
    permuted: dict[str, list[int]]
    inputs: Values = field(repr=False, compare=False)
    computed: Values = field(repr=False, compare=False)


@torch.no_grad()
def verify(model: Model, traced: Traced, examples: Examples) -> Verified:
    """Compare choices and outputs at several batch sizes, and examples one by one with a batch.

    Raises `ModgraphError`.
    """
    session, comparison = Session(traced), _Comparison(model, traced, examples)
    macs = compute_cost(model.graph, examples.lengths()[-1]).active_macs
    batches = 1, TOGETHER, max(LESS, min(MANY, MACS // max(1, macs)))
    for size in batches:
        for lengths in examples.lengths():
            inputs, expected, found = comparison.compare(session, size, lengths)
        if size == TOGETHER:
            together = inputs, _arrays({**expected.outputs, **expected.routing})
            errors = session.standalone_errors(inputs, found)
            comparison.found += [DependsOnBatch(output=name, error=error) for name, error in _wrong(errors).items()]
    decisions = comparison.decisions
    exercised = comparison.permute(batches[-1])
    if comparison.found:
        raise ModgraphError(comparison.found)
    replaced, unreached = decisions.replaced, decisions.find_unreached()
    return Verified(batches, examples.lengths(), comparison.worst, replaced, unreached, exercised, *together)


class _Comparison:
    """A comparison of torch with ONNX Runtime: diagnostics found, and the worst error."""

    def __init__(self, model: Model, traced: Traced, examples: Examples) -> None:
        self.model, self.traced, self.examples = model, traced, examples
        self.decisions = Decisions(model)
        self.found: list[Diagnostic] = []
        self.worst = 0.0

    def compare(
        self, session: Session, size: int, lengths: Lengths, inside: bool = False
    ) -> tuple[Values, Computed, Values]:
        """Compare the results of one batch; returns it, torch's results and ONNX Runtime's.

        A difference may come from a close call in a nested pool, so it is compared again without such examples.
        """
        batch, computed = self.decisions.clear_calls(self.examples, size, lengths, inside)
        expected, inputs = _arrays({**computed.outputs, **computed.routing}), _arrays(batch)
        found = session.run(inputs)
        errors, wrong = relative_errors(expected, found), list[Diagnostic]()
        for choice, route in self.decisions.choices.items():
            theirs, ours = (values[choice].reshape(size, -1) != 0 for values in (expected, found))
            count = int((theirs != ours).any(1).sum())
            wrong += [SelectsOtherwise(route=route.label, count=count, batch=size)] if count else []
        wrong = wrong or _disagreements(errors, size)
        if wrong and not inside and self.decisions.inside:
            return self.compare(session, size, lengths, inside=True)
        self.decisions.see(computed.routing)
        self.found += wrong
        self.worst = max(self.worst, *errors.values())
        return inputs, computed, found

    def permute(self, size: int) -> dict[str, list[int]]:
        """Compare with permuted modules where some are unreached; returns the modules that this reaches.

        Each pool is rolled twice around, since routers depend on earlier ones; nested pools once.
        """
        before, graph = self.decisions.find_unreached(), self.model.graph
        inner = find_axes_of_inner_modules(graph)
        shapes = {weight.name: weight.shape for weight in weights_of(graph)}
        once = max((shapes[name][axis] for name, axis in inner.items()), default=0)
        for by in range(1, max(once, *(2 * pool.size for pool in graph.pools().values()), 0)):
            left = [name for name, modules in self.decisions.find_unreached().items() if modules]
            axes = {**find_axes_of_modules(graph, left), **(inner if by < once else {})}
            proto = permute_proto(self.traced.proto, axes, by) if axes else None
            if proto is None:
                break
            with permute_modules(self.model, axes, by):
                self.compare(Session(replace(self.traced, proto=proto)), size, self.examples.lengths()[-1])
        after = self.decisions.find_unreached()
        return {name: sorted(set(modules) - set(after[name])) for name, modules in before.items()}


def _wrong(errors: Mapping[str, float]) -> dict[str, float]:
    return {name: error for name, error in errors.items() if not error <= TOLERANCE}


def _disagreements(errors: Mapping[str, float], batch: int) -> list[Diagnostic]:
    return [
        Disagrees(output=name, error=error, batch=batch, tolerance=TOLERANCE) for name, error in _wrong(errors).items()
    ]


def verify_bundle(verified: Verified, path: Any) -> None:
    """Run one batch with a written bundle, as users will, and compare the results. Raises `ModgraphError`."""
    bundle = Bundle(path)
    found = bundle.run(verified.inputs, routing=True) if bundle.stepwise is None else run_step(bundle, verified.inputs)
    expected = {name: verified.computed[name] for name in found}
    if wrong := _disagreements(relative_errors(expected, found), TOGETHER):
        raise ModgraphError(wrong)


def run_step(bundle: Bundle, inputs: Values) -> Values:
    """Run a stepwise bundle as users will, on inputs of its model: outputs, records and caches by name."""
    facts = bundle.stepwise
    assert facts is not None, "only a stepwise bundle takes steps"
    own = {port.along: inputs[name] for name, port in bundle.inputs.items() if port.dtype == LENGTH}
    others = {
        name: inputs[name] for name, port in bundle.inputs.items() if name != facts.tokens and port.dtype != LENGTH
    }
    count = len(inputs[facts.tokens])
    past = [inputs[name] for name, port in facts.inputs.items() if port.along.endswith(PAST)]
    counts = tuple(np.max([np.zeros(count, int), *past], 0).tolist())
    cache = Cache({port.name: inputs[port.name] for port in facts.caches}, counts, facts.weights)
    new = own[facts.axis].tolist() if facts.axis in own else None
    step = bundle.step(inputs[facts.tokens], cache, new, routing=True, others=others)
    return {**step.outputs, **step.routing, **step.cache.values}


def relative_errors(expected: Values, found: Values) -> dict[str, float]:
    """The largest difference of each tensor, relative to its largest magnitude; infinite if shapes differ.

    NaNs agree with NaNs, and infinities with equal ones. Raises `ModgraphError` for a tensor without finite values.
    """
    errors = {}
    for name, theirs in expected.items():
        ours = found[name]
        finite = np.isfinite(theirs)
        if ours.shape != theirs.shape:
            errors[name] = np.inf
        elif not finite.any():
            if theirs.size:
                raise ModgraphError([NothingFinite(what=f'all of "{name}"')])
            errors[name] = 0.0
        elif not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
            errors[name] = np.inf
        else:
            scale = max(float(np.abs(theirs[finite]).max()), 1e-6)
            errors[name] = float(np.abs(ours[finite] - theirs[finite]).max()) / scale
    return errors


class Session:
    """A traced model, loaded in ONNX Runtime. Raises `ModgraphError`."""

    def __init__(self, traced: Traced) -> None:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.add_session_config_entry(
            "session.intra_op.allow_spinning", "0"
        )  # small batches, with work between them
        self.tensors, content = traced.tensors, traced.proto.SerializeToString()
        with _wrap_errors():
            self.runtime = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def run(self, inputs: Values) -> Values:
        """Run the model: inputs by name give outputs by name. Raises `ModgraphError`."""
        with _wrap_errors():
            results = self.runtime.run(list(self.tensors.values()), inputs)
        return dict(zip(self.tensors, results, strict=True))

    def standalone_errors(self, inputs: Values, together: Values) -> dict[str, float]:
        """The error of each output when examples run one by one instead of `together`, relative to its largest
        magnitude."""
        examples = range(len(next(iter(inputs.values()))))
        singly = [self.run({name: value[at : at + 1] for name, value in inputs.items()}) for at in examples]
        return relative_errors(together, {name: np.concatenate([each[name] for each in singly]) for name in together})


@contextmanager
def _wrap_errors() -> Iterator[None]:
    try:
        yield
    except ORT_ERRORS as error:
        raise ModgraphError([CannotExport(reason=str(error))]) from error


def _arrays(tensors: Mapping[str, Tensor]) -> Values:
    return {name: value.numpy() for name, value in tensors.items()}
