"""What a trace (`docs/trace.md`) tells of the steps of a time axis, as maps of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modgraph.inspect.page import Content, Heatmap, Section, Text

Told = Mapping[str, Any]  # what a trace tells of the steps of a route, or of all tasks

ACTIVE = "active"


def step_maps(told: Told) -> Iterator[Content]:
    """Maps of a route: its modules by step, the senders too where they are a pool's, and the gates between them."""
    steps, modules, senders = _steps(told["examples"]), told["modules"], told["senders"]
    what, most = _what(told["of"]), 1.0 if told["of"] == ACTIVE else 0.0
    if senders is not None:
        title = f"{what} by step of {told['axis']}, of what is sent from"
        yield Heatmap(_names(senders), steps, senders["steps"], title, most)
    yield Heatmap(_names(modules), steps, modules["steps"], f"{what} by step of {told['axis']}", most)
    if told["connections"] is not None and len(modules["steps"]) > 1:
        pairs = [(sender, module) for module in range(len(modules["steps"])) for sender in range(len(senders["steps"]))]
        names = [f"{_names(senders)[sender]} → {_names(modules)[module]}" for sender, module in pairs]
        values = [told["connections"][sender][module] for sender, module in pairs]
        yield Heatmap(names, steps, values, f"{what} by step of {told['axis']}, of each connection", most)


def by_step_section(told: Told) -> Section:
    """A map of the sub-networks of each task by step, and the share of tasks in each sub-network."""
    names = [_name(each) for each in told["sub_networks"]]
    largest = 1.0 if told["of"] == ACTIVE else max(max(map(max, use)) for use in told["use"].values())
    longest: list[int] = max(told["examples"].values(), key=len)
    counts = ", ".join(map(str, longest))
    note = f"For each task, {_what(told['of'])} by step of {told['axis']}; of {counts} examples, without padding."
    maps = [Heatmap(names, _steps(told["examples"][task]), use, task, largest) for task, use in told["use"].items()]
    shares = Heatmap(names, list(told["use"]), told["shares"], "share of tasks in what is taken of a sub-network", 1.0)
    return Section("Tasks by step", [Text(note), *maps, shares])


def _what(of: str) -> str:
    return "share of examples with a sub-network active" if of == ACTIVE else "mean gate"


def _steps(examples: list[int]) -> list[str]:
    return [str(step) for step in range(len(examples))]


def _names(rows: Told) -> list[str]:
    return [f"{rows['pool']}.{module}" for module in range(len(rows["steps"]))]


def _name(row: Told) -> str:
    return f"{row['pool']}.{row['module']}" + (f" (use {row['round'] + 1})" if row["round"] else "")
