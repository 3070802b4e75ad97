"""Lists the points of a sweep with what they set, and finds the mistakes that need no spec."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from modgraph.declare import format_briefly, format_value
from modgraph.diagnostics import Diagnostic, Span, did_you_mean
from modgraph.study import errors
from modgraph.study.space import (
    MOST_POINTS,
    Range,
    Space,
    count_points,
    drop_repeats,
    list_combinations,
    list_corners,
    sample_points,
)
from modgraph.study.sweep import Sweep

LABEL = "point"  # the key of named points in a space
KEY = re.compile(r"[^\W\d]\w*(\.[^.]+)*")
SECTIONS = {"model": "width", "start": "run", "data": "name", "train": "epochs"}  # of a recipe, each with a key
LONGEST_NAME = 100
UNSAFE_LABEL = re.compile(r"[^\w.+-]+", re.ASCII)
UNSAFE = re.compile(r"[^\w.+=,-]+", re.ASCII)


@dataclass(frozen=True)
class Draft:
    """A point before it is checked: its label, what it varies, and all that it sets, by key."""

    label: str
    values: Mapping[str, Any]
    overrides: Mapping[str, Any]
    is_first: bool = True  # of the seeds

    def __post_init__(self) -> None:
        """Order a section before its keys, which it would replace."""
        ordered = sorted(self.overrides, key=lambda key: key.count("."))
        object.__setattr__(self, "overrides", {key: self.overrides[key] for key in ordered})

    def with_settings(self, **settings: Any) -> Draft:
        return replace(self, overrides={**self.overrides, **settings})


def normalise(sweep: Sweep) -> Sweep:
    """Return a sweep whose parameters have plain names and whose lists are tuples without repeats."""

    def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
        return {key.removeprefix("model."): to_tuple(value) for key, value in settings.items()}

    grid = {key: drop_repeats(each) if isinstance(each, tuple) else each for key, each in plain(sweep.grid).items()}
    points = {label: plain(each) for label, each in sweep.points.items()}
    return replace(sweep, settings=plain(sweep.settings), points=points, grid=grid)


def to_tuple(value: Any) -> Any:
    """Turn lists, and those in mappings, into tuples."""
    if isinstance(value, list | tuple):
        return tuple(map(to_tuple, value))
    return {key: to_tuple(each) for key, each in value.items()} if isinstance(value, Mapping) else value


def find_mistakes(sweep: Sweep) -> Iterator[Diagnostic]:
    """Yield the mistakes of a normalised sweep that show without its spec."""
    seeds = {} if sweep.seeds is None else dict.fromkeys(sweep.seeds.keys)
    for part, settings in [*list_parts(sweep), ("seeds", seeds)]:
        for key in settings:
            yield from _find_bad_key(key, sweep.places.get(f"{part}.{key}", sweep.places.get(part)))
    yield from _find_conflicts(sweep)
    is_grid = sweep.random is None and sweep.optuna is None
    for key, tried in sweep.grid.items():
        span = sweep.places.get(f"grid.{key}")
        if tried == ():
            yield errors.NoAlternatives(span=span, key=key)
        elif isinstance(tried, Range):
            yield from _find_bad_range(key, tried, is_grid, span)
    for label in (label for label in sweep.about if label not in sweep.points):
        suggestion = did_you_mean(label, sweep.points, "its points are: {known}")
        yield errors.NoSuchPoint(span=sweep.places.get(f"about.{label}"), name=label, suggestion=suggestion)
    if sweep.random is not None and sweep.optuna is not None:
        yield errors.SearchesTwice(span=sweep.places.get("optuna"))
    yield from _find_bad_count(sweep)


def find_aliases(sweep: Sweep) -> Iterator[Diagnostic]:
    """Yield a mistake for each parameter that one part of a sweep sets by both of its names."""
    for part, settings in list_parts(sweep):
        for key in (key for key in settings if key.removeprefix("model.") != key):
            name = key.removeprefix("model.")
            if name in settings:
                facts = {"key": name, "first": name, "second": key, "way_out": "keep one of them"}
                yield errors.SetTwice(span=sweep.places.get(f"{part}.{key}"), notes=(), **facts)


def list_parts(sweep: Sweep) -> list[tuple[str, Mapping[str, Any]]]:
    """List the parts of a sweep that set keys, by their path in a sweep file."""
    points = [(f"points.{label}", each) for label, each in sweep.points.items()]
    return [("set", sweep.settings), *points, ("grid", sweep.grid)]


def locate(sweep: Sweep, label: str, key: str) -> Span | None:
    """Return the place where a sweep file sets a key of a point."""
    parts = (f"grid.{key}", f"points.{label}.{key}", f"set.{key}", f"grid.model.{key}", f"set.model.{key}")
    is_seed = sweep.seeds is not None and key in sweep.seeds.keys
    return next((sweep.places[each] for each in (*parts, *["seeds"][:is_seed]) if each in sweep.places), None)


def _find_bad_key(key: str, span: Span | None) -> Iterator[Diagnostic]:
    if key in SECTIONS:
        yield errors.SectionInSweep(span=span, key=key, example_key=SECTIONS[key])
    elif not KEY.fullmatch(key):
        yield errors.NotASetting(span=span, key=key)


def _find_bad_range(key: str, tried: Range, is_grid: bool, span: Span | None) -> Iterator[Diagnostic]:
    problem = tried.problem()
    if problem is not None:
        example = {"log": "log(1e-4, 1e-2)", "integers": "integers(8, 64)"}.get(tried.kind, "uniform(0, 0.5)")
        yield errors.BadRange(span=span, key=key, given=tried, problem=problem, example_range=f"{key}={example}")
    elif is_grid:
        low, high = format_value(tried.low), format_value(tried.high)
        yield errors.RangeInGrid(span=span, key=key, range=tried, low=low, high=high)


def _find_conflicts(sweep: Sweep) -> Iterator[Diagnostic]:
    """Yield a mistake for each key that two parts of a sweep set. A named point may change what is set for all, and
    `iso` begins with it."""
    seeds = {} if sweep.seeds is None else dict.fromkeys(sweep.seeds.keys)
    varied = {} if sweep.iso is None or sweep.iso.vary is None else {sweep.iso.vary: None}
    start = {} if sweep.start is None else {"start.run": None}
    own: list[tuple[str, Mapping[str, Any]]] = [("seeds", seeds), ("iso", varied), ("start", start)]
    parts = [*list_parts(sweep), *((name, each) for name, each in own if each)]
    for at, (later, settings) in enumerate(parts):
        for earlier, others in parts[:at]:
            if later.startswith("points.") or (earlier, later) == ("set", "iso"):
                continue
            for key in (key for key in settings if key in others):
                span = sweep.places.get(f"{later}.{key}") or sweep.places.get(later)
                way_out = "keep one of them"
                yield errors.SetTwice(span=span, key=key, first=_say(earlier), second=_say(later), way_out=way_out)


def _say(part: str) -> str:
    kind, _, label = part.partition(".")
    return f'the point "{label}"' if label else kind


def _find_bad_count(sweep: Sweep) -> Iterator[Diagnostic]:
    """Yield a mistake for a grid with too many points, and for random points of too small a one."""
    count, seeds = count_points(space_of(sweep)), 1 if sweep.seeds is None else sweep.seeds.count
    vary = "name what it varies: -s train.optimizer.lr='log(1e-4, 1e-2)', in a sweep file under grid"
    if sweep.random is None:
        if sweep.optuna is not None and count == 1:
            span, asked = sweep.places.get("optuna"), sweep.optuna.trials
            yield errors.TooFewPoints(span=span, what="optuna", count=asked, found=1, way_out=vary)
        if sweep.optuna is None and MOST_POINTS < count * seeds < float("inf"):
            yield errors.TooManyPoints(span=sweep.places.get("grid"), count=int(count * seeds), limit=MOST_POINTS)
        return
    if sweep.random.count * seeds > MOST_POINTS:
        total = sweep.random.count * seeds
        yield errors.TooManyPoints(span=sweep.places.get("random"), count=total, limit=MOST_POINTS)
    elif count < sweep.random.count:
        way_out = "leave out random" if count > 1 else vary
        span, asked = sweep.places.get("random"), sweep.random.count
        yield errors.TooFewPoints(span=span, what="random", count=asked, found=int(count), way_out=way_out)


def space_of(sweep: Sweep) -> Space:
    """Return what a sweep tries of each key, its named points first."""
    return {**({LABEL: tuple(sweep.points)} if sweep.points else {}), **sweep.grid}


def list_drafts(sweep: Sweep) -> list[Draft]:
    """List the points of a sweep without mistakes: its grid, its random points, or, for a search, points that have
    every value that it may try."""
    space = space_of(sweep)
    if sweep.random is not None:
        found = sample_points(space, sweep.random.count, sweep.random.seed)
    else:
        found = list_corners(space) if sweep.optuna is not None else [*list_combinations(space)]
    return [each for values in found for each in draft_points(sweep, values)]


def draft_points(sweep: Sweep, combination: Mapping[str, Any]) -> list[Draft]:
    """Draft the points of one combination of values, one for each seed."""
    label = str(combination.get(LABEL, "")) if sweep.points else ""
    values = {key: value for key, value in combination.items() if key in sweep.grid}
    settings = {**sweep.settings, **sweep.points.get(label, {}), **values}
    if sweep.seeds is None:
        return [Draft(label, values, settings)]
    seeds = [dict.fromkeys(sweep.seeds.keys, seed) for seed in range(sweep.seeds.count)]
    return [Draft(label, {**values, **each}, {**settings, **each}, not at) for at, each in enumerate(seeds)]


def name_point(sweep: Sweep, draft: Draft, seeds: bool = True) -> str:
    """Name a point by its label and its values, safe as a folder's name and at most 100 letters."""
    keys = () if sweep.seeds is None else sweep.seeds.keys
    named = {key: value for key, value in draft.values.items() if key not in keys[1:]}
    parts = [f"{shorten(key, named)}={_show(value)}" for key, value in named.items() if seeds or key not in keys]
    whole = ",".join(filter(None, [UNSAFE_LABEL.sub("-", draft.label), *parts])) or sweep.spec.stem
    return UNSAFE.sub("-", whole).strip(".-") or "point"


def shorten(key: str, keys: Mapping[str, Any]) -> str:
    """Return the last parts of a dotted key that no other of the keys ends in."""
    parts = key.split(".")
    for at in range(len(parts) - 1, 0, -1):
        short = ".".join(parts[at:])
        if not any(each != key and f".{each}".endswith(f".{short}") for each in keys):
            return short
    return key


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return "+".join(map(_show, value)) or "none"
    return value if isinstance(value, str) else "null" if value is None else format_briefly(value)
