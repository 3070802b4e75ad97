"""Sub-networks by step as a picture (MT-RMN, figure 4): for each task how often each is active at each step, and of
each sub-network the share of every task; then the routes that no task has for itself, connection by connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modgraph.trace.errors import NoSteps
from modgraph.trace.sheet import Part, Sheet, colours_of, file_of, shortened
from modgraph.trace.steps import ACTIVE, Shares, StepUse, names_of, steps_by_task, use_by_steps, without_common
from modgraph.trace.trace import Trace

MOST_ROWS = 400
ABREAST = 3  # tasks

# in inches
TITLE, HEAD, ROW, STEP, GROUP, MARGIN, BETWEEN = 0.5, 0.55, 0.22, 0.33, 0.28, 0.3, 0.35
LINES = 0.25  # between lines of tasks
LETTER, BARS, LEGEND, PAGE, LEAST = 0.072, 2.2, 1.4, 13.0, 3.7


def steps_picture(trace: Trace, suffix: str) -> bytes:
    """The content of a `.png`, `.svg` or `.pdf` file. Raises `ModgraphError`."""
    return file_of(parts_of(trace), suffix, NoSteps(), MOST_ROWS, page=PAGE)


def parts_of(trace: Trace) -> list[Part]:
    """The tasks, then each of the other routes."""
    by_task, shared = steps_by_task(trace, use_by_steps(trace))
    names, more = without_common(shared), "" if by_task is None else ", of several tasks"
    routes = [_route(f"{names[name]}{more}", use) for name, use in shared.items()]
    return routes if by_task is None else [_tasks(by_task, trace.split), *routes]


class Grid:
    """Rows by step in bands, each with a name of its own above: where they lie, and how they are drawn."""

    def __init__(self, bands: Mapping[tuple[str, int], Sequence[str]]) -> None:
        longest = max(len(name) for names in bands.values() for name in names)
        self.names = max(LETTER * longest, 0.3) + 0.15  # inches
        self.bands: list[tuple[str, float, slice, Sequence[str]]] = []  # name, top, rows and what these are called
        self.rows, self.height = 0, 0.0
        for (band, _), names in bands.items():
            self.bands.append((band, self.height + GROUP, slice(self.rows, self.rows + len(names)), names))
            self.rows, self.height = self.rows + len(names), self.height + GROUP + ROW * len(names)

    def write_names(self, sheet: Sheet, left: float, top: float) -> None:
        """Names of rows end at `left`, that of a band stands above its first cell."""
        for band, down, _, names in self.bands:
            sheet.write(left, top + down - 0.05, band, va="bottom", color="0.35", style="italic")
            sheet.name_rows(left, top + down, ROW, names)

    def draw(self, sheet: Sheet, left: float, top: float, values: Shares, examples: Sequence[int], most: float) -> None:
        """The heat map, percents or means of gates with two digits, under the numbers of steps and their examples."""
        for step, count in enumerate(examples):
            middle = left + (step + 0.5) * STEP
            sheet.write(middle, top - 0.2, str(step), ha="center", va="center")
            sheet.write(middle, top - 0.03, str(count), ha="center", va="center", color="0.5", fontsize=7)
        for _, down, rows, names in self.bands:
            axes = sheet.heat_map(left, top + down, values[rows], (STEP, ROW), most, fontsize=7.5)
            axes.set_axis_on()
            axes.set_xticks(np.arange(len(values[0]) - 1) + 0.5, minor=True)
            axes.set_yticks(np.arange(len(names) - 1) + 0.5, minor=True)
            axes.grid(which="minor", color="white", linewidth=0.8)
            axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
            for side in axes.spines.values():
                side.set_edgecolor("0.7")


def _write_heads(sheet: Sheet, left: float, top: float) -> None:
    """What the two lines of numbers above a grid are, left of them."""
    for down, words in ((0.2, "step"), (0.03, "examples")):
        sheet.write(left - 0.08, top - down, words, ha="right", va="center", color="0.5", fontsize=7)


def _tasks(use: StepUse, split: str) -> Part:
    """The heat maps of all tasks, as many abreast as fit, and the share of each task in every sub-network."""
    bands: dict[tuple[str, int], list[str]] = {}
    for (pool, time), row in zip(names_of(use["sub_networks"]), use["sub_networks"], strict=True):
        bands.setdefault((pool + time, 0), []).append(_name(row["pool"], row["module"]))
    grid, tasks = Grid(bands), [*use["use"]]
    abreast = 2 if len(tasks) == 4 else min(ABREAST, len(tasks))
    lines = [tasks[at : at + abreast] for at in range(0, len(tasks), abreast)]
    width, line_height = STEP * max(map(len, use["examples"].values())), HEAD + grid.height + LINES
    most = 1.0 if use["of"] == ACTIVE else max(max(map(max, values)) for values in use["use"].values()) or 1.0
    left = MARGIN + grid.names
    right = left + abreast * (width + BETWEEN) + grid.names

    def draw(sheet: Sheet, _: float, top: float) -> None:
        sheet.title(top + 0.28, f"{_measured(use, 'sub-network')}, {split}")
        for at, line in enumerate(lines):
            down = top + TITLE + at * line_height + HEAD
            grid.write_names(sheet, left, down)
            _write_heads(sheet, left, down)
            for column, task in enumerate(line):
                across, name = left + column * (width + BETWEEN), shortened(task, int(width / LETTER))
                sheet.write(across, down - HEAD + 0.12, name, weight="bold", va="center")
                grid.draw(sheet, across, down, use["use"][task], use["examples"][task], most)
        _draw_shares(sheet, right, top + TITLE, grid, use)

    height = TITLE + len(lines) * line_height + MARGIN - LINES
    return Part(right + BARS + LEGEND + MARGIN, height, draw, grid.rows * len(lines))


def _draw_shares(sheet: Sheet, left: float, top: float, grid: Grid, use: StepUse) -> None:
    """Bars as wide as their tasks' shares, beside each other; nothing where no task takes a sub-network."""
    sheet.write(left, top + 0.12, "share of tasks", weight="bold", va="center")
    colours, shares, first = colours_of(len(use["use"])), np.array(use["shares"]), top + HEAD
    grid.write_names(sheet, left, first)
    for _, down, rows, names in grid.bands:
        axes = sheet.axes(left, first + down, BARS, ROW * len(names))
        before = np.zeros(len(names))
        for own, colour in zip(shares[rows].T, colours, strict=True):
            axes.barh(np.arange(len(before)), own, left=before, color=colour, height=0.8)
            before += own
        axes.set(xlim=(0, 1), ylim=(len(before) - 0.5, -0.5))
        axes.set_axis_off()
    for at, (task, colour) in enumerate(zip(use["use"], colours, strict=True)):
        middle = first + GROUP + (at + 0.5) * ROW
        box = sheet.axes(left + BARS + 0.2, middle - 0.06, 0.12, 0.12)
        box.set(facecolor=colour, xticks=[], yticks=[])
        sheet.write(left + BARS + 0.4, middle, shortened(task, 14), va="center")


def _route(name: str, use: StepUse) -> Part:
    """One route: a row for each connection, or for each sender and module where they are many."""
    bands: dict[tuple[str, int], Any]
    if use["senders"] is None or use["connections"] is None:
        parts = [use["modules"]] if use["senders"] is None else [use["senders"], use["modules"]]
        bands = {(rows["pool"], at): _names(rows["pool"], len(rows["steps"])) for at, rows in enumerate(parts)}
        values, what = [steps for rows in parts for steps in rows["steps"]], "module"
    else:
        senders = _names(use["senders"]["pool"], len(use["senders"]["steps"]))
        modules = _names(use["modules"]["pool"], len(use["modules"]["steps"]))
        bands = {(f"to {module} from", at): senders for at, module in enumerate(modules)}
        values, what = [of[at] for at in range(len(modules)) for of in use["connections"]], "connection"
    grid, most = Grid(bands), 1.0 if use["of"] == ACTIVE else max(map(max, values)) or 1.0
    width = max(MARGIN + grid.names + STEP * len(use["examples"]), LEAST) + BETWEEN

    def draw(sheet: Sheet, across: float, top: float) -> None:
        left, down = across + MARGIN + grid.names, top + TITLE + HEAD
        sheet.write(across + 0.15, top + 0.28, shortened(name, int((width - MARGIN) / LETTER)), weight="bold")
        sheet.write(across + 0.15, top + 0.47, _measured(use, what), color="0.35")
        _write_heads(sheet, left, down)
        grid.write_names(sheet, left, down)
        grid.draw(sheet, left, down, values, use["examples"], most)

    return Part(width, TITLE + HEAD + grid.height + MARGIN, draw, grid.rows)


def _names(pool: str, modules: int) -> list[str]:
    return [_name(pool, module) for module in range(modules)]


def _name(pool: str, module: int) -> str:
    return f"{shortened(pool.rpartition('.')[2], 30)}.{module}"


def _measured(use: StepUse, what: str) -> str:
    measured = f"% of examples with a {what} active" if use["of"] == ACTIVE else f"mean gate of a {what} in %"
    return f"{measured} by {use['axis'] if use['axis'] == 'step' else 'step of ' + use['axis']}"
