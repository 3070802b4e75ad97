"""Sub-networks by step as a picture (MT-RMN, figure 4): for each task how often each is active at each step, and of
each sub-network the share of every task; then the routes that no task has for itself, connection by connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from modgraph.diagnostics import ModgraphError
from modgraph.trace.colours import colours_of
from modgraph.trace.errors import NoSteps, TooTall
from modgraph.trace.sheet import WORDS, Sheet, file_of, shortened
from modgraph.trace.steps import ACTIVE, Rows, Shares, StepUse, use_by_steps, without_common
from modgraph.trace.steps_by_task import TaskSteps, names_of, shared_routes, steps_by_task
from modgraph.trace.trace import Trace

MOST_ROWS = 400
DARK = 0.6  # from where on words are white
COLOURS = "Blues"
SMALL: dict[str, Any] = {**WORDS, "fontsize": 7.5}
NAME = 30  # letters of a row

# in inches
TITLE, HEAD, ROW, STEP, GROUP, MARGIN, BETWEEN = 0.5, 0.55, 0.22, 0.33, 0.28, 0.3, 0.35
LINES = 0.25  # between lines of tasks
LETTER, BARS, LEGEND, WIDEST, LEAST = 0.072, 2.2, 1.4, 13.0, 3.7
ABREAST = 3  # tasks


@dataclass(frozen=True)
class Band:
    """Rows that belong together, with a name of their own above: what each is called, and its shares by step."""

    name: str
    rows: tuple[str, ...]


def steps_picture(trace: Trace, suffix: str) -> bytes:
    """The content of a `.png`, `.svg` or `.pdf` file. Raises `ModgraphError`."""
    use = use_by_steps(trace)
    if not use:
        raise ModgraphError([NoSteps()])
    parts = list(_parts(trace, use))
    rows = sum(part.rows for part in parts)
    if rows > MOST_ROWS:
        raise ModgraphError([TooTall(rows=rows, most=MOST_ROWS)])
    return file_of(lambda: _drawn(parts), suffix)


def _parts(trace: Trace, use: Mapping[str, StepUse]) -> Iterator[Tasks | Route]:
    by_task = steps_by_task(trace, use)
    if by_task is not None:
        yield Tasks(by_task, trace.split)
    shared = shared_routes(trace, use)
    names = without_common(shared)
    for name, each in shared.items():
        yield Route(names[name], each, shared=by_task is not None)


def _drawn(parts: Sequence[Tasks | Route]) -> Sheet:
    """Parts beside each other as far as the widest, or a page, leaves room."""
    widest = max(WIDEST, *(part.width for part in parts))
    placed: list[tuple[Tasks | Route, float, float]] = []
    left = top = down = right = 0.0
    for part in parts:
        if left + part.width > widest:
            left, top = 0.0, down
        placed.append((part, left, top))
        left, down = left + part.width, max(down, top + part.height)
        right = max(right, left)
    sheet = Sheet.blank(right, down)
    for part, across, below in placed:
        part.draw(sheet, across, below)
    return sheet


# ------------------------------------------------------------ grids


@dataclass(frozen=True)
class Grid:
    """Rows in bands, by step: where they lie, and how they are drawn."""

    bands: tuple[Band, ...]

    @property
    def names(self) -> float:
        """The width of the rows' names."""
        longest = max(len(row) for band in self.bands for row in band.rows)
        return max(LETTER * longest, 0.3) + 0.15

    @property
    def rows(self) -> int:
        return sum(len(band.rows) for band in self.bands)

    @property
    def height(self) -> float:
        return sum(GROUP + ROW * len(band.rows) for band in self.bands)

    def tops(self, top: float) -> Iterator[tuple[Band, float, slice]]:
        """Each band, where its first row begins, and which rows it has."""
        first = 0
        for band in self.bands:
            top += GROUP
            yield band, top, slice(first, first + len(band.rows))
            top += ROW * len(band.rows)
            first += len(band.rows)

    def write_names(self, sheet: Sheet, left: float, top: float) -> None:
        """Names of rows end at `left`, that of a band stands above its first cell."""
        for band, down, _ in self.tops(top):
            sheet.write(left, down - 0.05, band.name, va="bottom", color="0.35", style="italic")
            for at, name in enumerate(band.rows):
                sheet.write(left - 0.08, down + (at + 0.5) * ROW, name, ha="right", va="center")

    def draw(self, sheet: Sheet, left: float, top: float, values: Shares, most: float) -> None:
        """The heat map: shares in percent, means of gates with two digits."""
        for _, down, rows in self.tops(top):
            part = np.array(values[rows])
            axes = sheet.axes(left, down, part.shape[1] * STEP, part.shape[0] * ROW)
            axes.imshow(part, cmap=COLOURS, vmin=0, vmax=most, aspect="auto")
            axes.set_xticks(np.arange(part.shape[1] - 1) + 0.5, minor=True)
            axes.set_yticks(np.arange(part.shape[0] - 1) + 0.5, minor=True)
            axes.grid(which="minor", color="white", linewidth=0.8)
            axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
            for side in axes.spines.values():
                side.set_edgecolor("0.7")
            for (row, step), share in np.ndenumerate(part):
                colour = "white" if share > DARK * most else "black"
                axes.text(step, row, f"{100 * share:.0f}", color=colour, ha="center", va="center", **SMALL)


def _write_steps(sheet: Sheet, left: float, top: float, examples: Sequence[int]) -> None:
    """The numbers of steps above a heat map, and how many examples each has."""
    for step, count in enumerate(examples):
        middle = left + (step + 0.5) * STEP
        sheet.write(middle, top, str(step), ha="center", va="center")
        sheet.write(middle, top + 0.17, str(count), ha="center", va="center", color="0.5", fontsize=7)


def _write_heads(sheet: Sheet, left: float, top: float) -> None:
    """What the two lines of numbers are, left of them."""
    for down, words in ((0.0, "step"), (0.17, "examples")):
        sheet.write(left - 0.08, top + down, words, ha="right", va="center", color="0.5", fontsize=7)


def _bands(names: Sequence[tuple[str, str]]) -> tuple[Band, ...]:
    """Rows with the name of their band first, which follow each other."""
    return tuple(Band(name, tuple(row for _, row in rows)) for name, rows in groupby(names, key=lambda each: each[0]))


# ------------------------------------------------------------ tasks


@dataclass(frozen=True)
class Tasks:
    """The heat maps of all tasks, as many abreast as fit, and the share of each task in every sub-network."""

    told: TaskSteps
    split: str

    @property
    def grid(self) -> Grid:
        rows = self.told.sub_networks
        names = zip(names_of(rows), rows, strict=True)
        return Grid(_bands([(pool + use, _name(each.pool, each.module)) for (pool, use), each in names]))

    @property
    def rows(self) -> int:
        return self.grid.rows * len(self.lines)

    @property
    def lines(self) -> list[list[str]]:
        tasks = [*self.told.use]
        abreast = 2 if len(tasks) == 4 else min(ABREAST, len(tasks))
        return [tasks[at : at + abreast] for at in range(0, len(tasks), abreast)]

    @property
    def left(self) -> float:
        return MARGIN + self.grid.names

    @property
    def map_width(self) -> float:
        return STEP * max(map(len, self.told.examples.values()))

    @property
    def width(self) -> float:
        maps = len(self.lines[0]) * (self.map_width + BETWEEN)
        return self.left + maps + self.grid.names + BARS + LEGEND + MARGIN

    @property
    def height(self) -> float:
        return TITLE + len(self.lines) * (HEAD + self.grid.height + LINES) + MARGIN - LINES

    def draw(self, sheet: Sheet, across: float, top: float) -> None:
        sheet.title(top + 0.28, f"{_what(self.told.of, 'sub-network')} by {_along(self.told.axis)}, {self.split}")
        for at, line in enumerate(self.lines):
            down = top + TITLE + at * (HEAD + self.grid.height + LINES)
            self.grid.write_names(sheet, self.left, down + HEAD)
            _write_heads(sheet, self.left, down + HEAD - 0.2)
            for column, task in enumerate(line):
                self._draw_task(sheet, self.left + column * (self.map_width + BETWEEN), down, task)
        right = self.left + len(self.lines[0]) * (self.map_width + BETWEEN) + self.grid.names
        self._draw_shares(sheet, right, top + TITLE)

    def _draw_task(self, sheet: Sheet, left: float, top: float, task: str) -> None:
        examples = self.told.examples[task]
        sheet.write(left, top + 0.12, shortened(task, int(self.map_width / LETTER)), weight="bold", va="center")
        _write_steps(sheet, left, top + HEAD - 0.2, examples)
        self.grid.draw(sheet, left, top + HEAD, self.told.use[task], 1.0 if self.told.of == ACTIVE else self._largest)

    @property
    def _largest(self) -> float:
        return max(max(map(max, use)) for use in self.told.use.values()) or 1.0

    def _draw_shares(self, sheet: Sheet, left: float, top: float) -> None:
        """Bars as wide as their tasks' shares, beside each other; nothing where no task takes a sub-network."""
        sheet.write(left, top + 0.12, "share of tasks", weight="bold", va="center")
        colours, tasks = colours_of(len(self.told.use)), [*self.told.use]
        shares = np.array(self.told.shares)
        self.grid.write_names(sheet, left, top + HEAD)
        for _, down, rows in self.grid.tops(top + HEAD):
            axes = sheet.axes(left, down, BARS, ROW * (rows.stop - rows.start))
            before = np.zeros(rows.stop - rows.start)
            for own, colour in zip(shares[rows].T, colours, strict=True):
                axes.barh(np.arange(len(before)), own, left=before, color=colour, height=0.8)
                before += own
            axes.set_xlim(0, 1)
            axes.set_ylim(len(before) - 0.5, -0.5)
            axes.set_axis_off()
        for at, (task, colour) in enumerate(zip(tasks, colours, strict=True)):
            box = sheet.axes(left + BARS + 0.2, top + HEAD + GROUP + at * ROW + 0.05, 0.12, 0.12)
            box.set_facecolor(colour)
            box.set_xticks([])
            box.set_yticks([])
            sheet.write(left + BARS + 0.4, top + HEAD + GROUP + (at + 0.5) * ROW, shortened(task, 14), va="center")


def _name(pool: str, module: int) -> str:
    return f"{shortened(pool.rpartition('.')[2], NAME)}.{module}"


# ------------------------------------------------------------ routes


@dataclass(frozen=True)
class Route:
    """One route: a row for each connection, or for each sender and module where they are many."""

    name: str
    told: StepUse
    shared: bool = False

    @property
    def shown(self) -> tuple[tuple[Band, ...], Shares]:
        told = self.told
        if told.senders is None or told.connections is None:
            parts = [told.modules] if told.senders is None else [told.senders, told.modules]
            return tuple(map(_band_of, parts)), [steps for part in parts for steps in part.steps]
        of_module = [
            (f"to {_name(told.modules.pool, module)} from", _name(told.senders.pool, sender))
            for module in range(len(told.modules.steps))
            for sender in range(len(told.senders.steps))
        ]
        values = [senders[module] for module in range(len(told.modules.steps)) for senders in told.connections]
        return _bands(of_module), values

    @property
    def grid(self) -> Grid:
        return Grid(self.shown[0])

    @property
    def rows(self) -> int:
        return self.grid.rows

    @property
    def width(self) -> float:
        return max(MARGIN + self.grid.names + STEP * len(self.told.examples), LEAST) + BETWEEN

    @property
    def height(self) -> float:
        return TITLE + HEAD + self.grid.height + MARGIN

    def draw(self, sheet: Sheet, across: float, top: float) -> None:
        grid, (_, values) = self.grid, self.shown
        left, down = across + MARGIN + grid.names, top + TITLE + HEAD
        most = 1.0 if self.told.of == ACTIVE else max(map(max, values)) or 1.0
        what = "connection" if self.told.connections is not None else "module"
        longest = int((self.width - MARGIN) / LETTER)
        title = f"{self.name}, of several tasks" if self.shared else self.name
        sheet.write(across + 0.15, top + 0.28, shortened(title, longest), weight="bold")
        caption = f"{_what(self.told.of, what)} by {_along(self.told.axis)}"
        sheet.write(across + 0.15, top + 0.47, caption, color="0.35")
        _write_heads(sheet, left, down - 0.2)
        _write_steps(sheet, left, down - 0.2, self.told.examples)
        grid.write_names(sheet, left, down)
        grid.draw(sheet, left, down, values, most)


def _band_of(rows: Rows) -> Band:
    return Band(rows.pool, tuple(_name(rows.pool, module) for module in range(len(rows.steps))))


def _what(of: str, what: str) -> str:
    return f"% of examples with a {what} active" if of == ACTIVE else f"mean gate of a {what} in %"


def _along(axis: str) -> str:
    return axis if axis == "step" else f"step of {axis}"
