"""Daily weather: predict several properties of a later day.

A file has for each day date, precipitation (mm), temp_max and temp_min (°C), wind (m/s), and a word for the sky.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from modgraph.data.declaration import TRAIN, VALIDATION, Arrays, DataSet, check_splits
from modgraph.data.errors import does_not_fit
from modgraph.data.files import find_file_of_extra, read_text, reading
from modgraph.declare import setting
from modgraph.diagnostics import did_you_mean
from modgraph.ir import Graph, name_length
from modgraph.types import Axis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Series = dict[str, NDArray[Any]]

SKY = ("drizzle", "fog", "rain", "snow", "sun")
LEAST = {
    "precipitation": 0.0,
    "temp_max": -math.inf,
    "temp_min": -math.inf,
    "wind": 0.0,
}  # the least value of each
COLUMNS = ("date", *LEAST, "weather")
NUMBERS = {"precipitation": "log(1 + mm)", "warmest": "°C", "coldest": "°C", "wind": "sqrt(m/s)"}
CLASSES = {"sky": SKY, "wet": ("dry", "wet")}
FEATURES = {**dict.fromkeys(NUMBERS, 1), "wet": 1, "season": 2, "sky": len(SKY)}  # numbers for each day


class DailyWeather(DataSet, name="daily_weather"):
    """Windows of days. The input has numbers for each day, the targets are the weather `ahead` days later, a series
    each: `sky` (drizzle, fog, rain, snow, sun), `wet` (dry, or any precipitation), `warmest`, `coldest`, `wind`,
    `precipitation`.

    Numbers are standardised over the training days, precipitation as log(1 + mm), wind as its square root. A target
    with the axis of days has a value for each, any other for the last day only.

    Splits are by date, and a window lies in one of them with its targets. Training windows begin every `stride` days.
    Other windows follow each other, or end on every day where a target has the last day only.
    """

    exact = False

    file: str | None = setting(None, path=True, doc="a CSV file of days; Seattle, 2012 to 2015, if not given")
    window: int = setting(28, min=1, max=10_000, doc="days in an example")
    stride: int = setting(7, min=1, max=10_000, doc="days between the starts of training windows")
    ahead: int = setting(1, min=1, max=10_000, doc="days from the input to the targets")
    validation_from: str | None = setting(
        "2014-01-01", doc="first day of validation, which ends the training days; or null"
    )
    test_from: str = setting("2015-01-01", doc="first day of the test")
    features: tuple[str, ...] = setting(
        ("precipitation", "warmest", "coldest", "wind", "season", "sky"),
        doc="properties of a day in the input: precipitation, warmest, coldest, wind, wet, season (sine and cosine of "
        "the day of the year), sky (one-hot of five)",
    )
    input: str = setting("days", doc="the input for the features")
    targets: Mapping[str, str] | None = setting(
        None, doc="the series of each target whose name differs from its series"
    )

    def contradiction(self) -> str | None:
        for name in self.features:
            if name not in FEATURES:
                return f"has no feature {name}; {did_you_mean(name, FEATURES)}"
        cuts = [self.test_from] if self.validation_from is None else [self.validation_from, self.test_from]
        for each in cuts:
            if parse_day(each) is None:
                return f"must be dates such as 2014-01-31, not {each!r}"
        if not self.features:
            return "has no features"
        return None if cuts == sorted(set(cuts)) else "must have validation_from before test_from"

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        weather = read_weather(self._path())
        days = self._days(weather)
        (series, _), targets = compute_series(weather, days[TRAIN]), self._targets(graph)
        return check_splits({split: self._windows(series, targets, graph, split, days[split]) for split in days}, graph)

    def extras(self) -> tuple[str, ...]:
        return () if self.file else ("weather",)

    def files(self) -> tuple[str, ...]:
        return (self._path(),)

    def description(self) -> dict[str, Any]:
        weather = read_weather(self._path())
        _, scales = compute_series(weather, self._days(weather)[TRAIN])
        numbers = [f"{name} = ({NUMBERS[name]} − {mean:.6g}) / {by:.6g}" for name, (mean, by) in scales.items()]
        how = f"of each day: {', '.join(self.features)}; {', '.join(numbers)}; targets are {self.ahead} days later"
        names = {**{each: each for each in CLASSES}, **(self.targets or {})}
        classes = {target: list(CLASSES[each]) for target, each in names.items() if each in CLASSES}
        return {"classes": classes, "preprocessing": {self.input: how}}

    def _path(self) -> str:
        return self.file if self.file is not None else seattle()

    def _days(self, weather: Weather) -> dict[str, range]:
        """Return the day numbers of each split. Raises `ModgraphError` where a split has none."""
        watched, tested = parse_day(self.validation_from or ""), parse_day(self.test_from)
        firsts = {TRAIN: weather.first, VALIDATION: watched, "test": tested}
        offsets = {split: (first - weather.first).days for split, first in firsts.items() if first is not None}
        stops = [*list(offsets.values())[1:], len(weather)]
        found = {split: range(start, stop) for (split, start), stop in zip(offsets.items(), stops, strict=True)}
        for split, part in found.items():
            if part.start < 0 or not 0 < part.stop <= len(weather) or len(part) <= self.ahead:
                last = weather.first + timedelta(days=len(weather) - 1)
                reason = f"{split} has too few days; the file has {weather.first} to {last}"
                raise does_not_fit(reason, "set data.validation_from and data.test_from")
        return found

    def _targets(self, graph: Graph) -> dict[str, str]:
        """Return the series of each target. Raises `ModgraphError` for an unknown series, and where the input or a
        target does not fit."""
        name, width = self.input, sum(FEATURES[each] for each in self.features)
        input_, found = graph.input_types.get(name), {}
        if input_ is None or input_.dtype != "float" or len(input_.shape) != 2 or input_.shape[1].size != width:
            reason = f'"{name}" is to be float[time, {width}]; the spec has {input_ or "no such input"}'
            way_out = f"declare: input {name}: float[time, {width}]; or choose others: data.features, data.input"
            raise does_not_fit(reason, way_out)
        days = input_.shape[0]
        for target, type_ in graph.target_types.items():
            series = found[target] = (self.targets or {}).get(target, target)
            if series not in (*NUMBERS, *CLASSES):
                way_out = f"name one: -s data.targets.{target}=SERIES; they are {', '.join((*NUMBERS, *CLASSES))}"
                raise does_not_fit(f'unknown series "{series}" for the target "{target}"', way_out)
            other_axes, classes = type_.shape[type_.shape[:1] == (days,) :], CLASSES.get(series, ())
            if classes:
                fits = type_.dtype == "class" and type_.size == len(classes) and not other_axes
            else:
                fits = type_.dtype == "float" and other_axes in ((), (Axis(1),))
            if not fits:
                wanted = f"class[{days}, {len(classes)}]" if classes else f"float[{days.name or days}]"
                names = f" ({', '.join(classes)})" if classes else ""
                reason = f'the target "{target}" is {type_}, and {series} is {wanted}{names}'
                raise does_not_fit(f"{reason}, or that without the axis of days", f"declare: target {target}: {wanted}")
        return found

    def _windows(self, series: Series, targets: Mapping[str, str], graph: Graph, split: str, part: range) -> Arrays:
        """Return the windows of a split with their targets. Raises `ModgraphError` where it has none."""
        import numpy as np

        axis = graph.input_types[self.input].shape[0]
        with_days = {target for target in targets if graph.target_types[target].shape[:1] == (axis,)}
        count = len(part) - self.ahead  # days with a target
        step = self.stride if split == TRAIN else self.window if len(with_days) == len(targets) else 1
        offsets = np.arange(0, count - self.window + 1, step)
        if split != TRAIN and len(with_days) == len(targets) and axis.is_padded and (rest := count % self.window):
            offsets = np.append(offsets, count - rest)
        if not len(offsets):
            reason = f"{split} has {count} days with a target, a window {self.window}"
            raise does_not_fit(reason, f"shorten it: -s data.window={count}")
        lengths = np.minimum(self.window, count - offsets)
        days = part.start + np.minimum(offsets[:, None] + np.arange(self.window), count - 1)
        mask = np.arange(self.window) < lengths[:, None]
        columns = [(np.eye(len(SKY))[series[each]] if each == "sky" else series[each]) for each in self.features]
        features = np.column_stack(columns).astype(np.float32)
        values = {self.input: features[days] * mask[..., None]}
        for target, name in targets.items():
            found = series[name][days + self.ahead] * mask
            found = found if target in with_days else found[:, -1]
            ones = [1] * (len(graph.target_types[target].shape) + 1 - found.ndim)
            values[target] = found.reshape(*found.shape, *ones)
        return Arrays({**values, name_length(graph, axis.lengths): lengths} if axis.is_padded else values)


def compute_series(weather: Weather, learnt: range) -> tuple[Series, dict[str, tuple[float, float]]]:
    """Return every series [days], `season` [days, 2], with numbers standardised by (x − mean) / deviation, and the mean
    and deviation of each over the training days."""
    import numpy as np

    measured = weather.numbers
    plain = {
        "precipitation": np.log1p(measured["precipitation"]),
        "warmest": measured["temp_max"],
        "coldest": measured["temp_min"],
        "wind": np.sqrt(measured["wind"]),
    }
    own = {name: each[learnt.start : learnt.stop] for name, each in plain.items()}
    scales = {name: (float(each.mean()), float(each.std()) or 1.0) for name, each in own.items()}
    series = {name: (each - scales[name][0]) / scales[name][1] for name, each in plain.items()}
    of_year = np.array([(weather.first + timedelta(days=at)).timetuple().tm_yday for at in range(len(weather))])
    angle = 2 * np.pi * of_year / 365.25
    wet = (measured["precipitation"] > 0).astype(np.int64)
    return {**series, "sky": weather.sky, "wet": wet, "season": np.stack([np.sin(angle), np.cos(angle)], 1)}, scales


@dataclass(frozen=True)
class Weather:
    """Consecutive days, the numbers of each by the file's columns, and the sky as an index into `SKY`."""

    first: date
    numbers: dict[str, NDArray[np.float64]]
    sky: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.sky)


def seattle() -> str:
    """Return the path of the weather of Seattle, 2012 to 2015. Raises `ModgraphError` if its package is missing."""
    path = "vega_datasets/_data/seattle-weather.csv"  # read as a file: importing the package would import pandas
    return find_file_of_extra("weather", path, "the weather of Seattle", "name a file: data.file")


def read_weather(path: str) -> Weather:
    """Read the weather of a file. Raises `ModgraphError` for the first wrong line."""
    import numpy as np

    lines = read_text(path).splitlines()
    head = _cells(lines[0]) if lines else []
    days: list[date] = []
    rows: list[list[float]] = []
    with reading(path, f"it is a CSV file with the columns {', '.join(COLUMNS)}, a line a day, dates as 2012-01-31"):
        missing = [name for name in COLUMNS if name not in head]
        if missing:
            raise ValueError(f"it has no column {', '.join(missing)}")
        for number, line in enumerate(lines[1:], start=2):
            cells = _cells(line)
            if len(cells) != len(head):
                raise ValueError(f"line {number} has {len(cells)} cells, the first {len(head)}")
            named = dict(zip(head, cells, strict=True))
            day = parse_day(named["date"])
            if day is None:
                raise ValueError(f'line {number}: "{named["date"]}" is no date')
            if days and day != days[-1] + timedelta(days=1):
                raise ValueError(f"line {number}: {day} does not follow {days[-1]}")
            days.append(day)
            rows.append([_number(number, name, named[name]) for name in LEAST])
            if named["weather"] not in SKY:
                raise ValueError(f'line {number}: weather is "{named["weather"]}", not one of {", ".join(SKY)}')
            rows[-1].append(SKY.index(named["weather"]))
        if not rows:
            raise ValueError("it has no days")
    *numbers, sky = np.array(rows, np.float64).T
    return Weather(days[0], dict(zip(LEAST, numbers, strict=True)), sky.astype(np.int64))


def _number(line: int, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= LEAST[name]):
        least = "" if math.isinf(LEAST[name]) else f" from {LEAST[name]:g}"
        raise ValueError(f'line {line}: {name} is "{text}", not a number{least}')
    return value


def parse_day(text: str) -> date | None:
    """Parse a date such as 2012-01-31 or 2012/01/31; None if it is no date."""
    try:
        return date.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None


def _cells(line: str) -> list[str]:
    """Split a line of a CSV file into cells; no cells where it is none."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []
