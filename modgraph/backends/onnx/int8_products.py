"""Rewrites products of a traced graph as products of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir
from numpy.typing import NDArray

from modgraph.backends.onnx.int8_scales import (
    FEWEST,
    LARGEST,
    TINY,
    ZERO,
    Seen,
    find_range,
    fit,
    round_columns,
    to_bytes,
)
from modgraph.backends.onnx.int8_weights import Weights

PLAIN_GEMM = {"alpha": 1.0, "beta": 1.0, "transA": 0}
NARROW = 2  # inputs of a product from which on bytes and scales are smaller than floats


@dataclass(frozen=True, eq=False)
class Use:
    """A node that computes with a weight, which it reads from `source`: a product, with a transposed weight or not, or
    a gathering. `at` is the place of its other operand."""

    node: onnx_ir.Node
    source: onnx_ir.Value
    names: tuple[str, ...]
    at: int = 0
    transposed: bool = False

    @property
    def is_gathering(self) -> bool:
        return self.at == 1

    @property
    def array(self) -> NDArray[Any]:
        found: NDArray[Any] = self.source.const_value.numpy()  # type: ignore[union-attr]
        return found

    @property
    def operand(self) -> onnx_ir.Value:
        value = self.node.inputs[self.at]
        assert value is not None
        return value


def find_uses(model: onnx_ir.Model, weights: Weights) -> Iterator[Use]:
    """The products with weights to round, and the nodes that gather rows of stacks of them."""
    for node in model.graph.all_nodes():
        value, at, transposed = _find_source(node)
        array = _read_constant(value)
        if value is None or array is None or array.ndim != (3 if at else 2):
            continue
        inputs = array.shape[2] if at else array.shape[transposed]
        names = weights.find(array) if inputs >= NARROW else ()
        if names:
            yield Use(node, value, names, at, transposed)


def _find_source(node: onnx_ir.Node) -> tuple[onnx_ir.Value | None, int, bool]:
    """The weight that a node may compute with, the place of its other operand, and whether a product transposes it."""
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    if node.op_type == "Gather" and attributes.get("axis", 0) == 0:
        return node.inputs[0], 1, False
    plain = all(attributes.get(name, value) == value for name, value in PLAIN_GEMM.items())
    if node.op_type not in ("MatMul", "Gemm") or not plain:
        return None, 0, False
    value, transposed = node.inputs[1], bool(attributes.get("transB", 0))
    producer = None if value is None else value.producer()
    if producer is not None and producer.op_type == "Transpose" and len(node.inputs[1].shape or ()) in (0, 2):  # type: ignore[union-attr]
        return producer.inputs[0], 0, not transposed
    return value, 0, transposed


def list_float_arrays(model: onnx_ir.Model) -> Iterator[NDArray[Any]]:
    """The float constants of a model."""
    for value in model.graph.initializers.values():
        array = _read_constant(value)
        if array is not None:
            yield array


def _read_constant(value: onnx_ir.Value | None) -> NDArray[Any] | None:
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy() if value.const_value.dtype == onnx_ir.DataType.FLOAT else None


class Rounder:
    """Rewrites products and gatherings. Uses of one weight share its bytes, products of one value its bytes."""

    def __init__(self, model: onnx_ir.Model, seen: Mapping[str, Seen]) -> None:
        self.graph, self.seen = model.graph, seen
        self.fitted: set[str] = set()
        self.stored: dict[tuple[str, bool], tuple[onnx_ir.Value, onnx_ir.Value]] = {}
        self.values: dict[tuple[onnx_ir.Graph, onnx_ir.Value], tuple[onnx_ir.Value, onnx_ir.Value]] = {}
        one = np.float32(1)
        constants = {"one": one, "zero": np.uint8(ZERO), "tiny": np.float32(TINY), "least": one / LARGEST}
        self.constants = {name: self._store(f"int8.{name}", value) for name, value in constants.items()}
        places = {"first": 0, "second": 1, "last": -1}
        self.first, self.second, self.last = (
            self._store(f"int8.{name}", np.array([at])) for name, at in places.items()
        )

    def _store(self, name: str, array: Any) -> onnx_ir.Value:
        tensor = onnx_ir.tensor(np.ascontiguousarray(array).reshape(np.shape(array)), name=name)
        type_ = onnx_ir.TensorType(tensor.dtype)
        value = onnx_ir.Value(name=name, shape=tensor.shape, type=type_, const_value=tensor)  # type: ignore[arg-type]
        self.graph.register_initializer(value)
        return value

    def round(self, use: Use) -> None:
        if use.is_gathering:
            self._round_gathered(use)
        else:
            self._round_product(use)

    def _round_product(self, use: Use) -> None:
        """Rewrite x·W, and the bias of a `Gemm`, as a product of bytes."""
        (old,), node = use.node.outputs, use.node
        build = _Builder(node)
        bytes_, steps = self._round_values(use.operand, build)
        matrix, scales = self._round_matrix(use)
        zero = self.constants["zero"]
        whole = build("Cast", [build("MatMulInteger", [bytes_, matrix, zero, zero])], to=onnx_ir.DataType.FLOAT)
        found = build("Mul", [build("Mul", [whole, scales]), steps])
        if len(node.inputs) > 2 and node.inputs[2] is not None:
            found = build("Add", [found, node.inputs[2]])
        build.replace(old, found)

    def _round_values(self, x: onnx_ir.Value, build: _Builder) -> tuple[onnx_ir.Value, onnx_ir.Value]:
        """The bytes of x [..., K], and a scale for each row [..., 1]."""
        key = build.graph, x
        if key not in self.values:
            known = self.constants
            # Of no rows, some versions of ONNX Runtime give [0, K] for [0, 1].
            reduced = build("ReduceMax", [build("Abs", [x]), self.last], keepdims=1)
            largest = build("Slice", [reduced, self.first, self.second, self.last])
            steps = build("Mul", [build("Max", [largest, known["tiny"]]), known["least"]])
            self.values[key] = build("QuantizeLinear", [build("Div", [x, steps]), known["one"], known["zero"]]), steps
        return self.values[key]

    def _round_matrix(self, use: Use) -> tuple[onnx_ir.Value, onnx_ir.Value]:
        key = str(use.source.name), use.transposed
        if key not in self.stored:
            matrix = use.array.T if use.transposed else use.array
            sample = self.seen.get(str(use.operand.name), Seen()).sample(len(matrix))
            self.fitted.update(use.names if len(sample) >= FEWEST else ())
            bytes_, scales = fit(matrix, sample)
            name = f"{key[0]}.{'transposed' if use.transposed else 'matrix'}"
            self.stored[key] = self._store(f"{name}.bytes", bytes_), self._store(f"{name}.scales", scales)
        return self.stored[key]

    def _round_gathered(self, use: Use) -> None:
        """Gather bytes and scales of rows, and dequantise what was gathered."""
        build, key = _Builder(use.node), (str(use.source.name), False)
        if key not in self.stored:
            columns = use.array.swapaxes(1, 2)
            ranges = find_range(columns)[:, None, :]
            pair = to_bytes(round_columns(columns, ranges)).swapaxes(1, 2), ranges.swapaxes(1, 2).astype(np.float32)
            self.stored[key] = self._store(f"{key[0]}.bytes", pair[0]), self._store(f"{key[0]}.scales", pair[1])
        table, steps = (build("Gather", [each, use.operand], axis=0) for each in self.stored[key])
        found = build("DequantizeLinear", [table, self.constants["one"], self.constants["zero"]])
        build.replace(use.node.outputs[0], build("Mul", [found, steps]))


class _Builder:
    """Inserts nodes before one, and replaces it by them."""

    def __init__(self, node: onnx_ir.Node) -> None:
        assert node.graph is not None
        self.node, self.graph, self.count = node, node.graph, 0

    def __call__(self, op: str, inputs: list[onnx_ir.Value], **attributes: Any) -> onnx_ir.Value:
        node = onnx_ir.node(op, inputs, attributes or None)
        self.graph.insert_before(self.node, node)
        (found,) = node.outputs
        found.name = f"{self.node.outputs[0].name}.int8.{self.count}"
        self.count += 1
        return found

    def replace(self, old: onnx_ir.Value, new: onnx_ir.Value) -> None:
        new.name, new.type, new.shape = old.name, old.type, old.shape
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        self.graph.remove(self.node, safe=True)
