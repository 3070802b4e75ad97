"""A trace (`docs/trace.md`) as sections of a page: what its routes did, one by one and together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modgraph.inspect.page import Bars, Content, Curve, Curves, Heatmap, Picture, Section, Table, Text

Told = Mapping[str, Any]  # a trace, or what it tells of a route
Shares = Sequence[Sequence[float]]

MOST_POSITIONS = 64  # rows of a table of positions; of more, those that follow each other are taken together
MOST_MAPS = 16  # modules of which each has a map of its own
MOST_GROUPS = 100


def sections_of(trace: Told, pictures: Mapping[str, bytes] | None = None, stale: bool = False) -> list[Section]:
    """The sections of a trace: all routes, each route, what is chosen together, by task, and pictures by view."""
    found = [_overview(trace, stale), *(_of_route(name, route) for name, route in trace["routes"].items())]
    found += [_together(trace["coactivation"])] if trace.get("coactivation") else []
    found += [_paths(trace["paths"])] if trace.get("paths") else []
    found += [_tasks(trace)] if trace.get("tasks") else []
    found += [Section("Pictures", [Picture(png, view) for view, png in pictures.items()])] if pictures else []
    return found


def loads_of(trace: Told) -> dict[str, list[float]]:
    """The share of each module in what every route chose, by the route's name."""
    return {name: route["rounds"][-1]["use"] for name, route in trace["routes"].items()}


def _overview(trace: Told, stale: bool) -> Section:
    where = f", after epoch {trace['epoch']}, step {trace['step']}" if trace.get("step") is not None else ""
    lines = [f"{trace['examples']} examples of {trace['split']}{where}."]
    lines += ["The run has been trained further since: trace it anew."] if stale else []
    header = [
        "route",
        "pool",
        "router",
        "modules",
        "load CV²",
        "importance CV²",
        "largest gate",
        "H_a",
        "H_b",
        "dead",
        "",
    ]
    rows = [_row(name, route) for name, route in trace["routes"].items()]
    note = "H_a: mean entropy of a decision, H_b: entropy of the mean decision, in nats. CV²: squared coefficient of "
    note += "variation over modules, 0 where all are alike. Dead: never chosen."
    return Section("Routes", [*map(Text, lines), Table(header, rows), Text(note)])


def _row(name: str, route: Told) -> list[str | int | float | None]:
    entropies = route["entropies"]
    variation = [route["load_cv2"], route["importance_cv2"]]
    of_gates = [route["largest_gate"], entropies["of_a_decision"], entropies["of_the_mean"]]
    verdict = "collapsed" if route["collapsed"] else ""
    return [
        name,
        route["pool"],
        route["router"],
        len(route["load"]),
        *variation,
        *of_gates,
        len(route["dead"]),
        verdict,
    ]


# ------------------------------------------------------------ a route


def _of_route(name: str, route: Told) -> Section:
    """What one route did, from how much each module was used to where and when."""
    return Section(
        name,
        [*_verdict(route), *_use(route), *_decisions(route), *_choices(route), *_training(route)],
        nodes=(name, route["pool"]),
    )


def _modules(route: Told) -> list[str]:
    """The names of a pool's modules, by its last word."""
    pool = route["pool"].rpartition(".")[2]
    return [f"{pool}.{module}" for module in range(len(route["load"]))]


def _verdict(route: Told) -> Iterator[Content]:
    yield Text(f"{route['pool']} by {route['router']}")
    if route["dead"]:
        yield Text(f"Dead, never chosen: {', '.join(_modules(route)[module] for module in route['dead'])}.")
    if route["collapsed"]:
        spread, most = route["entropies"]["of_use"], math.log(len(route["load"]))
        yield Text(f"Collapsed: the entropy of use is {spread:.3f} nats, less than half of log M = {most:.3f}.")


def _use(route: Told) -> Iterator[Content]:
    modules, rounds = _modules(route), route["rounds"]
    yield Bars(modules, route["load"], "load: times chosen" if route["selects"] else "load: sum of gates")
    yield Bars(modules, route["importance"], "importance: sum of gates")
    if len(rounds) > 1:
        names = [f"round {at + 1}" for at in range(len(rounds))]
        yield Heatmap(names, modules, [each["use"] for each in rounds], "share of modules by round")


def _decisions(route: Told) -> Iterator[Content]:
    entropies = route["entropies"]
    rows = [
        ["H_a, of a decision", entropies["of_a_decision"]],
        ["H_b, of the mean decision", entropies["of_the_mean"]],
        ["of use", entropies["of_use"]],
        ["log M", math.log(len(route["load"]))],
        ["largest gate, on average", route["largest_gate"]],
    ]
    yield Table(["entropy (nats)", ""], rows)
    if route["together"] is not None:
        yield Heatmap(_modules(route), _modules(route), route["together"], "chosen together, share of decisions")


def _choices(route: Told) -> Iterator[Content]:
    modules = _modules(route)
    for grouping, shares in route["by"].items():
        groups = list(shares)[:MOST_GROUPS]
        yield Heatmap(groups, modules, [shares[group] for group in groups], f"share of modules by {grouping}")
    if "positions" in route:
        yield from _by_position(route["positions"], modules)
    if "words" in route:
        rows = [
            [
                name,
                word["word"],
                word["lift"],
                word["count"],
                f"{word['before']} [{word['word']}] {word['behind']}".strip(),
            ]
            for name, words in zip(modules, route["words"], strict=True)
            for word in words
        ]
        yield Table(["module", "word", "p(word | module) / p(word)", "times", "once in context"], rows, "typical words")


def _by_position(positions: Told, modules: Sequence[str]) -> Iterator[Content]:
    """A map for each module over the places of an image; else a table of positions."""
    use, rows, columns = positions["use"], positions.get("rows"), positions.get("columns")
    if rows is None or columns is None or len(modules) > MOST_MAPS:
        names, shares = _binned(use, positions["of"])
        yield Heatmap(names, modules, shares, f"share of modules by {positions['of']}")
        return
    places, most = use[positions["in_front"] :], max(map(max, use))
    yield Text("Share of what each place of the image chose:")
    for at, module in enumerate(modules):
        shares = [[places[row * columns + column][at] for column in range(columns)] for row in range(rows)]
        yield Heatmap(_numbers(rows), _numbers(columns), shares, module, most)


def _numbers(count: int) -> list[str]:
    return list(map(str, range(count)))


def _binned(use: Shares, of: str) -> tuple[list[str], list[list[float]]]:
    """Positions and their shares; of many, means over as many that follow each other as leave a table to look at."""
    width = math.ceil(len(use) / MOST_POSITIONS)
    starts = range(0, len(use), width)
    names = [f"{of} {start}" if width == 1 else f"{of} {start}–{min(start + width, len(use)) - 1}" for start in starts]
    return names, [[_mean(column) for column in zip(*use[start : start + width], strict=True)] for start in starts]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _training(route: Told) -> Iterator[Content]:
    """Shares of modules and entropies over the epochs, where they were recorded."""
    if route["training"] or route["controller"]:
        yield Text("Over the training:")
    if route["training"]:
        yield _curves(_modules(route), route["training"], "share of modules")
    if route["controller"]:
        yield _curves(["H_a", "H_b"], route["controller"], "entropy (nats)")


def _curves(names: Sequence[str], epochs: Shares, title: str) -> Curves:
    series = [
        Curve(name, [(epoch, value) for epoch, value in enumerate(values, start=1)])
        for name, values in zip(names, zip(*epochs, strict=True), strict=True)
    ]
    return Curves(series, title, "epoch")


# ------------------------------------------------------------ routes together


def _together(pairs: Sequence[Told]) -> Section:
    note = (
        "How often a token's module at one route (rows) goes with its module at another (columns). Mutual information "
    )
    note += "is normalised: 1 where each follows from the other, 0 where neither tells of the other."
    maps = [
        Heatmap(
            _numbers(len(pair["joint"])),
            _numbers(len(pair["joint"][0])),
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
    return Heatmap(list(shares), _numbers(len(values[0])), values, f"share of modules of {pool} by task")
