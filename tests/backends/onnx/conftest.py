"""Traces that several tests want: of all that an export does, tracing takes by far the longest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import onnx
import pytest

from modgraph.backends.onnx import bundle
from modgraph.backends.onnx.examples import Examples
from modgraph.backends.onnx.trace import Traced, trace
from modgraph.backends.torch import Model

Trace = Callable[[Model, Examples], Traced]


@pytest.fixture(scope="session")
def traces() -> dict[str, Traced]:
    return {}


@pytest.fixture
def trace_once(traces: dict[str, Traced], monkeypatch: pytest.MonkeyPatch) -> Trace:
    """Traces a model once if it is met again. Exports of the test do the same."""
    remembered = remembering(traces)
    monkeypatch.setattr(bundle, "trace", remembered)
    return remembered


def remembering(traces: dict[str, Traced]) -> Trace:
    """Traces of models met before: what comes of it is a function of the graph, the weights and the examples, see
    test_verification.
    """

    def remembered(model: Model, examples: Examples) -> Traced:
        key = _name(model, examples)
        if key not in traces:
            traces[key] = trace(model, examples)
        found, proto = traces[key], onnx.ModelProto()
        proto.CopyFrom(found.proto)  # an export writes into it
        return Traced(proto, found.tensors_in, found.tensors_out)

    return remembered


def _name(model: Model, examples: Examples) -> str:
    digest = hashlib.sha256(model.graph.hash().encode() + model.graph.name.encode())
    for name, array in (examples.given or {}).items():
        digest.update(name.encode() + str(array.shape).encode() + array.tobytes())
    for name, weight in model.state_dict().items():
        digest.update(name.encode() + weight.numpy().tobytes())
    return digest.hexdigest()
