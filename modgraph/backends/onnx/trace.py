"""Traces a model to an ONNX graph by torch's exporter, with the spec's names and dynamic axes."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module

import onnx
import onnx_ir
import torch
from onnxscript.version_converter import convert_version
from torch import Tensor
from torch.onnx._internal.exporter import _core as exporter

from modgraph.backends.errors import CannotExport
from modgraph.backends.onnx.examples import Examples
from modgraph.backends.onnx.operators import OPSET, operators
from modgraph.backends.onnx.optimize import optimize, trim
from modgraph.backends.onnx.permute import find_axes_of_inner_modules, find_axes_of_modules, hide_weights
from modgraph.backends.onnx.program import NotCaptured, program_of
from modgraph.backends.torch import Model
from modgraph.backends.torch.construct import Namespace, attribute_path
from modgraph.diagnostics import ModgraphError
from modgraph.ir import find_padded_axes
from modgraph.version import VERSION

TRACED_BATCH = 2
PAST = ".past"


@dataclass(frozen=True)
class Traced:
    """An ONNX model, and its tensors' names by the names of outputs. Inputs keep their names."""

    proto: onnx.ModelProto
    tensors: dict[str, str]

    def only(self, outputs: Collection[str]) -> Traced:
        """Keep only some outputs, and what they need."""
        kept = {name: tensor for name, tensor in self.tensors.items() if name in outputs}
        model = onnx_ir.from_proto(self.proto)
        model.graph.outputs[:] = [value for value in model.graph.outputs if value.name in kept.values()]
        trim(model)
        return Traced(strip_metadata(onnx_ir.to_proto(model)), kept)


class _Positional(Namespace):
    """A model for the exporter: inputs by position, outputs as a tuple. Weights keep their names."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._computed = (model,)  # in a tuple, so that its weights are not registered under a second name
        for name in ("_modules", "_parameters", "_buffers"):  # shared, so that the model sees torch's changes
            self.__dict__[name] = getattr(model, name)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        (model,) = self._computed
        batch = dict(zip(model.graph.input_types, inputs, strict=True))
        computed = model.compute(batch, losses=False, routing=True)
        return (*computed.outputs.values(), *computed.routing.values())


def start_up() -> None:
    """Do what every process needs once, whatever it exports: imports, and the table of operators."""
    with quiet():
        operators()
        import_module("torch.export._trace")


def trace(model: Model, examples: Examples) -> Traced:
    """Trace a model in evaluation mode. Batch and padded axes are dynamic; records of routers are outputs.

    Raises `ModgraphError`.
    """
    graph, types = model.graph, model.graph.input_types
    results = {**graph.outputs, **model.routing_results()}
    example = examples.draw(0, TRACED_BATCH, examples.lengths()[-1])
    # Number the axes: a user's name might mean something to torch.
    batch = torch.export.Dim("batch", min=1)
    axes = {
        axis: torch.export.Dim(f"axis{at}", min=0 if axis.endswith(PAST) else 1)
        for at, axis in enumerate(find_padded_axes(graph))
    }
    dynamic = tuple(
        {0: batch, **{at: axes[axis.lengths] for at, axis in enumerate(type_.shape, 1) if axis.is_padded}}
        for type_ in types.values()
    )
    with quiet():
        try:
            inputs = tuple(example[name] for name in types)
            program = program_of(_Positional(model).eval(), inputs, (dynamic,), operators())
            traced = exporter._exported_program_to_onnx_program(program, registry=operators()).model
            for name in model.state_dict():  # the names of the spec, where torch has weights under other attributes
                path = attribute_path(model, name)
                if path != name and path in traced.graph.initializers:
                    traced.graph.initializers[path].name = name
            convert_version(traced, OPSET)
            with hide_weights(traced.graph, {**find_axes_of_modules(graph), **find_axes_of_inner_modules(graph)}):
                optimize(traced)
        except (NotCaptured, torch.onnx.errors.OnnxExporterError) as error:
            raise ModgraphError([CannotExport(reason=_reason(error))]) from error
    tensors = {name: f"output.{name}" if name in types else name for name in results}
    _rename(traced.graph, list(types), list(tensors.values()))
    ends = (*types.values(), *(graph.type_of(result) for result in results.values()))
    for value, type_ in zip((*traced.graph.inputs, *traced.graph.outputs), ends, strict=True):
        value.shape = onnx_ir.Shape(("batch" if "batch" not in type_.padded else "examples", *type_.dimensions))
    traced.graph.name = graph.name
    traced.producer_name, traced.producer_version = "modgraph", VERSION
    return Traced(strip_metadata(onnx_ir.to_proto(traced)), tensors)


def _rename(graph: onnx_ir.Graph, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Give inputs and outputs the spec's names; other values with these names get new ones."""
    ends = {*graph.inputs, *graph.outputs}
    inner = [value for node in graph.all_nodes() for value in node.outputs] + list(graph.initializers.values())
    inner += [value for part in graph.subgraphs() for value in (*part.inputs, *part.initializers.values())]
    taken = {value.name for value in inner} | {*inputs, *outputs}
    for value in inner:
        if value.name in (*inputs, *outputs) and value not in ends:
            value.name = next(name for at in range(len(taken)) if (name := f"{value.name}.{at}") not in taken)
            taken.add(value.name)
    for values, names in ((graph.inputs, inputs), (graph.outputs, outputs)):
        for at, (value, name) in enumerate(zip(list(values), names, strict=True)):
            if value in graph.inputs and values is graph.outputs:  # through a node, an input can be an output as well
                node = onnx_ir.node("Identity", [value])
                graph.append(node)
                node.outputs[0].type = value.type
                value = values[at] = node.outputs[0]
            value.name = name


def strip_metadata(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Remove stack traces and intermediate shapes, which have the sizes of the trace."""
    parts = [proto.graph, *proto.functions]
    for part in parts:
        del part.value_info[:]
        values = [*part.input, *part.output, *part.initializer] if isinstance(part, onnx.GraphProto) else []
        for each in (part, *part.node, *values):
            del each.metadata_props[:]
            each.doc_string = ""
        parts += [attribute.g for node in part.node for attribute in node.attribute if attribute.HasField("g")]
    return proto


def _reason(error: BaseException) -> str:
    """The first line of the root cause of an exporter's error."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the exporter's progress and warnings; its errors are exceptions."""
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    chatter = io.StringIO()
    try:
        with contextlib.redirect_stdout(chatter), contextlib.redirect_stderr(chatter), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)
