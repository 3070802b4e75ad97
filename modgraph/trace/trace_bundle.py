"""Traces a bundle that was exported with its routers' records. It equals the trace of its run after the last round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph_runtime import Bundle, BundleError

from modgraph.backends.errors import BadBundle
from modgraph.data import Arrays
from modgraph.data.declaration import check
from modgraph.data.npz import read_npz, refuse_unknown
from modgraph.diagnostics import ModgraphError
from modgraph.files import explain_error
from modgraph.ir import Graph, UnreadableGraph, from_json
from modgraph.store.errors import NotABundle
from modgraph.store.run_directory import RunDirectory
from modgraph.trace.errors import NoRouting, NothingToTrace
from modgraph.trace.trace import RouteTrace, Trace, choose_split, first_of, list_routes_with_gates, name_classes
from modgraph.training.recipe import read_recipe, with_validation

CHUNK = 256  # examples per call of the bundle


@dataclass(frozen=True)
class TraceableBundle:
    """A bundle with its graph, and the graph with the targets of its training, which data must fit."""

    bundle: Bundle
    graph: Graph
    trained: Graph

    @classmethod
    def read(cls, path: str) -> TraceableBundle:
        """Open a bundle. Raises `ModgraphError`, also for a bundle without its routers' records."""
        try:
            bundle = Bundle(path)
            graph, trained = from_json(bundle.manifest["ir"]), from_json(_with_targets(bundle.manifest))
        except BundleError as error:
            raise ModgraphError([BadBundle.from_error(error)]) from error
        except (LookupError, TypeError, UnreadableGraph) as error:
            raise ModgraphError([NotABundle(path=path, reason=explain_error(error))]) from error
        if not list_routes_with_gates(graph):
            raise ModgraphError([NothingToTrace(path=path)])
        if not bundle.routing:
            raise ModgraphError([NoRouting(path=path)])
        return cls(bundle, graph, trained)

    def splits_of_recipe(self, path: str, overrides: Mapping[str, Any]) -> dict[str, Arrays]:
        """Return the splits of a recipe's data, with the files that a run keeps if the recipe is a run's.

        Raises `ModgraphError`.
        """
        recipe = read_recipe(path, overrides)
        of_run = RunDirectory(Path(path).parent)
        data = recipe.data.with_kept_files(of_run.path) if of_run.record.exists() else recipe.data
        return with_validation(data.splits(self.trained), recipe.train)

    def splits_of_file(self, path: str) -> dict[str, Arrays]:
        """Return the arrays of an .npz file, all inputs and any targets, as a split of the file's name.

        Raises `ModgraphError`.
        """
        known = list(dict.fromkeys([*self.trained.input_types, *self.trained.target_types]))
        refuse_unknown(path, [*known, *self.bundle.left_out, *self.bundle.targets])
        arrays = read_npz(path, known)
        graph = from_json(_with_targets(self.bundle.manifest, arrays.values.keys()))
        name = Path(path).name
        return {name: check(arrays, graph, name)}


def _with_targets(manifest: Mapping[str, Any], names: Any = None) -> dict[str, Any]:
    """Return the JSON of a graph with all targets of a bundle's training, or with those among `names`; of a stepwise
    bundle, with its inputs but caches, which data do not have."""
    nodes, stepwise = manifest["ir"]["nodes"], manifest.get("stepwise")
    if stepwise is not None:
        kept = {entry["name"] for entry in manifest["inputs"]}
        nodes = [node for node in nodes if node["kind"] == "input" and node["name"] in kept]
    taken = {node["name"] for node in nodes}
    targets = [
        {"name": name, "kind": "target", "types": [type_]}
        for name, type_ in manifest.get("targets", {}).items()
        if name not in taken and (names is None or name in names)
    ]
    return {**manifest["ir"], "nodes": [*nodes, *targets]}


def trace_bundle(
    traceable: TraceableBundle,
    splits: Mapping[str, Arrays],
    split: str | None = None,
    route: str | None = None,
    examples: int = 512,
) -> Trace:
    """Trace the first examples of a split, by default the first split but `train`. Raises `ModgraphError`."""
    bundle, graph = traceable.bundle, traceable.graph
    wanted = list_routes_with_gates(graph, route)
    name, arrays = choose_split(splits, split)
    arrays = first_of(arrays, examples)
    inputs = {name: array for name, array in arrays.values.items() if name in bundle.inputs}
    try:
        values = bundle.run(inputs, routing=True, chunk=CHUNK)
    except BundleError as error:
        raise ModgraphError([BadBundle.from_error(error)]) from error
    ports = {port.target: port for port in reversed(bundle.outputs.values()) if port.target is not None}
    truths = {target: arrays.values[target] for target in ports if target in arrays.values}
    labels = {target: name_classes(truth, ports[target].classes) for target, truth in truths.items() if truth.ndim == 1}
    first = next((ports[target] for target in labels), None)
    return Trace(
        graph,
        name,
        arrays,
        tuple(
            RouteTrace.from_records(each, {name: values[f"{each.label}.{name}"][None] for name in each.results})
            for each in wanted
        ),
        labels=labels,
        predicted=() if first is None else name_classes(values[first.name].argmax(-1), first.classes),
        predictions={target: graph.outputs[port.name] for target, port in ports.items()},
        words=bundle.manifest.get("words", {}),
    )
