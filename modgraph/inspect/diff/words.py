"""Describes the facts of nodes in words. `say` writes a name: as it is, or with a star for a key.

Keys are those of rounds and of modules, so that one line can stand for many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from modgraph.declare import Declaration, Record, format_value
from modgraph.inspect.diff.changes import Attribute, Unmatched, declaration_of
from modgraph.inspect.diff.level import Level
from modgraph.ir import Graph, OpNode, PoolNode, Region, Result, rename_axes
from modgraph.routers import RouterText
from modgraph.types import TensorType

NOTHING = "none"
WRITTEN = {"text", "given", "defaults"}  # of a router text
DIGITS = 6  # digits of a number in a line
LISTS = {"inputs": "order of what it reads", "lengths": "order of lengths"}
NAMES = {"owner": "weights", "initial": "start", "shares": "axis of", "types.0": "type"} | LISTS
FAMILIES = {"types": "type of result ", "inputs": "reads ", "lengths": "length of ", "regions": "module "}
FAMILIES |= dict.fromkeys(("settings", "uses", "parameters", "facts"), "")

OPERANDS = {"inputs.x", "inputs.left", "inputs.right"}  # of arithmetic: x alone if the other one is a constant
CONSTANTS = {"settings.left", "settings.right"}

STAR = "*"
BEFORE = "[-1]"  # the key of the round before

Key = int | str
Say = Callable[[str], str]  # writes a name in a text


def format_place(place: str) -> str:
    """A place in words: `expert > fc1`, or `expert[2] > fc1` for a module of a heterogeneous pool."""
    *holders, name = place.split("/")
    pairs = zip(holders[::2], holders[1::2], strict=True)
    return "".join(f"{holder}{'' if number == '0' else f'[{number}]'} > " for holder, number in pairs) + name


def describe_node(each: Unmatched, say: Say = str) -> str:
    """An added or removed node: its op or router with settings, its number of modules, its type."""
    node, uses, declared = each.node, each.graph.uses(each.node.name), declaration_of(each.node)
    match declared, node:
        case RouterText(), _:
            content = _format_call(declared.name, {name: _number(value) for name, value in declared.given})
        case Declaration(), _:
            settings = {name: _constant(value, say) for name, value in declared.values().items()}
            content = _format_call(declared.name, settings)
        case _, PoolNode():
            inside = [each.op.name for each in node.region(0).graph.nodes_of(OpNode)]
            content = f"{node.size} modules of {' → '.join(inside) or 'nothing'}"
        case _:
            content = f"{say(uses['pool'])} by {say(uses['router'])}" if uses else ""
    return ": ".join(filter(None, (content, format_type(node.types[0], say) if node.types else "")))


def _format_call(name: str, settings: Mapping[str, str]) -> str:
    """`name(key=value, …)`, without parentheses if nothing is set."""
    given = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"{name}({given})" if given else name


def details(attributes: tuple[Attribute, ...], say: Say = str) -> Iterator[str]:
    """The attributes, one a line.

    Operands of arithmetic share a line if one becomes a constant, or was one. If the op differs, settings that only one
    side has stand in its line. The order of slots is left out where single
    slots say it. A router in the language has its definition and its arguments; what follows from its text is left out.
    """
    known = {each.name: each for each in attributes}
    if known.keys() >= OPERANDS and known.keys() & CONSTANTS and "is" not in known:
        yield f"operands: {_list_operands(known, 'before', say)} → {_list_operands(known, 'after', say)}"
        attributes = tuple(each for each in attributes if each.name not in OPERANDS | CONSTANTS)
    settings = [each for each in attributes if each.name.startswith("settings.") and None in (each.before, each.after)]
    if known.keys() & WRITTEN:
        yield from _router_details(known)
    for each in attributes:
        if each.name == "is":
            own = [
                {one.name.partition(".")[2]: _constant(value, say) for one, value in values if value is not None}
                for values in ([(one, one.before) for one in settings], [(one, one.after) for one in settings])
            ]
            yield f"{_format_call(each.before or NOTHING, own[0])} → {_format_call(each.after or NOTHING, own[1])}"
            continue
        is_said = each.name in LISTS and any(name.startswith(f"{each.name}.") for name in known)
        if not (each.name in WRITTEN or is_said or ("is" in known and each in settings)):
            head, _, rest = each.name.partition(".")
            name = FAMILIES[head] + rest if rest and each.name not in NAMES else NAMES.get(each.name, each.name)
            yield f"{name}: {_value(each.name, each.before, say)} → {_value(each.name, each.after, say)}"


def _list_operands(known: Mapping[str, Attribute], when: str, say: Say) -> str:
    """The left and the right operand of arithmetic, one of which may be a constant."""
    found = []
    for side in ("left", "right"):
        names = [name for name in (f"inputs.{side}", f"settings.{side}", "inputs.x") if name in known]
        found.append(
            next(_value(name, value, say) for name in names if (value := getattr(known[name], when)) is not None)
        )
    return ", ".join(found)


def _router_details(attributes: Mapping[str, Attribute]) -> Iterator[str]:
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
        yield f"{_format_call(text.before, before)} → {_format_call(text.after, after)}"
    for key in new:
        if key in old and old[key] != new[key]:
            yield f"{key}: {_number(old[key])} → {_number(new[key])}"


def _number(written: str) -> str:
    """An argument; a number has few digits."""
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
            return format_type(value, say)
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


def format_type(type_: TensorType, say: Say = str) -> str:
    return str(rename_axes(type_, say))


def _constant(value: Any, say: Say) -> str:
    if isinstance(value, float):
        return repr(value) if float(f"{value:.{DIGITS}g}") == value else f"≈{value:.{DIGITS}g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_constant(each, say) for each in value)}]"
    return format_value(say(value) if isinstance(value, str) else value)


# ------------------------------------------------------------ keys


class Keys:
    """The paths of a graph that end in a key, each with its loop, pool or definition.

    Keys are those of rounds, of modules, and of blocks that one body uses several times; the last are whole paths.
    """

    def __init__(self, *graphs: Graph) -> None:
        self._known: dict[str, tuple[str, Key]] = {}
        levels = [level for graph in graphs for level in Level(graph).walk()]
        uses: dict[str, dict[str, str]] = {}
        for call in dict.fromkeys(node.within for level in levels for node in level.graph if node.within):
            bases = ("", *(f"{path}." for each in call.chain() for path in (each.path, each.weights)))
            for each in call.chain():
                if each.kind == "round" and each.key is not None:
                    members = (f"{base}{member}.{each.key}" for base in bases for member in each.members)
                    for path in (each.path, each.weights, *members):
                        self._known[path] = each.path.rpartition(".")[0], each.key
                if each.kind in ("block", "module"):
                    outer = f"{each.outer.path}." if each.outer else ""
                    uses.setdefault(f"{outer}{each.definition}()", {})[each.path] = each.path.removeprefix(outer)
        for definition, paths in uses.items():
            if len(paths) > 1:
                self._known |= {path: (definition, key) for path, key in paths.items()}
        for pool in (pool for level in levels for pool in level.graph.nodes_of(PoolNode)):
            self._known |= {f"{pool.name}.{key}": (pool.name, at) for at, key in enumerate(pool.keys)}

    def split(self, place: str) -> tuple[str, tuple[Key, ...]]:
        """A name or place with numbered stars for its keys, one number for each loop; and the keys."""
        found: dict[str, Key] = {}

        def say(loop: str, key: Key) -> str:
            found.setdefault(loop, key)
            return f"{STAR}{[*found].index(loop)}"

        return self._map(place, say), tuple(found.values())

    def star(self, name: str) -> str:
        """A name with a star for each key."""
        return self._map(name, lambda loop, key: STAR)

    def say_from(self, place: str) -> Say:
        """Return how names are written in the round of a place: its own key is a star."""
        own: dict[str, Key] = {}
        self._map(place, lambda loop, key: str(own.setdefault(loop, key)))

        def say(loop: str, key: Key) -> str:
            here = own.get(loop)
            is_before = isinstance(key, int) and isinstance(here, int) and key == here - 1
            return STAR if key == here else BEFORE if is_before else str(key)

        return lambda name: self._map(name, say)

    def _map(self, place: str, say: Callable[[str, Key], str]) -> str:
        names = []
        for name in place.split("/"):
            path, said = "", list[str]()
            for part in name.split("."):
                path = f"{path}.{part}" if path else part
                said.append(part)
                if path in self._known:
                    loop, key = self._known[path]
                    said[-len(str(key).split(".")) :] = [say(loop, key)]
            names.append(".".join(said).replace(f".{BEFORE}", BEFORE))
        return "/".join(names)


def fill(pattern: str, keys: Iterable[tuple[Key, ...]]) -> str:
    """A pattern with its stars replaced: `blocks.{0, 2}.gate` for two keys."""
    rows = [*dict.fromkeys(keys)]
    columns = [[*dict.fromkeys(column)] for column in zip(*rows, strict=True)]
    if math.prod(map(len, columns)) > len(rows):
        at = next(at for at, column in enumerate(columns) if len(column) > 1)
        return ", ".join(fill(pattern, [row for row in rows if row[at] == key]) for key in columns[at])
    for at, column in enumerate(columns):
        first, *more = pattern.split(f"{STAR}{at}")
        said = _spell(column)
        pattern = first + said + (said if len(column) == 1 else STAR).join(more)
    return pattern


def _spell(keys: Sequence[Key]) -> str:
    runs: list[list[Key]] = []
    for key in keys:
        last = runs[-1][-1] if runs else None
        if isinstance(key, int) and isinstance(last, int) and key == last + 1:
            runs[-1].append(key)
        else:
            runs.append([key])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return texts[0] if len(texts) == 1 and ", " not in texts[0] else f"{{{', '.join(texts)}}}"
