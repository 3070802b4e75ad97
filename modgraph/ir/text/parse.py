"""Reads a program's text back: `parse_text(to_text(g)) == g`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

from lark import Lark, Token, Tree, UnexpectedInput
from lark.exceptions import UnexpectedToken
from lark.lexer import TerminalDef

from modgraph.declare import format_value
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, UnreadableGraph
from modgraph.ir.stored.program import FORMAT, from_json
from modgraph.ir.text.runs import resolve

Rule = Callable[..., Any]  # maps the children of a grammar rule to its value

MOST_LETTERS = 40  # the length of text that a message quotes
WORDS = {"WORD": "a name", "NUMBER": "a number", "STRING": "a string", "_NL": "the end of the line"}
WORDS |= {"REFERENCE": "a value", "DECLARED": "a name", "RUN": "rounds", "PATH": "a name", "_COMMA": '","'}
WORDS |= {"_GIVES": '"->"', "_LPAR": '"("', "_SEMICOLON": '";"', "WRITTEN": '"`"', "KIND": "a definition"}


def parse_text(text: str) -> Graph:
    """Parse the text of a graph. Raises `UnreadableGraph`, which names line and column, or node and field."""
    try:
        record: Any = grammar().parse(text)
        resolve(record)
    except UnexpectedInput as error:
        raise UnreadableGraph(_problem(error, text)) from error
    except InvalidGraph as error:
        raise UnreadableGraph(error.reason, error.node, error.field) from error
    return from_json(record)


@cache
def grammar(strict: bool = False) -> Lark:
    """Build the parser of the text format; `strict` raises on any conflict (and needs `interegular`)."""
    text = (resources.files("modgraph_grammar") / "graph.lark").read_text(encoding="utf-8")
    builder: Any = _Records()
    return Lark(text, parser="lalr", transformer=builder, maybe_placeholders=True, strict=strict)


def _problem(error: UnexpectedInput, text: str) -> str:
    """Locate a syntax error, and list what could stand there."""
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return "the text ends before the model's closing brace"
    names = {*getattr(error, "allowed", ()), *getattr(error, "expected", ())}
    wanted = sorted({word_of(terminal) for terminal in grammar().terminals if terminal.name in names})
    found = text.splitlines()[error.line - 1][error.column - 1 :][:MOST_LETTERS]
    return f"line {error.line}, column {error.column}: {' or '.join(wanted)} must stand here, not {found!r}"


def word_of(terminal: TerminalDef) -> str:
    """Name a terminal for a message. The name of a keyword's terminal is the keyword."""
    text = terminal.pattern.value if terminal.pattern.type == "str" else terminal.name.strip("_").lower()
    return WORDS.get(terminal.name, f'"{text}"')


# ------------------------------------------------------------ what rules of the grammar give


def _merge(parts: Iterable[Any]) -> dict[str, Any]:
    return {key: value for part in parts if part is not None for key, value in part.items()}


def _user(kind: str) -> Rule:
    return lambda pool, router, *facts: {"kind": kind, "uses": {"pool": pool, "router": router}, **_merge(facts)}


def _start(*parts: Any) -> Any:
    *definitions, weights, model = parts
    empty = {"name": "", "parameters": {}, "weights": {}}
    return {"format": FORMAT, **empty, **_merge([weights, model]), "definitions": definitions}


def _definition(kind: str, name: str, author: str | None, *parts: Any) -> Any:
    facts = {"is": author or name, "takes": [], "axes": [], "members": [], "formals": [], **_merge(parts)}
    inputs = [{"name": each, "kind": "input", "types": [type_]} for each, type_ in facts.pop("formals")]
    return {**facts, "name": name, "kind": kind, "nodes": [*inputs, *facts["nodes"]], "results": []}


def _run(rounds: str, definition: str, given: Any, bound: Any) -> Any:
    loop, _, keys = rounds.partition("[")
    first, last = map(int, keys.rstrip("]").split(".."))
    for key in range(first, last):
        before = f"{loop}.{key - 1}"
        names = {name: here.replace(f"{loop}[-1]", before) for name, here in bound["names"].items()}
        inputs = [each.replace(f"{loop}[-1]", before) for each in given["inputs"]]
        call = {"name": f"{loop}.{key}", "kind": "call", "is": definition, "key": key}
        yield call | bound | {"names": names, "inputs": inputs}


def _name_node(name: str, types: Any, deferred: Any, content: Any) -> Any:
    *before, last = content if isinstance(content, list) else [content]
    if last["kind"] == "call":
        last.setdefault("key", _key(name.partition("~")[0].rpartition(".")[2]))
    if last["kind"] != "route":
        path = name if last["kind"] == "loss" else name.rpartition(".")[0]
        for each, after in pairwise([*before, last]):
            each.setdefault("name", f"{path}.{each['is']}" if path else each["is"])
            after["inputs"] = [each["name"], *after.get("inputs", ())]
    return [*before, last | _merge([{"name": name}, types, deferred])]


def _text_router(name: str, *parts: Any) -> Any:
    *written, frozen = parts
    arguments = {word: each for word, each in zip(("given", "defaults"), written, strict=False) if each}
    return {"kind": "router", "text": name, **arguments, **(frozen or {})}


def _module(argument: Any, *ops: Any) -> Any:
    name, type_ = argument
    nodes = [{"name": name, "kind": "input", "types": [type_]}]
    for each in ops:
        nodes.append({"name": each["is"], **each, "inputs": [nodes[-1]["name"]]})
    return {"regions": [{"arguments": [name], "results": [nodes[-1]["name"]], "nodes": nodes}]}


def _module_of(argument: Any, definition: str, *parts: Any) -> Any:
    *facts, results = parts
    name, type_ = argument
    given = {"name": name, "kind": "input", "types": [type_]}
    call = {"name": definition, "kind": "call", "is": definition, "inputs": [name], **_merge(facts)}
    return {"regions": [{"arguments": [name], "nodes": [given, call], "results": results["inputs"]}]}


def _type(dtype: str, *parts: Any) -> Any:
    record = {"dtype": dtype, "shape": [], **_merge(parts)}
    *others, last = record["shape"] or [None]
    if dtype in ("token", "class"):
        size, of = (last.get("size"), {"of": last["name"]}) if isinstance(last, dict) else (last, {})
        record |= {"shape": others, "size": size, **of}
    if dtype == "edge":
        record |= {"shape": [*others[:-1], 2], "ends": [*others[-1:], last]}
    if dtype == "length":
        record |= {"shape": [], "of": last if not others else None}
    return record


def _axis(name: str, second: str | None) -> Any:
    if second is not None:
        return {"name": name, "size" if second[0].isdigit() else "of": _whole(second)}
    return _whole(name) if name[0].isdigit() else name


def _constant(value: Any) -> Any:
    return tuple(map(_constant, value)) if isinstance(value, list) else value


def _key(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _whole(text: str) -> Any:
    """Parse a number; other text stays as it is, and a later check refuses it."""
    return int(text) if text.isdecimal() and text.isascii() else text


LISTS = ("takes", "axes", "members", "formals", "inputs", "arguments", "regions", "types", "shape", "records")
NODES = ("input", "place", "target", "output", "loss", "router", "pool", "scan", "op")
FLAGS: dict[str, Any] = {"deferred": {"deferred": True}, "frozen": {"frozen": True}, "learns": {"frozen": False}}
FLAGS |= {"stored": {"stored": True}, "local": {"owner": ""}, "no_initial": {"initial": None}, "per": {"per": "batch"}}
RULES: Mapping[str, Rule] = {
    **{name: lambda *word, facts=facts: facts for name, facts in {**FLAGS, "true": True, "false": False}.items()},
    **{name: lambda count, name=name: {name: _whole(count)} for name in ("grown", "size", "carried", "final")},
    **{name: lambda *values, name=name: {name: [*values]} for name in LISTS},
    **{name: lambda *pairs, name=name: {name: dict(pairs)} for name in ("parameters", "settings", "facts", "weights")},
    **{kind: lambda *facts, kind=kind: {"kind": kind, **_merge(facts)} for kind in NODES},
    **{kind: _user(kind) for kind in ("decision", "route", "growth")},
    **dict.fromkeys(("formal", "setting", "slot", "binding"), lambda name, value: [name, value]),
    "start": _start,
    "definition": _definition,
    "marks": lambda place, *marks: (place, _merge(marks)),
    "model": lambda *parts: _merge(parts),
    "nodes": lambda *nodes: {"nodes": [each for node in nodes for each in node]},
    "run": _run,
    "node": _name_node,
    "loss_of": lambda chain: [*chain, {"kind": "loss"}],
    "chain": lambda *links: [*links],
    "link": lambda *parts: _merge(parts),
    "word": lambda name: {"is": name, "settings": {}},
    "declared": lambda name, settings: {"is": name, **settings},
    "own_route": lambda pool, router, own, *facts: [
        {"name": router, "kind": "router", **own},
        _user("route")(pool, router, *facts),
    ],
    "text_router": _text_router,
    "written": lambda *arguments: [*arguments],
    "quoted": lambda name, value: [name, value.strip("`")],
    "argument": lambda name, value: [name, format_value(_constant(value))],
    "record": lambda name, role, *references: (name, role or name, references),
    "reference": lambda text: text,
    "module": _module,
    "module_of": _module_of,
    "call": lambda definition, *facts: {"kind": "call", "is": definition, **_merge(facts)},
    "key": lambda word: {"key": _key(word)},
    "bound": lambda weights, names: {"names": names or {}} | ({"weights": weights} if weights else {}),
    "bindings": lambda *pairs: dict(pairs),
    "once": lambda words: {"once": words.removeprefix("once for ")},
    "initial": lambda kind, scale: {"initial": {"kind": kind, "scale": scale, "fan": ""}},
    "inner": lambda arguments, results, nodes: {**arguments, "results": results["inputs"], **nodes},
    "type": _type,
    "axis": _axis,
    "number": json.loads,
    "string": lambda text: json.loads(text, strict=False),
    "range": lambda start, stop: {"range": [json.loads(start), json.loads(stop)]},
    "list": lambda *items: [item for item in items if item is not None],
}


class _Records:
    """Turns the syntax tree into records as JSON has them, during parsing; references are still texts.

    Most rules give facts of a record by name.
    """

    def __getattr__(self, rule: str) -> Callable[[list[Any]], Any]:
        if rule not in RULES:
            raise AttributeError(rule)
        return lambda children: RULES[rule](*map(_text, children))

    def __default__(self, rule: str, children: list[Any], meta: object) -> Any:
        """Return the children of a rule without a function, under the rule's name."""
        if rule.startswith("_"):
            return Tree(rule, children)  # merged into the surrounding rule
        (value,) = children
        return {rule: _text(value)}


def _text(value: Any) -> Any:
    return value.rstrip("(") if isinstance(value, Token) else value
