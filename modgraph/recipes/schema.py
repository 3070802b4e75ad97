"""Sections of a recipe: frozen dataclasses whose fields are the keys, read from a tree with every mistake told."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

from modgraph.declare import Configurable, Registered, Setting, load_extensions, setting
from modgraph.diagnostics import Report, closest, did_you_mean
from modgraph.frozen import FrozenData
from modgraph.recipes import errors
from modgraph.recipes.yaml_tree import Branch, Leaf

S = TypeVar("S", bound="Section")
PLAIN = "must be a plain value"


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting,))
class _Declared(FrozenData):
    """Makes every class below it a frozen dataclass."""


class Section(_Declared, Configurable):
    """A mapping of a recipe. A field that is a section itself is a mapping within."""

    def contradiction(self) -> str | None:
        """What is wrong with its keys together, or None."""
        return None

    def plain(self) -> dict[str, Any]:
        """Every key with its value, as YAML writes it."""
        record = {}
        for field in dataclasses.fields(typing.cast(Any, self)):
            value = getattr(self, field.name)
            record[field.name] = _plain(value)
        return record


class Named(Section, Registered):
    """A section that is one of several kinds, told by its key `name`: an optimizer, a data set."""

    def plain(self) -> dict[str, Any]:
        return {"name": self.name, **super().plain()}


def _plain(value: Any) -> Any:
    match value:
        case Section():
            return value.plain()
        case Mapping():
            return {key: _plain(each) for key, each in value.items()}
        case tuple():
            return list(value)
        case _:
            return value


def read_section(kind: type[S], tree: Branch, path: str, report: Report) -> S | None:
    """A section from a tree; None with every mistake reported."""
    before = len(report.diagnostics)
    if issubclass(kind, Named) and "name" not in vars(kind):
        chosen = _chosen(kind, tree, path, report)
        if chosen is None:
            return None
        kind = typing.cast(type[S], chosen)
    hints = _hints(typing.cast(Any, kind))
    fields = {field.name: field for field in dataclasses.fields(typing.cast(Any, kind))}
    values: dict[str, Any] = {}
    meant: set[str | None] = set()  # by misspelt keys: that these are missing only follows
    for key, item in tree.items.items():
        if key == "name" and issubclass(kind, Named):
            continue
        if key not in fields:
            meant.add(closest(key, fields))
            suggestion = did_you_mean(key, fields, f"{path} takes: {{known}}")
            span = tree.keys.get(key)
            report.add(errors.UnknownKey(span=span, section=path, key=key, suggestion=suggestion))
            continue
        values[key] = _field(fields[key], hints[key], item, f"{path}.{key}", report)
    for name, field in fields.items():
        missing = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if missing and name not in values and name not in meant and tree.whole:
            meaning = field.metadata.get("doc", "it has no default")
            report.add(errors.MissingKey(span=tree.span, section=path, key=name, meaning=meaning))
        elif field.metadata.get("path") and name not in values:
            values[name] = _absolute(field.default, Leaf(None, tree.span), f"{path}.{name}", report)
    if len(report.diagnostics) != before or not tree.whole:
        return None
    section = kind(**values)
    wrong = section.contradiction()
    if wrong is None:
        return section
    report.add(errors.BadValue(span=tree.span, key=path, problem=wrong, meaning="change one of them"))
    return None


@cache
def _hints(kind: type[Section]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _chosen(kind: type[Named], tree: Branch, path: str, report: Report) -> type[Named] | None:
    leaf = tree.items.get("name")
    if not isinstance(leaf, Leaf):
        if leaf is None and not tree.whole:
            return None
        load_extensions()
        known = ", ".join(sorted(kind.registry))
        report.add(errors.MissingKey(span=tree.span, section=path, key="name", meaning=f"one of {known}"))
        return None
    name = str(leaf.value)
    found: type[Named] | None = kind.registry.find(name)
    if found is None:
        suggestion = did_you_mean(name, kind.registry)
        report.add(errors.UnknownChoice(span=leaf.span, what=kind.registry.kind, name=name, suggestion=suggestion))
        report.extend(load_extensions())
    return found


def _field(field: Any, hint: Any, item: Leaf | Branch, path: str, report: Report) -> Any:
    section = _section_of(hint)
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if isinstance(item, Leaf) and item.value is None and type(None) in options:
        return None
    if section is not None:
        branch = _mapping(item, section, path, report)
        return None if branch is None else read_section(section, branch, path, report)
    for option in options:
        if typing.get_origin(option) is Mapping:
            each = typing.get_args(option)[1]
            plain = _section_of(each) is None
            return _plain_values(field, each, item, path, report) if plain else _sections(each, item, path, report)
    if isinstance(item, Branch):
        report.add(errors.BadValue(span=item.span, key=path, problem=PLAIN, meaning="no mapping"))
        return None
    value = _value(field, hint, item, path, report)
    return _absolute(value, item, path, report) if field.metadata.get("path") else value


def _value(field: Any, hint: Any, item: Leaf, path: str, report: Report) -> Any:
    """A plain value of a field; None with a mistake reported."""
    known = Setting.of(field, hint)
    problem = known.problem(item.value)
    if problem is None:
        return known.convert(item.value)
    report.add(errors.BadValue(span=item.span, key=path, problem=problem, meaning=field.metadata.get("doc", "")))
    return None


def _plain_values(field: Any, hint: Any, item: Leaf | Branch, path: str, report: Report) -> dict[str, Any] | None:
    """Plain values of one kind by a name of the user's choice."""
    if not isinstance(item, Branch):
        problem, meaning = f"must be a mapping, not {item.value!r}", field.metadata.get("doc", "")
        report.add(errors.BadValue(span=item.span, key=path, problem=problem, meaning=meaning))
        return None
    found = {}
    for name, inner in item.items.items():
        if isinstance(inner, Branch):
            report.add(errors.BadValue(span=inner.span, key=f"{path}.{name}", problem=PLAIN, meaning="no mapping"))
        else:
            found[name] = _value(field, hint, inner, f"{path}.{name}", report)
    return found


def _absolute(value: Any, item: Leaf, key: str, report: Report) -> Any:
    """Paths as they are meant where the recipe is read; whoever reads it again, elsewhere, finds the same files."""
    if isinstance(value, tuple):
        return tuple(_absolute(each, item, key, report) for each in value)
    if not isinstance(value, str) or not value or Path(value).is_absolute():
        return value
    try:
        return str(Path.cwd() / value)
    except OSError:
        problem = f"is relative, {value!r}, and the current folder is gone"
        report.add(errors.BadValue(span=item.span, key=key, problem=problem, meaning="give an absolute path"))
        return None


def paths_of(section: Section) -> list[str]:
    """The keys of a section that name files or folders, with dots those of sections within."""
    found = []
    for field in dataclasses.fields(typing.cast(Any, section)):
        value = getattr(section, field.name)
        found += [field.name] if field.metadata.get("path") else []
        found += [f"{field.name}.{key}" for key in paths_of(value)] if isinstance(value, Section) else []
    return found


def _mapping(item: Leaf | Branch, section: type[Section], path: str, report: Report) -> Branch | None:
    """The mapping of a section; where there are several kinds, a word alone names one."""
    if isinstance(item, Branch):
        return item
    if issubclass(section, Named) and isinstance(item.value, str):
        return Branch({"name": item}, span=item.span)
    problem = f"must be a mapping, not {item.value!r}"
    report.add(errors.BadValue(span=item.span, key=path, problem=problem, meaning="a mapping"))
    return None


def _sections(kind: type[Section], item: Leaf | Branch, path: str, report: Report) -> dict[str, Section | None] | None:
    """Sections of one kind by a name of the user's choice."""
    branch = _mapping(item, kind, path, report)
    if branch is None:
        return None
    found = {}
    for name, inner in branch.items.items():
        each = _mapping(inner, kind, f"{path}.{name}", report)
        found[name] = None if each is None else read_section(kind, each, f"{path}.{name}", report)
    return found


def _section_of(hint: Any) -> type[Section] | None:
    """The section that a field holds, perhaps optionally."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return next((each for each in options if isinstance(each, type) and issubclass(each, Section)), None)
