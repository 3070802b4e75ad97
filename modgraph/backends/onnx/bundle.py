"""Exports a model: traced, described, verified, and only then written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
from modgraph_runtime.bundle import FORMAT, MANIFEST_KEY

from modgraph.backends.errors import Unreached, WrongSuffix
from modgraph.backends.onnx.trace import OPSET, trace
from modgraph.backends.onnx.verify import LENGTHS, Arrays, Verified, inputs_for, verify
from modgraph.backends.torch import Model
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.files import write_atomically
from modgraph.ir import Graph, PoolNode, RouteNode, to_json
from modgraph.ops import TensorType
from modgraph.passes import INFERENCE, Lower, apply_passes

EXAMPLE_BATCH = 2


@dataclass(frozen=True)
class Report:
    """What an export gave; printed, it is a short account."""

    path: Path
    size: int
    verified: Verified
    lowerings: dict[str, str]
    warnings: tuple[Diagnostic, ...] = field(default=())

    def __str__(self) -> str:
        batches = ", ".join(map(str, self.verified.batches))
        lines = [
            f"{self.path}: {self.size / 1e6:.2f} MB",
            f"ONNX Runtime agrees with torch at batch {batches}: within {self.verified.worst:.1e}",
        ]
        lines += [f"route {name}: {how}" for name, how in self.lowerings.items()]
        for pool, unreached in self.verified.unreached.items():
            lines.append(f"pool {pool}: {'every module reached' if not unreached else f'not reached: {unreached}'}")
        return "\n".join(lines)


def export(
    model: Model,
    path: str | Path,
    *,
    routing: bool = False,
    examples: Arrays | None = None,
    description: Mapping[str, Any] | None = None,
) -> Report:
    """Write a verified bundle, and its manifest beside it as `<stem>.json`.

    `routing` adds the routers' records as outputs, named `<route>.<record>`. `examples` are arrays by input name to
    verify on (random ones otherwise); `description` gives `classes` by target and `preprocessing` by input. Raises
    `ModgraphError`, and then leaves what was there before.
    """
    target = Path(path)
    if target.suffix != ".onnx":
        raise ModgraphError([WrongSuffix(path=str(path))])
    inference = deterministic(model)
    example = inputs_for(inference, EXAMPLE_BATCH, LENGTHS[0], examples)
    proto = trace(inference, example, routing)
    verified = verify(inference, proto.SerializeToString(), routing, examples)
    manifest = _manifest(model.graph, inference, routing, verified, description or {})
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    onnx.helper.set_model_props(proto, {MANIFEST_KEY: text})
    content = proto.SerializeToString()
    write_atomically(target, content)
    write_atomically(target.with_suffix(".json"), text.encode())
    return Report(target, len(content), verified, _lowerings(inference.graph), _warnings(verified))


def deterministic(model: Model) -> Model:
    """The model for inference: a pure function of one example, with the same weights."""
    inference = Model(apply_passes(model.graph, INFERENCE))
    weights = model.state_dict()
    inference.load_state_dict({name: weights[name] for name in inference.state_dict()})
    return inference.eval()


def _manifest(
    trained: Graph, inference: Model, routing: bool, verified: Verified, description: Mapping[str, Any]
) -> dict[str, Any]:
    from modgraph.version import VERSION

    graph = inference.graph
    records = {name: graph.type_of(result) for name, result in inference.routing_results().items()}
    pools = graph.of_kind(PoolNode)
    return {
        "format": FORMAT,
        "modgraph": VERSION,
        "model": graph.name,
        "parameters": to_json(graph)["parameters"],
        "inputs": [_port(name, type_) for name, type_ in graph.input_types.items()],
        "outputs": [_port(name, graph.type_of(result)) for name, result in graph.outputs.items()],
        "routing": [_port(name, type_) for name, type_ in records.items()] if routing else [],
        "targets": list(trained.target_types),
        "classes": _classes(trained, description.get("classes", {})),
        "preprocessing": dict(description.get("preprocessing", {})),
        "pools": {pool.name: {"size": pool.size, "unreached": verified.unreached[pool.name]} for pool in pools},
        "verified": {"batches": list(verified.batches), "worst": verified.worst},
        "opset": OPSET,
        "hash": graph.hash(),
        "ir": to_json(graph),
    }


def _classes(trained: Graph, names: Mapping[str, Any]) -> dict[str, Any]:
    """Names of classes by output: those of the target that the output is trained to tell."""
    outputs = {result: name for name, result in trained.outputs.items()}
    found = {}
    for node in trained:
        inputs = trained.inputs(node.name)
        if "logits" in inputs and "label" in inputs and inputs["logits"] in outputs:
            target = inputs["label"].node
            if target in names:
                found[outputs[inputs["logits"]]] = list(names[target])
    return found


def _port(name: str, type_: TensorType) -> dict[str, Any]:
    return {"name": name, **type_.as_json()}


def _lowerings(graph: Graph) -> dict[str, str]:
    return {route.name: str(Lower(route.lowering).choice(graph, route).form) for route in graph.of_kind(RouteNode)}


def _warnings(verified: Verified) -> tuple[Diagnostic, ...]:
    return tuple(
        Unreached(modules=", ".join(map(str, modules)), pool=pool)
        for pool, modules in verified.unreached.items()
        if modules
    )
