"""Holds an exported model against torch before the export counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.errors import DependsOnBatch, Disagrees
from modgraph.backends.torch import Model, generator_for
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.ir import PoolNode, RouteNode
from modgraph.ops import TensorType

BATCHES = (1, 3, 64)
LENGTHS = (5, 8)  # of symbolic axes, tried in turn
TOLERANCE = 1e-4  # of the tensor's largest magnitude

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Verified:
    """What was found: the worst error relative to a tensor's largest magnitude, and modules that no input reached."""

    batches: tuple[int, ...]
    worst: float
    unreached: dict[str, list[int]]


def inputs_for(model: Model, size: int, length: int, examples: Arrays | None) -> dict[str, Tensor]:
    """A batch of real examples, or else of random ones, a function of names and sizes alone."""
    inputs = {}
    for name, type_ in model.graph.input_types.items():
        if examples is not None and name in examples:
            array = examples[name]
            inputs[name] = torch.from_numpy(np.ascontiguousarray(np.resize(array[:size], (size, *array.shape[1:]))))
        else:
            inputs[name] = _random(name, type_, size, length)
    return inputs


def _random(name: str, type_: TensorType, size: int, length: int) -> Tensor:
    generator = generator_for("verify", name, size, length)
    shape = [size, *(axis if isinstance(axis, int) else length for axis in type_.shape)]
    if type_.dtype == "length":
        return torch.randint(1, length + 1, shape, generator=generator)
    if type_.size is not None:
        return torch.randint(type_.size, shape, generator=generator)
    return torch.randn(shape, generator=generator)


@torch.no_grad()
def verify(model: Model, content: bytes, routing: bool, examples: Arrays | None) -> Verified:
    """Compare outputs at several batch sizes, and examples alone with examples together. Raises `ModgraphError`."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    found: list[Diagnostic] = []
    worst = 0.0
    symbolic = any(type_.symbolic for type_ in model.graph.input_types.values())
    for size in BATCHES:
        for length in LENGTHS if symbolic and examples is None else LENGTHS[:1]:
            inputs = inputs_for(model, size, length, examples)
            expected = _of_torch(model, inputs, routing)
            for name, error in _errors(expected, _of_runtime(session, inputs)).items():
                worst = max(worst, error)
                if not error <= TOLERANCE:
                    found.append(Disagrees(output=name, error=error, batch=size, tolerance=TOLERANCE))
    found += _dependence(session, inputs_for(model, 3, LENGTHS[0], examples))
    if found:
        raise ModgraphError(found)
    return Verified(BATCHES, worst, _unreached(model))


def _of_torch(model: Model, inputs: dict[str, Tensor], routing: bool) -> dict[str, NDArray[Any]]:
    computed = model.compute(inputs, losses=False, routing=routing)
    return {name: value.numpy() for name, value in {**computed.outputs, **computed.routing}.items()}


def _of_runtime(session: ort.InferenceSession, inputs: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    names = [output.name for output in session.get_outputs()]
    results = session.run(names, {name: value.numpy() for name, value in inputs.items()})
    return dict(zip(names, results, strict=True))


def _errors(expected: dict[str, NDArray[Any]], found: dict[str, NDArray[Any]]) -> dict[str, float]:
    """Largest difference of each tensor, relative to its largest magnitude; infinite where shapes differ."""
    errors = {}
    for name, theirs in expected.items():
        ours = found[name]
        if ours.shape != theirs.shape:
            errors[name] = float("inf")
        elif theirs.size:
            scale = max(float(np.abs(theirs).max()), 1e-6)
            errors[name] = float(np.abs(ours - theirs).max()) / scale
    return errors


def _dependence(session: ort.InferenceSession, inputs: dict[str, Tensor]) -> list[Diagnostic]:
    """Whether an example gives another result alone than among others."""
    together = _of_runtime(session, inputs)
    alone = [_of_runtime(session, {name: value[at : at + 1] for name, value in inputs.items()}) for at in range(3)]
    joined = {name: np.concatenate([each[name] for each in alone]) for name in together}
    errors = _errors(together, joined)
    return [DependsOnBatch(output=name, error=error) for name, error in errors.items() if not error <= TOLERANCE]


def _unreached(model: Model) -> dict[str, list[int]]:
    """Modules of each pool that no routing decision chose. A soft router reaches all."""
    reached = {pool.name: set[int]() for pool in model.graph.of_kind(PoolNode)}
    for route in model.graph.of_kind(RouteNode):
        if model.graph.router_of(route).router.soft:
            pool = model.graph.pool_of(route)
            reached[pool.name] |= set(range(pool.size))
    sizes = {pool.name: pool.size for pool in model.graph.of_kind(PoolNode)}
    return {name: [j for j in range(sizes[name]) if j not in found] for name, found in reached.items()}
