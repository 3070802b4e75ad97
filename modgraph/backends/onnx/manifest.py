"""What a bundle tells of itself: the whole graph, what goes in and comes out, how it was verified."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from modgraph_runtime.integrity import FORMAT

from modgraph.backends.onnx.change import Change
from modgraph.backends.onnx.chosen_outputs import LeftOut
from modgraph.backends.onnx.description import Description
from modgraph.backends.onnx.operators import OPSET
from modgraph.backends.onnx.trace import Traced
from modgraph.backends.onnx.verify import TOLERANCE, Verified
from modgraph.backends.torch import Model
from modgraph.ir import Graph, Node, OpNode, PoolNode, Result, comparisons, longest, padded_axes, to_json
from modgraph.ops.activation import Identity
from modgraph.ops.along_axis import LogSoftmax, Softmax
from modgraph.ops.comparison import ACCURACY
from modgraph.store.records import json_text
from modgraph.store.weight_values import hash_of_values
from modgraph.types import TensorType
from modgraph.version import VERSION

T = TypeVar("T")


def manifest_of(
    trained: Graph,
    inference: Model,
    traced: Traced,
    verified: Verified,
    description: Description,
    changed: Change | None = None,
    left_out: LeftOut | None = None,
) -> dict[str, Any]:
    """The manifest, ready to be written as JSON. `trained` has the targets that the inference graph lost; what was
    verified is the model before its weights were rounded, and `int8` what that changed."""
    graph, lacks = inference.graph, left_out or LeftOut()
    results = {**graph.outputs, **inference.routing_results()}
    targets = targets_of(trained)
    ports = [_port(name, graph.type_of(results[name]), tensor) for name, tensor in traced.tensors_out.items()]
    limits = longest(graph)
    return {
        "format": FORMAT,
        "modgraph": VERSION,
        "model": graph.name,
        "parameters": to_json(graph)["parameters"],
        "inputs": [_port(name, graph.input_types[name], tensor) for name, tensor in traced.tensors_in.items()],
        "outputs": [_with_target(port, targets) for port in ports if port["name"] in graph.outputs],
        "routing": [port for port in ports if port["name"] not in graph.outputs],
        "axes": {axis: {"longest": limits[axis]} if axis in limits else {} for axis in padded_axes(graph)},
        "targets": {name: type_.as_json() for name, type_ in _but(trained.target_types, lacks.targets).items()},
        "classes": _classes(description, targets, graph),
        "words": _but(description.words, lacks.inputs),
        "preprocessing": _but(description.preprocessing, lacks.inputs),
        "pools": {name: _pool(pool, verified) for name, pool in graph.pools().items()},
        "verified": _verified(verified),
        **({"int8": changed.as_json()} if changed else {}),
        **({"left_out": lacks.as_json()} if lacks.outputs else {}),
        "opset": OPSET,
        "hash": graph.hash(),
        "weights": hash_of_weights(inference),
        "ir": to_json(graph),
    }


def _but(given: Mapping[str, T], names: Collection[str]) -> dict[str, T]:
    return {name: value for name, value in given.items() if name not in names}


def _with_target(port: dict[str, Any], targets: Mapping[str, str]) -> dict[str, Any]:
    """What is told of an output, the target whose classes it tells apart too."""
    target = targets.get(port["name"])
    return port if target is None else {**port, "target": target}


def _classes(description: Description, targets: Mapping[str, str], graph: Graph) -> dict[str, list[str]]:
    """The names of the classes that outputs tell apart, by the output's name."""
    described = {name: target for name, target in targets.items() if target in description.classes}
    return {name: description.classes[target] for name, target in described.items() if name in graph.outputs}


def _pool(pool: PoolNode, verified: Verified) -> dict[str, Any]:
    return {
        "size": pool.size,
        "unreached": verified.unreached[pool.name],
        "permuted": verified.permuted[pool.name],
    }


def _verified(verified: Verified) -> dict[str, Any]:
    return {
        "batches": list(verified.batches),
        "lengths": [dict(lengths) for lengths in verified.lengths if lengths],
        "tolerance": TOLERANCE,
        "worst": float(f"{verified.worst:.2g}"),
        "replaced": verified.replaced,
    }


def as_text(manifest: Mapping[str, Any]) -> str:
    return json_text(manifest, indent=1, ensure_ascii=False)


def hash_of_weights(model: Model) -> str:
    """A name for the weights: SHA-256 over names, shapes and values."""
    return hash_of_values({name: tensor.contiguous().cpu().numpy() for name, tensor in model.state_dict().items()})


def targets_of(trained: Graph) -> dict[str, str]:
    """The target whose classes an output tells apart, by the output's name: it is compared with it in training, or
    follows from logits that are by ops that keep the largest value where it is."""
    compared: dict[Result, str] = {}
    for each in comparisons(trained):
        if ACCURACY in each.measures:
            compared.setdefault(each.prediction, each.target)
    found = {name: compared.get(_logits(trained, result, compared)) for name, result in trained.outputs.items()}
    return {name: target for name, target in found.items() if target is not None}


def _logits(graph: Graph, result: Result, compared: Mapping[Result, str]) -> Result:
    """Back from a result to logits that were compared, as far as the largest value stays in its place."""
    node = graph[result.node]
    while result not in compared and _keeps_largest(graph, node):
        (result,) = graph.inputs(node.name).values()
        node = graph[result.node]
    return result


def _keeps_largest(graph: Graph, node: Node) -> bool:
    """Whether the largest value along the last axis stays where it is."""
    if not isinstance(node, OpNode) or not isinstance(node.op, Softmax | LogSoftmax | Identity):
        return False
    return isinstance(node.op, Identity) or bool(graph.signature(node).axes["position"] == -1)


def _port(name: str, type_: TensorType, tensor: str) -> dict[str, Any]:
    known = {**type_.as_json(), "shape": [*type_.dimensions]}
    return {"name": name, **known, **({} if tensor == name else {"tensor": tensor})}
