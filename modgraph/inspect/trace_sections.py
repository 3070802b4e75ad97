"""A trace (`docs/trace.md`) as sections of a page: what its routes did, alone and together, and how models grew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modgraph.inspect.page import Content, Curve, Curves, Heatmap, Picture, Section, Table, Text
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


MOST_LETTERS = 48  # below a chart


def growth_section(growth: Mapping[str, Any]) -> Section:
    """Modules by pool and task, what was added when, what tasks came to, and how novel every batch was at detection."""
    pools: Mapping[str, Any] = growth["pools"]
    return Section("Growth", [*_modules(growth), *_detections(pools)], nodes=tuple(pools))


def _modules(growth: Mapping[str, Any]) -> Iterator[Content]:
    tasks, pools, ends = growth["tasks"], growth["pools"], growth["accuracies"]
    added = [(each["step"], name, each) for name, pool in pools.items() for each in pool["added"]]
    if pools:
        rows = [[name, *pool["modules"]] for name, pool in pools.items()]
        total = [sum(counts) for counts in zip(*(pool["modules"] for pool in pools.values()), strict=True)]
        yield Table(["modules after task", *tasks], [*rows, ["all", *total]])
        new = [[sum(each["task"] == task for each in pool["added"]) for task in tasks] for pool in pools.values()]
        if any(map(any, new)):
            yield Heatmap(list(pools), list(tasks), new, "modules added by task")
        header = ["task", "module added", "batch of detection", "epoch", "step", "novelty to each module before"]
        rows = []
        for step, name, each in sorted(added, key=lambda row: row[0]):
            novelty = "not recorded"
            if each["novelty"] is not None:
                novelty = ", ".join("none" if value is None else f"{value:.3g}" for value in each["novelty"])
            rows.append([each["task"], f"{name}.{each['module']}", each["batch"], each["epoch"], step, novelty])
        yield Table(header, rows, "what was added") if rows else Text("Nothing was added.")
    if any(each["accuracies"] for each in ends):
        rows = [[each["task"], *(each["accuracies"].get(task) for task in tasks), each["accuracy"]] for each in ends]
        yield Table(["accuracy after", *(f"on {task}" for task in tasks), "on all so far"], rows, "test accuracy")


def _detections(pools: Mapping[str, Any]) -> Iterator[Content]:
    """The novelty of each batch of a pool's detections, one pass after another, against what it must exceed."""
    for name, pool in pools.items():
        lines: dict[str, list[tuple[float, float]]] = {}
        begins: dict[str, int] = {}
        at = 0
        for scan in pool["detections"]:
            begins.setdefault(scan["task"], at)
            for batch in scan["novelty"]:
                for module, value in enumerate(batch):
                    lines.setdefault(f"module {module}", []).append((at, float("nan") if value is None else value))
                at += 1
        if not lines:
            continue
        curves = [Curve(line, points) for line, points in lines.items()]
        if pool["threshold"] is not None:
            curves.append(Curve("threshold", [(0, pool["threshold"]), (at - 1, pool["threshold"])]))
        tasks = "; ".join(f"{task} from {start}" for task, start in begins.items())
        tasks = tasks if len(tasks) <= MOST_LETTERS else f"{tasks[: MOST_LETTERS - 1]}…"
        yield Curves(curves, f"{name}: novelty at detection", f"batch of all looks ({tasks})")
