"""A file of daily weather: date, precipitation (mm), temp_max and temp_min (°C), wind (m/s), and a word for the sky."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from datetime import date, timedelta
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
from numpy.typing import NDArray

from modgraph.data.errors import BadDataFile
from modgraph.data.text_files import read_text
from modgraph.diagnostics import ModgraphError

SEATTLE = "vega_datasets/_data/seattle-weather.csv"  # read as it lies: importing the package would import pandas
SKY = ("drizzle", "fog", "rain", "snow", "sun")
NUMBERS = {"precipitation": 0.0, "temp_max": -math.inf, "temp_min": -math.inf, "wind": 0.0}  # and the least of each
COLUMNS = ("date", *NUMBERS, "weather")
LAYOUT = f"a CSV file with the columns {', '.join(COLUMNS)}, a line a day, dates as 2012-01-31"


@dataclass(frozen=True)
class Weather:
    """Days that follow each other, the numbers of each by the file's columns, and the sky as a number of `SKY`."""

    first: date
    numbers: dict[str, NDArray[np.float64]]
    sky: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.sky)

    def day(self, at: date) -> int:
        """The number of a day, those before the first and after the last as if they were there."""
        return (at - self.first).days


def seattle() -> str:
    """Where the weather of Seattle, 2012 to 2015, is. Raises `ModgraphError` if the package with it is missing."""
    try:
        return str(distribution("vega_datasets").locate_file(SEATTLE))
    except PackageNotFoundError as error:
        reason, way_out = (
            "there is no package vega_datasets here",
            "pip install vega_datasets, or name a file: data.file",
        )
        raise ModgraphError([BadDataFile(path=SEATTLE, reason=reason, way_out=way_out)]) from error


def read_weather(path: str) -> Weather:
    """The weather of a file. Raises `ModgraphError` with the first line that is wrong."""
    lines = read_text(path).splitlines()
    head = _cells(lines[0]) if lines else []
    missing = [name for name in COLUMNS if name not in head]
    if missing:
        raise _bad(path, f"it has no column {', '.join(missing)}")
    rows: list[tuple[date, list[float], int]] = []
    for number, line in enumerate(lines[1:], start=2):
        cells = _cells(line)
        if len(cells) != len(head):
            raise _bad(path, f"line {number} has {len(cells)} cells, the first {len(head)}")
        rows.append(_row(path, number, dict(zip(head, cells, strict=True)), rows[-1][0] if rows else None))
    if not rows:
        raise _bad(path, "it has no days")
    numbers = np.array([each for _, each, _ in rows], np.float64).T
    return Weather(rows[0][0], dict(zip(NUMBERS, numbers, strict=True)), np.array([sky for *_, sky in rows]))


def _row(path: str, number: int, cells: dict[str, str], before: date | None) -> tuple[date, list[float], int]:
    """A day, which is the next after the one before, its numbers, its sky. Raises `ModgraphError`."""
    day = day_of(cells["date"])
    if day is None:
        raise _bad(path, f'line {number}: "{cells["date"]}" is no date')
    if before is not None and day != before + timedelta(days=1):
        raise _bad(path, f"line {number}: {day} does not follow {before}")
    found = []
    for name, least in NUMBERS.items():
        value = _number(cells[name])
        if value is None or value < least:
            least_told = "" if math.isinf(least) else f" from {least:g}"
            raise _bad(path, f'line {number}: {name} is "{cells[name]}", not a number{least_told}')
        found.append(value)
    if cells["weather"] not in SKY:
        raise _bad(path, f'line {number}: weather is "{cells["weather"]}", not one of {", ".join(SKY)}')
    return day, found, SKY.index(cells["weather"])


def day_of(text: str) -> date | None:
    """The day of a date such as 2012-01-31 or 2012/01/31."""
    try:
        return date.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None


def _cells(line: str) -> list[str]:
    """What stands between commas, perhaps in quotes; nothing where that is no line of a CSV file."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _bad(path: str, reason: str) -> ModgraphError:
    return ModgraphError([BadDataFile(path=path, reason=reason, way_out=f"it is {LAYOUT}")])
