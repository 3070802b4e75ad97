"""A file of daily weather: date, precipitation (mm), temp_max and temp_min (°C), wind (m/s), and a word for the sky."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from modgraph.data.errors import bad_file
from modgraph.data.files import file_of_package, read_text
from modgraph.diagnostics import ModgraphError

SKY = ("drizzle", "fog", "rain", "snow", "sun")
NUMBERS = {"precipitation": 0.0, "temp_max": -math.inf, "temp_min": -math.inf, "wind": 0.0}  # and the least of each
COLUMNS = ("date", *NUMBERS, "weather")


@dataclass(frozen=True)
class Weather:
    """Days that follow each other, the numbers of each by the file's columns, and the sky as a number of `SKY`."""

    first: date
    numbers: dict[str, NDArray[np.float64]]
    sky: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.sky)


def seattle() -> str:
    """Where the weather of Seattle, 2012 to 2015, is. Raises `ModgraphError` if the package with it is missing."""
    path = "vega_datasets/_data/seattle-weather.csv"  # read as it lies: importing the package would import pandas
    return file_of_package("vega_datasets", path, "name a file: data.file")


def read_weather(path: str) -> Weather:
    """The weather of a file. Raises `ModgraphError` with the first line that is wrong."""
    lines = read_text(path).splitlines()
    head = _cells(lines[0]) if lines else []
    missing = [name for name in COLUMNS if name not in head]
    if missing:
        raise _bad(path, f"it has no column {', '.join(missing)}")
    days: list[date] = []
    rows: list[list[float]] = []
    for number, line in enumerate(lines[1:], start=2):
        cells = _cells(line)
        if len(cells) != len(head):
            raise _bad(path, f"line {number} has {len(cells)} cells, the first {len(head)}")
        named = dict(zip(head, cells, strict=True))
        day = day_of(named["date"])
        if day is None:
            raise _bad(path, f'line {number}: "{named["date"]}" is no date')
        if days and day != days[-1] + timedelta(days=1):
            raise _bad(path, f"line {number}: {day} does not follow {days[-1]}")
        days.append(day)
        rows.append([_number(path, number, name, named[name]) for name in NUMBERS])
        if named["weather"] not in SKY:
            raise _bad(path, f'line {number}: weather is "{named["weather"]}", not one of {", ".join(SKY)}')
        rows[-1].append(SKY.index(named["weather"]))
    if not rows:
        raise _bad(path, "it has no days")
    *numbers, sky = np.array(rows, np.float64).T
    return Weather(days[0], dict(zip(NUMBERS, numbers, strict=True)), sky.astype(np.int64))


def _number(path: str, line: int, name: str, text: str) -> float:
    """Raises `ModgraphError` where it is none, or too small."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= NUMBERS[name]):
        least = "" if math.isinf(NUMBERS[name]) else f" from {NUMBERS[name]:g}"
        raise _bad(path, f'line {line}: {name} is "{text}", not a number{least}')
    return value


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


def _bad(path: str, reason: str) -> ModgraphError:
    layout = f"a CSV file with the columns {', '.join(COLUMNS)}, a line a day, dates as 2012-01-31"
    return bad_file(path, reason, f"it is {layout}")
