"""Readers for the values in stored graphs. Each returns a value or raises `InvalidGraph` with the reason."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from modgraph.declare import INITIALIZERS, ROLES, Declaration, Initial, Record, load_extensions
from modgraph.diagnostics import ModgraphError, Note
from modgraph.ir.invalid import InvalidGraph, ask
from modgraph.ir.program.relative import make_plain
from modgraph.routers import RouterFacts
from modgraph.types import Axis, TensorType, find_repeated, format_shape

T = TypeVar("T")

NAME = re.compile(r"\w+(~[a-z_]+)*(\.\w+(~[a-z_]+)*)*")  # passes put words behind "~"
RELATIVE = re.compile(r"\^*(@\.|\.)?[\w#]+(~\w+)*(\.[\w#]+(~\w+)*)*|\^*@")  # of a definition
DEEPEST = 100  # nested lists and objects
MOST_LETTERS = 80  # letters of a value that a message quotes
LARGEST = sys.float_info.max
MOST_MODULES = 2**24  # modules of a pool
MOST_PLACES = 2**31  # results of a node, or arguments of a region
MISSING: Any = object()
FACTS: Mapping[str, tuple[Any, ...]] = {
    "one_for_each": ("sender", "module", "pair"),
    "chooses_along": ("modules", "senders"),
    "k": (),
    "balanced": (True,),
    "draws": (True,),
}


class Fields:
    """The fields of one stored object, each read once; errors name the node and the field."""

    def __init__(self, record: Any, node: str = "") -> None:
        expect(isinstance(record, dict), record, "is no object", node)
        self.node = node
        self._left = dict(record)

    @classmethod
    def read_named(cls, record: Any, name_of: Callable[[Any], str]) -> Fields:
        """Read the name of an object, which errors will name, and return its other fields."""
        fields = cls(record)
        fields.node = fields.read("name", name_of)
        return fields

    def read(self, field: str, reader: Callable[[Any], T], default: Any = MISSING) -> T:
        """Read a field. Raises `InvalidGraph` if the reader refuses it or it is missing."""
        if field not in self._left and default is not MISSING:
            return default  # type: ignore[no-any-return]
        ask(field in self._left, "is missing", self.node, field)
        try:
            return reader(self._left.pop(field))
        except InvalidGraph as error:
            if error.node:
                raise
            inner = f"{error.field} {error.reason}" if error.field else error.reason
            raise InvalidGraph(inner, self.node, field) from error

    def has(self, field: str) -> bool:
        """Whether there is an unread field of this name."""
        return field in self._left

    def close(self) -> None:
        """Raise `InvalidGraph` if a field is unread."""
        for field in self._left:
            raise InvalidGraph("is not known here", self.node, field)


def expect(holds: bool, value: Any, words: str, node: str = "") -> None:
    """Raise `InvalidGraph` with a value and the reason unless `holds`."""
    if not holds:
        text = repr(value)
        raise InvalidGraph(f"{text if len(text) <= MOST_LETTERS else text[:MOST_LETTERS] + '…'} {words}", node)


def check_depth(record: Any) -> None:
    level = [record]
    for _ in range(DEEPEST):
        holders = [each for each in level if isinstance(each, dict | list)]
        level = [inner for each in holders for inner in (each.values() if isinstance(each, dict) else each)]
        if not level:
            return
    raise InvalidGraph("it is nested too deep")


def make_reader(kind: type[T], words: str, holds: Callable[[T], object] = lambda value: True) -> Callable[[Any], T]:
    """Make a reader of values of a type that satisfy `holds`; `words` is the reason to refuse others."""

    def read(value: Any) -> T:
        expect(isinstance(value, kind) and bool(holds(value)), value, words)
        return value  # type: ignore[no-any-return]

    return read


def each_of(reader: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """Make a reader of lists."""
    return lambda value: tuple(map(reader, list_of(value)))


def whole_of(least: int, most: int) -> Callable[[Any], int]:
    """Make a reader of numbers within inclusive bounds."""
    words = f"is no number from {least} to {most}"
    return make_reader(int, words, lambda value: type(value) is int and least <= value <= most)


def one_of(*known: str) -> Callable[[Any], str]:
    """Make a reader of one of some words."""
    return make_reader(str, f"is none of {', '.join(known)}", known.__contains__)


name_of = make_reader(str, "is no name", NAME.fullmatch)
relative_name_of = make_reader(str, "is no name", RELATIVE.fullmatch)  # `flatten` checks it in the whole graph
list_of = make_reader(list, "is no list")
flag_of = make_reader(bool, "is neither true nor false")


def name_or_none_of(value: Any) -> str:
    """Make a reader of a name in the body of a program, or an empty text."""
    return "" if value == "" else relative_name_of(value)


def relative_names_of(value: Any) -> tuple[str, ...]:
    names = each_of(relative_name_of)(value)
    ask(len(set(names)) == len(names), "it names something twice")
    return names


def uses_of(value: Any) -> dict[str, str]:
    ask(isinstance(value, dict), "is no object")
    return {name_of(role): relative_name_of(used) for role, used in value.items()}


def _type(value: Any) -> TensorType:
    fields = Fields(value)
    dtype = fields.read("dtype", one_of("float", "token", "class", "length", "edge"))
    shape = fields.read("shape", each_of(_axis))
    ask(find_repeated(shape) is None, f"{format_shape(shape)} has an axis twice")
    size = fields.read("size", whole_of(1, 2**62)) if dtype in ("token", "class") else None
    per = fields.read("per", one_of("example", "batch"), "example")
    defaults = {"length": MISSING, "class": ""}  # name of the axis that it concerns
    of = fields.read("of", relative_name_of, defaults[dtype]) if dtype in defaults else ""
    ends = fields.read("ends", each_of(_axis)) if dtype == "edge" else ()
    fields.close()
    if dtype == "edge":
        ask(len(ends) == 2 and all(axis.name for axis in ends), "edges have two ends, which are named axes")
        ask(len(shape) == 2 and bool(shape[0].name) and shape[1] == Axis(2), "edges are pairs along one named axis")
    return TensorType(dtype, shape, size, per, of, ends)  # type: ignore[arg-type]


types_of = each_of(_type)


def _axis(value: Any) -> Axis:
    if isinstance(value, str):
        return Axis(None, relative_name_of(value))
    if not isinstance(value, dict):
        return Axis(whole_of(1, 2**62)(value))
    fields = Fields(value)
    name, of = fields.read("name", relative_name_of), fields.read("of", relative_name_of, "")
    expect(name != of, name, "is read again by its own name")
    axis = Axis(None if of else fields.read("size", whole_of(1, 2**62)), name, of)
    fields.close()
    return axis


def initial_of(value: Any) -> Initial:
    """Read the initialiser of a weight."""
    fields = Fields(value)
    kind = fields.read("kind", one_of(*INITIALIZERS))
    scale = fields.read("scale", _number)
    fields.read("fan", one_of(""), "")
    fields.close()
    ask(scale >= 0 or kind == "constant", f"{kind}({scale}) has a negative scale")
    return Initial(kind, scale)


def _number(value: Any) -> float:
    expect(type(value) in (int, float) and -LARGEST <= value <= LARGEST, value, "is no number")
    return value  # type: ignore[no-any-return]


def constants_of(value: Any) -> dict[str, Any]:
    """Read constants by name."""
    expect(isinstance(value, dict), value, "is no object")
    return {name_of(name): _constant(each) for name, each in value.items()}


def _constant(value: Any) -> Any:
    """Read a constant of the language: a number, a truth value, a string, a range, or a list of such."""
    if isinstance(value, list):
        return tuple(map(_constant, value))
    if isinstance(value, dict):
        fields = Fields(value)
        bounds = fields.read("range", list_of)
        fields.close()
        expect(len(bounds) == 2 and all(type(each) is int for each in bounds), value, "is no range")
        return range(*bounds)
    return value if isinstance(value, bool | str) else _number(value)


def texts_of(value: Any) -> tuple[tuple[str, str], ...]:
    """Read texts by name."""
    pairs = [*map(list_of, list_of(value))]
    written = all(len(pair) == 2 and all(isinstance(each, str) for each in pair) for pair in pairs)
    ask(written, "it is no list of names, each with a text")
    return tuple((name_of(name), text) for name, text in pairs)


def records_of(value: Any) -> tuple[Record, ...]:
    roles = texts_of(value)
    unknown = next((role for _, role in roles if role not in ROLES), None)
    ask(unknown is None, f'"{unknown}" is no role of a record')
    return tuple(Record(name, "...", ROLES[role]) for name, role in roles)


def facts_of(value: Any) -> RouterFacts:
    facts = constants_of(value)
    for name, each in facts.items():
        ask(name in FACTS, f'a decision has no fact "{name}"')
        known = type(each) is int and each > 0 if name == "k" else each in FACTS[name]
        ask(known and (name == "k" or isinstance(each, type(FACTS[name][0]))), f'"{name}" is not {each!r}')
    return RouterFacts(**facts)


def read_declaration(fields: Fields, find: Any) -> Any:
    """Read the op or router of a node, with its settings."""
    name = fields.read("is", name_of)
    known: type[Declaration] | None = find(name)
    if known is None:
        if faults := load_extensions():  # one of which may declare it
            raise ModgraphError([fault.replace(notes=(Note(text=f'the graph uses "{name}"'),)) for fault in faults])
        raise InvalidGraph(f'this installation does not know "{name}"', fields.node, "is")
    declared, values = known.settings(), {}
    for key, value in fields.read("settings", constants_of).items():
        ask(key in declared, f'"{name}" has no setting "{key}"', fields.node, "settings")
        setting = declared[key]
        problem = setting.problem(make_plain(value) if setting.names_axis else value)
        ask(not problem, f'setting "{key}" {problem}', fields.node, "settings")
        values[key] = setting.convert(value)
    missing = [key for key, setting in declared.items() if setting.required and key not in values]
    ask(not missing, f'"{name}" needs the setting "{", ".join(missing)}"', fields.node, "settings")
    return known(**values)
