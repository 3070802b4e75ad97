"""Describes a run in sections of its page: results, recipe, confusion of classes, curves, load of modules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from modgraph.inspect.diff.runs_diff import is_of_controller, rank_metric
from modgraph.inspect.diff.runs_text import format_setting
from modgraph.inspect.page.content import Content, Curve, Curves, Fold, Heatmap, Section, Table, Text

Record = Mapping[str, Any]
Numbers = Mapping[str, float | None]
ABOUT = ("step", "epoch", "split", "task", "phase")  # keys of a record besides metrics
SEEN = ("validation", "train")  # splits that are no tests, in the order of columns
MOST_PAIRS = 10  # of classes that are confused most
MOST_CURVES = 8  # modules of a route, each with a curve; of more, a map
MOST_ROUTES = 32
MOST_COLUMNS = 60  # of a map
MOST_LETTERS = 300  # of a value of the recipe
DIGITS = 4  # of shares

# ------------------------------------------------------------ results and recipe


def build_results(
    metrics: Numbers, latest: Numbers, costs: Numbers, splits: Iterable[str], notes: Sequence[str]
) -> Section:
    """A table with a row for each metric and a column for each split, tests first, and what the training took."""
    values = {**latest, **metrics}
    columns = [split for split in (*splits, *SEEN) if any(name.startswith(f"{split}.") for name in values)]
    columns = sorted(dict.fromkeys(columns), key=lambda split: SEEN.index(split) + 1 if split in SEEN else 0)
    names = dict.fromkeys(
        name.removeprefix(f"{split}.") for split in columns for name in values if name.startswith(f"{split}.")
    )
    rows = [
        [name, *(values.get(f"{split}.{name}") for split in columns)]
        for name in sorted(names, key=lambda name: (rank_metric(name), name.count(".")))
        if not is_load(name)
    ]
    known = {f"{split}.{name}" for split in columns for name in names}
    more = [[name.replace("_", " "), value] for name, value in (*metrics.items(), *costs.items()) if name not in known]
    took = list({str(row[0]): row for row in more if row[1] is not None}.values())
    tables = [Table(("metric", *columns), rows, "metrics at the end")] if rows else []
    return Section("Results", [*map(Text, notes), *tables, *([Table((), took, "training")] if took else [])])


def is_load(name: str) -> bool:
    """Whether a metric is the share of a module in the choices of a controller: `use.0`."""
    return name.split(".")[-2:-1] == ["use"]


def summarize_results(metrics: Numbers, splits: Iterable[str]) -> Iterator[str]:
    """Yield a line for each test split with its most important metrics."""
    for split in splits:
        own = {name.removeprefix(f"{split}."): each for name, each in metrics.items() if name.startswith(f"{split}.")}
        best = [name for name in sorted(own, key=rank_metric) if own[name] is not None and not is_of_controller(name)]
        if split not in SEEN and best:
            yield f"{split}: " + ", ".join(f"{name} {own[name]:.4g}" for name in best[:2])


def build_recipe(settings: Mapping[str, Any], parameters: Iterable[str], changed: Iterable[str] | None) -> Section:
    """A table of the keys as they ran: parameters of the model and keys whose values are no defaults first, the others
    folded. Where `changed` is not known, all but the parameters are folded."""
    own, known = {*parameters}, None if changed is None else {*changed}

    def is_set(key: str) -> bool:
        full = f"model.{key}" if key in own else key
        if known is None:
            return key in own
        return any(full == each or full.startswith(f"{each}.") for each in known)

    rows = {key: [key, format_setting(value, MOST_LETTERS)] for key, value in settings.items()}
    first = [row for key, row in rows.items() if is_set(key)]
    rest = [row for key, row in rows.items() if not is_set(key)]
    note = "As it ran." if known is None else "As it ran; these values are no defaults."
    which = "more keys" if known is None else "keys at their defaults"
    folded = [Fold(f"{len(rest)} {which}", [Table(("key", "value"), rest)])] if rest else []
    return Section("Recipe", [Text(note), *([Table(("key", "value"), first)] if first else []), *folded])


# ------------------------------------------------------------ confusion


def build_confusion(
    matrices: Mapping[str, Mapping[str, tuple[Sequence[str], Sequence[Sequence[int]]]]],
) -> Iterator[Content]:
    """Yield for each split and target a map of its classes and counts, true classes in rows, and the pairs that are
    confused most."""
    for split, by_target in matrices.items():
        for target, (classes, counts) in by_target.items():
            names = distinguish(classes)
            right, total = sum(row[at] for at, row in enumerate(counts)), sum(map(sum, counts))
            yield Text(
                f"{target} in {split}: {right:,} of {total:,} right. True class by row, predicted class by column."
            )
            yield Heatmap(names, names, counts, f"{split}, {target}")
            pairs = [
                (names[true], names[other], count, f"{count / sum(row):.1%}")
                for true, row in enumerate(counts)
                for other, count in enumerate(row)
                if count and other != true
            ]
            most = sorted(pairs, key=lambda pair: -pair[2])[:MOST_PAIRS]
            if most:
                yield Table(("true", "predicted", "times", "of the true class"), most, "confused most")


def distinguish(classes: Sequence[str]) -> list[str]:
    """Return names that differ: equal ones get their number."""
    return [f"{name} ({at})" if classes.count(name) > 1 else name for at, name in enumerate(classes)]


# ------------------------------------------------------------ curves


def build_curves(records: Sequence[Record], samples: Sequence[Record]) -> list[Content]:
    """A chart for each metric by epoch with a curve for each split, the most important first, then the loss and the
    norm of the gradient in single steps; metrics of groups and of single routes are folded."""
    charts = [*chart_metrics(exclude(records, is_load))]
    found: list[Content] = [each for each in charts if each.title.count(".") <= 1]
    for key, title in (("loss", "loss of single steps"), ("gradient_norm", "norm of the gradient, before clipping")):
        points = [(each["step"], each[key]) for each in samples if isinstance(each.get(key), int | float)]
        if points:
            found.append(Curves([Curve("train", points)], title, "step"))
    rest = [each for each in charts if each.title.count(".") > 1]
    return [*found, *([Fold(f"{len(rest)} metrics of groups and routes", rest)] if rest else [])]


def exclude(records: Iterable[Record], is_excluded: Any) -> Iterator[Record]:
    for each in records:
        yield {name: value for name, value in each.items() if name in ABOUT or not is_excluded(name)}


def chart_metrics(records: Iterable[Record]) -> Iterator[Curves]:
    """Yield a chart for each metric, with a curve for each split and for each number that ends its name."""
    charts: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for record in records:
        for name, value in record.items():
            if name not in ABOUT and isinstance(value, int | float):
                metric, _, number = name.rpartition(".") if name.rpartition(".")[2].isdecimal() else (name, "", "")
                curve = f"{record['split']} {number}".strip()
                charts.setdefault(metric, {}).setdefault(curve, []).append((record["step"], value))
    for metric in sorted(charts, key=rank_metric):
        yield Curves([Curve(name, points) for name, points in charts[metric].items()], metric, "step")


def build_loads(records: Sequence[Record], samples: Sequence[Record]) -> list[Content]:
    """A chart for each route through several modules: the share of each in its choices, in single steps; of a run
    without samples by epoch, as its metrics have it."""
    by_route: dict[str, list[tuple[int, Sequence[float]]]] = {}
    for each in samples:
        for route, shares in each.get("load", {}).items():
            by_route.setdefault(route, []).append((each["step"], shares))
    if not by_route:
        return [*chart_metrics(exclude(records, lambda name: not is_load(name)))]
    several = [route for route, steps in by_route.items() if any(len(shares) > 1 for _, shares in steps)]
    found: list[Content] = [_chart_load(route, by_route[route]) for route in several[:MOST_ROUTES]]
    left = len(several) - MOST_ROUTES
    return [*found, *([Text(f"steps.jsonl has {left:,} more routes.")] if left > 0 else [])]


def _chart_load(route: str, steps: Sequence[tuple[int, Sequence[float]]]) -> Content:
    modules = max(len(shares) for _, shares in steps)
    if modules <= MOST_CURVES:
        points = [
            [(step, round(shares[module], DIGITS)) for step, shares in steps if module < len(shares)]
            for module in range(modules)
        ]
        return Curves([Curve(f"module {at}", each) for at, each in enumerate(points)], route, "step")
    some = steps[:: math.ceil(len(steps) / MOST_COLUMNS)]
    values = [
        [round(shares[module], DIGITS) if module < len(shares) else 0.0 for _, shares in some]
        for module in range(modules)
    ]
    return Heatmap([f"module {at}" for at in range(modules)], [f"step {step}" for step, _ in some], values, route)
