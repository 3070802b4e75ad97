"""Sections of a page for a trace (`docs/trace.md`): its routes, their relations, and how models grew."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modgraph.inspect.page.content import Bars, Content, Curve, Curves, Heatmap, Paths, Picture, Section, Table, Text

Route = Mapping[str, Any]  # a trace, or the record of a route or of a part of it
Shares = Sequence[Sequence[float]]

MOST_POSITIONS = 64  # rows of a table of positions; longer tables average neighbours
FEW_ROWS = 8  # of an image whose maps have numbers
MOST_MAPS = 16  # modules with a map of their own
MOST_GROUPS = 100
ACTIVE = "active"


def build_section(name: str, route: Route) -> Section:
    """Describe one route: the use of its modules, then their use by group, step and position."""
    pool = route["pool"].rpartition(".")[2]
    modules = [f"{pool}.{module}" for module in range(len(route["load"]))]
    content = [*_use(route, modules), *_choices(route, modules), *_training(route, modules)]
    return Section(name, content, nodes=(route.get("node", name), route["pool"]))


def _use(route: Route, modules: Sequence[str]) -> Iterator[Content]:
    entropies, most = route["entropies"], math.log(len(modules))
    yield Text(f"{route['pool']} by {route['router']}")
    if route["dead"]:
        yield Text(f"Dead, never chosen: {', '.join(modules[module] for module in route['dead'])}.")
    if route["collapsed"]:
        spread = f"{entropies['of_use']:.3f} nats, less than half of log M = {most:.3f}"
        yield Text(f"Collapsed: the entropy of use is {spread}.")
    if route["selects"]:
        yield Bars(modules, route["load"], "load: times chosen")
    yield Bars(modules, route["importance"], "importance: sum of gates")
    if len(route["rounds"]) > 1:
        names = [f"round {at}" for at, _ in enumerate(route["rounds"], start=1)]
        yield Heatmap(names, modules, [each["use"] for each in route["rounds"]], "share of modules by round")
    rows = [["H_a, of a decision", entropies["of_a_decision"]], ["H_b, of the mean decision", entropies["of_the_mean"]]]
    rows += [["of use", entropies["of_use"]], ["log M", most]]
    yield Table(["entropy", "nats"], rows)
    if route["together"] is not None:
        yield Heatmap(modules, modules, route["together"], "chosen together, share of decisions")


def _choices(route: Route, modules: Sequence[str]) -> Iterator[Content]:
    yield from make_maps_of_groups(route["by"], modules, MOST_GROUPS)
    if "positions" in route:
        yield from _position_maps(route["positions"], modules)
    if "steps" in route:
        yield from make_maps_by_step(route["steps"])
    if "words" in route:
        found = [(name, word) for name, words in zip(modules, route["words"], strict=True) for word in words]
        contexts = [f"{word['before']} [{word['word']}] {word['behind']}".strip() for _, word in found]
        facts = [[name, *(word[fact] for fact in ("word", "lift", "count"))] for name, word in found]
        rows = [[*each, context] for each, context in zip(facts, contexts, strict=True)]
        header = ["module", "word", "p(word | module) / p(word)", "times", "once in context"]
        yield Table(header, rows, "typical words")


def make_maps_of_groups(by: Route, modules: Sequence[str], most: int | None = None) -> Iterator[Heatmap]:
    """The share of each module in each group, for the first `most` groups of each grouping."""
    for grouping, shares in by.items():
        groups = list(shares)[:most]
        yield Heatmap(groups, modules, [shares[group] for group in groups], f"share of modules by {grouping}")


def _position_maps(positions: Route, modules: Sequence[str]) -> Iterator[Content]:
    """A map of each module over the positions of an image, or else a table of positions.

    A long table averages neighbouring positions, so that at most `MOST_POSITIONS` rows remain.
    """
    use, rows, columns = positions["use"], positions.get("rows"), positions.get("columns")
    if rows is not None and columns is not None and len(modules) <= MOST_MAPS:
        places, most = use[positions["in_front"] :], max(map(max, use))
        yield Text("Share of what each place of the image chose:")
        for at, module in enumerate(modules):
            shares = [[places[row * columns + column][at] for column in range(columns)] for row in range(rows)]
            yield Heatmap(numbers(rows), numbers(columns), shares, module, most, numbers=rows <= FEW_ROWS)
        return
    width, of = math.ceil(len(use) / MOST_POSITIONS), positions["of"]
    names, averages = list[str](), list[list[float]]()
    for start in range(0, len(use), width):
        part = use[start : start + width]
        names.append(f"{of} {start}" if width == 1 else f"{of} {start}–{start + len(part) - 1}")
        averages.append([sum(column) / len(column) for column in zip(*part, strict=True)])
    yield Heatmap(names, modules, averages, f"share of modules by {of}")


def numbers(count: int) -> list[str]:
    """Label positions by their numbers from 0."""
    return list(map(str, range(count)))


def _training(route: Route, modules: Sequence[str]) -> Iterator[Content]:
    if route["training"] or route["controller"]:
        yield Text("Over the training:")
    charts = (modules, route["training"], "share of modules"), (["H_a", "H_b"], route["controller"], "entropy (nats)")
    yield from (epoch_curves(names, epochs, title) for names, epochs, title in charts if epochs)


def epoch_curves(names: Sequence[str], epochs: Shares, title: str) -> Curves:
    lines = zip(names, zip(*epochs, strict=True), strict=True)
    return Curves([Curve(name, [*enumerate(values, start=1)]) for name, values in lines], title, "epoch")


# ------------------------------------------------------------ steps of a time axis


def make_maps_by_step(route: Route) -> Iterator[Heatmap]:
    """Maps of a route by step: its modules, its tokens where they are another pool's modules, and the gates between
    them."""
    steps, modules, tokens = numbers(len(route["examples"])), route["modules"], route["senders"]
    title, most = describe_measure(route), 1.0 if route["of"] == ACTIVE else 0.0
    own = [f"{modules['pool']}.{at}" for at, _ in enumerate(modules["steps"])] if modules else []
    others = [f"{tokens['pool']}.{at}" for at, _ in enumerate(tokens["steps"])] if tokens else []
    if tokens is not None:
        yield Heatmap(others, steps, tokens["steps"], f"{title}, of what is sent from", most)
    yield Heatmap(own, steps, modules["steps"], title, most)
    if route["connections"] is not None and len(own) > 1:
        pairs = [(token, module) for module in range(len(own)) for token in range(len(others))]
        names = [f"{others[token]} → {own[module]}" for token, module in pairs]
        values = [route["connections"][token][module] for token, module in pairs]
        yield Heatmap(names, steps, values, f"{title}, of each connection", most)


def make_maps_by_task(trace: Route) -> list[Heatmap]:
    """A map of the sub-networks of each task by step, and the share of tasks in each sub-network."""
    rounds = [f" (use {each['round'] + 1})" if each["round"] else "" for each in trace["sub_networks"]]
    names = [f"{each['pool']}.{each['module']}{use}" for each, use in zip(trace["sub_networks"], rounds, strict=True)]
    largest = 1.0 if trace["of"] == ACTIVE else max(max(map(max, use)) for use in trace["use"].values())
    steps = {task: numbers(len(counts)) for task, counts in trace["examples"].items()}
    maps = [Heatmap(names, steps[task], use, task, largest) for task, use in trace["use"].items()]
    shares = "share of tasks in what is taken of a sub-network"
    return [*maps, Heatmap(names, list(trace["use"]), trace["shares"], shares, 1.0)]


def _step_section(trace: Route) -> Section:
    longest: list[int] = max(trace["examples"].values(), key=len)
    note = f"For each task, {describe_measure(trace)}; of {', '.join(map(str, longest))} examples, without padding."
    return Section("Tasks by step", [Text(note), *make_maps_by_task(trace)])


def describe_measure(use: Route) -> str:
    """Describe the numbers in maps by step."""
    measure = "share of examples with a sub-network active" if use["of"] == ACTIVE else "mean gate"
    return f"{measure} by step" + ("" if use["axis"] == "step" else f" of {use['axis']}")


FIGURES = ("H_a", "H_b", "largest gate", "load CV²", "importance CV²")
MOST_BYTES = 6_000_000  # bytes of the pictures in a page; text encoding makes them a third larger
CHARTED = (
    "groups",
    "training",
    "controllers",
    "paths",
    "steps",
    "growth",
)  # views whose numbers sections draw themselves


def build_sections(trace: Route, pictures: Mapping[str, bytes] | None = None, stale: bool = False) -> list[Section]:
    """The sections of a trace: all routes, each route, co-activation, paths, tasks, and further pictures."""
    found = [_overview(trace, stale), *(build_section(name, route) for name, route in trace["routes"].items())]
    if trace.get("coactivation"):
        note = "How often a token's module at one route (rows) goes with its module at another (columns). Mutual "
        note += "information is normalised: 1 where each follows from the other, 0 where neither predicts the other."
        maps: list[Content] = [Text(note)]
        for pair in trace["coactivation"]:
            joint, title = pair["joint"], f"{pair['routes'][0]} → {pair['routes'][1]}: {pair['normalised']:.3f}"
            maps.append(Heatmap(numbers(len(joint)), numbers(len(joint[0])), joint, title))
        found.append(Section("Co-activation between layers", maps))
    if trace.get("paths"):
        tables = list[Content]()
        for group in trace["paths"]:
            tables += [make_path_chart(group)] if "flows" in group else []
            rows = [[*("+".join(map(str, each)) for each in path["modules"]), path["share"]] for path in group["paths"]]
            title = f"the most frequent of {group['different']} different, over {group['decisions']} decisions"
            tables.append(Table([*group["routes"], "share"], rows, title))
        found.append(Section("Paths", tables))
    if trace.get("tasks"):
        serving = [[target, ", ".join(routes)] for target, routes in trace["tasks"].items()]
        content: list[Content] = [Table(["target", "routes that its prediction depends on"], serving)]
        for pool, shares in trace["by_task"].items():
            modules = numbers(len(next(iter(shares.values()))))
            content.append(Heatmap(list(shares), modules, list(shares.values()), f"share of modules of {pool} by task"))
        found.append(Section("Tasks", content))
    if trace.get("by_step"):
        found.append(_step_section(trace["by_step"]))
    pngs = {view: png for view, png in (pictures or {}).items() if view not in CHARTED}
    return [*found, _pictures(pngs)] if pngs else found


def make_path_chart(group: Mapping[str, Any]) -> Paths:
    return Paths(group["routes"], group["shares"], group["flows"], "paths from route to route")


def find_loads(trace: Route) -> dict[str, list[float]]:
    """The load of each module on every route, by the route's node."""
    return {route.get("node", name): route["rounds"][-1]["use"] for name, route in trace["routes"].items()}


def _overview(trace: Route, stale: bool) -> Section:
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
    note += "variation over modules, 0 where all are equal. Dead: never chosen."
    table = Table(["route", "modules", "dead", "", *FIGURES], rows)
    return Section("Routes", [*map(Text, lines), table, Text(note)])


def _pictures(pictures: Mapping[str, bytes]) -> Section:
    """The pictures, smallest first, as many as fit into the page."""
    left, content = MOST_BYTES, list[Content]()
    for view, png in sorted(pictures.items(), key=lambda each: len(each[1])):
        left -= len(png)
        too_large = f"Too large for this page: trace -o {view}.png --view {view}"
        content.append(Picture(png, view) if left >= 0 else Text(too_large))
    return Section("Pictures", content)


MOST_TASKS = 24  # with names on a chart


def growth_section(growth: Mapping[str, Any]) -> Section:
    """Describe the growth of pools: modules by task, additions, accuracies, and the novelty of each batch at
    detection."""
    pools: Mapping[str, Any] = growth["pools"]
    return Section("Growth", [*_modules(growth), *make_novelty_charts(pools)], nodes=tuple(pools))


def _modules(growth: Mapping[str, Any]) -> Iterator[Content]:
    tasks, pools, ends = growth["tasks"], growth["pools"], growth["accuracies"]
    added = [(each["step"], name, each) for name, pool in pools.items() for each in pool["added"]]
    if pools:
        rows = [[name, *pool["modules"]] for name, pool in pools.items()]
        total = [sum(counts) for counts in zip(*(pool["modules"] for pool in pools.values()), strict=True)]
        yield Table(["modules after task", *tasks], [*rows, ["all", *total]])
        if added:
            yield growth_map(growth)
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


def growth_map(growth: Mapping[str, Any]) -> Heatmap:
    """Modules added by task in colours, and how many there are after it as numbers."""
    tasks, pools = growth["tasks"], growth["pools"]
    new = [[sum(each["task"] == task for each in pool["added"]) for task in tasks] for pool in pools.values()]
    counts, most = [pool["modules"] for pool in pools.values()], max(map(max, new), default=0)
    title = "modules after each task, in the colour of how many it added"
    return Heatmap(list(pools), list(tasks), new, title, max(2, most + 1), words=counts)


def make_novelty_charts(pools: Mapping[str, Any]) -> Iterator[Curves]:
    """The novelty of each batch at detection, scan after scan, with its threshold, and where the pool grew. A scan
    begins at a thin line, a task at a thick one with its name."""
    for name, pool in pools.items():
        scans = [each for each in pool["detections"] if each["novelty"]]
        if not scans:
            continue
        curves, bounds, begins = make_novelty_curves(scans)
        names = {start: task if len(begins) <= MOST_TASKS else "" for task, start in begins.items()}
        boundaries = [(names.get(start, ""), start - 0.5) for start in bounds[:-1]]
        grown = [start + each["batch"] for each, start in zip(scans, bounds, strict=False) if each["batch"] is not None]
        levels = [] if pool["threshold"] is None else [("threshold", pool["threshold"])]
        title, events = f"{name}: novelty at detection", [("one is added", at) for at in grown]
        yield Curves(curves, title, "batch of all looks", levels, boundaries, events)


def make_novelty_curves(scans: Sequence[Mapping[str, Any]]) -> tuple[list[Curve], list[int], dict[str, int]]:
    """Make a curve for each module over the batches of all scans, with gaps between scans; also return the ends of
    scans and the starts of tasks."""
    lines: dict[str, list[tuple[float, float]]] = {}
    bounds, tasks = [0], dict[str, int]()
    for scan in scans:
        tasks.setdefault(scan["task"], bounds[-1])
        for at, batch in enumerate(scan["novelty"], start=bounds[-1]):
            for module, value in enumerate(batch):
                lines.setdefault(f"module {module}", []).append((at, math.nan if value is None else value))
        for points in lines.values():
            points.append((math.nan, math.nan))
        bounds.append(bounds[-1] + len(scan["novelty"]))
    return [Curve(line, points) for line, points in lines.items()], bounds, tasks
