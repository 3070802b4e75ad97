"""Traces that several tests want: of all that an export does, tracing takes by far the longest."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import pytest

from modgraph.backends.onnx import bundle
from modgraph.backends.onnx.examples import Examples
from modgraph.backends.onnx.trace import Traced, trace
from modgraph.backends.torch import Model
from modgraph.files import write_atomically

Trace = Callable[[Model, Examples], Traced]


@contextmanager
def shared_traces(folder: Path) -> Iterator[Trace]:
    """Exports trace a model once, if it is met again by any test."""
    with pytest.MonkeyPatch.context() as patch:
        remembered = remembering(folder)
        patch.setattr(bundle, "trace", remembered)
        yield remembered


def remembering(folder: Path) -> Trace:
    """Traces of models met before: what comes of it is a function of the graph, the weights and the examples, see
    test_verification.
    """

    def remembered(model: Model, examples: Examples) -> Traced:
        path = folder / _name(model, examples)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a process that wants it too waits for it
            if not path.exists():
                traced = trace(model, examples)
                path.with_suffix(".json").write_text(json.dumps(traced.tensors))
                write_atomically(path, traced.proto.SerializeToString())
        return Traced(onnx.load(path), json.loads(path.with_suffix(".json").read_text()))

    return remembered


def _name(model: Model, examples: Examples) -> str:
    digest = hashlib.sha256(model.graph.hash().encode() + model.graph.name.encode())
    for name, array in (examples.given or {}).items():
        digest.update(name.encode() + str(array.shape).encode() + array.tobytes())
    for name, weight in model.state_dict().items():
        digest.update(name.encode() + weight.numpy().tobytes())
    return digest.hexdigest()
