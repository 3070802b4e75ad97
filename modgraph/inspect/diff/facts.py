"""The facts of one node: flat, by dotted names, so that two can be compared one by one; and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from modgraph.declare import Declaration, Setting
from modgraph.inspect.diff.values import Entry
from modgraph.ir.json_form import thawed
from modgraph.vocabulary import find_op, find_router

Facts = dict[str, Any]
Names = Mapping[str, str]

PLAIN = ("kind", "is", "initial", "frozen", "size", "grown", "shares", "inside", "lowering", "carried")
OF_TEXTS = ("text", "given", "defaults", "rounds", "records")  # routers that are written in the language
OUTPUT = "output."  # what the name of an output begins with in a spec; its label follows


def facts_of(entry: Entry, shared: int | None = None) -> Facts:
    """The facts of a node, settings at their defaults included. Of its regions the first `shared` (all, where None) are
    told by arguments and results alone, since their nodes are compared by themselves, the others whole."""
    facts = {key: entry[key] for key in (*PLAIN, *OF_TEXTS) if key in entry}
    facts |= {f"types.{at}": type_ for at, type_ in enumerate(entry["types"])}
    facts |= {f"settings.{name}": value for name, value in settings_of(entry).items()}
    facts |= {f"facts.{name}": value for name, value in entry.get("facts", {}).items()}
    facts |= {"owner": owner_of(entry)} if entry["kind"] == "op" else {}
    facts |= {"label": entry["label"]} if "label" in entry and entry["label"] != _label(entry["name"]) else {}
    for relation in ("inputs", "lengths"):
        edges = entry.get(relation, [])
        facts |= {relation: [slot for slot, *_ in edges]} if edges else {}
        facts |= {f"{relation}.{slot}": source for slot, *source in edges}
    facts |= {f"uses.{role}": used for role, used in entry.get("uses", {}).items()}
    for at, region in enumerate(regions_of(entry)):
        whole = shared is not None and at >= shared
        facts |= {f"regions.{at}": region if whole else {key: region[key] for key in ("arguments", "results")}}
    return facts


def entry_of(name: str, facts: Facts, nodes: Mapping[int, list[Any]]) -> dict[str, Any]:
    """The node of these facts; `nodes` are those of its regions that the facts do not tell whole, by number."""
    below = _by_prefix(facts)
    entry: dict[str, Any] = {"name": name, "types": [*below.get("types", {}).values()]}
    entry |= {key: facts[key] for key in (*PLAIN, *OF_TEXTS) if key in facts}
    if "is" in entry:
        known = _settings(entry["kind"], entry["is"])
        given = below.get("settings", {})
        entry["settings"] = {
            key: value for key, value in given.items() if value is not None and value != _default(known[key])
        }
    if facts.get("owner", name) != name:
        entry["owner"] = facts["owner"]
    if entry["kind"] == "output":
        entry["label"] = facts.get("label", _label(name))
    for relation in ("inputs", "lengths"):
        if relation in facts:
            entry[relation] = [[slot, *facts[f"{relation}.{slot}"]] for slot in facts[relation]]
    known = {name: value for name, value in below.get("facts", {}).items() if value is not None}
    entry |= {"facts": known} if known else {}
    entry |= {"uses": below["uses"]} if "uses" in below else {}
    regions = [each if "nodes" in each else {**each, "nodes": nodes[int(at)]} for at, each in _regions(below)]
    if regions:
        entry |= {"region": regions[0]} if entry["kind"] == "scan" else {"regions": regions}
    return entry


def settings_of(entry: Entry) -> dict[str, Any]:
    """All settings of an op or a router, those at their default included."""
    if "is" not in entry:
        return {}
    known = _settings(entry["kind"], entry["is"])
    defaults = {name: _default(each) for name, each in known.items() if not each.required}
    return {name: entry["settings"].get(name, defaults.get(name)) for name in known}


def owner_of(entry: Entry) -> str:
    """The name of an op's weights."""
    return str(entry.get("owner", entry["name"]))


def regions_of(entry: Entry) -> list[Any]:
    return [entry["region"]] if "region" in entry else [*entry.get("regions", ())]


def declared(entry: Entry) -> type[Declaration] | None:
    """The declaration of an op or a router."""
    return _declaration(entry["kind"], entry["is"]) if "is" in entry else None


def names_axes(kind: str, is_: str, setting: str) -> bool:
    """Whether a setting of an op or router has names of axes: also of one whose extent another setting is."""
    settings = _settings(kind, is_)
    known = settings.get(setting)
    of_extent = any(each.bounds.get("extent") == setting for each in settings.values())
    return known is not None and bool(known.bounds.get("axis") or str in known.items or of_extent)


def _label(name: str) -> str:
    return name.removeprefix(OUTPUT)


def _regions(below: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(below.get("regions", {}).items(), key=lambda item: int(item[0]))


def _by_prefix(facts: Facts) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, value in facts.items():
        prefix, sign, rest = name.partition(".")
        if sign:
            found.setdefault(prefix, {})[rest] = value
    if "types" in found:
        found["types"] = dict(sorted(found["types"].items(), key=lambda item: int(item[0])))
    return found


@cache
def _declaration(kind: str, is_: str) -> type[Declaration]:
    found = find_op(is_) if kind == "op" else find_router(is_)
    assert found is not None, f"the graph has the {kind} {is_}"
    return found


@cache
def _settings(kind: str, is_: str) -> dict[str, Setting]:
    return _declaration(kind, is_).settings()


def _default(setting: Setting) -> Any:
    return thawed(setting.default)


@dataclass(frozen=True)
class Renames:
    """What the names that a node's facts speak of have become: nodes beside it, owners of weights, axes, and the nodes
    of its regions by number. A name that is not listed has stayed."""

    nodes: Names = field(default_factory=dict)
    owners: Names = field(default_factory=dict)
    axes: Names = field(default_factory=dict)
    inner: Mapping[int, Names] = field(default_factory=dict)

    def of(self, facts: Facts) -> Facts:
        """The facts with every name as it is now."""
        return {self._key(key, facts): self._value(key, value, facts) for key, value in facts.items()}

    def _slots(self, relation: str, kind: str) -> Callable[[str], str]:
        """What slots are called now: those of a scan as its arguments, those of lengths as the axes."""
        names = self.axes if relation == "lengths" else self.inner.get(0, {}) if kind == "scan" else {}
        return lambda slot: names.get(slot, slot)

    def _key(self, key: str, facts: Facts) -> str:
        relation, sign, slot = key.partition(".")
        if sign and relation in ("inputs", "lengths"):
            return f"{relation}.{self._slots(relation, facts['kind'])(slot)}"
        return key

    def _value(self, key: str, value: Any, facts: Facts) -> Any:
        head, sign, rest = key.partition(".")
        match head:
            case "inputs" | "lengths":
                return self._source(value) if sign else [*map(self._slots(head, facts["kind"]), value)]
            case "uses":
                return self.nodes.get(value, value)
            case "shares":
                return self.nodes.get(value, self.axes.get(value, value))
            case "inside":
                return self._path(value)
            case "owner":
                return self.owners.get(value, value)
            case "types":
                return self.type(value)
            case "settings":
                return self._setting(value) if names_axes(facts["kind"], facts["is"], rest) else value
            case "regions":
                return self._region(int(rest), value)
            case _:
                return value

    def _path(self, value: str) -> str:
        """The path of a pool's modules, which is that of their axis; one of unlike modules has a number behind it."""
        pool, _, at = value.rpartition(".")
        return f"{self.axes[pool]}.{at}" if pool in self.axes and at.isdigit() else self.axes.get(value, value)

    def type(self, value: Any) -> Any:
        renamed = {**value, "shape": [self._axis(axis) for axis in value["shape"]]}
        return renamed | ({"of": self.axes.get(value["of"], value["of"])} if "of" in value else {})

    def _axis(self, axis: Any) -> Any:
        if isinstance(axis, dict):
            return {**axis, "name": self.axes.get(axis["name"], axis["name"])}
        return self.axes.get(axis, axis) if isinstance(axis, str) else axis

    def _setting(self, value: Any) -> Any:
        if isinstance(value, list):
            return [*map(self._setting, value)]
        return self.axes.get(value, value) if isinstance(value, str) else value

    def _source(self, source: Any, names: Names | None = None) -> Any:
        name, index = source
        return [(self.nodes if names is None else names).get(name, name), index]

    def _region(self, at: int, region: Any) -> Any:
        if "nodes" in region:
            return region
        names = self.inner.get(at, {})
        arguments = [names.get(name, name) for name in region["arguments"]]
        return {"arguments": arguments, "results": [self._source(each, names) for each in region["results"]]}
