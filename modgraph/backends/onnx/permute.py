"""Choices with modules in another order: every module of a pool can be reached, whatever the examples are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import onnx
import onnx_ir
import torch
from onnx import numpy_helper

from modgraph.backends.torch import Model
from modgraph.ir import Graph, RouteNode, module_axes, weights_of

Axes = Mapping[str, int]  # of modules, by the name of a router's weight


def axes_of_modules(graph: Graph, pools: Collection[str] | None = None) -> dict[str, int]:
    """The weights with an axis of the modules of pools that a router selects from, some or all; and its place."""
    choosing = {each.pool.name for each in graph.decisions() if each.facts.chooses_along is not None}
    wanted = choosing if pools is None else choosing & {*pools}
    return {name: of.axis for name, of in module_axes(graph).items() if any(pool.name in wanted for pool in of.pools)}


def axes_of_inner_modules(graph: Graph) -> dict[str, int]:
    """The same of pools inside pools, which keep no records: in other orders, all of their modules are reached."""
    names = {
        region.graph.pool_of(route).axis.name
        for _, region in graph.modules()
        for route in region.graph.nodes_of(RouteNode)
        if region.graph.declaration_of(route).chooses_along is not None
    }
    along = ((weight.name, [axis.name for axis in weight.axes]) for weight in weights_of(graph))
    return {name: at for name, axes in along for at, axis in enumerate(axes) if axis in names}


@contextmanager
def permute_modules(model: Model, axes: Axes, by: int) -> Iterator[None]:
    """Within it, what has these weights chooses module j + `by` where it would choose j, counted around."""
    tensors = model.state_dict(keep_vars=True)

    def roll(by: int) -> None:
        for name, axis in axes.items():
            tensors[name].copy_(tensors[name].roll(by, axis))

    with torch.no_grad():
        roll(by)
        try:
            yield
        finally:
            roll(-by)


def permute_proto(proto: onnx.ModelProto, axes: Axes, by: int) -> onnx.ModelProto | None:
    """The same in an ONNX model, which has no weights that nothing reads; None where it has none of these."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    tensors = {tensor.name: tensor for tensor in copy.graph.initializer}
    read = {name: axis for name, axis in axes.items() if name in tensors}
    for name, axis in read.items():
        rolled = np.roll(numpy_helper.to_array(tensors[name]), by, axis)
        tensors[name].CopyFrom(numpy_helper.from_array(rolled, name))
    return copy if read else None


@contextmanager
def hide_weights(graph: onnx_ir.Graph, names: Axes) -> Iterator[None]:
    """Within it, weights look like inputs, so that none is computed into something else."""
    values = [value for value in graph.initializers.values() if value.name in names]
    tensors = [value.const_value for value in values]
    for value in values:
        del graph.initializers[str(value.name)]
        value.const_value = None
        graph.inputs.append(value)
    try:
        yield
    finally:
        for value, tensor in zip(values, tensors, strict=True):
            graph.inputs.remove(value)
            value.const_value = tensor
            graph.initializers.add(value)
