"""Whatever holds an architecture, opened: a spec, a run's folder or an exported bundle. Needs no torch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from modgraph_runtime.integrity import MANIFEST_KEY, damage_of

from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source, Span
from modgraph.elaboration import Imports, elaborate, moves_in, read_model, stored_graph
from modgraph.files import read_file, reason_of
from modgraph.ir import Graph, Node, Part, UnreadableGraph, rewritten
from modgraph.store.errors import NotABundle, SetOfStored
from modgraph.store.run_directory import RunDirectory
from modgraph.syntax import parse, read


class Kind(StrEnum):
    """What an architecture was read from."""

    SPEC = "spec"
    RUN = "run"
    BUNDLE = "bundle"


@dataclass(frozen=True)
class Opened:
    """An architecture and what it was read from.

    `source` is the text of its spec, which spans of the graph's nodes point into; a bundle has none, and what a
    training changed of a graph has no place. `run` is a run's folder, `manifest` what a bundle tells of itself,
    `moved` the names that the spec says an earlier version had otherwise.
    """

    path: Path
    kind: Kind
    graph: Graph
    source: Source | None = None
    run: RunDirectory | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)


def opened(path: str | Path, parameters: Mapping[str, Any] | None = None, known_as: str | None = None) -> Opened:
    """What stands at a path, as `kind_of` says; a spec alone takes parameters, and may be `known_as` another file:
    what it imports is then looked for beside that. Raises `ModgraphError`.
    """
    given = dict(parameters or {})
    kind = kind_of(path)
    if kind is Kind.SPEC:
        return _spec(path, given, known_as)
    if given:
        raise ModgraphError([SetOfStored(path=str(path), kind=kind, name=next(iter(given)))])
    return _run(Path(path)) if kind is Kind.RUN else _bundle(Path(path))


def kind_of(path: str | Path) -> Kind:
    """What a path is taken for: a folder is a run, what ends in .onnx a bundle, all else a spec."""
    if os.path.isdir(path):  # noqa: PTH112 (`Path.is_dir` raises for a name that is too long)
        return Kind.RUN
    return Kind.BUNDLE if str(path).endswith(".onnx") else Kind.SPEC


def _spec(path: str | Path, parameters: dict[str, Any], known_as: str | None) -> Opened:
    report = Report()
    source = read(path, report)
    if source is not None and known_as is not None:
        source = Source(known_as, source.text)
    found = read_model(source, parameters, report)
    told = tuple(report.warnings)
    return Opened(Path(known_as or path), Kind.SPEC, found.graph, source, warnings=told, moved=found.moved)


def _run(path: Path) -> Opened:
    directory = RunDirectory(path)
    graph, report = directory.graph_now(), Report()
    source = read(directory.spec, report)
    file = None if source is None else parse(source, report)
    if file is None:
        return Opened(path, Kind.RUN, graph, source, directory)
    imports = Imports(path, report, directory.read_imports())
    spec = elaborate(file, graph.parameters, report, imports=imports)
    placed = graph if spec is None or report.errors else _placed(graph, spec)
    return Opened(path, Kind.RUN, placed, source, directory, moved=moves_in(file))


def _placed(graph: Graph, spec: Graph) -> Graph:
    """A graph whose nodes know the places of those of their names in a spec's."""
    places: dict[str, Span | None] = {node.name: node.span for part in spec.parts() for node in part.graph}

    def placed(node: Node, part: Part) -> Node:
        return replace(node, span=places.get(node.name))

    return rewritten(graph, placed)


def _bundle(path: Path) -> Opened:
    try:
        content = read_file(path)
        if damage := damage_of(content):
            raise ModgraphError([NotABundle(path=str(path), reason=f"it {damage.reason}", way_out=damage.way_out)])
        manifest = _manifest(content)
        return Opened(path, Kind.BUNDLE, stored_graph(manifest["ir"]), manifest=manifest)
    except (OSError, LookupError, TypeError, UnreadableGraph) as error:
        raise ModgraphError([NotABundle(path=str(path), reason=reason_of(error))]) from error


def _manifest(content: bytes) -> dict[str, Any]:
    """What a bundle's bytes tell of it. Raises `LookupError` where they tell nothing."""
    from google.protobuf.message import DecodeError  # comes with onnx
    from onnx import load_model_from_string

    try:
        properties = {each.key: each.value for each in load_model_from_string(content).metadata_props}
        manifest: dict[str, Any] = json.loads(properties[MANIFEST_KEY])
    except (DecodeError, ValueError, RecursionError) as error:
        raise LookupError("its manifest is damaged") from error
    return manifest
