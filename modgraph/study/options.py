"""Reads the options of a command as parts of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from modgraph.diagnostics import ModgraphError, Report, Source, Span
from modgraph.frozen import replace_fields
from modgraph.recipes.schema import read_section
from modgraph.recipes.yaml_tree import Branch, Leaf
from modgraph.study import errors
from modgraph.study.space import Space, read_single, read_tried, split_list
from modgraph.study.sweep import SEED, Iso, Seeds, Sweep

OPTION = "-s"


@dataclass(frozen=True)
class Settings:
    """What the texts of `-s` set: single values, what is tried of other keys, and the place of each."""

    fixed: Mapping[str, Any] = field(default_factory=dict)
    grid: Space = field(default_factory=dict)
    places: Mapping[str, Span] = field(default_factory=dict)


def read_settings(texts: Sequence[tuple[str, str]]) -> Settings:
    """Read names and values, as `cli.common.split_overrides` gives them. Raises `ModgraphError`."""
    fixed, grid, places, faults = dict[str, Any](), dict[str, Any](), dict[str, Span](), []
    given: dict[str, str] = {}
    for name, text in texts:
        key, span = name.removeprefix("model."), _cite(OPTION, f"{name}={text}")
        if key in given:
            both = ", ".join(each for one in (given[key], text) for each in _list_members(one))
            first, second = f"-s {name}={given[key]}", f"-s {name}={text}"
            way_out = f"keep one of them, or try both: -s {name}=[{both}]"
            faults.append(errors.SetTwice(span=span, key=key, first=first, second=second, way_out=way_out))
        given[key] = text
        tried = read_tried(text)
        if tried is None:
            is_word = text == "null" and "." not in key  # a parameter of the spec has no null
            fixed[key], places[f"set.{key}"] = text if is_word else read_single(text), span
        else:
            grid[key], places[f"grid.{key}"] = tried, span
    if faults:
        raise ModgraphError(faults)
    return Settings(fixed, grid, places)


def apply_settings(sweep: Sweep, given: Settings, seeds: int | None = None) -> Sweep:
    """Return a sweep of a file with other values in place of its own, and so many seeds."""

    def leave_out(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in values.items() if key not in given.fixed and key not in given.grid}

    keys = (SEED,) if sweep.seeds is None else sweep.seeds.keys
    return replace(
        sweep,
        settings={**leave_out(sweep.settings), **given.fixed},
        points={label: leave_out(values) for label, values in sweep.points.items()},
        grid={**leave_out(sweep.grid), **given.grid},
        seeds=sweep.seeds if seeds is None else Seeds(count=seeds, keys=keys),
        places={**sweep.places, **given.places},
    )


def _list_members(text: str) -> list[str]:
    return split_list(text[1:-1]) if text.startswith("[") and text.endswith("]") else [text]


def read_iso(text: str, vary: str | None = None, lengths: Mapping[str, int] | None = None) -> Iso:
    """Read `--iso macs=1e6`, `--iso parameters=spec`, with the parameter of `--vary`. Raises `ModgraphError`."""
    name, _, value = text.partition("=")
    span, report = _cite("--iso", text), Report()
    tree = Branch({name: Leaf(read_single(value), span)}, {name: span}, span)
    tree.items |= {} if vary is None else {"vary": Leaf(vary, span)}
    found = read_section(Iso, tree, "iso", report)
    if found is None:
        raise ModgraphError(report.list_diagnostics())
    return replace_fields(found, lengths=dict(lengths or {}) or None)


def _cite(option: str, text: str) -> Span:
    return Span(Source(option, text), 0, max(1, len(text)))
