"""From a model to an ONNX graph: torch's exporter, with names, dynamic axes, and nothing of the trace left behind."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import onnx
import torch
from torch import Tensor, nn

from modgraph.backends.errors import CannotExport
from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError

OPSET = 20


class _Positional(nn.Module):
    """A model as the exporter wants it: inputs by place, outputs as a tuple."""

    def __init__(self, model: Model, routing: bool) -> None:
        super().__init__()
        self.model = model
        self.names = list(model.graph.input_types)
        self.routing = routing

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        computed = self.model.compute(dict(zip(self.names, inputs, strict=True)), losses=False, routing=self.routing)
        return (*computed.outputs.values(), *computed.routing.values())


def trace(model: Model, example: dict[str, Tensor], routing: bool) -> onnx.ModelProto:
    """The ONNX form of a model in evaluation mode, batch and symbolic axes dynamic. Raises `ModgraphError`."""
    graph = model.graph
    batch = torch.export.Dim("batch", min=1)
    axes = {axis: torch.export.Dim(axis, min=1) for type_ in graph.input_types.values() for axis in type_.symbolic}
    shapes = [
        {0: batch, **{at: axes[axis] for at, axis in enumerate(type_.shape, 1) if isinstance(axis, str)}}
        for type_ in graph.input_types.values()
    ]
    outputs = [*graph.outputs, *(model.routing_results() if routing else ())]
    with _quiet() as chatter:
        try:
            program: Any = torch.onnx.export(
                _Positional(model, routing).eval(),
                tuple(example[name] for name in graph.input_types),
                dynamo=True,
                input_names=list(graph.input_types),
                output_names=outputs,
                dynamic_shapes=(tuple(shapes),),
                opset_version=OPSET,
                external_data=False,
                verbose=False,
            )
        except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0] or chatter.getvalue()[-200:]
            raise ModgraphError([CannotExport(reason=reason)]) from error
    proto: onnx.ModelProto = program.model_proto
    return cleaned(proto)


def cleaned(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Without stack traces, and without intermediate shapes, which the trace's sizes would fix."""
    del proto.graph.value_info[:]
    del proto.graph.metadata_props[:]
    for node in proto.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for function in proto.functions:
        del function.value_info[:]
        for node in function.node:
            del node.metadata_props[:]
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.initializer):
        del value.metadata_props[:]
    return proto


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    """Keeps the exporter's chatter from the user; what it said is in the buffer if it fails."""
    chatter = io.StringIO()
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(chatter), contextlib.redirect_stderr(chatter), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield chatter
    finally:
        logging.disable(previous)
