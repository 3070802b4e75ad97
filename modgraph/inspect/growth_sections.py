"""How a model grew (`growth` of `docs/trace.md`), as a section of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modgraph.inspect.page import Content, Curve, Curves, Heatmap, Section, Table, Text

MOST_LETTERS = 48  # below a chart

Told = Mapping[str, Any]  # what is told of a run's growth, or of one pool


def growth_section(growth: Told) -> Section:
    """Modules by pool and task, what was added when, what tasks came to, and how novel every batch was at detection."""
    pools: Mapping[str, Told] = growth["pools"]
    content = [*_modules(growth["tasks"], pools), *_added(pools)] if pools else []
    content += _accuracies(growth["tasks"], growth["accuracies"])
    for name, pool in pools.items():
        content += _detections(name, pool)
    return Section("Growth", content, nodes=tuple(pools))


def _modules(tasks: Sequence[str], pools: Mapping[str, Told]) -> Iterator[Content]:
    rows = [[name, *pool["modules"]] for name, pool in pools.items()]
    total = [sum(counts) for counts in zip(*(pool["modules"] for pool in pools.values()), strict=True)]
    yield Table(["modules after task", *tasks], [*rows, ["all", *total]])
    new = [[sum(each["task"] == task for each in pool["added"]) for task in tasks] for pool in pools.values()]
    if any(map(any, new)):
        yield Heatmap(list(pools), list(tasks), new, "modules added by task")


def _added(pools: Mapping[str, Told]) -> Iterator[Content]:
    found = [(each["step"], name, each) for name, pool in pools.items() for each in pool["added"]]
    if not found:
        yield Text("Nothing was added.")
        return
    rows = [
        [each["task"], f"{name}.{each['module']}", each["batch"], each["epoch"], step, _shown(each["novelty"])]
        for step, name, each in sorted(found, key=lambda row: row[0])
    ]
    header = ["task", "module added", "batch of detection", "epoch", "step", "novelty to each module before"]
    yield Table(header, rows, "what was added")


def _accuracies(tasks: Sequence[str], ends: Sequence[Told]) -> Iterator[Content]:
    rows = [[each["task"], *(each["accuracies"].get(task) for task in tasks), each["accuracy"]] for each in ends]
    if any(each["accuracies"] for each in ends):
        yield Table(["accuracy after", *(f"on {task}" for task in tasks), "on all so far"], rows, "test accuracy")


def _shown(novelty: Sequence[float | None] | None) -> str:
    return (
        "not recorded"
        if novelty is None
        else ", ".join("none" if value is None else f"{value:.3g}" for value in novelty)
    )


def _detections(name: str, pool: Told) -> Iterator[Content]:
    """The novelty of each batch of a pool's detections, one pass after another, against what it must exceed."""
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
        return
    curves = [Curve(line, points) for line, points in lines.items()]
    if pool["threshold"] is not None:
        curves.append(Curve("threshold", [(0, pool["threshold"]), (at - 1, pool["threshold"])]))
    tasks = "; ".join(f"{task} from {start}" for task, start in begins.items())
    tasks = tasks if len(tasks) <= MOST_LETTERS else f"{tasks[: MOST_LETTERS - 1]}…"
    yield Curves(curves, f"{name}: novelty at detection", f"batch of all looks ({tasks})")
