"""Reads a program's text back: `parse_text(to_text(g)) == g`."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import UnexpectedToken

from modgraph.declare import shown_value
from modgraph.ir.graph import Graph
from modgraph.ir.invalid import InvalidGraph, UnreadableGraph
from modgraph.ir.stored.program import FORMAT, from_json
from modgraph.ir.text.references import resolve

MOST_LETTERS = 40  # of the text that a message shows
WORDS = {"WORD": "a name", "NUMBER": "a number", "STRING": "a string", "_NL": "the end of the line"}
WORDS |= {"REFERENCE": "a value", "DECLARED": "a name", "RUN": "rounds", "PATH": "a name", "_COMMA": '","'}
WORDS |= {"_GIVES": '"->"', "_LPAR": '"("', "_WEIGHTS": '"weights"', "_TAKES": '"takes"', "KIND": "a definition"}


def parse_text(text: str) -> Graph:
    """The graph that a text describes. Raises `UnreadableGraph`, which names line and column, or node and field."""
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
    """The parser of the text form; `strict` raises on any conflict (and needs `interegular`)."""
    text = (resources.files("modgraph_grammar") / "graph.lark").read_text(encoding="utf-8")
    builder: Any = _Records()
    return Lark(text, parser="lalr", transformer=builder, maybe_placeholders=True, strict=strict)


def _problem(error: UnexpectedInput, text: str) -> str:
    """Where a text is none of a program, and what could stand there."""
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return "the text ends before the model's closing brace"
    patterns = {terminal.name: terminal.pattern.value for terminal in grammar().terminals}
    names = {*getattr(error, "allowed", ()), *getattr(error, "expected", ())} & patterns.keys()
    wanted = sorted({WORDS.get(name) or f'"{patterns[name]}"' for name in names})
    found = text.splitlines()[error.line - 1][error.column - 1 :][:MOST_LETTERS]
    return f"line {error.line}, column {error.column}: {' or '.join(wanted)} must stand here, not {found!r}"


@v_args(inline=True)
class _Records(Transformer[Token, Any]):
    """Turns the tree into the record that JSON would hold, while it is parsed; references are still texts."""

    def start(self, *parts: Any) -> Any:
        *definitions, weights, model = parts
        return {"format": FORMAT, **model, "definitions": definitions, "weights": weights or {}}

    def definition(
        self, kind: Token, name: Token, author: Any, formals: Any, takes: Any, axes: Any, members: Any, nodes: list[Any]
    ) -> Any:
        inputs = [{"name": each, "kind": "input", "types": [type_]} for each, type_ in formals or []]
        facts = {"name": str(name), "kind": str(kind), "is": str(author or name), "nodes": [*inputs, *nodes]}
        return facts | {"takes": takes or [], "axes": axes or [], "members": members or [], "results": []}

    def items(self, *items: Any) -> list[Any]:
        return [*items]

    formals = written = records = slots = references = types = axes_of = items

    def pair(self, name: Token, value: Any) -> Any:
        return str(name), value

    formal = binding = setting = pair

    def takes(self, *names: Token) -> list[str]:
        return [*map(str, names)]

    axes = members = arguments = takes

    def mapping(self, *pairs: Any) -> Any:
        return dict(pairs)

    weights = bindings = values = mapping

    def marks(self, place: Token, *marks: Any) -> Any:
        return str(place), self.tail(*marks)

    def model(self, name: Token | None, values: Any, nodes: list[Any]) -> Any:
        return {"name": str(name or ""), "parameters": values or {}, "nodes": nodes}

    def nodes(self, *nodes: Any) -> list[Any]:
        return [each for node in nodes for each in node]

    def run(self, rounds: Token, definition: Token, references: list[Any], bound: Any) -> Any:
        loop, _, keys = rounds.partition("[")
        first, last = map(int, keys.rstrip("]").split(".."))
        for key in range(first, last):
            before = f"{loop}.{key - 1}"
            names = {name: here.replace(f"{loop}[-1]", before) for name, here in bound["names"].items()}
            given = [each.replace(f"{loop}[-1]", before) for each in references]
            call = {"name": f"{loop}.{key}", "kind": "call", "is": str(definition), "key": key, "inputs": given}
            yield call | bound | {"names": names}

    def node(self, name: Token, types: Any, deferred: Token | None, content: list[dict[str, Any]]) -> list[Any]:
        *before, last = content
        if last["kind"] == "route":
            return [*before, last | {"name": str(name), "types": types}]
        path = str(name) if last["kind"] == "loss" else str(name).rpartition(".")[0]
        for each in before:
            word = each.pop("word")
            each.setdefault("name", f"{path}.{word}" if path else word)
        if last["kind"] == "call":
            key = str(name).partition("~")[0].rpartition(".")[2]
            last.setdefault("key", int(key) if key.isdecimal() else key)
        last.pop("word", None)
        last |= {"name": str(name)} | ({"types": types} if types else {})
        last |= {"deferred": True} if deferred else {}
        for one, other in zip(before, content[1:], strict=True):
            other["inputs"] = [one["name"], *other.get("inputs", ())]
        return content

    def source(self, kind: Token) -> list[Any]:
        return [{"kind": str(kind)}]

    def target(self, grown: Any) -> list[Any]:
        return [{"kind": "target", **(grown or {})}]

    def output(self, label: Token, references: Any) -> list[Any]:
        return [{"kind": "output", "label": str(label), "inputs": references}]

    def loss(self, references: Any) -> list[Any]:
        return [{"kind": "loss", "inputs": references}]

    def loss_of(self, chain: list[Any]) -> list[Any]:
        return [*chain, {"kind": "loss"}]

    def chain(self, first: Any, references: Any, *others: Any) -> list[Any]:
        return [first | ({"inputs": references} if references else {}), *others]

    def link(self, op: Any, references: Any) -> Any:
        return op | ({"inputs": references} if references else {})

    def op(self, declared: Any, owner: Any, initial: Any, frozen: Any, called: Any) -> Any:
        return {"kind": "op", "word": declared["is"], **declared, **self.tail(owner, initial, frozen, called)}

    def router(self, declared: Any, frozen: Token | None) -> list[Any]:
        return [{"kind": "router", **declared, **self.tail(frozen)}]

    def text_router(self, name: Token, *parts: Any) -> list[Any]:
        *written, frozen = parts
        facts = {word: each for word, each in zip(("given", "defaults"), written, strict=False) if each}
        return [{"kind": "router", "text": name.rstrip("("), **facts, **self.tail(frozen)}]

    def argument(self, name: Token, value: Any) -> list[str]:
        return [str(name), value.strip("`") if isinstance(value, Token) else shown_value(_constant(value))]

    def decision(self, pool: Token, router: Token, references: Any, records: Any, facts: Any, label: Any) -> list[Any]:
        node = {"kind": "decision", "uses": _uses(pool, router), "inputs": references, "given": records or []}
        return [node | ({"facts": facts} if facts else {}) | (label or {})]

    def record(self, name: Token, role: Token | None, *references: str) -> Any:
        return str(name), str(role or name), [*references]

    def pool(self, size: Token, grown: Any, shares: Any, inside: Any, *regions: Any) -> list[Any]:
        facts = {"kind": "pool", "size": _whole(size), "regions": [*regions]}
        return [facts | (grown or {}) | (shares or {}) | (inside or {})]

    def module(self, argument: Any, *ops: Any) -> Any:
        name, type_ = argument
        nodes = [{"name": name, "kind": "input", "types": [type_]}]
        for each in ops:
            word = each.pop("word")
            nodes.append({"name": word, **each, "inputs": [nodes[-1]["name"]]})
        return {"arguments": [name], "results": [nodes[-1]["name"]], "nodes": nodes}

    def module_of(self, argument: Any, definition: Token, called: Any, bound: Any, results: list[str]) -> Any:
        name, type_ = argument
        given = {"name": name, "kind": "input", "types": [type_]}
        call = {"name": str(definition), "kind": "call", "is": str(definition), "inputs": [name], **bound}
        return {"arguments": [name], "results": results, "nodes": [given, call | (called or {})]}

    def route(self, pool: Token, router: Token, slots: Any, *marks: Any) -> list[Any]:
        return [{"kind": "route", "uses": _uses(pool, router), "inputs": slots, **self.tail(*marks)}]

    def own_route(self, pool: Token, router: Token, own: Any, references: Any, *marks: Any) -> list[Any]:
        return [{"name": str(router), "kind": "router", **own}, *self.route(pool, router, references, *marks)]

    def growth(self, pool: Token, router: Token, references: Any) -> list[Any]:
        return [{"kind": "growth", "uses": _uses(pool, router), "inputs": references}]

    def scan(self, carried: Token, slots: Any, region: Any) -> list[Any]:
        return [{"kind": "scan", "carried": _whole(carried), "inputs": slots, "region": region}]

    def call(self, definition: Token, key: Any, references: Any, bound: Any) -> list[Any]:
        facts = {"kind": "call", "is": str(definition), "inputs": references or [], **bound}
        return [facts | ({} if key is None else {"key": key})]

    def key(self, word: Token) -> Any:
        return int(word) if word.isdecimal() else str(word)

    def bound(self, weights: Token | None, names: Any) -> Any:
        return {"names": names or {}} | ({"weights": str(weights)} if weights else {})

    def word(self, name: Token) -> Any:
        return {"is": str(name), "settings": {}}

    def declared(self, name: Token, settings: Any) -> Any:
        return {"is": name.rstrip("("), "settings": settings}

    def tail(self, *parts: Any) -> Any:
        found: dict[str, Any] = {}
        for part in parts:
            if isinstance(part, Token):
                found["frozen"] = part.type == "FROZEN"
            elif part is not None:
                found |= part
        return found

    def owner(self, name: Token) -> Any:
        return {"owner": "" if name.type == "LOCAL" else str(name)}

    def called(self, name: Token) -> Any:
        return {"name": str(name)}

    def initial(self, kind: Token, scale: Any = None) -> Any:
        given = {"kind": kind.rstrip("("), "scale": scale, "fan": ""}
        return {"initial": None if kind.type == "NONE" else given}

    def grown(self, count: Token) -> Any:
        return {"grown": _whole(count)}

    def shares(self, pool: Token) -> Any:
        return {"shares": str(pool)}

    def inside(self, pool: Token) -> Any:
        return {"inside": str(pool)}

    def lowering(self, form: Token) -> Any:
        return {"lowering": str(form)}

    def label(self, name: Token) -> Any:
        return {"label": str(name)}

    def region(self, arguments: list[str], results: list[Any], nodes: list[Any]) -> Any:
        return {"arguments": arguments, "results": results, "nodes": nodes}

    def slot(self, name: Token, reference: str) -> list[Any]:
        return [str(name), reference]

    def reference(self, text: Token) -> str:
        return str(text)

    def type(self, dtype: Token, axes: list[Any] | None, batch: Token | None) -> Any:
        shape = axes or []
        record: dict[str, Any] = {"dtype": str(dtype), "shape": shape}
        if dtype in ("token", "class"):
            last = shape[-1] if shape else None
            size, of = (last["size"], {"of": last["name"]}) if isinstance(last, dict) else (last, {})
            record |= {"shape": shape[:-1], "size": size, **of}
        if dtype == "length":
            record |= {"shape": [], "of": shape[0] if len(shape) == 1 else None}
        return record | ({"per": "batch"} if batch else {})

    def axis(self, name: Token, size: Token | None) -> Any:
        if size is not None:
            return {"name": str(name), "size": _whole(size)}
        return _whole(name) if name[0].isdigit() else str(name)

    def number(self, text: Token) -> Any:
        return json.loads(text)

    def string(self, text: Token) -> Any:
        return json.loads(text, strict=False)

    def true(self) -> Any:
        return True

    def false(self) -> Any:
        return False

    def range(self, start: Token, stop: Token) -> Any:
        return {"range": [json.loads(start), json.loads(stop)]}

    def list(self, *items: Any) -> Any:
        return [item for item in items if item is not None]


def _uses(pool: Token, router: Token) -> dict[str, str]:
    return {"pool": str(pool), "router": str(router)}


def _constant(value: Any) -> Any:
    """A constant as Python holds it: a list is a tuple."""
    return tuple(map(_constant, value)) if isinstance(value, list) else value


def _whole(text: str) -> Any:
    """A number, or the text itself, which is then refused as one."""
    return int(text) if text.isdecimal() and text.isascii() else str(text)
