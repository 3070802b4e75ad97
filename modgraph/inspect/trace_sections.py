"""A trace (`docs/trace.md`) as sections of a page: what its routes did, one by one and together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modgraph.inspect.page import Content, Heatmap, Picture, Section, Table, Text
from modgraph.inspect.route_sections import by_step_section, numbers, section_of

Trace = Mapping[str, Any]

FIGURES = ("H_a", "H_b", "largest gate", "load CV²", "importance CV²")
MOST_BYTES = 6_000_000  # of pictures in one page, which text makes a third larger
CHARTED = ("groups", "training", "controllers", "steps", "growth")  # views whose numbers sections draw themselves


def sections_of(trace: Trace, pictures: Mapping[str, bytes] | None = None, stale: bool = False) -> list[Section]:
    """The sections of a trace: all routes, each route, what is chosen together, tasks, and pictures that say more."""
    found = [_overview(trace, stale), *(section_of(name, route) for name, route in trace["routes"].items())]
    if trace.get("coactivation"):
        found.append(_together(trace))
    if trace.get("paths"):
        found.append(_paths(trace))
    if trace.get("tasks"):
        serving = [[target, ", ".join(routes)] for target, routes in trace["tasks"].items()]
        content: list[Content] = [Table(["target", "routes that its prediction depends on"], serving)]
        for pool, shares in trace["by_task"].items():
            modules = numbers(len(next(iter(shares.values()))))
            content.append(Heatmap(list(shares), modules, list(shares.values()), f"share of modules of {pool} by task"))
        found.append(Section("Tasks", content))
    if trace.get("by_step"):
        found.append(by_step_section(trace["by_step"]))
    drawn = {view: png for view, png in (pictures or {}).items() if view not in CHARTED}
    return [*found, _pictures(drawn)] if drawn else found


def loads_of(trace: Trace) -> dict[str, list[float]]:
    """The share of each module in what every route chose, by the route's node."""
    return {route.get("node", name): route["rounds"][-1]["use"] for name, route in trace["routes"].items()}


def _overview(trace: Trace, stale: bool) -> Section:
    where = f", after epoch {trace['epoch']}, step {trace['step']}" if trace.get("step") is not None else ""
    lines = [f"{trace['examples']} examples of {trace['split']}{where}."]
    lines += ["The run has been trained further since: trace it anew."] if stale else []
    rows = []
    for name, route in trace["routes"].items():
        entropies = [route["entropies"]["of_a_decision"], route["entropies"]["of_the_mean"]]
        figures = [*entropies, route["largest_gate"], route["load_cv2"], route["importance_cv2"]]
        verdict = "collapsed" if route["collapsed"] else ""
        rows.append([name, len(route["load"]), len(route["dead"]), verdict, *figures])
    note = "H_a: mean entropy of a decision, H_b: entropy of the mean decision, in nats. CV²: squared coefficient of "
    note += "variation over modules, 0 where all are alike. Dead: never chosen."
    table = Table(["route", "modules", "dead", "", *FIGURES], rows)
    return Section("Routes", [*map(Text, lines), table, Text(note)])


def _together(trace: Trace) -> Section:
    note = "How often a token's module at one route (rows) goes with its module at another (columns). Mutual "
    note += "information is normalised: 1 where each follows from the other, 0 where neither tells of the other."
    content: list[Content] = [Text(note)]
    for pair in trace["coactivation"]:
        joint, title = pair["joint"], f"{pair['routes'][0]} → {pair['routes'][1]}: {pair['normalised']:.3f}"
        content.append(Heatmap(numbers(len(joint)), numbers(len(joint[0])), joint, title))
    return Section("Co-activation between layers", content)


def _paths(trace: Trace) -> Section:
    tables = []
    for group in trace["paths"]:
        rows = [[*("+".join(map(str, each)) for each in path["modules"]), path["share"]] for path in group["paths"]]
        title = f"the most frequent of {group['different']} different, over {group['decisions']} decisions"
        tables.append(Table([*group["routes"], "share"], rows, title))
    return Section("Paths", tables)


def _pictures(pictures: Mapping[str, bytes]) -> Section:
    """The pictures, the smallest first, as many as the page holds."""
    left, content = MOST_BYTES, list[Content]()
    for view, png in sorted(pictures.items(), key=lambda each: len(each[1])):
        left -= len(png)
        too_large = f"Too large for this page: trace -o {view}.png --view {view}"
        content.append(Picture(png, view) if left >= 0 else Text(too_large))
    return Section("Pictures", content)
