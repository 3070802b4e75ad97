"""A trace (`docs/trace.md`) as sections of a page: what its routes did, one by one and together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modgraph.inspect.page import Content, Heatmap, Picture, Section, Table, Text
from modgraph.inspect.route_sections import numbers, section_of
from modgraph.inspect.step_maps import by_step_section

Told = Mapping[str, Any]  # a trace, or a part of it

FIGURES = ("H_a", "H_b", "largest gate", "load CV²", "importance CV²")
MOST_BYTES = 6_000_000  # of pictures in one page, which text makes a third larger
CHARTED = ("groups", "training", "controllers", "steps", "growth")  # views whose numbers sections draw themselves


def sections_of(trace: Told, pictures: Mapping[str, bytes] | None = None, stale: bool = False) -> list[Section]:
    """The sections of a trace: all routes, each route, what is chosen together, tasks, and pictures that say more."""
    found = [_overview(trace, stale), *(section_of(name, route) for name, route in trace["routes"].items())]
    found += [_together(trace["coactivation"])] if trace.get("coactivation") else []
    found += [_paths(trace["paths"])] if trace.get("paths") else []
    found += [_tasks(trace)] if trace.get("tasks") else []
    found += [by_step_section(trace["by_step"])] if trace.get("by_step") else []
    drawn = {view: png for view, png in (pictures or {}).items() if view not in CHARTED}
    return [*found, Section("Pictures", list(_pictures(drawn)))] if drawn else found


def loads_of(trace: Told) -> dict[str, list[float]]:
    """The share of each module in what every route chose, by the route's node."""
    return {route.get("node", name): route["rounds"][-1]["use"] for name, route in trace["routes"].items()}


def _overview(trace: Told, stale: bool) -> Section:
    where = f", after epoch {trace['epoch']}, step {trace['step']}" if trace.get("step") is not None else ""
    lines = [f"{trace['examples']} examples of {trace['split']}{where}."]
    lines += ["The run has been trained further since: trace it anew."] if stale else []
    header = ["route", "modules", "dead", "", *FIGURES]
    rows = [_row(name, route) for name, route in trace["routes"].items()]
    note = "H_a: mean entropy of a decision, H_b: entropy of the mean decision, in nats. CV²: squared coefficient of "
    note += "variation over modules, 0 where all are alike. Dead: never chosen."
    return Section("Routes", [*map(Text, lines), Table(header, rows), Text(note)])


def _row(name: str, route: Told) -> list[str | int | float | None]:
    verdict = "collapsed" if route["collapsed"] else ""
    entropies = [route["entropies"]["of_a_decision"], route["entropies"]["of_the_mean"]]
    figures = [*entropies, route["largest_gate"], route["load_cv2"], route["importance_cv2"]]
    return [name, len(route["load"]), len(route["dead"]), verdict, *figures]


# ------------------------------------------------------------ routes together


def _together(pairs: Sequence[Told]) -> Section:
    note = (
        "How often a token's module at one route (rows) goes with its module at another (columns). Mutual information "
    )
    note += "is normalised: 1 where each follows from the other, 0 where neither tells of the other."
    maps = [
        Heatmap(
            numbers(len(pair["joint"])),
            numbers(len(pair["joint"][0])),
            pair["joint"],
            f"{pair['routes'][0]} → {pair['routes'][1]}: {pair['normalised']:.3f}",
        )
        for pair in pairs
    ]
    return Section("Co-activation between layers", [Text(note), *maps])


def _paths(groups: Sequence[Told]) -> Section:
    return Section("Paths", [_path_table(group) for group in groups])


def _path_table(group: Told) -> Table:
    rows = [[*("+".join(map(str, each)) for each in path["modules"]), path["share"]] for path in group["paths"]]
    title = f"the most frequent of {group['different']} different, over {group['decisions']} decisions"
    return Table([*group["routes"], "share"], rows, title)


def _tasks(trace: Told) -> Section:
    serving = [[target, ", ".join(routes)] for target, routes in trace["tasks"].items()]
    maps = [_of_pool(pool, shares) for pool, shares in trace["by_task"].items()]
    return Section("Tasks", [Table(["target", "routes that its prediction depends on"], serving), *maps])


def _of_pool(pool: str, shares: Mapping[str, Sequence[float]]) -> Heatmap:
    """Shares of a pool's modules by target."""
    values = list(shares.values())
    return Heatmap(list(shares), numbers(len(values[0])), values, f"share of modules of {pool} by task")


# ------------------------------------------------------------ pictures


def _pictures(pictures: Mapping[str, bytes]) -> Iterator[Content]:
    """The pictures, the smallest first, as many as the page holds."""
    left = MOST_BYTES
    for view, png in sorted(pictures.items(), key=lambda each: len(each[1])):
        left -= len(png)
        yield Picture(png, view) if left >= 0 else Text(f"Too large for this page: trace -o {view}.png --view {view}")
