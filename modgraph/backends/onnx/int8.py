"""Weights of eight bits by onnxruntime's dynamic quantisation.

In a product x·W, the export quantises W, with a scale for each column. Each run quantises x, with one scale for the
tensor, so an example's result depends a little on its batch. Weights are unsigned bytes, like x: signed ones overflow
on processors that add pairs of products in sixteen bits (AVX2 without VNNI), which changed logits of SMN by 15 %.
Routers keep their weights: these are few, and a rounded score may change a choice. Convolutions keep theirs, since
onnxruntime runs them no faster in int8. The change by quantisation is measured on examples, in ONNX Runtime on both
sides.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
from numpy.typing import NDArray

from modgraph.backends.errors import NothingFinite, NothingToRound
from modgraph.backends.onnx.decisions import choices_of
from modgraph.backends.onnx.examples import Arrays, Examples
from modgraph.backends.onnx.optimize import trim
from modgraph.backends.onnx.permute import find_axes_of_inner_modules
from modgraph.backends.onnx.trace import Traced, quiet, strip_metadata
from modgraph.backends.onnx.verify import Session, Values, relative_errors
from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, RouterNode

Print = tuple[tuple[int, ...], int]
PLAIN_GEMM = {"alpha": 1.0, "beta": 1.0, "transA": 0}


def quantise(traced: Traced, model: Model) -> Traced:
    """Quantise the weights of a model. Raises `ModgraphError` if it has none that can be quantised."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # Skip routers, and constants that the exporter folded from weights, such as a router's normalised keys. The
    # exporter drops the names of transposed weights, so compare contents.
    routers = tuple(f"{node.name}." for part in model.graph.parts() for node in part.graph.nodes_of(RouterNode))
    left_out, weights = find_axes_of_inner_modules(model.graph), model.state_dict().items()
    known = [each.numpy() for name, each in weights if name not in left_out and not name.startswith(routers)]
    rounded = {_print(matrix) for weight in known if weight.ndim == 2 for matrix in (weight, weight.T)}
    graph = onnx_ir.from_proto(traced.proto)
    products = _separate_products(graph, rounded)
    if not products:
        raise ModgraphError([NothingToRound(model=model.graph.name)])
    trim(graph)
    with quiet(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "int8.onnx"
        quantize_dynamic(
            onnx_ir.to_proto(graph),
            path,
            op_types_to_quantize=["MatMul"],
            nodes_to_quantize=products,
            per_channel=True,
            weight_type=QuantType.QUInt8,
            extra_options={"EnableSubgraph": True},
        )
        proto = onnx.load(path)
    del proto.metadata_props[:]
    proto.producer_name, proto.producer_version = traced.proto.producer_name, traced.proto.producer_version
    return replace(traced, proto=strip_metadata(proto))


def _print(array: NDArray[Any]) -> Print:
    """A fingerprint of an array."""
    return array.shape, hash(array.tobytes())


def _separate_products(model: onnx_ir.Model, rounded: Collection[Print]) -> list[str]:
    """Make every product with a weight a `MatMul` with a matrix of its own, as the quantisation needs.

    Returns the names of the products to quantise.
    """
    matrices: dict[tuple[str, bool], onnx_ir.Value] = {}
    products = []
    for node in list(model.graph.all_nodes()):
        source = _weight_of(node)
        if source is None:
            continue
        value, transposed = source
        array, key = value.const_value.numpy(), (str(value.name), transposed)  # type: ignore[union-attr]
        if key not in matrices:
            name = f"{value.name}.{'transposed' if transposed else 'matrix'}"
            tensor = onnx_ir.tensor(np.ascontiguousarray(array.T if transposed else array), name=name)
            type_ = onnx_ir.TensorType(tensor.dtype)
            matrices[key] = onnx_ir.Value(name=name, shape=tensor.shape, type=type_, const_value=tensor)  # type: ignore[arg-type]
            model.graph.register_initializer(matrices[key])
        product = _product(node, matrices[key])
        if _print(array) in rounded:
            products.append(str(product.name))
    return products


def _weight_of(node: onnx_ir.Node) -> tuple[onnx_ir.Value, bool] | None:
    """The weight of a product, and whether it is transposed; None for other nodes."""
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    plain = all(attributes.get(name, value) == value for name, value in PLAIN_GEMM.items())
    if node.op_type not in ("MatMul", "Gemm") or not plain:
        return None
    value, transposed = node.inputs[1], bool(attributes.get("transB", 0))
    assert value is not None
    producer = value.producer()
    if producer is not None and producer.op_type == "Transpose" and len(value.shape or ()) in (0, 2):
        value, transposed = producer.inputs[0], not transposed
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    known = value.const_value
    return (value, transposed) if len(known.shape) == 2 and known.dtype == onnx_ir.DataType.FLOAT else None


def _product(node: onnx_ir.Node, matrix: onnx_ir.Value) -> onnx_ir.Node:
    """Rewrite a product as `x @ matrix`; the bias of a Gemm becomes an `Add`."""
    if node.op_type == "MatMul":
        node.replace_input_with(1, matrix)
        return node
    (old,) = node.outputs
    graph = node.graph
    assert graph is not None
    product = onnx_ir.node("MatMul", [node.inputs[0], matrix], name=f"{node.name}.product")
    made = [product]
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        product.outputs[0].name = f"{old.name}.product"
        made.append(onnx_ir.node("Add", [product.outputs[0], node.inputs[2]], name=f"{node.name}.sum"))
    graph.insert_before(node, made)
    new = made[-1].outputs[0]
    new.name, new.type, new.shape = old.name, old.type, old.shape
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    return product


# ------------------------------------------------------------ what it changes

BATCH = 1024  # the batch size of bundles for many examples: results depend on it
PRECISIONS = ("float", "int8")
TOGETHER = 8  # examples that also run one by one


@dataclass(frozen=True)
class Test:
    """Examples to measure on: inputs by name, and metrics of their outputs."""

    inputs: Arrays
    metrics: Callable[[Values], Mapping[str, float]] = lambda outputs: {}


@dataclass(frozen=True)
class Change:
    """The savings and costs of eight bits; pairs have the old value first.

    `size` is the bytes of graph and weights; `metrics` are by `test.metric`; `routes` has the share of tokens that a
    router sends to other modules. `outputs` has the largest change of each output, `standalone` the largest change of
    an example that runs in a batch of its own: both relative to the tensor's largest magnitude.
    """

    size: tuple[int, int]
    examples: int
    metrics: dict[str, tuple[float, float]]
    routes: dict[str, float]
    outputs: dict[str, float]
    standalone: float

    def __str__(self) -> str:
        before, after = (f"{size / 1e6:.2f}" for size in self.size)
        lines = [f"int8: graph and weights take {after} MB instead of {before}; on {self.examples} examples:"]
        lines += [f"int8: {name} {after:.4f} instead of {before:.4f}" for name, (before, after) in self.metrics.items()]
        lines += [
            f"int8: route {name} sends {share:.2%} of the tokens elsewhere" for name, share in self.routes.items()
        ]
        lines += [f"int8: {name} moves by {moved:.2%} of its largest value" for name, moved in self.outputs.items()]
        lines += [
            f"int8: scales follow the batch, so the other examples in it move an example by {self.standalone:.2%}"
        ]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The entry of the manifest."""
        return {
            "bytes": dict(zip(PRECISIONS, self.size, strict=True)),
            "examples": self.examples,
            "metrics": {name: dict(zip(PRECISIONS, values, strict=True)) for name, values in self.metrics.items()},
            "routes": {name: float(f"{share:.3g}") for name, share in self.routes.items()},
            "outputs": {name: float(f"{moved:.3g}") for name, moved in self.outputs.items()},
            "alone": float(f"{self.standalone:.3g}"),
        }


def change(
    graph: Graph, before: Traced, after: Traced, tests: Mapping[str, Test], complete: Callable[[Arrays], Arrays]
) -> Change:
    """Compare a model before and after quantisation, both with records as outputs.

    `complete` adds inputs that the graph lacks: caches of steps. Raises `ModgraphError`.
    """
    sessions = Session(before), Session(after)
    examples, standalone, metrics = 0, 0.0, dict[str, tuple[float, float]]()
    outputs = dict.fromkeys(graph.outputs, 0.0)
    choices = {decision.label: choice for choice, decision in choices_of(graph).items()}
    counts = {name: np.zeros(2, int) for name in choices}  # tokens with a new choice, and all tokens
    for name, test in tests.items():
        inputs = Examples.from_arrays(graph, test.inputs).given
        assert inputs is not None
        inputs = complete(inputs)
        parts = [[session.run(batch) for session in sessions] for batch in _batches(inputs, BATCH)]
        for part in parts:
            for label, count in counts.items():
                old, new = (values[choices[label]] != 0 for values in part)
                count += (old != new).any(-1).sum(), (old | new).any(-1).sum()  # padding has no choice
        was, is_ = (
            {output: np.concatenate([part[side][output] for part in parts]) for output in outputs} for side in range(2)
        )
        for output, moved in relative_errors(was, is_).items():
            if not np.isfinite(moved):
                raise ModgraphError([NothingFinite(what=f'"{output}", with weights of eight bits,')])
            outputs[output] = max(outputs[output], moved)
        few = next(_batches(inputs, TOGETHER))
        errors = sessions[1].standalone_errors(few, sessions[1].run(few))
        standalone = max(standalone, *(errors[output] for output in outputs))
        old_metrics, new_metrics = test.metrics(was), test.metrics(is_)
        metrics |= {f"{name}.{metric}": (old_metrics[metric], new_metrics[metric]) for metric in old_metrics}
        examples += len(next(iter(inputs.values())))
    size = len(before.proto.SerializeToString()), len(after.proto.SerializeToString())
    routes = {name: changed / max(1, total) for name, (changed, total) in counts.items()}
    return Change(size, examples, metrics, routes, outputs, standalone)


def _batches(inputs: Arrays, size: int) -> Iterator[Values]:
    for at in range(0, len(next(iter(inputs.values()))), size):
        yield {name: array[at : at + size] for name, array in inputs.items()}
