"""The facts of nodes in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modgraph.declare import Initial, shown_value
from modgraph.inspect.diff.values import Attribute, Changed, Entry
from modgraph.ir.stored import type_of

NOTHING = "none"
WRITTEN = {"text", "given", "defaults"}  # of a router that is written in the language
DIGITS = 6  # of a number that a line shows
NAMES = {"owner": "weights", "is": "is", "initial": "start", "shares": "axis of"}


def shown_place(place: str) -> str:
    """A place as people write it: `expert > fc1`, and `expert[2] > fc1` for a module unlike the first."""
    *holders, name = place.split("/")
    told = [
        f"{holder}{'' if number == '0' else f'[{number}]'} > "
        for holder, number in zip(holders[::2], holders[1::2], strict=True)
    ]
    return "".join(told) + name


def shown_node(entry: Entry) -> str:
    """What an added or removed node is: its op or router with settings, how many modules, its type."""
    types = [shown_type(type_) for type_ in entry["types"][:1]]
    return f"{_content(entry)}{': ' * bool(types)}{', '.join(types)}"


def _content(entry: Entry) -> str:
    match entry["kind"]:
        case "op" | "router":
            return shown_declaration(entry)
        case "pool":
            inside = [f"{each['is']}" for each in entry["regions"][0]["nodes"] if "is" in each]
            return f"{entry['size']} modules of {' → '.join(inside) or 'nothing'}"
        case "route" | "decision" | "growth":
            return f"{entry['uses']['pool']} by {entry['uses']['router']}"
        case _:
            return ""


def shown_declaration(entry: Entry) -> str:
    if "text" in entry:
        return _use(entry["text"], dict(entry.get("given", ())), {})
    given = ", ".join(f"{name}={_constant(value)}" for name, value in entry["settings"].items())
    return f"{entry['is']}({given})" if given else str(entry["is"])


def details(change: Changed) -> Iterator[str]:
    """The attributes of a change, one a line. Where what it is has changed, settings that only one of both has are
    told with it; the order of slots only where nothing else tells it."""
    names = {each.name for each in change.attributes}
    if names & WRITTEN:
        yield from _of_definition({each.name: each for each in change.attributes})
    for each in change.attributes:
        if each.name in WRITTEN:
            continue
        if each.name in ("inputs", "lengths") and any(name.startswith(f"{each.name}.") for name in names):
            continue
        if each.name == "is":
            yield f"{_declaration(change, each.before, 'before')} → {_declaration(change, each.after, 'after')}"
        elif not ("is" in names and each.name.startswith("settings.") and None in (each.before, each.after)):
            yield f"{_name(each.name)}: {_value(each.name, each.before)} → {_value(each.name, each.after)}"


def _of_definition(attributes: Mapping[str, Attribute]) -> Iterator[str]:
    """What a router that is written in the language is: another definition, with the arguments that only it has, or
    other arguments. What else follows from its text is not told."""
    old, new = (dict(_arguments(attributes, side)) for side in ("before", "after"))
    if "text" in attributes:
        named = attributes["text"]
        yield f"{_use(named.before, old, new)} → {_use(named.after, new, old)}"
    for name in [name for name in new if name in old and old[name] != new[name]]:
        yield f"{name}: {_number(old[name])} → {_number(new[name])}"


def _arguments(attributes: Mapping[str, Attribute], side: str) -> Iterator[tuple[str, str]]:
    for name in ("given", "defaults"):
        yield from ((getattr(attributes[name], side) or ()) if name in attributes else ())


def _use(definition: str, own: Mapping[str, str], others: Mapping[str, str]) -> str:
    given = ", ".join(f"{name}={_number(value)}" for name, value in own.items() if name not in others)
    return f"{definition}({given})" if given else definition


def _number(written: str) -> str:
    """An argument, a number to a few digits."""
    try:
        return _constant(float(written)) if "." in written else written
    except ValueError:
        return written


def _declaration(change: Changed, declared: str, side: str) -> str:
    """An op or router with the settings that only it has."""
    settings = [each for each in change.attributes if each.name.startswith("settings.")]
    own = [each for each in settings if None in (each.before, each.after) and getattr(each, side) is not None]
    given = ", ".join(f"{_name(each.name)}={_constant(getattr(each, side))}" for each in own)
    return f"{declared}({given})" if given else declared


def _name(name: str) -> str:
    head, _, rest = name.partition(".")
    match head:
        case "types":
            return "type" if rest == "0" else f"type of result {rest}"
        case "settings" | "uses" | "parameters" | "facts":
            return rest
        case "inputs":
            return f"reads {rest}" if rest else "order of what it reads"
        case "lengths":
            return f"told the length of {rest}" if rest else "order of lengths"
        case "regions":
            return f"module {rest}"
        case _:
            return NAMES.get(name, name)


def _value(name: str, value: Any) -> str:
    head, _, rest = name.partition(".")
    match head:
        case "frozen":
            return "yes" if value else "no"
        case _ if value is None:
            return NOTHING
        case "types":
            return shown_type(value)
        case "inputs" | "lengths" if rest:
            return shown_source(value)
        case "initial":
            return str(Initial(value["kind"], value["scale"]))
        case "regions":
            return f"{', '.join(value['arguments'])} → {', '.join(map(shown_source, value['results']))}"
        case "settings" | "parameters" | "facts":
            return _constant(value)
        case "records":
            return ", ".join(f"{name}: {role}" for name, role in value)
        case "inputs" | "lengths":
            return ", ".join(value)
        case _:
            return str(value)


def shown_type(type_: Any) -> str:
    return str(type_of(type_))


def shown_source(source: Any) -> str:
    """What is read: a node, and which of its results where that is not its value."""
    name, index = source
    return f"{name}:{index}" if index else str(name)


def _constant(value: Any) -> str:
    if isinstance(value, Mapping):
        start, stop = value["range"]
        return f"{start}..{stop}"
    if isinstance(value, float):
        return repr(value) if float(f"{value:.{DIGITS}g}") == value else f"≈{value:.{DIGITS}g}"
    return f"[{', '.join(map(_constant, value))}]" if isinstance(value, list) else shown_value(value)
