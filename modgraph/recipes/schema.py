"""Reads sections of a recipe, frozen dataclasses whose fields are the keys, and reports every mistake."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

from modgraph.declare import Configurable, Registered, Setting, load_extensions, setting
from modgraph.diagnostics import Report, Span, closest, did_you_mean
from modgraph.frozen import FrozenData
from modgraph.recipes import errors
from modgraph.recipes.key_suggestions import Sections, find_reachable, suggest_key
from modgraph.recipes.yaml_tree import Branch, Leaf

S = TypeVar("S", bound="Section")
WHOLE = "this file"  # what messages call a section without a path
_hints = cache(typing.get_type_hints)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting,))
class Section(FrozenData, Configurable):
    """A mapping of a recipe; a field that is a section is a nested mapping."""

    def contradiction(self) -> str | None:
        """Explain why the values of the keys contradict each other; None if they do not."""
        return None

    def plain(self) -> dict[str, Any]:
        """Return every key with its value, as YAML writes it."""
        return {name: _plain(getattr(self, name)) for name in _list_fields(self)}

    def list_changed(self, prefix: str = "") -> list[str]:
        """Return the dotted keys whose values are no defaults."""
        found = list[str]()
        for name, field in _list_fields(self).items():
            value, default, key = getattr(self, name), field.default, f"{prefix}{name}"
            if isinstance(value, Section):
                other = isinstance(value, Named) and type(value) is not type(default)
                found += [*([f"{key}.name"] if other else []), *value.list_changed(f"{key}.")]
            elif isinstance(value, Mapping):
                found += [f"{key}.{each}" for each in value]
            elif value != default:
                found.append(key)
        return found


class Named(Section, Registered):
    """A section of one of several kinds, selected by the key `name`: an optimizer, a data set."""

    @classmethod
    def suggest(cls, name: str) -> str:
        """Return the help for an unknown name of a kind."""
        return did_you_mean(name, cls.registry)

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


def read_section(kind: type[S], tree: Branch, path: str, report: Report, sections: Sections | None = None) -> S | None:
    """Read a section from a tree; None, with every mistake reported. For an unknown key, a key of the recipe's
    `sections` is suggested."""
    before = len(report.diagnostics)
    if issubclass(kind, Named) and "name" not in vars(kind):
        named = _find_kind(kind, tree, path, report)
        if named is None:
            _report_keys_of_no_kind(kind, tree, path, report, sections or {})
            return None
        kind = typing.cast(type[S], named)
    hints, fields = _hints(typing.cast(Any, kind)), _list_fields(kind)
    values: dict[str, Any] = {}
    meant: set[str | None] = set()  # by misspelt keys, so they are not reported as missing
    for key, item in tree.items.items():
        if key == "name" and issubclass(kind, Named):
            continue
        if key not in fields:
            meant.add(closest(key, fields))
            suggestion = suggest_key(key, fields, find_reachable(path, sections or {}))
            span = tree.keys.get(key)
            report.add(errors.UnknownKey(span=span, section=path or WHOLE, key=key, suggestion=suggestion))
            continue
        values[key] = _read_field(fields[key], hints[key], item, f"{path}.{key}".lstrip("."), report, sections)
    for name, field in fields.items():
        missing = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if missing and name not in values and name not in meant and tree.whole:
            meaning = field.metadata.get("doc", "it has no default")
            report.add(errors.MissingKey(span=tree.span, section=path or WHOLE, key=name, meaning=meaning))
        elif field.metadata.get("path") and name not in values:
            values[name] = _make_absolute(field.default, Leaf(None, tree.span), f"{path}.{name}", report)
    if len(report.diagnostics) != before or not tree.whole:
        return None
    section = kind(**values)
    wrong = section.contradiction()
    return section if wrong is None else refuse(report, tree.span, path or WHOLE, wrong, "change one of them")


def _list_fields(section: Any) -> dict[str, dataclasses.Field[Any]]:
    return {field.name: field for field in dataclasses.fields(section)}


def refuse(report: Report, span: Span | None, key: str, problem: str, meaning: str) -> Any:
    """Report a bad value and return None."""
    report.add(errors.BadValue(span=span, key=key, problem=problem, meaning=meaning))


def _find_kind(kind: type[Named], tree: Branch, path: str, report: Report) -> type[Named] | None:
    leaf = tree.items.get("name")
    if not isinstance(leaf, Leaf):
        if leaf is not None or tree.whole:
            load_extensions()
            known = ", ".join(sorted(kind.registry))
            report.add(errors.MissingKey(span=tree.span, section=path, key="name", meaning=f"one of {known}"))
        return None
    name = str(leaf.value)
    found: type[Named] | None = kind.registry.find(name)
    if found is None:
        suggestion = kind.suggest(name)
        report.add(errors.UnknownChoice(span=leaf.span, what=kind.registry.kind, name=name, suggestion=suggestion))
        report.extend(load_extensions())
    return found


def _report_keys_of_no_kind(kind: type[Named], tree: Branch, path: str, report: Report, sections: Sections) -> None:
    """Report the keys of a section of an unknown kind that no kind has, or that the similar one does not have."""
    name = tree.items.get("name")
    if not isinstance(name, Leaf):
        return
    similar = closest(str(name.value), kind.registry)
    kinds = kind.registry.values() if similar is None else [kind.registry[similar]]
    known = list(dict.fromkeys(key for each in kinds for key in _list_fields(each)))
    for key in (key for key in tree.items if key != "name" and key not in known):
        suggestion = suggest_key(key, known, find_reachable(path, sections))
        report.add(errors.UnknownKey(span=tree.keys.get(key), section=path, key=key, suggestion=suggestion))


def _read_field(
    field: Any, hint: Any, item: Leaf | Branch, path: str, report: Report, sections: Sections | None = None
) -> Any:
    """Read the value of a field; None, with a mistake reported."""
    if hint is Any:
        return to_plain(item)
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if isinstance(item, Leaf) and item.value is None and type(None) in options:
        return None
    meaning = field.metadata.get("doc", "")
    for option in options:
        if isinstance(option, type) and issubclass(option, Section):
            if isinstance(item, Leaf) and issubclass(option, Named) and isinstance(item.value, str):
                item = Branch({"name": item}, span=item.span)  # a single word is the name of the kind
            if isinstance(item, Branch):
                return read_section(option, item, path, report, sections)
            if not issubclass(option, Named) and len(options) > 1 + (type(None) in options):
                continue  # one of the other options
            return refuse(report, item.span, path, f"must be a mapping, not {item.value!r}", "a mapping")
        if typing.get_origin(option) is Mapping:
            each = typing.get_args(option)[1]
            if isinstance(each, type) and issubclass(each, Section):
                meaning = "a mapping"
            if isinstance(item, Leaf) and len(options) > 1 + (type(None) in options):
                continue  # one of the other options
            if isinstance(item, Branch):
                return {
                    name: _read_field(field, each, inner, f"{path}.{name}", report, sections)
                    for name, inner in item.items.items()
                }
            return refuse(report, item.span, path, f"must be a mapping, not {item.value!r}", meaning)
    if isinstance(item, Branch):
        return refuse(report, item.span, path, "must be a plain value", "no mapping")
    known = Setting.from_field(field, hint)
    problem = known.problem(item.value)
    if problem is not None:
        return refuse(report, item.span, path, problem, meaning)
    value = known.convert(item.value)
    return _make_absolute(value, item, path, report) if field.metadata.get("path") else value


def to_plain(item: Leaf | Branch) -> Any:
    """Return the values of a tree, mappings as dictionaries."""
    return {key: to_plain(each) for key, each in item.items.items()} if isinstance(item, Branch) else item.value


def _make_absolute(value: Any, item: Leaf, key: str, report: Report) -> Any:
    """Make paths absolute, so that a recipe read again elsewhere finds the same files."""
    if isinstance(value, tuple):
        return tuple(_make_absolute(each, item, key, report) for each in value)
    if not isinstance(value, str) or not value or Path(value).is_absolute():
        return value
    try:
        return str(Path.cwd() / value)
    except OSError:
        problem = f"is the relative path {value!r}, but the current folder no longer exists"
        return refuse(report, item.span, key, problem, "give an absolute path")


def list_paths(section: Section) -> list[str]:
    """List the keys that hold paths, with dots in nested sections."""
    found = []
    for name, field in _list_fields(section).items():
        value = getattr(section, name)
        found += [name] if field.metadata.get("path") else []
        found += [f"{name}.{key}" for key in list_paths(value)] if isinstance(value, Section) else []
    return found
