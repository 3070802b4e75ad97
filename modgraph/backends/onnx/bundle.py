"""Exports a model: traces, verifies, describes and writes a bundle, and only then puts it in place."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx
import torch
from modgraph_runtime.integrity import MANIFEST_KEY, MANIFEST_KEYS, trailer

from modgraph.backends.errors import (
    NoNovelty,
    NothingFinite,
    OfWholeBatch,
    TooLarge,
    Uncalibrated,
    Unreached,
    WrongSuffix,
)
from modgraph.backends.onnx.examples import Arrays, Examples
from modgraph.backends.onnx.int8 import quantise
from modgraph.backends.onnx.int8_change import Change, Test, fit_inputs, measure_change
from modgraph.backends.onnx.manifest import build_manifest, describe, find_omissions, find_outputs_without
from modgraph.backends.onnx.steps import StepExamples, StepPorts, verify_sequences
from modgraph.backends.onnx.trace import start_up, trace
from modgraph.backends.onnx.verify import Session, Verified, verify, verify_bundle
from modgraph.backends.report import describe_lowerings
from modgraph.backends.torch import Model
from modgraph.diagnostics import Caution, Diagnostic, ModgraphError
from modgraph.files import CannotWrite, files_of_bundle, refuse_foreign, replacing, writing
from modgraph.ir import Graph, find_dependencies, is_batch_statistic, to_verified_json
from modgraph.passes import Pass, apply_passes, choices, drop_outputs, novelties, optimise
from modgraph.passes.cache_names import is_cache
from modgraph.passes.pipelines import BUNDLE, OPTIMISE_BUNDLE, export_pipeline
from modgraph.store.records import json_text

LARGEST = 2_000_000_000  # bytes of weights in one file; protobuf ends at 2 GiB


@dataclass(frozen=True)
class Report:
    """The result of an export; it prints as a summary. `seconds` excludes what every process does once.

    `whole` is the graph for whole sequences, of a stepwise bundle another than its own `graph`.
    """

    path: Path
    size: int
    verified: Verified
    graph: Graph = field(repr=False)
    whole: Graph = field(repr=False)
    change: Change | None
    left_out: Mapping[str, list[str]]
    seconds: float

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        kinds: tuple[tuple[type[Caution], Mapping[str, list[int]]], ...] = ((Unreached, self.verified.unreached),)
        kinds += ((Uncalibrated, self.change.rounding.unreached),) if self.change else ()
        return tuple(
            kind(modules=", ".join(map(str, modules)), pool=pool)
            for kind, found in kinds
            for pool, modules in found.items()
            if modules
        )

    def __str__(self) -> str:
        verified = self.verified
        when = " before rounding" if self.change else ""
        lines = [
            f"{self.path}: {self.size / 1e6:.2f} MB, and its manifest in {self.path.with_suffix('.json').name}",
            f"ONNX Runtime agrees with torch{when} at batch {', '.join(map(str, verified.batches))}: "
            f"largest relative difference {verified.worst:.1e}",
        ]
        if caches := [*filter(is_cache, self.graph.input_types)]:
            lines.append(f"tokens one after another, from {len(caches)} caches, give what whole sequences give")
        if self.left_out["outputs"]:
            lines.append(f"left out: {', '.join((*self.left_out['outputs'], *self.left_out['inputs']))}")
        if verified.replaced:
            lines.append(f"examples replaced because their decisions were too close to compare: {verified.replaced}")
        for name, pool in self.graph.pools().items():
            by_order = len(verified.permuted[name])
            how = f", {by_order} of them with the router's modules in another order" if by_order else ""
            lines.append(
                f"pool {name}: {pool.size - len(verified.unreached[name])} of {pool.size} modules reached{how}"
            )
        lines += describe_lowerings({name: lowering.reason for name, lowering in choices(self.graph).items()})
        lines += [str(self.change)] if self.change else []
        return "\n".join([*lines, f"exported in {self.seconds:.1f} s"])


def export(
    model: Model,
    path: str | Path,
    *,
    routing: bool = False,
    novelty: bool = False,
    int8: bool = False,
    stepwise: bool = False,
    only: Collection[str] = (),
    examples: Arrays | None = None,
    tests: Mapping[str, Test] | None = None,
    calibration: Arrays | None = None,
    description: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Report:
    """Write a verified bundle, and its manifest next to it as `<stem>.json`.

    `routing` adds the routers' records as outputs, named `<route>.<record>`; `novelty` adds records of novelty, named
    `<record>.<route>`. `only` are names of outputs, or patterns with `*`: the bundle has only these and what they need.
    `examples` are arrays by input to verify on (default: random ones). `description` gives `classes` by target,
    `preprocessing` by input, and the `words` of ids by input of tokens. `int8` rounds weights after the
    verification, with scales fitted on `calibration`, and measures the change on `tests` (defaults: the examples).
    `stepwise` writes the incremental form,
    which takes the next tokens and the caches of earlier ones. Files that modgraph did not write are
    overwritten only with `force`. Raises `ModgraphError`, and then changes no file.
    """
    start_up()  # not part of the reported time
    begun = time.perf_counter()
    target, manifest_path = files_of_bundle(path)
    _check_place(target, force)
    others = find_outputs_without(model.graph, only)
    if novelty and not novelties(apply_passes(model.graph, drop_outputs(others))):
        raise ModgraphError([NoNovelty(model=model.graph.name)])
    whole = deterministic(model, export_pipeline(routing, novelty, others))
    inference = deterministic(model, export_pipeline(routing, novelty, others, stepwise)) if stepwise else whole
    graph, ports = inference.graph, StepPorts.from_graphs(whole.graph, inference.graph) if stepwise else None
    _check_model(inference)
    to_verified_json(graph)  # first of all: every reader of the bundle needs this graph
    described = describe(description, model.graph)
    sequences = Examples.from_arrays(whole.graph, examples)
    tried = sequences if ports is None else StepExamples(graph, model=inference, ports=ports, whole=sequences)
    traced = trace(inference, tried)
    verified = verify(inference, traced, tried)
    if isinstance(tried, StepExamples):
        verified = replace(verified, worst=max(verified.worst, verify_sequences(whole, inference, traced, tried)))
    changed = None
    if int8:
        sample = sequences.sample()
        calibrated = fit_inputs(whole.graph, calibration or sample, ports)
        exact, (traced, rounding) = traced, quantise(traced, inference, calibrated)
        tests = tests or {"examples": Test(sample)}
        changed = measure_change(whole.graph, exact, traced, rounding, tests, ports)
        verified = replace(verified, computed=Session(traced).run(verified.inputs))
    if not routing:
        traced = traced.only(graph.outputs)
    left_out = find_omissions(model.graph, graph)
    manifest = build_manifest(model.graph, inference, traced, verified, described, changed, left_out, ports)
    text = json_text(manifest, indent=1, ensure_ascii=False)
    onnx.helper.set_model_props(traced.proto, {MANIFEST_KEY: text})
    content = traced.proto.SerializeToString()
    parts = content, trailer(content)
    with replacing(manifest_path) as manifest_file, replacing(target) as file:
        manifest_file.write(text.encode())
        file.writelines(parts)
        file.flush()
        verify_bundle(verified, file.name)
        refuse_foreign(target, manifest_path, force=force, keys=MANIFEST_KEYS)
        # The two files are replaced one after the other. A reader in between, or after a kill there, must not find the
        # old manifest with the new bundle, so remove it first.
        with writing(manifest_path):
            Path(os.path.realpath(manifest_path)).unlink(missing_ok=True)
    seconds = time.perf_counter() - begun
    return Report(target, sum(map(len, parts)), verified, graph, whole.graph, changed, left_out, seconds)


def exportable(model: Model, left_out: Iterable[str] = (), stepwise: bool = False) -> list[Model]:
    """The models for inference that a bundle without some outputs may contain: one for each treatment of novelty."""
    kinds = ((False, False), (True, False), (False, True)) if novelties(model.graph) else ((True, False),)
    return [deterministic(model, export_pipeline(*each, left_out, stepwise)) for each in kinds]


def deterministic(model: Model, pipeline: tuple[Pass, ...] = BUNDLE) -> Model:
    """The model for inference: a pure function of one example, with the same weights."""
    if not isinstance(model, Model):
        raise TypeError(f"export takes a model that modgraph built, not {type(model).__name__}")
    graph = apply_passes(model.graph, pipeline)
    with torch.device("meta"):
        inference = Model(graph, optimise(graph, OPTIMISE_BUNDLE))
    inference.to_empty(device="cpu")
    weights = model.state_dict()
    inference.load_state_dict({name: weights[name] for name in inference.state_dict()})
    return inference.eval().requires_grad_(False)


def _check_place(target: Path, force: bool) -> None:
    """Raise `ModgraphError` if a bundle cannot be written there, before any work is done."""
    if target.suffix != ".onnx":
        raise ModgraphError([WrongSuffix(path=str(target))])
    reason = None
    if not target.parent.is_dir():
        reason = f'no such folder: "{target.parent}"'
    elif not os.access(target.parent, os.W_OK):
        reason = "its folder is not writable"
    elif folder := next((each for each in files_of_bundle(target) if each.is_dir()), None):
        reason = "it is a folder" if folder == target else f'"{folder}", the place of its manifest, is a folder'
    if reason is not None:
        raise ModgraphError([CannotWrite(path=str(target), reason=reason)])
    refuse_foreign(*files_of_bundle(target), force=force, keys=MANIFEST_KEYS)


def _check_model(model: Model) -> None:
    """Raise `ModgraphError` if outputs depend on the batch, weights are not finite, or the model is too large."""
    graph, found = model.graph, list[Diagnostic]()
    for name, result in graph.outputs.items():
        needed = find_dependencies(graph, [result]).nodes
        wide = next((node for node in sorted(needed) if is_batch_statistic(graph, graph[node])), None)
        if wide:
            found.append(OfWholeBatch(output=name, node=wide))
    weights = model.state_dict()
    for name, tensor in weights.items():
        if not tensor.sum().isfinite() and not tensor.isfinite().all():  # a sum is quick, and may be too large
            found.append(NothingFinite(what=f'the weight "{name}"'))
    size = sum(tensor.nbytes for tensor in weights.values())
    if size >= LARGEST:
        found.append(TooLarge(size=size / 1e9))
    if found:
        raise ModgraphError(found)
