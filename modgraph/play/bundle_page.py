"""Makes the page of a bundle. A bundle has no text of its spec, so that is given."""

from __future__ import annotations

import shutil
from pathlib import Path

from modgraph_runtime import Bundle

from modgraph.diagnostics import ModgraphError, Report
from modgraph.differences import to_whole
from modgraph.elaboration import read_model
from modgraph.play.errors import BundleOfAnother, BundleWithoutRouting
from modgraph.play.page_of_run import computes_as
from modgraph.store.architecture import Architecture, Kind, read_architecture
from modgraph.syntax import parse, read
from modgraph.trace.trace import list_routes_with_gates
from modgraph.web.write import MODEL, fill_page


def write_page_of_bundle(path: Path, spec: str | Path | None, folder: Path) -> None:
    """Write the page of a bundle, with the texts of its spec and without examples, into a new folder. Raises
    `ModgraphError` for a bundle of another spec, and for one that does not output its routing."""
    bundle, report = read_architecture(path), Report()
    if spec is None:
        raise _refuse(path, "no spec is given")
    source = read(spec, report)
    file = None if source is None else parse(source, report)
    if file is not None and file.models and file.models[0].name != bundle.graph.name:
        raise _refuse(path, f"it has the model {bundle.graph.name}, the spec {file.models[0].name}")
    reading = read_model(source, bundle.graph.parameters, report, file)
    if not computes_as(Architecture(Path(spec), Kind.SPEC, reading.graph), bundle):
        raise _refuse(path, "the spec gives another graph")
    whole = to_whole(reading.graph, bundle)
    if list_routes_with_gates(whole) and not Bundle(path).routing:
        raise ModgraphError([BundleWithoutRouting(path=str(path))])
    folder.mkdir()
    shutil.copyfile(path, folder / MODEL)
    texts = {Path(spec).name: reading.standalone.text, **reading.standalone.imports}
    fill_page(folder, whole, {}, texts, bundle.graph.parameters)


def _refuse(path: Path, reason: str) -> ModgraphError:
    return ModgraphError([BundleOfAnother(path=str(path), reason=reason)])
