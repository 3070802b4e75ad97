"""Reads an architecture from a spec, a run's folder, a checkpoint, a stored graph or an exported bundle. Needs no
torch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from modgraph_runtime.integrity import MANIFEST_KEY, find_damage, other_format

from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source, Span
from modgraph.elaboration import Imports, elaborate, find_moves, read_model
from modgraph.files import explain_error, read_file
from modgraph.ir import Graph, UnreadableGraph, from_json, rewrite_graph
from modgraph.store.checkpoint_record import NAME, CheckpointRecord
from modgraph.store.errors import NotABundle, NotAGraph, SetOfStored
from modgraph.store.run_directory import RunDirectory
from modgraph.syntax import parse, read


class Kind(StrEnum):
    """The kind of file from which an architecture was read."""

    SPEC = "spec"
    RUN = "run"
    CHECKPOINT = "checkpoint"
    GRAPH = "graph"
    BUNDLE = "bundle"


@dataclass(frozen=True)
class Architecture:
    """An architecture and where it was read from.

    `source` is the text of its spec, which the spans of nodes point into. A bundle has none, and nodes that a training
    added have no span. `run` is the folder of the run that it belongs to, `record` that of a checkpoint, `manifest`
    that of a bundle, and `moved` maps names in the spec to those of an earlier version.
    """

    path: Path
    kind: Kind
    graph: Graph
    source: Source | None = None
    run: RunDirectory | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict, repr=False)
    warnings: tuple[Diagnostic, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)
    record: CheckpointRecord | None = None

    @property
    def label(self) -> str:
        """Its name in pages: the last part of its path."""
        return self.path.resolve().name


def read_architecture(
    path: str | Path, parameters: Mapping[str, Any] | None = None, known_as: str | None = None
) -> Architecture:
    """Read the architecture at a path, of the kind that `find_kind` says. Only a spec takes parameters. It may be
    `known_as` another file, whose folder its imports are then relative to. Raises `ModgraphError`."""
    given, kind, place = dict(parameters or {}), find_kind(path), Path(path)
    if kind is Kind.SPEC:
        report = Report()
        text = read(path, report)
        source = text if text is None or known_as is None else Source(known_as, text.text)
        found = read_model(source, given, report)
        warnings = tuple(report.warnings)
        return Architecture(Path(known_as or path), kind, found.graph, source, warnings=warnings, moved=found.moved)
    if given:
        raise ModgraphError([SetOfStored(path=str(path), kind=kind, name=next(iter(given)))])
    if kind is Kind.BUNDLE:
        return _bundle(place)
    if kind is Kind.RUN:
        run = RunDirectory(place)
        return _attach_spec(Architecture(place, kind, run.graph_now(), run=run))
    if kind is Kind.CHECKPOINT:  # by the file of its tensors, or of its record
        record = CheckpointRecord.read(place.with_suffix(".safetensors"))
        folder = RunDirectory(place.absolute().parent.parent)
        return _attach_spec(
            Architecture(place, kind, record.graph, run=folder if folder.record.exists() else None, record=record)
        )
    try:  # a graph stored as JSON, such as a run's first in ir.json
        graph = from_json(json.loads(read_file(place)))
    except (OSError, ValueError, RecursionError, UnreadableGraph) as error:
        raise ModgraphError([NotAGraph(path=str(place), reason=explain_error(error))]) from error
    folder = RunDirectory(place.absolute().parent)
    of_run = folder.record.exists() and folder.ir.name == place.name
    return _attach_spec(Architecture(place, kind, graph, run=folder if of_run else None))


def find_kind(path: str | Path) -> Kind:
    """Return the kind of a path: a folder is a run, .onnx a bundle, .safetensors or the name of a record a checkpoint,
    any other .json a stored graph, and all else a spec."""
    if os.path.isdir(path):  # noqa: PTH112 (`Path.is_dir` raises for a name that is too long)
        return Kind.RUN
    name = Path(path)
    if name.suffix == ".safetensors" or (name.suffix == ".json" and NAME.fullmatch(name.stem)):
        return Kind.CHECKPOINT
    return {".onnx": Kind.BUNDLE, ".json": Kind.GRAPH}.get(name.suffix, Kind.SPEC)


def _attach_spec(found: Architecture) -> Architecture:
    """Add the spec of the run, and the spans of nodes in it."""
    if found.run is None:
        return found
    spec = SpecOfRun(found.run)
    graph = spec.graph(found.graph.parameters)
    placed = found.graph
    if graph is not None:
        places: dict[str, Span | None] = {node.name: node.span for part in graph.parts() for node in part.graph}
        placed = rewrite_graph(found.graph, lambda node, _: replace(node, span=places.get(node.name)))
    moved = {} if spec.file is None else find_moves(spec.file)
    return replace(found, graph=placed, source=spec.source, moved=moved)


class SpecOfRun:
    """The spec that a run keeps, read once. Raises `ModgraphError`."""

    def __init__(self, run: RunDirectory) -> None:
        report = Report()
        self.run = run
        self.source = read(run.spec, report, label="<run>/spec.mod")
        self.file = None if self.source is None else parse(self.source, report)
        self._sound = not report.errors

    def graph(self, parameters: Mapping[str, Any]) -> Graph | None:
        """Elaborate the spec with parameters; None where it has mistakes."""
        if self.file is None or not self._sound:
            return None
        report = Report()
        imports = Imports(self.run.path, report, self.run.read_imports())
        found = elaborate(self.file, dict(parameters), report, imports=imports)
        return None if report.errors else found


def _bundle(path: Path) -> Architecture:
    from google.protobuf.message import DecodeError  # comes with onnx
    from onnx import load_model_from_string

    try:
        content = read_file(path)
        damage, manifest = find_damage(content), {}
        if not damage:
            try:
                properties = {each.key: each.value for each in load_model_from_string(content).metadata_props}
                manifest = json.loads(properties[MANIFEST_KEY])
            except (DecodeError, ValueError, RecursionError) as error:
                raise LookupError("its manifest is damaged") from error
        if damage := damage or other_format(manifest):
            raise ModgraphError([NotABundle(path=str(path), reason=f"it {damage.reason}", way_out=damage.way_out)])
        if not isinstance(manifest.get("weights"), str):
            raise LookupError("its manifest has no hash of the weights")
        return Architecture(path, Kind.BUNDLE, from_json(manifest["ir"]), manifest=manifest)
    except (OSError, LookupError, TypeError, UnreadableGraph) as error:
        raise ModgraphError([NotABundle(path=str(path), reason=explain_error(error))]) from error
