"""Prints what differs between two runs beyond their architectures: a block for each subject."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from modgraph.inspect.diff.runs_diff import (
    KeyChange,
    MetricChange,
    RouteChange,
    RunsCompared,
    SplitChange,
    is_of_controller,
)

Row = tuple[str, ...]
SIDES = ("before", "after")
MOST_SHARES = 8  # modules whose shares a row lists
MOST_LETTERS = 40  # of a value


def blocks_of(found: RunsCompared, apart: Iterable[str] = ()) -> Iterator[tuple[Row, list[Row]]]:
    """Yield a header and rows for each subject that differs. Keys that are listed `apart` are left out."""
    elsewhere = {*apart}
    if keys := [format_key(each) for each in found.recipe if each.key not in elsewhere]:
        yield ("recipe", *SIDES), keys
    if found.data:
        yield ("examples", *SIDES), [_split(each) for each in found.data]
    metrics = [each for each in found.changed_metrics if not (found.routing and is_of_controller(each.metric))]
    if metrics:
        yield ("metrics", *SIDES, "difference", ""), [_metric(each) for each in metrics]
    routes = [each for each in found.routing if each.before != each.after]
    if rows := [row for each in sorted(routes, key=lambda each: -(each.distance or 0)) for row in _route(each)]:
        of = "trace" if routes[0].source == "trace" else "metrics"
        yield (f"routing, by {of}", *SIDES, "difference"), rows


def summarize(found: RunsCompared) -> str:
    """Say in a few words what differs."""
    metrics = len(found.changed_metrics)
    words = [f"recipe: {_count(len(found.recipe), 'key')}"] if found.recipe else []
    words += [f"data: {', '.join(each.split for each in found.data)}"] if found.data else []
    words += [f"metrics: {metrics}"] if metrics else []
    return "; ".join(words) or "recipes, data and metrics are the same"


def format_key(each: KeyChange) -> Row:
    return each.key, format_setting(each.before), format_setting(each.after)


def format_setting(value: Any, most: int = MOST_LETTERS) -> str:
    """Format a value as a recipe has it, `-` for none; of a long text, such as a path, the end."""
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= most:
        return text
    return f"…{text[1 - most :]}" if isinstance(value, str) else f"{text[: most - 1]}…"


def _split(each: SplitChange) -> Row:
    before, after = ("-" if count is None else f"{count:,}" for count in (each.before, each.after))
    return each.split, before, f"{after} others" if each.before == each.after else after


def _metric(each: MetricChange) -> Row:
    verdict = {"after": "better", "before": "worse", None: ""}[each.better]
    return each.metric, *_format_numbers(each.before, each.after), verdict


def _format_numbers(before: float | None, after: float | None) -> tuple[str, str, str]:
    """Format two numbers and their difference: whole ones in full, others with four digits of the larger one, `-` for
    none."""
    known = [each for each in (before, after) if each is not None]
    digits = _choose_digits(known)
    texts = ["-" if each is None else f"{each:,{digits}}" for each in (before, after)]
    change = f"{after - before:+,{digits}}" if before is not None and after is not None else ""
    return texts[0], texts[1], change


def _choose_digits(numbers: Sequence[float]) -> str:
    """Return the end of a format of numbers."""
    if all(isinstance(each, int) for each in numbers):
        return ""
    largest = max(map(abs, numbers))
    return f".{max(0, 3 - math.floor(math.log10(largest)))}f" if 1e-3 <= largest < 1e6 else ".3e"


def _route(each: RouteChange) -> Iterator[Row]:
    """Yield the rows of a route: shares of modules, then the entropies that differ."""
    if each.before.shares != each.after.shares:
        shares = [_format_shares(side.shares) for side in (each.before, each.after)]
        yield f"{each.route} load", *shares, "" if each.distance is None else f"{each.distance:.1%} elsewhere"
    for name in ("H_a", "H_b"):
        old, new = (getattr(side, name) for side in (each.before, each.after))
        if old != new:
            yield f"{each.route} {name}", *_format_numbers(old, new)


def _format_shares(shares: tuple[float, ...]) -> str:
    more = " …" if len(shares) > MOST_SHARES else ""
    return " ".join(f"{share:.0%}" for share in shares[:MOST_SHARES]) + more or "-"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
