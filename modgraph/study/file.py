"""Reads sweep files: one sweep at the top level, or several under `sweeps`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError, Report, Source, did_you_mean
from modgraph.recipes.errors import UnknownKey
from modgraph.recipes.schema import WHOLE, Section, read_section, refuse
from modgraph.recipes.yaml_tree import Branch, dump_yaml, read_tree
from modgraph.study import errors
from modgraph.study.space import KINDS, Alternatives, Range
from modgraph.study.sweep import SEED, Iso, Optuna, Random, Seeds, Sweep
from modgraph.syntax import read
from modgraph.tables.layout import TableLayout
from modgraph.training.recipe import list_places

OF_RECIPES = {"data", "train", "model"}  # sections that sweep files do not have
NAME = re.compile(r"[^\W_][\w-]*", re.ASCII)
ALTERNATIVES = "alternatives [1, 2], or a range {log: [1e-4, 1e-2]}, {uniform: [0, 0.5]}, {integers: [8, 64]}"


class SweepSection(Section):
    """Many trainings of one spec: what is set for all of them, and what they try."""

    spec: str = setting(doc="the spec, from the current folder")
    recipe: str | None = setting(None, doc="the recipe; by default the YAML file next to the spec")
    set: Mapping[str, Any] | None = setting(
        None, doc="values for every point, by dotted key of the recipe or parameter of the spec"
    )
    points: Mapping[str, Mapping[str, Any] | None] | None = setting(
        None, doc="named points, each with further values; every one of them is combined with the grid"
    )
    about: Mapping[str, Mapping[str, Any]] | None = setting(
        None, doc="facts about named points, which tables may have as columns"
    )
    grid: Mapping[str, Any] | None = setting(None, doc=f"what is tried of each key: {ALTERNATIVES}")
    seeds: int | Seeds | None = setting(None, min=1, max=10_000, doc="trainings of each point, with seeds from 0")
    iso: Iso | None = setting(None, doc="gives every point the same cost")
    random: int | Random | None = setting(None, min=1, max=100_000, doc="so many points, sampled at random")
    optuna: Optuna | None = setting(None, doc="lets Optuna propose the points")
    start: str | None = setting(None, doc="the sweep whose runs give the first weights")


class OneSweep(SweepSection):
    """A sweep file with one sweep."""

    out: str | None = setting(None, doc="the folder for its runs; --out goes before")
    tables: Mapping[str, TableLayout] | None = setting(None, doc="tables of its runs, by name")


class SeveralSweeps(Section):
    """A sweep file with several sweeps."""

    sweeps: Mapping[str, SweepSection] = setting(doc="the sweeps, by name")
    out: str | None = setting(None, doc="the folder for their runs; --out goes before")
    tables: Mapping[str, TableLayout] | None = setting(None, doc="tables of their runs, by name")

    def contradiction(self) -> str | None:
        return None if self.sweeps else "has no sweep under sweeps"


@dataclass(frozen=True)
class SweepFile:
    """The sweeps of a file, the folder that it names for them, and its tables by name."""

    sweeps: tuple[Sweep, ...]
    out: Path | None = None
    tables: Mapping[str, TableLayout] = field(default_factory=dict)


def read_sweep_file(given: str | Path | Mapping[str, Any]) -> SweepFile:
    """Read a sweep file, or a mapping of the same keys. Raises `ModgraphError` with every mistake."""
    report = Report()
    source = Source("sweep", dump_yaml(given)) if isinstance(given, Mapping) else read(given, report)
    found = None if source is None else _read_file(read_tree(source, report), report)
    if found is None or report.errors:
        raise ModgraphError(report.list_diagnostics())
    return found


def _read_file(tree: Branch, report: Report) -> SweepFile | None:
    if OF_RECIPES & tree.items.keys() and not {"spec", "sweeps"} & tree.items.keys():
        name = "recipe.yaml" if tree.span is None else tree.span.source.name
        report.add(errors.RecipeForSweep(span=tree.span, spec=f"{name.rpartition('.')[0]}.mod"))
        return None
    several = tree.items.get("sweeps", tree)
    branches: dict[str, Branch] = {"": tree}
    kind: type[OneSweep | SeveralSweeps] = OneSweep
    if several is not tree:
        kind = SeveralSweeps
    if kind is SeveralSweeps and isinstance(several, Branch):
        branches = {name: each for name, each in several.items.items() if isinstance(each, Branch)}
        _refuse_names(several, report)
    for name, each in branches.items():
        _refuse_settings(each, name, report)
    section = read_section(kind, tree, "", report)
    if section is None or report.errors:
        return None
    sections = section.sweeps if isinstance(section, SeveralSweeps) else {"": section}
    sweeps = tuple(_make_sweep(name, each, branches[name], report) for name, each in sections.items())
    tables = section.tables or {}
    _check_tables(tables, list(sections), tree, report)
    return SweepFile(sweeps, None if section.out is None else Path(section.out), tables)


def _refuse_names(sweeps: Branch, report: Report) -> None:
    """Report names of sweeps that cannot be those of folders."""
    for name in (name for name in sweeps.items if not NAME.fullmatch(name)):
        example = re.sub(r"[^\w-]+", "_", name, flags=re.ASCII).strip("_-") or "first"
        report.add(errors.BadSweepName(span=sweeps.keys.get(name), name=name, example_name=example))


def _refuse_settings(tree: Branch, name: str, report: Report) -> None:
    """Report, and take out, dotted keys that stand in a sweep itself."""
    for key in [key for key in tree.items if "." in key]:
        section = f"sweeps.{name}" if name else WHOLE
        suggestion = f"write it under set, set: {{{key}: …}}, or with alternatives under grid"
        report.add(UnknownKey(span=tree.keys.get(key), section=section, key=key, suggestion=suggestion))
        del tree.items[key]


def _make_sweep(name: str, section: SweepSection, tree: Branch, report: Report) -> Sweep:
    places = dict(list_places(tree))
    grid = {}
    for key, given in (section.grid or {}).items():
        tried = _read_tried(given)
        span, path = places.get(f"grid.{key}"), f"sweeps.{name}.grid.{key}" if name else f"grid.{key}"
        grid[key] = refuse(report, span, path, "must be a list or a range", ALTERNATIVES) if tried is None else tried
    return Sweep(
        spec=Path(section.spec),
        name=name,
        recipe=None if section.recipe is None else Path(section.recipe),
        settings=section.set or {},
        points={label: each or {} for label, each in (section.points or {}).items()},
        about=section.about or {},
        grid=grid,
        seeds=Seeds(count=section.seeds, keys=(SEED,)) if isinstance(section.seeds, int) else section.seeds,
        iso=section.iso,
        random=Random(count=section.random, seed=0) if isinstance(section.random, int) else section.random,
        optuna=section.optuna,
        start=section.start,
        places=places,
    )


def _read_tried(given: Any) -> Alternatives | Range | None:
    """Return what a grid tries of a key; None for a value that is neither a list nor a range."""
    match given:
        case tuple():
            return given
        case dict() if len(given) == 1:
            ((kind, ends),) = given.items()
            return Range(kind, *ends) if kind in KINDS and isinstance(ends, tuple) and len(ends) == 2 else None
        case _:
            return None


def _check_tables(tables: Mapping[str, TableLayout], sweeps: list[str], tree: Branch, report: Report) -> None:
    """Report tables of sweeps that the file does not have."""
    places = dict(list_places(tree))
    for table, layout in tables.items():
        wanted = (layout.of,) if isinstance(layout.of, str) else layout.of or ()
        for name in (name for name in wanted if name not in sweeps):
            suggestion = did_you_mean(name, sweeps, "sweeps are: {known}")
            if sweeps == [""]:
                suggestion = "the file has one sweep, without a name: leave out this key"
            span, key = places.get(f"tables.{table}.of"), f"tables.{table}.of"
            report.add(errors.NoSuchSweep(span=span, name=name, key=key, suggestion=suggestion))
