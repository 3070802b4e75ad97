"""What a trace (`docs/trace.md`) says of one route, and of the steps of a time axis, as sections of a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modgraph.inspect.page import Bars, Content, Curve, Curves, Heatmap, Section, Table, Text

Route = Mapping[str, Any]  # what a trace says of a route, or of a part of it
Shares = Sequence[Sequence[float]]

MOST_POSITIONS = 64  # rows of a table of positions; of more, those that follow each other are taken together
MOST_MAPS = 16  # modules of which each has a map of its own
MOST_GROUPS = 100
ACTIVE = "active"


def section_of(name: str, route: Route) -> Section:
    """What one route did, from how much each module was used to where and when."""
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
    rows = [
        ["H_a, of a decision", entropies["of_a_decision"]],
        ["H_b, of the mean decision", entropies["of_the_mean"]],
        ["of use", entropies["of_use"]],
        ["log M", most],
    ]
    yield Table(["entropy", "nats"], rows)
    if route["together"] is not None:
        yield Heatmap(modules, modules, route["together"], "chosen together, share of decisions")


def _choices(route: Route, modules: Sequence[str]) -> Iterator[Content]:
    for grouping, shares in route["by"].items():
        groups = list(shares)[:MOST_GROUPS]
        yield Heatmap(groups, modules, [shares[group] for group in groups], f"share of modules by {grouping}")
    if "positions" in route:
        yield from _by_position(route["positions"], modules)
    if "steps" in route:
        yield from _by_step(route["steps"])
    if "words" in route:
        found = [(name, word) for name, words in zip(modules, route["words"], strict=True) for word in words]
        contexts = [f"{word['before']} [{word['word']}] {word['behind']}".strip() for _, word in found]
        rows = [
            [name, word["word"], word["lift"], word["count"], context]
            for (name, word), context in zip(found, contexts, strict=True)
        ]
        header = ["module", "word", "p(word | module) / p(word)", "times", "once in context"]
        yield Table(header, rows, "typical words")


def _by_position(positions: Route, modules: Sequence[str]) -> Iterator[Content]:
    """A map for each module over the places of an image; else a table of positions, of many means over as many that
    follow each other as leave a table to look at."""
    use, rows, columns = positions["use"], positions.get("rows"), positions.get("columns")
    if rows is not None and columns is not None and len(modules) <= MOST_MAPS:
        places, most = use[positions["in_front"] :], max(map(max, use))
        yield Text("Share of what each place of the image chose:")
        for at, module in enumerate(modules):
            shares = [[places[row * columns + column][at] for column in range(columns)] for row in range(rows)]
            yield Heatmap(numbers(rows), numbers(columns), shares, module, most)
        return
    width, of = math.ceil(len(use) / MOST_POSITIONS), positions["of"]
    names, means = list[str](), list[list[float]]()
    for start in range(0, len(use), width):
        part = use[start : start + width]
        names.append(f"{of} {start}" if width == 1 else f"{of} {start}–{start + len(part) - 1}")
        means.append([sum(column) / len(column) for column in zip(*part, strict=True)])
    yield Heatmap(names, modules, means, f"share of modules by {of}")


def numbers(count: int) -> list[str]:
    """From 0, as labels."""
    return list(map(str, range(count)))


def _training(route: Route, modules: Sequence[str]) -> Iterator[Content]:
    """Shares of modules and entropies over the epochs, where they were recorded."""
    if route["training"] or route["controller"]:
        yield Text("Over the training:")
    charts = (modules, route["training"], "share of modules"), (["H_a", "H_b"], route["controller"], "entropy (nats)")
    for names, epochs, title in charts:
        if epochs:
            lines = zip(names, zip(*epochs, strict=True), strict=True)
            yield Curves([Curve(name, [*enumerate(values, start=1)]) for name, values in lines], title, "epoch")


# ------------------------------------------------------------ steps of a time axis


def _by_step(route: Route) -> Iterator[Content]:
    """Maps of a route: its modules by step, the senders too where they are a pool's, and the gates between them."""
    steps, modules, senders = numbers(len(route["examples"])), route["modules"], route["senders"]
    title, most = f"{_measure(route['of'])} by step of {route['axis']}", 1.0 if route["of"] == ACTIVE else 0.0
    own, others = (
        [f"{each['pool']}.{at}" for at, _ in enumerate(each["steps"])] if each else [] for each in (modules, senders)
    )
    if senders is not None:
        yield Heatmap(others, steps, senders["steps"], f"{title}, of what is sent from", most)
    yield Heatmap(own, steps, modules["steps"], title, most)
    if route["connections"] is not None and len(own) > 1:
        pairs = [(sender, module) for module in range(len(own)) for sender in range(len(others))]
        names = [f"{others[sender]} → {own[module]}" for sender, module in pairs]
        values = [route["connections"][sender][module] for sender, module in pairs]
        yield Heatmap(names, steps, values, f"{title}, of each connection", most)


def by_step_section(trace: Route) -> Section:
    """A map of the sub-networks of each task by step, and the share of tasks in each sub-network."""
    rounds = [f" (use {each['round'] + 1})" if each["round"] else "" for each in trace["sub_networks"]]
    names = [f"{each['pool']}.{each['module']}{use}" for each, use in zip(trace["sub_networks"], rounds, strict=True)]
    largest = 1.0 if trace["of"] == ACTIVE else max(max(map(max, use)) for use in trace["use"].values())
    longest: list[int] = max(trace["examples"].values(), key=len)
    counts, measure = ", ".join(map(str, longest)), f"{_measure(trace['of'])} by step of {trace['axis']}"
    note = f"For each task, {measure}; of {counts} examples, without padding."
    maps = [
        Heatmap(names, numbers(len(trace["examples"][task])), use, task, largest) for task, use in trace["use"].items()
    ]
    shares = "share of tasks in what is taken of a sub-network"
    return Section(
        "Tasks by step", [Text(note), *maps, Heatmap(names, list(trace["use"]), trace["shares"], shares, 1.0)]
    )


def _measure(of: str) -> str:
    return "share of examples with a sub-network active" if of == ACTIVE else "mean gate"
