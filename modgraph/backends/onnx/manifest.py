"""The manifest of a bundle: its graph, ports, omissions and verification, and names of classes and words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

from modgraph_runtime.integrity import FORMAT

from modgraph.backends.errors import BadExamples, UnknownOutput
from modgraph.backends.onnx.int8_change import Change
from modgraph.backends.onnx.operators import OPSET
from modgraph.backends.onnx.steps import StepPorts, list_choice_records
from modgraph.backends.onnx.trace import Traced
from modgraph.backends.onnx.verify import TOLERANCE, Verified
from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph, comparisons, find_padded_axes, longest, to_json
from modgraph.ir.analysis.class_outputs import find_ranked_targets
from modgraph.store.checkpoint_record import hash_of_values
from modgraph.types import TensorType
from modgraph.version import VERSION


def describe(given: Mapping[str, Any] | None, graph: Graph) -> dict[str, dict[str, Any]]:
    """The description of a model: `classes` by target, `preprocessing` and `words` of ids by input.

    Entries for other targets and inputs are dropped. Raises `ModgraphError`.
    """
    found = dict(given or {})
    return {
        "classes": _names(found.get("classes", {}), graph.target_types, "classes"),
        "words": _names(found.get("words", {}), graph.input_types, "words"),
        "preprocessing": dict(found.get("preprocessing", {})),
    }


def _names(given: Mapping[str, Any], types: Mapping[str, TensorType], what: str) -> dict[str, list[str]]:
    """A name for each value of some inputs or targets. Raises `ModgraphError`."""
    found = {name: [*map(str, names)] for name, names in given.items() if name in types}
    for name, names in found.items():
        if types[name].of:  # classes of later tasks already have names
            names = found[name] = names[: types[name].size]
        if types[name].size != len(names):
            reason = f'the description names {len(names)} {what} of "{name}", which is {types[name]}'
            raise ModgraphError([BadExamples(reason=reason)])
    return found


def find_omissions(trained: Graph, inference: Graph) -> dict[str, list[str]]:
    """The outputs of a model that a bundle lacks, and the inputs and targets that only these need."""
    needed = trained.ancestors(trained.outputs[name].node for name in inference.outputs if name in trained.outputs)
    compared = comparisons(trained)
    kept = {each.target for each in compared if each.prediction.node in needed}
    return {
        "outputs": [name for name in trained.outputs if name not in inference.outputs],
        "inputs": [name for name in trained.input_types if name not in inference.input_types],
        "targets": [*dict.fromkeys(each.target for each in compared if each.target not in kept)],
    }


def find_outputs_without(graph: Graph, patterns: Collection[str]) -> list[str]:
    """The outputs of a graph that match no pattern; empty without patterns.

    Raises `ModgraphError` for patterns that match no output.
    """
    names, found = [*graph.outputs], list[UnknownOutput]()
    meant = {each: [name for name in names if each == name or fnmatchcase(name, each)] for each in patterns}
    for each in (pattern for pattern, outputs in meant.items() if not outputs):
        members = [f"--only {name}" for name in names if each in name.split(".")]
        suggestion = f"give the whole name: {', '.join(members)}" if members else did_you_mean(each, names)
        found.append(UnknownOutput(model=graph.name, name=each, suggestion=suggestion))
    if found:
        raise ModgraphError(found)
    return [name for name in names if patterns and not any(name in outputs for outputs in meant.values())]


def build_manifest(
    trained: Graph,
    inference: Model,
    traced: Traced,
    verified: Verified,
    description: Mapping[str, Mapping[str, Any]],
    changed: Change | None,
    left_out: Mapping[str, list[str]],
    steps: StepPorts | None = None,
) -> dict[str, Any]:
    """The manifest as JSON values.

    `trained` has the targets that the inference graph lacks. The verification is of the model before quantisation;
    `changed` is what quantisation changed. The caches of `steps` are described apart from other inputs and outputs.
    """
    graph, targets = inference.graph, find_ranked_targets(trained)
    results = {**graph.outputs, **inference.routing_results()}
    ports = [_port(name, graph.type_of(results[name]), tensor) for name, tensor in traced.tensors.items()]
    for port in ports:
        port |= {"target": targets[port["name"]]} if port["name"] in targets and port["name"] in graph.outputs else {}
    whole, hidden = (graph, frozenset[str]()) if steps is None else (steps.whole, steps.hidden)
    limits, classes = longest(whole), description["classes"]
    return {
        "format": FORMAT,
        "modgraph": VERSION,
        "model": graph.name,
        "parameters": to_json(graph)["parameters"],
        "inputs": [_port(name, type_, name) for name, type_ in graph.input_types.items() if name not in hidden],
        "outputs": [port for port in ports if port["name"] in graph.outputs.keys() - hidden],
        "routing": [port for port in ports if port["name"] not in graph.outputs],
        "axes": {axis: {"longest": limits[axis]} if axis in limits else {} for axis in find_padded_axes(whole)},
        "targets": {
            name: type_.as_json() for name, type_ in trained.target_types.items() if name not in left_out["targets"]
        },
        "classes": {
            name: classes[target] for name, target in targets.items() if target in classes and name in graph.outputs
        },
        "words": {name: words for name, words in description["words"].items() if name not in left_out["inputs"]},
        "preprocessing": {
            name: how for name, how in description["preprocessing"].items() if name not in left_out["inputs"]
        },
        "pools": {
            name: {"size": pool.size, "unreached": verified.unreached[name], "permuted": verified.permuted[name]}
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
        **({"left_out": left_out} if left_out["outputs"] else {}),
        **({"stepwise": steps.as_json(_choices(inference, steps, traced))} if steps else {}),
        "opset": OPSET,
        "hash": graph.hash(),
        "weights": hash_of_weights(inference),
        "ir": to_json(graph),
    }


def _choices(model: Model, steps: StepPorts, traced: Traced) -> dict[str, str]:
    """The records of a bundle with the choice of each route that chooses modules for each token."""
    return {route: record for route, record in list_choice_records(model, steps).items() if record in traced.tensors}


def _port(name: str, type_: TensorType, tensor: str) -> dict[str, Any]:
    known = {**type_.as_json(), "shape": [*type_.dimensions]}
    if type_.ends:
        known["ends"] = [*type_.end_dimensions]
    return {"name": name, **known, **({} if tensor == name else {"tensor": tensor})}


def hash_of_weights(model: Model) -> str:
    """The SHA-256 digest of the weights' names, shapes and values."""
    return hash_of_values({name: tensor.contiguous().cpu().numpy() for name, tensor in model.state_dict().items()})
