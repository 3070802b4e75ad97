"""Daily weather as several tasks: windows, splits by date, scales of the training days, and files that are wrong."""

from __future__ import annotations

import csv
import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import modgraph
from modgraph.cli import main
from modgraph.data import DailyWeather
from modgraph.data.daily_weather import SKY, read_weather, seattle
from modgraph.diagnostics import ModgraphError
from modgraph.training.stored_run import load_run
from tests.small_runs import begin

SPEC = """
model weather(features=11, hidden=6) {
  input  days: float[time, features]
  for k in ["sky"] { target label[k]: class[time, 5] }
  target wet: class[time, 2]
  target warmest: float[time]
  target wind: float[time, 1]
  x = days -> linear(hidden) -> tanh
  sky = x -> linear(5)
  wetness = x -> linear(2)
  output sky
  output wetness
  loss cross_entropy(sky, label["sky"])
  loss cross_entropy(wetness, wet)
  loss mse(x -> sum(axis=-1), warmest)
  loss mse(x -> linear(1), wind)
}
"""
NAMED = {"label.sky": "sky"}


def graph(text: str = SPEC) -> Any:
    return modgraph.loads(text).ir


def rows() -> list[dict[str, str]]:
    """The days of Seattle as Python's csv reads them."""
    with Path(seattle()).open() as file:
        return list(csv.DictReader(file))


def message_of(text: str, **data: Any) -> str:
    with pytest.raises(ModgraphError) as caught:
        DailyWeather(**data).splits(graph(text))
    return str(caught.value)


def test_windows_hold_days_and_the_weather_that_follows_by_a_loop_over_the_file() -> None:
    splits = DailyWeather(window=10, stride=5, ahead=2, targets=NAMED).splits(graph())
    days, known = rows(), {}
    dates = [date(2012, 1, 1) + timedelta(days=at) for at in range(len(days))]
    learnt = range(731)
    for name, key, of in (("warmest", "temp_max", float), ("wind", "wind", lambda word: math.sqrt(float(word)))):
        values = [of(each[key]) for each in days]
        mean = sum(values[at] for at in learnt) / 731
        by = math.sqrt(sum((values[at] - mean) ** 2 for at in learnt) / 731)
        known[name] = [(each - mean) / by for each in values]
    for split, first, stop in (("train", 0, 731), ("validation", 731, 1096), ("test", 1096, 1461)):
        values = splits[split].values
        first_days = range(first, stop - 11, 5) if split == "train" else range(first, stop - 2, 10)
        assert len(values["days"]) == len(first_days)
        for row, start in enumerate(first_days):
            length = min(10, stop - 2 - start)
            assert values["time_length"][row] == length
            for t in range(length):
                now, then = start + t, start + t + 2
                assert then < stop
                assert SKY[values["label.sky"][row, t]] == days[then]["weather"]
                assert values["wet"][row, t] == (float(days[then]["precipitation"]) > 0)
                assert values["warmest"][row, t] == pytest.approx(known["warmest"][then], abs=1e-6)
                assert values["wind"][row, t, 0] == pytest.approx(known["wind"][then], abs=1e-6)
                _, warmest, _, wind, sine, cosine, *sky = values["days"][row, t]
                assert (warmest, wind) == pytest.approx((known["warmest"][now], known["wind"][now]), abs=1e-6)
                angle = 2 * math.pi * dates[now].timetuple().tm_yday / 365.25
                assert (sine, cosine) == pytest.approx((math.sin(angle), math.cos(angle)), abs=1e-6)
                assert sky == [days[now]["weather"] == each for each in SKY]


def test_a_target_without_days_is_of_the_last_and_every_day_is_measured_once() -> None:
    text = """model m() { input days: float[7, 2] target sky: class[5] target warmest: float[1]
      h = days -> mean y = h -> linear(5) output y loss cross_entropy(y, sky) loss mse(h -> linear(1), warmest) }"""
    splits = DailyWeather(window=7, features=("warmest", "wet")).splits(graph(text))
    values, days = splits["test"].values, rows()
    assert values["days"].shape == (365 - 1 - 7 + 1, 7, 2)
    assert values["warmest"].shape == (358, 1)
    assert [SKY[each] for each in values["sky"]] == [each["weather"] for each in days[1096 + 7 :]]
    np.testing.assert_array_equal(values["warmest"][:-1, 0], values["days"][1:, -1, 0])  # tomorrow, a day later today
    assert len(splits["train"]) == len(range(0, 731 - 7, 7))


def test_splits_follow_their_dates_and_one_of_them_may_be_left_out() -> None:
    found = DailyWeather(validation_from=None, test_from="2013/07/01", targets=NAMED, window=30).splits(graph())
    assert list(found) == ["train", "test"]
    assert int(found["test"].values["time_length"].sum()) == 1461 - 547 - 1


@pytest.mark.parametrize(
    ("declared", "series", "expected"),
    [
        ("class[time, 5]", "heaven", 'unknown series "heaven" for the target "t"'),
        ("class[time, 4]", "sky", "sky is class[time, 5] (drizzle, fog, rain, snow, sun)"),
        ("class[time, 2]", "warmest", "declare: target t: float[time]"),
        ("float[time, 2]", "wind", "declare: target t: float[time]"),
        ("float[3]", "wet", "declare: target t: class[time, 2]"),
    ],
)
def test_a_target_that_does_not_fit_its_series_is_reported(declared: str, series: str, expected: str) -> None:
    text = f"model m() {{ input days: float[time, 11] target t: {declared} y = days -> mean output y }}"
    assert expected in message_of(text, targets={"t": series})


def test_days_that_do_not_fit_are_reported() -> None:
    assert "declare: input days: float[time, 11]" in message_of(
        SPEC.replace("features=11", "features=9"), targets=NAMED
    )
    assert "the file has 2012-01-01 to 2015-12-31" in message_of(SPEC, targets=NAMED, test_from="2016-05-01")
    assert "-s data.window=364" in message_of(SPEC.replace("[time", "[500"), targets=NAMED, window=500)


LINES = (
    "date,precipitation,temp_max,temp_min,wind,weather\n2012-01-01,0,12.8,5,4.7,drizzle\n2012-01-02,1,9,2,4.5,rain\n"
)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("wind,", "wend,"), "it has no column wind"),
        (("2012-01-02", "2012-01-04"), "line 3: 2012-01-04 does not follow 2012-01-01"),
        (("2012-01-02", "2012-13-02"), 'line 3: "2012-13-02" is no date'),
        (("12.8", "warm"), 'line 2: temp_max is "warm", not a number'),
        ((",4.5,", ",-4.5,"), 'line 3: wind is "-4.5", not a number from 0'),
        ((",4.5,", ",nan,"), 'line 3: wind is "nan"'),
        (("rain", "hail"), 'line 3: weather is "hail", not one of drizzle, fog, rain, snow, sun'),
        ((",rain", ""), "line 3 has 5 cells, the first 6"),
        ((LINES[50:], ""), "it has no days"),
    ],
)
def test_a_file_that_is_wrong_is_reported_with_its_line(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    (tmp_path / "days.csv").write_text(LINES.replace(*change))
    with pytest.raises(ModgraphError) as caught:
        read_weather(f"{tmp_path}/days.csv")
    assert expected in str(caught.value) and "date, precipitation, temp_max" in str(caught.value)


def test_a_run_on_a_file_of_ones_own_is_measured_with_only_that_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Path(seattle()).read_text().splitlines()
    (tmp_path / "days.csv").write_text("\n".join(lines[:200]))
    (tmp_path / "weather.mod").write_text(SPEC)
    data = f"{{name: daily_weather, file: {tmp_path}/days.csv, window: 9, targets: {{label.sky: sky}}, "
    cuts = "validation_from: null, test_from: 2012-05-01}"
    (tmp_path / "weather.yaml").write_text(f"data: {data}{cuts}\ntrain: {{epochs: 1, batch: 8}}\n")
    metrics = begin(tmp_path / "weather.mod", tmp_path / "run")
    assert {"test.label.sky.accuracy", "test.wet.accuracy", "test.warmest.mse"} <= metrics.keys()
    run = load_run(tmp_path / "run")
    assert run.description()["classes"] == {"sky": [*SKY], "wet": ["dry", "wet"], "label.sky": [*SKY]}
    assert "wind = (sqrt(m/s) − " in run.description()["preprocessing"]["days"]
    assert main(["eval", f"{tmp_path}/run"]) == 0
    (tmp_path / "days.csv").write_text("\n".join([*lines[:199], "2012-07-17,0.0,26.1,15.0,2.4,sun"]))
    capsys.readouterr()
    assert main(["eval", f"{tmp_path}/run"]) == 1
    assert "MG620" in capsys.readouterr().err
