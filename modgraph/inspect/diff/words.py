"""The facts of nodes in words. `say` says how a name is written: as it is, or with a star for a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modgraph.declare import Declaration, Record, shown_value
from modgraph.inspect.diff.changes import Attribute, Unmatched, declaration_of
from modgraph.inspect.diff.keys import Say
from modgraph.ir import OpNode, PoolNode, Region, Result, rename_axes
from modgraph.routers import RouterText
from modgraph.types import TensorType

NOTHING = "none"
WRITTEN = {"text", "given", "defaults"}  # of a router that is written in the language
DIGITS = 6  # of a number that a line shows
LISTS = {"inputs": "order of what it reads", "lengths": "order of lengths"}
NAMES = {"owner": "weights", "initial": "start", "shares": "axis of", "types.0": "type"} | LISTS
FAMILIES = {"types": "type of result ", "inputs": "reads ", "lengths": "told the length of ", "regions": "module "}
FAMILIES |= dict.fromkeys(("settings", "uses", "parameters", "facts"), "")


def shown_place(place: str) -> str:
    """A place as people write it: `expert > fc1`, and `expert[2] > fc1` for a module unlike the first."""
    *holders, name = place.split("/")
    pairs = zip(holders[::2], holders[1::2], strict=True)
    return "".join(f"{holder}{'' if number == '0' else f'[{number}]'} > " for holder, number in pairs) + name


def shown_node(each: Unmatched, say: Say = str) -> str:
    """What an added or removed node is: its op or router with settings, how many modules, its type."""
    node, uses, declared = each.node, each.graph.uses(each.node.name), declaration_of(each.node)
    match declared, node:
        case RouterText(), _:
            content = _applied(declared.name, {name: _number(value) for name, value in declared.given})
        case Declaration(), _:
            settings = {name: _constant(value, say) for name, value in declared.values().items()}
            content = _applied(declared.name, settings)
        case _, PoolNode():
            inside = [each.op.name for each in node.region(0).graph.of_kind(OpNode)]
            content = f"{node.size} modules of {' → '.join(inside) or 'nothing'}"
        case _:
            content = f"{say(uses['pool'])} by {say(uses['router'])}" if uses else ""
    return content + (f": {shown_type(node.types[0], say)}" if node.types else "")


def _applied(name: str, settings: Mapping[str, str]) -> str:
    """`name(key=value, …)`, without brackets where nothing is set."""
    given = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"{name}({given})" if given else name


def details(attributes: tuple[Attribute, ...], say: Say = str) -> Iterator[str]:
    """Attributes, one a line. Where what it is has changed, settings that only one of both has stand with it; the order
    of slots only where nothing else says it. Of a router that is written in the language there is another definition,
    with the arguments that only it has, or there are other arguments: what else follows from its text is left out."""
    known = {each.name: each for each in attributes}
    settings = [each for each in attributes if each.name.startswith("settings.") and None in (each.before, each.after)]
    if known.keys() & WRITTEN:
        yield from _of_text(known)
    for each in attributes:
        if each.name == "is":
            own = [
                {one.name.partition(".")[2]: _constant(value, say) for one, value in values if value is not None}
                for values in ([(one, one.before) for one in settings], [(one, one.after) for one in settings])
            ]
            yield f"{_applied(each.before or NOTHING, own[0])} → {_applied(each.after or NOTHING, own[1])}"
            continue
        is_said = each.name in LISTS and any(name.startswith(f"{each.name}.") for name in known)
        if not (each.name in WRITTEN or is_said or ("is" in known and each in settings)):
            head, _, rest = each.name.partition(".")
            name = FAMILIES[head] + rest if rest and each.name not in NAMES else NAMES.get(each.name, each.name)
            yield f"{name}: {_value(each.name, each.before, say)} → {_value(each.name, each.after, say)}"


def _of_text(attributes: Mapping[str, Attribute]) -> Iterator[str]:
    own: list[dict[str, str]] = [{}, {}]
    for name in ("given", "defaults"):
        if name in attributes:
            own[0] |= dict(attributes[name].before or ())
            own[1] |= dict(attributes[name].after or ())
    old, new = own
    if "text" in attributes:
        text = attributes["text"]
        before = {key: _number(value) for key, value in old.items() if key not in new}
        after = {key: _number(value) for key, value in new.items() if key not in old}
        yield f"{_applied(text.before, before)} → {_applied(text.after, after)}"
    for key in new:
        if key in old and old[key] != new[key]:
            yield f"{key}: {_number(old[key])} → {_number(new[key])}"


def _number(written: str) -> str:
    """An argument, a number to a few digits."""
    try:
        return _constant(float(written), str) if "." in written else written
    except ValueError:
        return written


def _value(name: str, value: Any, say: Say) -> str:
    match value:
        case _ if name == "frozen":
            return "yes" if value else "no"
        case None:
            return NOTHING
        case TensorType():
            return shown_type(value, say)
        case Result():
            return str(Result(say(value.node), value.index))
        case Region():
            return f"{', '.join(value.arguments)} → {', '.join(_value('', each, say) for each in value.results)}"
        case (Record(), *_):
            return ", ".join(f"{each.name}: {each.role.name.lower()}" for each in value)
        case _ if name in LISTS:
            return ", ".join(value)
        case str() if not name.startswith(("settings", "parameters", "facts")):
            return say(value)
        case int() | float() | str() | tuple() | list() | range():
            return _constant(value, say)
        case _:
            return str(value)


def shown_type(type_: TensorType, say: Say = str) -> str:
    return str(rename_axes(type_, say))


def _constant(value: Any, say: Say) -> str:
    if isinstance(value, float):
        return repr(value) if float(f"{value:.{DIGITS}g}") == value else f"≈{value:.{DIGITS}g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_constant(each, say) for each in value)}]"
    return shown_value(say(value) if isinstance(value, str) else value)
