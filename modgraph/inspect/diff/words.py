"""The facts of nodes in words. `say` says how a name is written: as it is, or with a star for a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modgraph.declare import Declaration, Record, shown_value
from modgraph.inspect.diff.keys import Say
from modgraph.inspect.diff.values import Alone, Attribute, declaration_of
from modgraph.ir import Node, OpNode, PoolNode, Region, Result, rename_axes
from modgraph.routers import RouterText
from modgraph.types import TensorType

NOTHING = "none"
WRITTEN = {"text", "given", "defaults"}  # of a router that is written in the language
DIGITS = 6  # of a number that a line shows
NAMES = {"owner": "weights", "is": "is", "initial": "start", "shares": "axis of"}
LISTS = {"inputs": "order of what it reads", "lengths": "order of lengths"}


def shown_place(place: str) -> str:
    """A place as people write it: `expert > fc1`, and `expert[2] > fc1` for a module unlike the first."""
    *holders, name = place.split("/")
    told = [
        f"{holder}{'' if number == '0' else f'[{number}]'} > "
        for holder, number in zip(holders[::2], holders[1::2], strict=True)
    ]
    return "".join(told) + name


def shown_node(each: Alone, say: Say = str) -> str:
    """What an added or removed node is: its op or router with settings, how many modules, its type."""
    types = [shown_type(type_, say) for type_ in each.node.types[:1]]
    return f"{_content(each.node, each.graph.uses(each.node.name), say)}{': ' * bool(types)}{', '.join(types)}"


def _content(node: Node, uses: Mapping[str, str], say: Say) -> str:
    declared = declaration_of(node)
    if isinstance(declared, RouterText):
        return _use(declared.name, dict(declared.given), {})
    if isinstance(declared, Declaration):
        given = ", ".join(f"{name}={_constant(value, say)}" for name, value in declared.values().items())
        return f"{declared.name}({given})" if given else declared.name
    if isinstance(node, PoolNode):
        inside = [each.op.name for each in node.region(0).graph.of_kind(OpNode)]
        return f"{node.size} modules of {' → '.join(inside) or 'nothing'}"
    return f"{say(uses['pool'])} by {say(uses['router'])}" if uses else ""


def details(attributes: tuple[Attribute, ...], say: Say = str) -> Iterator[str]:
    """Attributes, one a line. Where what it is has changed, settings that only one of both has are told with it; the
    order of slots only where nothing else tells it."""
    names = {each.name for each in attributes}
    if names & WRITTEN:
        yield from _of_definition({each.name: each for each in attributes})
    for each in attributes:
        if each.name in WRITTEN:
            continue
        if each.name in LISTS and any(name.startswith(f"{each.name}.") for name in names):
            continue
        if each.name == "is":
            sides = (_declaration(attributes, getattr(each, side), side, say) for side in ("before", "after"))
            yield " → ".join(sides)
        elif not ("is" in names and each.name.startswith("settings.") and None in (each.before, each.after)):
            values = (_value(each.name, value, say) for value in (each.before, each.after))
            yield f"{_name(each.name)}: {' → '.join(values)}"


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
        return _constant(float(written), str) if "." in written else written
    except ValueError:
        return written


def _declaration(attributes: tuple[Attribute, ...], declared: str, side: str, say: Say) -> str:
    """An op or router with the settings that only it has."""
    settings = [each for each in attributes if each.name.startswith("settings.")]
    own = [each for each in settings if None in (each.before, each.after) and getattr(each, side) is not None]
    given = ", ".join(f"{_name(each.name)}={_constant(getattr(each, side), say)}" for each in own)
    return f"{declared}({given})" if given else declared


def _name(name: str) -> str:
    head, _, rest = name.partition(".")
    match head:
        case "types":
            return "type" if rest == "0" else f"type of result {rest}"
        case "settings" | "uses" | "parameters" | "facts":
            return rest
        case "inputs" | "lengths":
            return LISTS[head] if not rest else f"reads {rest}" if head == "inputs" else f"told the length of {rest}"
        case "regions":
            return f"module {rest}"
        case _:
            return NAMES.get(name, name)


def _value(name: str, value: Any, say: Say) -> str:
    match value:
        case _ if name == "frozen":
            return "yes" if value else "no"
        case None:
            return NOTHING
        case TensorType():
            return shown_type(value, say)
        case Result():
            return shown_source(value, say)
        case Region():
            results = ", ".join(shown_source(each, say) for each in value.results)
            return f"{', '.join(value.arguments)} → {results}"
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


def shown_source(source: Result, say: Say) -> str:
    """What is read: a node, and which of its results where that is not its value."""
    return str(Result(say(source.node), source.index))


def _constant(value: Any, say: Say) -> str:
    if isinstance(value, float):
        return repr(value) if float(f"{value:.{DIGITS}g}") == value else f"≈{value:.{DIGITS}g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_constant(each, say) for each in value)}]"
    return shown_value(say(value) if isinstance(value, str) else value)
