"""Traces that several tests want: of all that an export does, tracing takes by far the longest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from modgraph.backends.onnx import bundle
from modgraph.backends.onnx.examples import Examples
from modgraph.backends.onnx.trace import Traced, trace
from modgraph.backends.torch import Model
from modgraph.files import write_atomically

Trace = Callable[[Model, Examples], Traced]


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder for traces, which all processes that run tests share."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "traces"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def trace_once(traces: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """Traces a model once if it is met again. Exports of the test do the same."""
    remembered = remembering(traces)
    monkeypatch.setattr(bundle, "trace", remembered)
    return remembered


def remembering(folder: Path) -> Trace:
    """Traces of models met before: what comes of it is a function of the graph, the weights and the examples, see
    test_verification.
    """

    def remembered(model: Model, examples: Examples) -> Traced:
        path = folder / _name(model, examples)
        if not path.exists():
            traced = trace(model, examples)
            write_atomically(path.with_suffix(".json"), json.dumps([traced.tensors_in, traced.tensors_out]).encode())
            write_atomically(path, traced.proto.SerializeToString())
        return Traced(onnx.load(path), *json.loads(path.with_suffix(".json").read_text()))

    return remembered


def _name(model: Model, examples: Examples) -> str:
    digest = hashlib.sha256(model.graph.hash().encode() + model.graph.name.encode())
    for name, array in (examples.given or {}).items():
        digest.update(name.encode() + str(array.shape).encode() + array.tobytes())
    for name, weight in model.state_dict().items():
        digest.update(name.encode() + weight.numpy().tobytes())
    return digest.hexdigest()
