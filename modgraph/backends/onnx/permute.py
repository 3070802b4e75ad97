"""Permutations of modules, by which a verification reaches every module for any examples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import onnx
import onnx_ir
import torch
from onnx import numpy_helper

from modgraph.backends.torch import Model
from modgraph.ir import Graph, RouteNode, find_module_axes, weights_of

Axes = Mapping[str, int]  # the axis of modules, by the name of a router's weight


def find_axes_of_modules(graph: Graph, pools: Collection[str] | None = None) -> dict[str, int]:
    """Find the weights with an axis of modules of pools from which routers choose, and its place; all pools by
    default."""
    choosing = {each.pool.name for each in graph.decisions() if each.facts.chooses_along is not None}
    wanted = choosing if pools is None else choosing & {*pools}
    own = {weight.name for weight in weights_of(graph) if weight.rows}  # of the modules themselves
    return {
        name: of.axis
        for name, of in find_module_axes(graph).items()
        if name not in own and any(pool.name in wanted for pool in of.pools)
    }


def find_axes_of_inner_modules(graph: Graph) -> dict[str, int]:
    """Find the weights with an axis of modules of nested pools from which routers choose, and its place."""
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
    """Roll the axes of modules in a `with` block: routers choose module j + `by`, cyclically, instead of j."""
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
    """Roll the axes of modules of an ONNX model's weights; None if it has none of these weights."""
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
    """Turn weights into inputs in a `with` block, so that no optimisation folds them."""
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
