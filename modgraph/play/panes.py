"""What the panes next to the editor ask: costs, the graph, its text, what differs. The texts are those of commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from modgraph.checking import check_spec
from modgraph.diagnostics import ModgraphError, Report, Source, render_all
from modgraph.differences import differences
from modgraph.elaboration import read_model, read_value
from modgraph.inspect.caches import count_caches
from modgraph.inspect.cost import check_lengths, compute_cost, list_axes_of_any_length
from modgraph.inspect.cost_text import format_counts, format_heading
from modgraph.inspect.diff import text_of
from modgraph.inspect.diff.html import build_panes
from modgraph.inspect.diff.text import summary
from modgraph.inspect.page.content import Pane
from modgraph.inspect.scene import scene_of
from modgraph.passes import EVERY_PIPELINE, apply_passes, cut_pipeline
from modgraph.play.documents import Documents, UnknownMethod, WrongParameters
from modgraph.play.facts import check_facts, read_facts
from modgraph.play.parameters import list_parameters
from modgraph.store.architecture import Architecture, Kind, read_architecture

Params = Mapping[str, Any]
Json = dict[str, Any]
PASSES = [f"{pipeline}.{each.name}" for pipeline, passes in EVERY_PIPELINE.items() for each in passes]
LABELS = "pinned", "now"  # of the two graphs of a comparison


class Panes:
    """Answers for the specs below a folder. What is read is kept until `forget`, after each change."""

    def __init__(self, documents: Documents, explain: Callable[[str], str]) -> None:
        self.documents = documents
        self._explain = explain
        self._read: dict[str, Architecture] = {}

    def forget(self) -> None:
        self._read.clear()

    def answer(self, method: str, params: Params) -> Json:
        """The result of a request. Raises `UnknownMethod`, `WrongParameters`, `NotInFolder` and `ModgraphError`."""
        if method not in REQUESTS:
            raise UnknownMethod(method)
        return REQUESTS[method](self, params)

    def check(self, params: Params) -> Json:
        checked = check_spec(self._spec(params), read_values(params), needs=False)
        found = [each.as_json() for each in checked.diagnostics]
        rendered = render_all(checked.diagnostics) if found else ""
        return {"ok": not checked.has_errors, "diagnostics": found, "rendered": rendered}

    def program(self, params: Params) -> Json:
        graph = self._open(params).graph
        return {"model": graph.name, "program": graph.hash()}

    def parameters(self, params: Params) -> Json:
        spec, model = self._spec(params), None
        try:
            graph = self._open({**params, "parameters": {}}).graph
            model, values = graph.name, {**graph.parameters}
        except ModgraphError:  # their defaults are known from the text alone, where it can be parsed
            values = {}
        return {"model": model, "parameters": list_parameters(spec, values)}

    def cost(self, params: Params) -> Json:
        found, values, asked = self._find(params, self._spec(params)), read_values(params), _lengths(params)
        check_lengths(found.graph, asked)
        lengths = dict.fromkeys(list_axes_of_any_length(found.graph), 1) | asked
        cost, caches = compute_cost(found.graph, lengths), count_caches(found.graph)
        heading = format_heading(f"{found.graph.name}, from {found.path}", values, lengths, asked)
        kept = {} if caches is None else {"cache": caches.as_json()}
        text = "\n".join([*heading, *format_counts(found.graph, cost, caches)])
        return {"text": text, "cost": {**cost.as_json(), "lengths": lengths, **kept}}

    def show(self, params: Params) -> Json:
        after = params.get("after") or None
        try:
            passes = () if after is None else cut_pipeline(str(after))
        except KeyError as error:
            raise WrongParameters(f'unknown pass "{after}"') from error
        return {"text": str(apply_passes(self._open(params).graph, passes)), "after": after, "passes": PASSES}

    def graph(self, params: Params) -> Json:
        found = self._open(params)
        warnings = render_all(found.warnings) if found.warnings else ""
        return Pane(scene_of(found.graph), found.source).as_json() | {"warnings": warnings}

    def diff(self, params: Params) -> Json:
        pinned, after = params.get("before"), self._open(params)
        if not isinstance(pinned, Mapping):
            raise WrongParameters("before must be an object with a text or a uri")
        before = self._find(pinned, str(after.path))
        found = differences(before, after, _lengths(params))
        panes = build_panes(found, (before.source, after.source), LABELS)
        said = {"text": text_of(found), "summary": summary(found), "different": found.is_different}
        return said | {"panes": [each.as_json() for each in panes]}

    def tour(self, params: Params) -> Json:
        """Check the facts of a step of the tour; a spec with mistakes meets none."""
        facts = read_facts(params.get("check"))
        try:
            found = self._open(params)
        except ModgraphError as error:
            return {"met": False, "facts": check_facts(facts, None), "first": error.diagnostics[0].text()}
        checked = check_facts(facts, found.graph)
        first = found.warnings[0].text() if found.warnings and not params.get("warnings") else ""
        return {"met": not first and all(each["met"] for each in checked), "facts": checked, "first": first}

    def explain(self, params: Params) -> Json:
        return {"text": self._explain(str(params.get("name", "")))}

    # ------------------------------------------------------------ files

    def files(self, params: Params) -> Json:
        named = [{"uri": self.documents.uri_of(name), "name": name} for name in self.documents.list_files()]
        return {"files": named}

    def read(self, params: Params) -> Json:
        path = self.documents.root / self.documents.name_of(str(params.get("uri", "")))
        try:
            return {"text": path.read_text(encoding="utf-8")}
        except (OSError, ValueError) as error:
            raise WrongParameters(f'cannot read "{path.name}"') from error

    def write(self, params: Params) -> Json:
        self.documents.write_files(params.get("files"))
        self.forget()
        return self.files({})

    # ------------------------------------------------------------ specs

    def _spec(self, params: Params) -> str:
        name = self.documents.name_of(str(params.get("uri", "")))
        spec = self.documents.spec_of(name)
        if spec is None:
            raise WrongParameters(f'"{name}" is neither a spec nor the recipe of one')
        return spec

    def _open(self, params: Params) -> Architecture:
        """The architecture of a spec under its parameters, read once. Raises `ModgraphError`."""
        spec, values = self._spec(params), read_values(params)
        key = json.dumps([spec, values], default=str)
        if key not in self._read:
            of_model = {name: value for name, value in values.items() if "." not in name}
            self._read[key] = read_architecture(spec, of_model)
        return self._read[key]

    def _find(self, params: Params, path: str) -> Architecture:
        """The architecture of a text in the place of a spec, or else of the spec. Raises `ModgraphError`."""
        if "text" not in params:
            return self._open(params)
        report, source = Report(), Source(path, str(params["text"]))
        values = {name: value for name, value in read_values(params).items() if "." not in name}
        found = read_model(source, values, report)
        warnings = tuple(report.warnings)
        return Architecture(Path(path), Kind.SPEC, found.graph, source, warnings=warnings, moved=found.moved)


def read_values(params: Params) -> dict[str, Any]:
    """The values of parameters by name: numbers and truth values as they are, texts as one types them after `-s`."""
    given = params.get("parameters") or {}
    if not isinstance(given, Mapping) or not all(isinstance(each, str | int | float) for each in given.values()):
        raise WrongParameters("parameters must be numbers, truth values or texts by name")

    def read(name: str, value: Any) -> Any:
        if value == "null" and "." in name:  # as a recipe says it
            return None
        return read_value(value) if isinstance(value, str) else value

    return {name: read(name, value) for name, value in given.items()}


def _lengths(params: Params) -> dict[str, int]:
    given = params.get("lengths") or {}
    if not isinstance(given, Mapping) or not all(type(each) is int and each > 0 for each in given.values()):
        raise WrongParameters("lengths must be whole numbers from 1 by axis")
    return dict(given)


REQUESTS: Mapping[str, Callable[[Panes, Params], Json]] = {
    "modgraph/check": Panes.check,
    "modgraph/parameters": Panes.parameters,
    "modgraph/program": Panes.program,
    "modgraph/cost": Panes.cost,
    "modgraph/show": Panes.show,
    "modgraph/graph": Panes.graph,
    "modgraph/diff": Panes.diff,
    "modgraph/tour": Panes.tour,
    "modgraph/explain": Panes.explain,
    "modgraph/files": Panes.files,
    "modgraph/read": Panes.read,
    "modgraph/write": Panes.write,
}
