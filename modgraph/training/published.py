"""Parameters of a spec from the config.json of a published checkpoint, as a map of weights says. Needs no torch.

    config:                                    # a parameter of the spec: a key of config.json
      intermediate_size: moe_intermediate_size
      rope_theta: [rope_parameters.rope_theta, rope_theta]    # the first that is there; dots lead into mappings
      qk_norm: true                            # a value
    requires: {hidden_act: silu, rope_type: [default, yarn]}  # what config.json must say where it has the key

Parameters that `config` does not name take the key of the same name, where there is one. A key with null is absent.
A list under `requires` allows each of its values.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph.diagnostics import ModgraphError, Report, Span, did_you_mean
from modgraph.files import exists, explain_error, read_file
from modgraph.recipes.errors import UnknownKey
from modgraph.recipes.schema import refuse
from modgraph.recipes.yaml_tree import Branch, Leaf, read_tree
from modgraph.syntax import parse, read
from modgraph.training import errors

CONFIG = "config.json"
MEANING = "parameters of the spec, each with its key of config.json"


@dataclass(frozen=True)
class ConfigKeys:
    """The origins of parameters, keys or values of which the first that exists counts; what config.json must say; and
    the span of each parameter and key."""

    origins: Mapping[str, tuple[Any, ...]]
    required: Mapping[str, Any]
    spans: Mapping[str, Span]


def read_keys(tree: Branch, parameters: Collection[str], report: Report) -> ConfigKeys | None:
    """Read what a map says of config.json, for a spec with some parameters; None where it says nothing."""
    if "config" not in tree.items:
        return None
    found: dict[str, dict[str, Any]] = {"config": {}, "requires": {}}
    spans = dict[str, Span]()
    for section, values in found.items():
        item = tree.items.get(section, Branch())
        if not isinstance(item, Branch):
            refuse(report, item.span, section, "must be a mapping", MEANING)
            continue
        for key, each in item.items.items():
            if isinstance(each, Leaf):
                values[key] = each.value
                spans[key] = item.keys[key]
            else:
                refuse(report, each.span, f"{section}.{key}", "must be a plain value or a list", MEANING)
    for name in found["config"]:
        if name not in parameters:
            suggestion = did_you_mean(name, parameters, "its parameters are: {known}")
            report.add(UnknownKey(span=spans[name], section="config", key=name, suggestion=suggestion))
    origins = {name: each if isinstance(each, tuple) else (each,) for name, each in found["config"].items()}
    return ConfigKeys(origins, found["requires"], spans)


def read_config(path: str, checkpoint: str, spec: str | Path | Collection[str]) -> dict[str, Any]:
    """Read the parameters of a spec, or those of some names, that the map at a path finds in the config.json of a
    checkpoint's folder, or in that file; none where the map says nothing of it. A spec that does not parse has none.
    Raises `ModgraphError` with every mistake."""
    report = Report()
    parameters = _list_parameters(spec) if isinstance(spec, str | Path) else spec
    if parameters is None:
        return {}
    source = read(path, report)
    keys = None if source is None else read_keys(read_tree(source, report), parameters, report)
    if report.errors:
        raise ModgraphError(report.list_diagnostics())
    if keys is None:
        return {}
    place = Path(checkpoint)
    place = place / CONFIG if exists(place) and place.is_dir() else place
    record = _read_record(str(place))
    for key, wanted in keys.required.items():
        there = _find_value(record, key)
        if there is not None and there != wanted and not (isinstance(wanted, tuple) and there in wanted):
            says, needs = json.dumps(there), json.dumps(wanted)
            report.add(errors.ConfigDiffers(span=keys.spans[key], path=str(place), key=key, found=says, wanted=needs))
    found = {}
    for name in parameters:
        origins = keys.origins.get(name, (name,))
        values = [_find_value(record, each) if isinstance(each, str) else each for each in origins]
        value = next((each for each in values if each is not None), None)
        if value is None and name in keys.origins:
            wanted = ", ".join(map(str, origins))
            report.add(errors.NotInConfig(span=keys.spans[name], path=str(place), key=wanted, parameter=name))
        elif isinstance(value, Mapping):
            report.add(errors.NotInConfig(span=keys.spans.get(name), path=str(place), key=name, parameter=name))
        elif value is not None:
            found[name] = value
    if report.errors:
        raise ModgraphError(report.list_diagnostics())
    return found


def _list_parameters(spec: str | Path) -> list[str] | None:
    """List the parameters of a spec; None where it does not parse, which whoever elaborates it reports."""
    report = Report()
    source = read(spec, report)
    file = None if source is None else parse(source, report)
    return [each.name for each in file.models[0].parameters] if file is not None and file.models else None


def _read_record(path: str) -> dict[str, Any]:
    """Read a config.json. Raises `ModgraphError`."""
    reason = "it is no mapping in JSON"
    try:
        record = json.loads(read_file(path))
    except (OSError, MemoryError) as error:
        reason, record = explain_error(error), None
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise ModgraphError([errors.BadConfig(path=path, reason=reason)])
    return record


def _find_value(record: Any, key: str) -> Any:
    """Return the value at a dotted key, lists as tuples; None where there is none."""
    for part in key.split("."):
        record = record.get(part) if isinstance(record, dict) else None
    return tuple(record) if isinstance(record, list) else record
