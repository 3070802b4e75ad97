"""Daily weather: what will tomorrow be like, in several respects at once?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import TRAIN, VALIDATION, Arrays, DataSet, check
from modgraph.data.errors import DataDoesNotFit
from modgraph.data.weather_file import SKY, Weather, day_of, read_weather, seattle
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph, length_name
from modgraph.types import Axis, TensorType

NUMBERS = {"precipitation": "log(1 + mm)", "warmest": "°C", "coldest": "°C", "wind": "sqrt(m/s)"}
CLASSES = {"sky": SKY, "wet": ("dry", "wet")}
FEATURES = {**dict.fromkeys(NUMBERS, 1), "wet": 1, "season": 2, "sky": len(SKY)}  # how many numbers a day


class DailyWeather(DataSet):
    """Windows of days: as input numbers of each day, as targets what the weather is `ahead` days later, each a series:
    `sky` (drizzle, fog, rain, snow, sun), `wet` (dry, or any precipitation), `warmest`, `coldest`, `wind`,
    `precipitation`. Numbers are standardised by the days that are learnt from, precipitation as log(1 + mm), wind as
    its square root. A target that has the axis of days has a value for each, any other for the last alone.

    Splits are by date, and a window lies in one of them with its targets. Windows to learn from begin every `stride`
    days; those to measure on follow each other, or end on every day, where a target is of the last alone.
    """

    name = "daily_weather"
    exact = False

    file: str | None = setting(None, path=True, doc="a CSV file of days; Seattle, 2012 to 2015, if not given")
    window: int = setting(28, min=1, max=10_000, doc="days of an example")
    stride: int = setting(7, min=1, max=10_000, doc="days from one window to learn from to the next")
    ahead: int = setting(1, min=1, max=10_000, doc="how many days later the targets are")
    validation_from: str | None = setting(
        "2014-01-01", doc="the first day that is not learnt from, but watched; or null"
    )
    test_from: str = setting("2015-01-01", doc="the first day to test on")
    features: tuple[str, ...] = setting(
        ("precipitation", "warmest", "coldest", "wind", "season", "sky"),
        doc="what the input tells of a day: precipitation, warmest, coldest, wind, wet, season (sine and cosine of the "
        "day of the year), sky (a one among five)",
    )
    input: str = setting("days", doc="the input that holds the features")
    targets: Mapping[str, str] | None = setting(None, doc="the series of each target that is not called as its series")

    def contradiction(self) -> str | None:
        for name in self.features:
            if name not in FEATURES:
                return f"has no feature {name}; {did_you_mean(name, FEATURES)}"
        cuts = [self.test_from] if self.validation_from is None else [self.validation_from, self.test_from]
        wrong = next((each for each in cuts if day_of(each) is None), None)
        if wrong is not None:
            return f"has {wrong!r}, which is no date, as 2014-01-31"
        if not self.features or cuts != sorted(set(cuts)):
            return "has no features" if not self.features else "has a validation_from that is not before test_from"
        return None

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        weather = read_weather(self._path())
        days = self._days(weather)
        series = Series.of(weather, days[TRAIN])
        asked = Asked.of(graph, self.input, self._width(), self._series(graph))
        return {split: check(self._windows(series, asked, split, part), graph, split) for split, part in days.items()}

    def files(self) -> tuple[str, ...]:
        return (self._path(),)

    def description(self) -> dict[str, Any]:
        weather = read_weather(self._path())
        scales = Series.of(weather, self._days(weather)[TRAIN]).scales
        told = [f"{name} = ({NUMBERS[name]} − {mean:.6g}) / {by:.6g}" for name, (mean, by) in scales.items()]
        how = f"of each day: {', '.join(self.features)}; {', '.join(told)}; targets are {self.ahead} days later"
        names = {**{each: each for each in CLASSES}, **(self.targets or {})}
        classes = {target: list(CLASSES[each]) for target, each in names.items() if each in CLASSES}
        return {"classes": classes, "preprocessing": {self.input: how}}

    def _path(self) -> str:
        return self.file if self.file is not None else seattle()

    def _width(self) -> int:
        """How many numbers a day has."""
        return sum(FEATURES[each] for each in self.features)

    def _series(self, graph: Graph) -> dict[str, str]:
        """The series of each target. Raises `ModgraphError`."""
        found = {target: (self.targets or {}).get(target, target) for target in graph.target_types}
        for target, series in found.items():
            if series not in (*NUMBERS, *CLASSES):
                reason = f'there is no series "{series}" for the target "{target}"'
                way_out = f"name one: -s data.targets.{target}=SERIES; they are {', '.join((*NUMBERS, *CLASSES))}"
                raise ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out)])
        return found

    def _days(self, weather: Weather) -> dict[str, range]:
        """The numbers of the days of each split. Raises `ModgraphError` where one has none."""
        firsts = {TRAIN: str(weather.first), VALIDATION: self.validation_from, "test": self.test_from}
        begun = {split: day_of(first) for split, first in firsts.items() if first is not None}
        starts = {split: weather.day(first) for split, first in begun.items() if first is not None}
        stops = [*list(starts.values())[1:], len(weather)]
        found = {split: range(start, stop) for (split, start), stop in zip(starts.items(), stops, strict=True)}
        for split, part in found.items():
            if part.start < 0 or not 0 < part.stop <= len(weather) or len(part) <= self.ahead:
                last = weather.first + timedelta(days=len(weather) - 1)
                reason = f"{split} would have too few days; the file has {weather.first} to {last}"
                raise ModgraphError(
                    [DataDoesNotFit(reason=reason, way_out="set data.validation_from and data.test_from")]
                )
        return found

    def _windows(self, series: Series, asked: Asked, split: str, part: range) -> Arrays:
        """The windows of a split, targets in it too. Raises `ModgraphError` where it has none."""
        count = len(part) - self.ahead  # days that have a target
        step = self.stride if split == TRAIN else self.window if asked.all_days else 1
        whole = np.arange(0, count - self.window + 1, step)
        rest = split != TRAIN and asked.all_days and asked.length is not None and count % self.window
        starts = np.append(whole, count - rest) if rest else whole
        if not len(starts):
            reason = f"{split} has {count} days with a target, a window {self.window}"
            raise ModgraphError([DataDoesNotFit(reason=reason, way_out=f"shorten it: -s data.window={count}")])
        lengths = np.minimum(self.window, count - starts)
        days = part.start + np.minimum(starts[:, None] + np.arange(self.window), count - 1)
        real = np.arange(self.window) < lengths[:, None]
        values = {self.input: series.features(self.features)[days] * real[..., None]}
        for target, name in asked.series.items():
            values[target] = asked.shaped(target, series.by_name[name][days + self.ahead] * real)
        return Arrays(values if asked.length is None else {**values, asked.length: lengths})


@dataclass(frozen=True)
class Series:
    """What is told of every day: [days] each, numbers standardised by (x − mean) / deviation of `scales`."""

    by_name: Mapping[str, NDArray[Any]]
    scales: Mapping[str, tuple[float, float]]
    season: NDArray[np.float64]

    @classmethod
    def of(cls, weather: Weather, learnt: range) -> Series:
        """Scales are of the days that are learnt from alone."""
        measured = weather.numbers
        plain = {
            "precipitation": np.log1p(measured["precipitation"]),
            "warmest": measured["temp_max"],
            "coldest": measured["temp_min"],
            "wind": np.sqrt(measured["wind"]),
        }
        own = {name: each[learnt.start : learnt.stop] for name, each in plain.items()}
        scales = {name: (float(each.mean()), float(each.std()) or 1.0) for name, each in own.items()}
        numbers = {name: (each - scales[name][0]) / scales[name][1] for name, each in plain.items()}
        of_year = np.array([(weather.first + timedelta(days=at)).timetuple().tm_yday for at in range(len(weather))])
        turn = 2 * np.pi * of_year / 365.25
        wet = (measured["precipitation"] > 0).astype(np.int64)
        return cls({**numbers, "sky": weather.sky, "wet": wet}, scales, np.stack([np.sin(turn), np.cos(turn)], 1))

    def features(self, names: tuple[str, ...]) -> NDArray[np.float32]:
        """[days, numbers of a day]."""
        found = {name: each[:, None] for name, each in self.by_name.items()}
        found |= {"season": self.season, "sky": np.eye(len(SKY))[self.by_name["sky"]]}
        return np.concatenate([found[name] for name in names], axis=1).astype(np.float32)


@dataclass(frozen=True)
class Asked:
    """What a spec asks for: the series of each target, its type, the axis of days, and the lengths' name."""

    series: Mapping[str, str]
    types: Mapping[str, TensorType]
    days: Axis
    length: str | None

    @classmethod
    def of(cls, graph: Graph, name: str, width: int, series: Mapping[str, str]) -> Asked:
        """Raises `ModgraphError` where the input or a target does not fit."""
        type_ = graph.input_types.get(name)
        if type_ is None or type_.dtype != "float" or len(type_.shape) != 2 or type_.shape[1].size != width:
            reason = f'"{name}" is to be float[time, {width}]; the spec has {type_ or "no such input"}'
            way_out = f"declare: input {name}: float[time, {width}]; or choose others: data.features, data.input"
            raise ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out)])
        days = type_.shape[0]
        asked = cls(series, graph.target_types, days, length_name(graph, days.name) if days.is_padded else None)
        for target, each in series.items():
            asked._check(target, each)
        return asked

    def _check(self, target: str, series: str) -> None:
        type_, classes = self.types[target], CLASSES.get(series)
        beside = type_.shape[1:] if self._has_days(target) else type_.shape
        if classes is None and type_.dtype == "float" and beside in ((), (Axis(1),)):
            return
        if classes is not None and type_.dtype == "class" and type_.size == len(classes) and not beside:
            return
        wanted = f"float[{self.days.name or self.days}]" if classes is None else f"class[{self.days}, {len(classes)}]"
        told = "" if classes is None else f" ({', '.join(classes)})"
        reason = f'the target "{target}" is {type_}, and {series} is {wanted}{told}, or that without the axis of days'
        raise ModgraphError([DataDoesNotFit(reason=reason, way_out=f"declare: target {target}: {wanted}")])

    def _has_days(self, target: str) -> bool:
        return self.types[target].shape[:1] == (self.days,)

    @property
    def all_days(self) -> bool:
        """Whether every target has a value for each day of a window."""
        return all(map(self._has_days, self.series))

    def shaped(self, target: str, values: NDArray[Any]) -> NDArray[Any]:
        """Values [B, days] in the shape of a target: all of them, or those of the last day."""
        found = values if self._has_days(target) else values[:, -1]
        return found.reshape(*found.shape, *[1] * (len(self.types[target].shape) + 1 - found.ndim))
