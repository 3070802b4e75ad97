"""What a bundle tells of itself: the whole graph, what goes in and comes out, how it was verified."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modgraph_runtime.bundle import FORMAT

from modgraph.backends.errors import BadExamples
from modgraph.backends.onnx.change import Change
from modgraph.backends.onnx.trace import OPSET, Traced
from modgraph.backends.onnx.verify import TOLERANCE, Verified
from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, OpNode, Result, comparisons, longest, padded_axes, to_json
from modgraph.ops.activation import Identity
from modgraph.ops.along_axis import LogSoftmax, Softmax
from modgraph.ops.comparison import ACCURACY
from modgraph.store.records import json_text
from modgraph.types import TensorType
from modgraph.version import VERSION

KEEPS_THE_LARGEST = (Identity, LogSoftmax, Softmax)


@dataclass(frozen=True)
class Description:
    """What the graph does not know: names of classes by target, and by input how it is made from what is measured and
    which words its ids stand for."""

    classes: dict[str, list[str]] = field(default_factory=dict)
    preprocessing: dict[str, Any] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, graph: Graph) -> Description:
        """A description that fits a graph; what it tells of other targets and inputs is left out.

        Raises `ModgraphError`.
        """
        found = dict(given or {})
        classes = _names(found.get("classes", {}), graph.target_types, "classes")
        words = _names(found.get("words", {}), graph.input_types, "words")
        return cls(classes, dict(found.get("preprocessing", {})), words)


def _names(given: Mapping[str, Any], types: Mapping[str, TensorType], what: str) -> dict[str, list[str]]:
    """A name for each value of some inputs or targets. Raises `ModgraphError`."""
    found = {name: [*map(str, names)] for name, names in given.items() if name in types}
    for name, names in found.items():
        if types[name].size != len(names):
            reason = f'the description names {len(names)} {what} of "{name}", which is {types[name]}'
            raise ModgraphError([BadExamples(reason=reason)])
    return found


def manifest_of(
    trained: Graph,
    inference: Model,
    traced: Traced,
    verified: Verified,
    description: Description,
    changed: Change | None = None,
) -> dict[str, Any]:
    """The manifest, ready to be written as JSON. `trained` has the targets that the inference graph lost; what was
    verified is the model before its weights were rounded, and `int8` what that changed."""
    graph = inference.graph
    results = {**graph.outputs, **inference.routing_results()}
    told = {name: target for name, target in targets_of(trained).items() if name in graph.outputs}
    ports = [_port(name, graph.type_of(results[name]), tensor) for name, tensor in traced.tensors_out.items()]
    limits = longest(graph)
    return {
        "format": FORMAT,
        "modgraph": VERSION,
        "model": graph.name,
        "parameters": to_json(graph)["parameters"],
        "inputs": [_port(name, graph.input_types[name], tensor) for name, tensor in traced.tensors_in.items()],
        "outputs": [
            {**port, **({"target": told[port["name"]]} if port["name"] in told else {})}
            for port in ports
            if port["name"] in graph.outputs
        ],
        "routing": [port for port in ports if port["name"] not in graph.outputs],
        "axes": {axis: {"longest": limits[axis]} if axis in limits else {} for axis in padded_axes(graph)},
        "targets": {name: type_.as_json() for name, type_ in trained.target_types.items()},
        "classes": {
            name: description.classes[target] for name, target in told.items() if target in description.classes
        },
        "words": description.words,
        "preprocessing": description.preprocessing,
        "pools": {
            name: {
                "size": pool.size,
                "unreached": verified.unreached[name],
                "permuted": verified.permuted[name],
            }
            for name, pool in graph.pools().items()
        },
        "verified": {
            "batches": list(verified.batches),
            "lengths": [dict(lengths) for lengths in verified.lengths if lengths],
            "tolerance": TOLERANCE,
            "worst": float(f"{verified.worst:.2g}"),
            "replaced": verified.replaced,
        },
        **({"int8": changed.as_json()} if changed else {}),
        "opset": OPSET,
        "hash": graph.hash(),
        "weights": hash_of_weights(inference),
        "ir": to_json(graph),
    }


def as_text(manifest: Mapping[str, Any]) -> str:
    return json_text(manifest, indent=1, ensure_ascii=False)


def hash_of_weights(model: Model) -> str:
    """A name for the weights: SHA-256 over names, shapes and values."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {list(tensor.shape)}\n".encode())
        digest.update(tensor.contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()


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
    while result not in compared and isinstance(node, OpNode) and isinstance(node.op, KEEPS_THE_LARGEST):
        (result,) = graph.inputs(node.name).values()
        node = graph[result.node]
    return result


def _port(name: str, type_: TensorType, tensor: str) -> dict[str, Any]:
    told = {**type_.as_json(), "shape": [*type_.dimensions]}
    return {"name": name, **told, **({} if tensor == name else {"tensor": tensor})}
