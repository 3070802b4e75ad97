"""Runs a file of PyTorch source beside its model and compares the results, before the file is written."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.errors import WrongSource
from modgraph.backends.torch.model import Model
from modgraph.backends.torch.source.model import source_of
from modgraph.backends.torch.source.names import arguments
from modgraph.declare.errors import failure
from modgraph.diagnostics import ModgraphError

TOLERANCE = 1e-5  # of the largest magnitude; most files agree to the last bit
MODULE = "a file that modgraph writes"  # the module's name while it runs: no import can name it


def verified_source(model: Model, batch: Mapping[str, Tensor]) -> str:
    """The file of a model, checked on a batch: the same outputs and losses with targets, the same outputs without.

    Raises `ModgraphError` for a layer that cannot be copied, and where the file computes something else.
    """
    source, mode, problems = source_of(model), model.training, list[str]()
    inputs = {name: value for name, value in batch.items() if name in model.graph.input_types}
    module = sys.modules[MODULE] = ModuleType(MODULE)  # which `dataclass` needs
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            with _reporting():
                exec(compile(source, MODULE, "exec"), vars(module))  # our own text, with all texts of the spec quoted
            for given in (batch, inputs):
                torch.manual_seed(0)
                losses = model.graph.target_types.keys() <= given.keys()
                computed = model.compute(given, losses=losses, moves=False)
                expected = {f"output {name}": each for name, each in computed.outputs.items()} | computed.losses
                torch.manual_seed(0)
                with _reporting():
                    found = _run(vars(module), model, given)
                problems += _differences(expected, {name: each for name, each in found.items() if name in expected})
                model.eval()
    finally:
        model.train(mode)
        del sys.modules[MODULE]
    if problems:
        raise ModgraphError(WrongSource(problem=problem) for problem in problems)
    return source


@contextmanager
def _reporting() -> Iterator[None]:
    """Any exception of our own text means that it is wrong."""
    try:
        yield
    except Exception as error:
        raise ModgraphError([WrongSource(problem=f"does not run: {failure(error)}")]) from error


def _run(definitions: Mapping[str, Any], model: Model, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The results of the last class of a file with the model's weights."""
    with torch.device("meta"):
        last = [each for each in definitions.values() if isinstance(each, type) and each.__module__ == MODULE][-1]
        other: nn.Module = last()
    other.load_state_dict(model.state_dict(), assign=True)
    other.train(model.training)
    called = arguments(model.graph)
    found = other(**{called[name]: value for name, value in given.items()})
    outputs, losses = found if isinstance(found, tuple) else (found, {})
    outputs = outputs if len(model.graph.outputs) > 1 else dict.fromkeys(model.graph.outputs, outputs)
    return {**{f"output {name}": each for name, each in outputs.items()}, **losses}


def _differences(expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> Iterator[str]:
    """What is wrong with each value that differs."""
    if expected.keys() != found.keys():
        yield f"gives {', '.join(found)} in place of {', '.join(expected)}"
        return
    for name, value in expected.items():
        other = found[name]
        if value.shape != other.shape:
            yield f"computes {name} of shape {list(other.shape)} in place of {list(value.shape)}"
            continue
        size = max(1.0, value.nan_to_num(0, 0, 0).abs().max().item()) if value.numel() else 1.0
        if not torch.allclose(other, value, rtol=0, atol=TOLERANCE * size, equal_nan=True):
            yield f"computes {name} with a difference of {(other - value).abs().max().item():.1e}"
