"""Writes the folder of a page: a verified bundle that outputs its routing, scripts, and examples."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from modgraph_runtime import Bundle, Port

from modgraph.backends.onnx import Report
from modgraph.data import Arrays
from modgraph.declare import Role
from modgraph.diagnostics import ModgraphError
from modgraph.extras import require
from modgraph.inspect.charts import CONFIG, curves, heat_map
from modgraph.inspect.page.content import FITTING, Curve, Curves, Heatmap, Pane
from modgraph.inspect.page.document import read_style_of_drawing, render, text_of
from modgraph.inspect.page.libraries import Library
from modgraph.inspect.quote import escape_html
from modgraph.inspect.scene import scene_of
from modgraph.ir import Decision, Graph, OpNode, from_json, to_json
from modgraph.ops.along_axis import Softmax
from modgraph.trace.steps import Places, find_places_of_tokens
from modgraph.trace.trace import list_routes_with_gates
from modgraph.version import VERSION
from modgraph.web.errors import NoFolder, NoWebModule
from modgraph.web.examples import examples_of
from modgraph.web.folder import FORMAT, PAGE, RECORD, check_place, list_files_in, replacing_folder

GRAPH_SCRIPTS = (
    "scene.js",
    "folds.js",
    "layout.js",
    "marks.js",
    "draw.js",
    "dom.js",
    "zoom.js",
    "source.js",
    "pane.js",
    "chart.js",
    "charts.js",
)
MOST_NUMBERED = 16  # modules whose gates a heat map has as numbers
ROOM = (620, 1400)  # pixels of a drawing that can be read at once in its column of a window of 1280
MODULE = "modgraph_web"  # the folder of the runtime, as the scripts of the page name it
MODEL, EXAMPLES = "model.onnx", "examples.json"
SPEC, PARAMETERS = "spec", "parameters"  # keys of a page's record: texts of the spec and its imports, by name
COMPILED = ".wasm"
# Everything comes from the page's own folder; WebAssembly is compiled, and nothing is evaluated.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'"
)


def check_page(folder: str | Path, force: bool) -> None:
    """Check before the work that a page can be written there. Raises `ModgraphError`."""
    if Path(folder).suffix == ".onnx":
        raise ModgraphError([NoFolder(path=str(folder))])
    list_module_files()
    require("visualize", "a page with a graph")
    check_place(Path(folder), force)


def write_page(
    folder: str | Path,
    export: Callable[[Path], Report],
    splits: Mapping[str, Arrays],
    texts: Mapping[str, str],
    parameters: Mapping[str, Any] | None,
    force: bool = False,
) -> tuple[Report, str]:
    """Write the folder of a page, and report the sizes of its parts.

    `export` writes the bundle with its routing to a given path; what else is given is as in `fill_page`. Raises
    `ModgraphError` and then leaves everything as it was.
    """
    check_page(folder, force)
    target = Path(folder)
    with replacing_folder(target, force) as new:
        report = export(new / MODEL)
        fill_page(new, report.whole, splits, texts, parameters)
        sizes = {name: (new / name).stat().st_size for name in sorted(list_files_in(new))}
    report = replace(report, path=target / MODEL)
    whole, model = sum(sizes.values()), sizes[MODEL]
    compiled = sum(size for name, size in sizes.items() if name.endswith(COMPILED))
    return report, (
        f"{report}\n{target}: {whole / 1e6:.1f} MB, of which WebAssembly {compiled / 1e6:.1f}, the model "
        f"{model / 1e6:.1f}, the page {(whole - compiled - model) / 1e6:.1f}\n"
        f"to look at it: python -m http.server -d {target} 8000"
    )


def fill_page(
    new: Path,
    whole: Graph,
    splits: Mapping[str, Arrays],
    texts: Mapping[str, str],
    parameters: Mapping[str, Any] | None,
) -> None:
    """Write all files of a page into the folder of its bundle. `whole` is the graph of the bundle, for whole sequences.

    Examples come from the first of the splits; without splits there are none. `texts` are the spec and its imports, by
    name, the spec first, and with `parameters` it gives the model; None for a model that it gives with none. A
    playground shows them.
    """
    bundle = Bundle(new / MODEL)
    write_scripts(new)
    write_frame(new / PAGE, bundle.manifest["model"])
    split, arrays = next(iter(splits.items()), ("", None))
    tried = {"split": "", "examples": []} if arrays is None else examples_of(bundle, arrays, split)
    (new / EXAMPLES).write_text(_json(tried))
    names = sorted({*list_files_in(new), RECORD})
    origin = {SPEC: dict(texts), PARAMETERS: None if parameters is None else dict(parameters)}
    record = {"files": names, **_record(bundle, whole), **origin}
    (new / RECORD).write_text(_json(record), encoding="utf-8")


def list_module_files() -> dict[str, Path]:
    """The files that run a bundle in a browser, by name. Raises `ModgraphError` if they are not installed."""
    try:
        import modgraph_web
    except ImportError as error:
        raise ModgraphError([NoWebModule(reason="it is not installed")]) from error
    try:
        return modgraph_web.files()
    except FileNotFoundError as error:
        raise ModgraphError([NoWebModule(reason=str(error))]) from error


def _record(bundle: Bundle, whole: Graph) -> dict[str, Any]:
    graph = from_json(to_json(whole))  # without places in the spec
    places = find_places_of_tokens(graph)
    every = [_route_record(route, graph, bundle.routing, places) for route in list_routes_with_gates(graph)]
    routes = [route for route in every if route["gates"] in bundle.routing]
    made = {name: graph[result.node] for name, result in graph.outputs.items()}
    probabilities = [name for name, each in made.items() if isinstance(each, OpNode) and isinstance(each.op, Softmax)]
    return {
        "modgraph": VERSION,
        "format": FORMAT,
        "routes": routes,
        "probabilities": probabilities,
        "charts": {"curve": curves(Curves([Curve("", [])], x_label="$axis"), interactive=True), "config": CONFIG},
        "graph": _pane(graph, routes),
    }


def _route_record(
    route: Decision, graph: Graph, outputs: Mapping[str, Port], places: Mapping[str, Places]
) -> dict[str, Any]:
    """A route with its node, and the outputs of the bundle that have its gates, choice and slots.

    Its tokens may be `places` of an image, or those of the input `words`.
    """
    records = {role: route.record_as(role) for role in (Role.GATES, Role.CHOICE, Role.SLOTS)}
    gates, choice, slots = (None if name is None else f"{route.label}.{name}" for name in records.values())
    tokens = outputs[str(gates)].shape[:-1] if gates in outputs else ()
    place = places.get(route.tokens.node)
    one_of_tokens = place is not None and tokens == (place.tokens,) and route.part.scan is None
    along = [axis for axis in tokens if axis != 1]
    types = graph.input_types.items()
    return {
        "name": route.label,
        "node": route.name,
        "pool": route.pool.name,
        "router": route.router.name,
        "decides": str(route.router.router),
        "modules": route.pool.size,
        "gates": gates,
        "chart": heat_map(Heatmap([], [], [], most=1.0, numbers=route.pool.size <= MOST_NUMBERED)),
        "choice": choice,
        "slots": slots,
        "places": asdict(place) if place is not None and one_of_tokens else None,
        "words": next((name for name, each in types if each.dtype == "token" and [*each.dimensions] == along), None),
    }


def _pane(graph: Graph, routes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the graph in JSON, with positions and room for loads, without source lines; fold it until it fits."""
    pane = Pane(scene_of(graph), loads={route["node"]: [0.0] * route["modules"] for route in routes}).as_json()
    pending = [*pane["scene"]["boxes"]]
    for box in pending:
        box.pop("lines", None)
        pending += box.get("children", ())
    drawing = render(pane, ROOM, FITTING, routes=bool(routes))
    return pane | {"sources": [], "state": drawing["state"], "positions": drawing["positions"]}


def write_scripts(new: Path) -> None:
    """Write what all pages of models share: the scripts, the style sheet, the layout library, and what runs bundles.
    Raises `ModgraphError` if that is not installed."""
    for name, path in list_module_files().items():
        (new / MODULE / name).parent.mkdir(parents=True, exist_ok=True)
        (new / MODULE / name).write_bytes(path.read_bytes())
    own, folder = files("modgraph.web").joinpath("page"), new / "page"
    folder.mkdir()
    for each in own.iterdir():
        if each.name.endswith(".js"):
            (folder / each.name).write_bytes(each.read_bytes())
    (folder / "graph.js").write_text("\n".join(map(text_of, GRAPH_SCRIPTS)), encoding="utf-8")
    for library in Library:
        content = f"/* {library.value} */\n{library.script()}"
        (folder / f"{library.id}.js").write_text(content, encoding="utf-8")
    dark = f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme]) {{\n{text_of('dark.css')}}} }}\n"
    style = read_style_of_drawing() + dark + text_of("tip.css") + own.joinpath("page.css").read_text(encoding="utf-8")
    (folder / "page.css").write_text(style, encoding="utf-8")


def write_frame(path: Path, title: str, shared: str = "", kind: str = "whole") -> None:
    """Write the HTML of a page: of a whole one, or of a part of another page. `shared` leads to the scripts."""
    frame = files("modgraph.web").joinpath("page", "index.html").read_text(encoding="utf-8")
    facts = {"policy": escape_html(POLICY), "version": VERSION, "title": escape_html(title)}
    path.write_text(frame.format(**facts, shared=shared, kind=kind), encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
