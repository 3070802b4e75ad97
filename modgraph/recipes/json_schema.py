"""JSON schemas of sections, for editors: from the same declarations by which recipes are read."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from modgraph.recipes.schema import Named, Section

Schema = dict[str, Any]
WORDS = {int: "integer", float: "number", bool: "boolean", str: "string"}
BOUNDS = {"min": "minimum", "max": "maximum", "below": "exclusiveMaximum"}


class Schemas:
    """Schemas of sections; `definitions` has one for each kind, by name."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def section(self, kind: type[Section]) -> Schema:
        """A reference to the schema of a section. A section of several kinds may be the name of one of them."""
        if issubclass(kind, Named) and "name" not in vars(kind):
            return self._choice(kind)
        name = f"{kind.registry.kind} {kind.name}" if issubclass(kind, Named) else kind.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # which may refer to itself
            self.definitions[name] = self._mapping(kind)
        return {"$ref": f"#/definitions/{name.replace(' ', '%20')}"}

    def _choice(self, kind: type[Named]) -> Schema:
        kinds = list(kind.registry.every())
        bare = [each.name for each in kinds if not _list_required(each)]
        named: Schema = {"enum": bare} if bare else {"not": {}}
        choice: Schema = {"required": ["name"], "properties": {"name": {"enum": [each.name for each in kinds]}}}
        choice["allOf"] = [
            {"if": {"properties": {"name": {"const": each.name}}}, "then": self.section(each)} for each in kinds
        ]
        return {"if": {"type": "string"}, "then": named, "else": {"type": "object", **choice}}

    def _mapping(self, kind: type[Section]) -> Schema:
        hints = typing.get_type_hints(kind)
        properties = {each.name: self._field(each, hints[each.name]) for each in _fields(kind)}
        if issubclass(kind, Named):
            properties = {"name": {"const": kind.name}, **properties}
        about = (kind.__doc__ or "").strip().partition("\n\n")[0]
        schema: Schema = {"type": "object", "description": " ".join(about.split()), "properties": properties}
        required = _list_required(kind)
        return schema | {"additionalProperties": False} | ({"required": required} if required else {})

    def _field(self, field: dataclasses.Field[Any], hint: Any) -> Schema:
        options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        schemas = [self._option(field, option) for option in options]
        schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        about = {"description": field.metadata["doc"]} if field.metadata.get("doc") else {}
        default = field.default
        if isinstance(default, bool | int | str) or (isinstance(default, float) and math.isfinite(default)):
            about["default"] = default
        return {**about, **schema} if "$ref" not in schema else {**about, "allOf": [schema]}

    def _option(self, field: dataclasses.Field[Any], option: Any) -> Schema:
        if option is type(None):
            return {"type": "null"}
        if option is Any:
            return {}
        if isinstance(option, type) and issubclass(option, Section):
            return self.section(option)
        if typing.get_origin(option) is Mapping:
            return {"type": "object", "additionalProperties": self._field(_bare(field), typing.get_args(option)[1])}
        if typing.get_origin(option) is tuple:
            items = typing.get_args(option)[0]
            kinds = typing.get_args(items) if isinstance(items, types.UnionType) else (items,)
            each = [_scalar(kind, field.metadata) for kind in kinds]
            return {"type": "array", "items": each[0] if len(each) == 1 else {"anyOf": each}}
        return _scalar(option, field.metadata)


def _fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind)


def _list_required(kind: type[Section]) -> list[str]:
    """The keys without a default."""
    none = dataclasses.MISSING
    return [each.name for each in _fields(kind) if each.default is none and each.default_factory is none]


def _bare(field: dataclasses.Field[Any]) -> dataclasses.Field[Any]:
    """A field for the values of a mapping: with the bounds, without description and default."""
    found: dataclasses.Field[Any] = dataclasses.field()
    metadata = {key: value for key, value in field.metadata.items() if key != "doc"}
    found.metadata = types.MappingProxyType(metadata)
    return found


def _scalar(kind: type, bounds: Mapping[str, Any]) -> Schema:
    if kind is str and bounds.get("choices"):
        return {"enum": list(bounds["choices"])}
    limits = {name: bounds[key] for key, name in BOUNDS.items() if bounds.get(key) is not None}
    return {"type": WORDS[kind], **(limits if kind in (int, float) else {})}
