"""What a trace (`docs/trace.md`) tells of one route, as a section of a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modgraph.inspect.page import Bars, Content, Curve, Curves, Heatmap, Section, Table, Text
from modgraph.inspect.step_maps import step_maps

Told = Mapping[str, Any]  # what a trace tells of a route
Shares = Sequence[Sequence[float]]

MOST_POSITIONS = 64  # rows of a table of positions; of more, those that follow each other are taken together
MOST_MAPS = 16  # modules of which each has a map of its own
MOST_GROUPS = 100


def section_of(name: str, route: Told) -> Section:
    """What one route did, from how much each module was used to where and when."""
    return Section(
        name,
        [*_verdict(route), *_use(route), *_decisions(route), *_choices(route), *_training(route)],
        nodes=(route.get("node", name), route["pool"]),
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
    if route["selects"]:
        yield Bars(modules, route["load"], "load: times chosen")
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
    ]
    yield Table(["entropy", "nats"], rows)
    if route["together"] is not None:
        yield Heatmap(_modules(route), _modules(route), route["together"], "chosen together, share of decisions")


def _choices(route: Told) -> Iterator[Content]:
    modules = _modules(route)
    for grouping, shares in route["by"].items():
        groups = list(shares)[:MOST_GROUPS]
        yield Heatmap(groups, modules, [shares[group] for group in groups], f"share of modules by {grouping}")
    if "positions" in route:
        yield from _by_position(route["positions"], modules)
    if "steps" in route:
        yield from step_maps(route["steps"])
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
        yield Heatmap(numbers(rows), numbers(columns), shares, module, most)


def numbers(count: int) -> list[str]:
    """From 0, as labels."""
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
