"""Captures a model as a program of torch operators that the exporter knows.

torch's own path runs a captured program twice more, node by node, which takes most of the time. This decomposes
operators only if neither the exporter nor `SAID` knows one, and reads the types of values from the capture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.fx import config as fx_config
from torch.fx.experimental import _config
from torch.onnx._internal.exporter import _fx_passes
from torch.onnx._internal.exporter._capture_strategies import TorchExportNonStrictStrategy
from torch.onnx._internal.exporter._registration import ONNXRegistry
from torch.onnx._internal.fx.passes import type_promotion

aten = torch.ops.aten
sizes: Any = _config
Said = tuple[Any, tuple[Any, ...], dict[str, Any]]  # an operator and its arguments


class NotCaptured(RuntimeError):
    """torch cannot capture the model; the cause says where."""


def program_of(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], shapes: Any, known: ONNXRegistry) -> Any:
    """Capture a model for inputs with the dynamic axes of `shapes`. Raises `NotCaptured`."""
    dynamo: Any = import_module("torch._dynamo.config")
    before = fx_config.do_not_emit_stack_traces
    fx_config.do_not_emit_stack_traces = True  # they take a tenth of the time
    try:
        with dynamo.patch(fake_tensor_cache_enabled=False):  # its entries take more time than they save
            captured = TorchExportNonStrictStrategy()(model, inputs, {}, dynamic_shapes=shapes)
    finally:
        fx_config.do_not_emit_stack_traces = before
    program = captured.exported_program
    if program is None:
        raise NotCaptured from captured.exception
    with sizes.patch(backed_size_oblivious=True):  # an axis may have length one
        if not all(_is_known(node, known) for part in _parts(program) for node in part.graph.nodes):
            program = _fx_passes.decompose_with_registry(program, known)
        table = type_promotion.TypePromotionTable()
        for part in _parts(program):  # cast operands of ops that in ONNX take only one dtype
            casts = type_promotion.InsertTypePromotion(part, table)
            casts.interpreter = _Promotion(part, table)
            casts.run()
        program._graph_module = _fx_passes.remove_assertion_nodes(program.graph_module)
    for part in _parts(program):
        for node in list(part.graph.nodes):
            _say(node)
    return program


class _Promotion(type_promotion._TypePromotionInterpreter):
    """torch's rules of type promotion. It computes only what they cast; other values are known from the capture."""

    def run_node(self, n: fx.Node) -> Any:
        if "val" not in n.meta:
            return None
        rule = type_promotion.get_type_promotion_rule(n, self.type_promotion_table)
        if rule is not None:
            with self._set_current_node(n):
                self._maybe_promote_node(n, rule)
        return n.meta["val"]


def _parts(program: ExportedProgram) -> list[fx.GraphModule]:
    """The graph modules of a program: the main one, and the steps of its scans."""
    return [module for module in program.graph_module.modules() if isinstance(module, fx.GraphModule)]


def _is_known(node: fx.Node, known: ONNXRegistry) -> bool:
    """Whether a node has an ONNX lowering or vanishes. An operator that mutates a value has none."""
    if node.op != "call_function" or node.target in (*ASSERTIONS, *SAID, *SHAPES):
        return True
    target: Any = node.target
    schema = getattr(target, "_schema", None)
    return known.is_registered(target) and not (schema is not None and schema.is_mutable)


def _say(node: fx.Node) -> None:
    """Replace a node by an operator that the exporter knows, or remove it if it does nothing."""
    if node.target in SHAPES:
        source = node.all_input_nodes[0]
        lengths = ([*each.meta["val"].shape] for each in (source, node))
        shape = _shape(*([each if isinstance(each, int) else str(each) for each in own] for own in lengths))
        if shape == [] and not any(user.op == "output" for user in node.users):
            node.replace_all_uses_with(source)
            node.graph.erase_node(node)
        elif shape:
            node.target, node.args, node.kwargs = aten.reshape.default, (source, shape), {}
    elif node.op == "call_function" and node.target in SAID:
        with node.graph.inserting_before(node):
            node.target, node.args, node.kwargs = SAID[node.target](*node.args, **node.kwargs)


def _shape(old: list[int | str], new: list[int | str]) -> list[int] | None:
    """The shape of a reshape in constants: 0 keeps a length, -1 is inferred. Empty if nothing changes.

    Lengths known only at run time are formulas. Returns None if constants cannot express the shape.
    """
    if old == new:
        return []
    kept = [isinstance(each, str) and each == before for each, before in zip(new, old, strict=False)]
    kept += [False] * (len(new) - len(kept))
    shape = [0 if keeps else -1 if isinstance(each, str) else each for each, keeps in zip(new, kept, strict=True)]
    return None if shape.count(-1) > 1 or 0 in (*old, *new) else shape


def _cast(x: Any, dtype: Any = None, *_: Any, **__: Any) -> Said:
    return aten._to_copy.default, (x,), {"dtype": dtype or x.meta["val"].dtype}


def _move_axes(x: Any, source: int | list[int], target: int | list[int]) -> Said:
    rank = x.meta["val"].dim()
    pairs = [(source, target)] if isinstance(source, int) else zip(source, target, strict=True)  # type: ignore[arg-type]
    moved = {new % rank: old % rank for old, new in pairs}
    others = iter(axis for axis in range(rank) if axis not in moved.values())
    return aten.permute.default, (x, [moved[at] if at in moved else next(others) for at in range(rank)]), {}


def _add_rows(x: fx.Node, axis: int, places: fx.Node, rows: fx.Node) -> Said:
    """Add rows at places, some of which are equal: by ScatterElements, whose indices have the shape of the rows.

    In ONNX Runtime, threads of ScatterND add to the same element at once and lose sums.
    """
    rank = rows.meta["val"].dim()
    for at in (at for at in range(rank) if at != axis % rank):
        places = _call(aten.unsqueeze.default, places, at)
    return aten.scatter_add.default, (x, axis, _call(aten.expand_as.default, places, rows), rows), {}


def _call(target: Any, *operands: Any) -> fx.Node:
    """A new node of a graph, with the value that its operator has for those of its operands."""
    node: fx.Node = operands[0].graph.call_function(target, operands)
    node.meta["val"] = target(*(each.meta["val"] if isinstance(each, fx.Node) else each for each in operands))
    return node


SAID: Mapping[Any, Callable[..., Said]] = {
    aten.to.dtype: _cast,
    aten.to.dtype_layout: _cast,
    aten.movedim.int: _move_axes,
    aten.movedim.intlist: _move_axes,
    aten.numpy_T.default: lambda x: (aten.permute.default, (x, [*range(x.meta["val"].dim())][::-1]), {}),
    aten.index_add.default: _add_rows,
    aten.__and__.Tensor: lambda x, y: (aten.bitwise_and.Tensor, (x, y), {}),
    aten.__or__.Tensor: lambda x, y: (aten.bitwise_or.Tensor, (x, y), {}),
    aten.detach_.default: lambda x: (aten.detach.default, (x,), {}),
}
SHAPES = {aten.reshape.default, aten.view.default, aten.flatten.using_ints, aten.unflatten.int}
ASSERTIONS = {
    aten._assert_scalar.default,
    aten._assert_tensor_metadata.default,
    aten.sym_constrain_range_for_size.default,
}
