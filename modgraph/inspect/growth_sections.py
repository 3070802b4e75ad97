"""How a model grew (`growth` of `docs/trace.md`), as a section of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modgraph.inspect.page import Content, Curve, Curves, Heatmap, Section, Table, Text

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
