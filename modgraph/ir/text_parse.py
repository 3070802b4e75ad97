"""Reads the graph's text form back: `parse_text(to_text(g)) == g`."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import UnexpectedToken

from modgraph.ir.graph import Graph
from modgraph.ir.invalid import UnreadableGraph
from modgraph.ir.json_form import FORMAT
from modgraph.ir.json_read import from_json

MOST_LETTERS = 40  # of the text that a message shows


def parse_text(text: str) -> Graph:
    """The graph that a text describes. Raises `UnreadableGraph`, which names line and column, or node and field."""
    try:
        record: Any = grammar().parse(text)
    except UnexpectedInput as error:
        raise UnreadableGraph(_told(error, text)) from error
    return from_json(record)


@cache
def grammar(strict: bool = False) -> Lark:
    """The parser of the text form; `strict` raises on any conflict (and needs `interegular`)."""
    text = (resources.files("modgraph_grammar") / "graph.lark").read_text(encoding="utf-8")
    builder: Any = _Records()
    return Lark(text, parser="lalr", transformer=builder, maybe_placeholders=True, strict=strict)


def _told(error: UnexpectedInput, text: str) -> str:
    """Where a text is none of a graph, and what could stand there."""
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return "the text ends before the graph's closing brace"
    patterns = {terminal.name: terminal.pattern.value for terminal in grammar().terminals}
    names = {*getattr(error, "allowed", ()), *getattr(error, "expected", ())} & patterns.keys()
    wanted = sorted(WORDS.get(name) or f'"{patterns[name]}"' for name in names)
    found = text.splitlines()[error.line - 1][error.column - 1 :][:MOST_LETTERS]
    return f"line {error.line}, column {error.column}: {' or '.join(wanted)} must stand here, not {found!r}"


WORDS = {"WORD": "a name", "NUMBER": "a number", "STRING": "a string", "_NL": "the end of the line"}


@v_args(inline=True)
class _Records(Transformer[Token, Any]):
    """Turns the tree into the record that JSON would hold, while it is parsed."""

    def start(self, record: Any) -> Any:
        return record

    def graph(self, _: Token, name: Token | None, values: Any, nodes: list[Any]) -> Any:
        return {
            "format": FORMAT,
            "name": str(name or ""),
            "parameters": values or {},
            "nodes": nodes,
            "inputs": _inputs_of(nodes),
        }

    def nodes(self, *nodes: Any) -> list[Any]:
        return [*nodes]

    def node(self, name: Token, types: Any, content: dict[str, Any]) -> Any:
        return {"name": str(name), "types": types or [], **content}

    def source(self, kind: Token) -> Any:
        return {"kind": str(kind)}

    def target(self, grown: Any) -> Any:
        return {"kind": "target", **(grown or {})}

    def output(self, label: Token, slots: Any) -> Any:
        return {"kind": "output", "label": str(label), **slots}

    def loss(self, slots: Any) -> Any:
        return {"kind": "loss", **slots}

    def op(self, declared: Any, tail: Any = None) -> Any:
        return {"kind": "op", **declared, **(tail or {})}

    def plain_op(self, name: Token, slots: Any) -> Any:
        return self.op(self.word(name), slots)

    def router(self, declared: Any, frozen: Token | None) -> Any:
        return {"kind": "router", **declared, **_flag(frozen)}

    def text_router(self, name: Token, given: Any, defaults: Any, frozen: Token | None) -> Any:
        return {"kind": "router", "text": str(name), **(given or {}), **(defaults or {}), **_flag(frozen)}

    def given(self, values: Any) -> Any:
        return {"given": [*map(list, values.items())]}

    def defaults(self, values: Any) -> Any:
        return {"defaults": [*map(list, values.items())]}

    def decision(self, pool: Token, router: Token, rounds: Any, records: Any, facts: Any, slots: Any) -> Any:
        uses = {"pool": str(pool), "router": str(router)}
        return {"kind": "decision", "uses": uses, **(rounds or {}), **(records or {}), **(facts or {}), **slots}

    def rounds(self, count: Token) -> Any:
        return {"rounds": _whole(count)}

    def records(self, *records: Any) -> Any:
        return {"records": [*records]}

    def record(self, name: Token, role: Token) -> Any:
        return [str(name), str(role)]

    def facts(self, values: Any) -> Any:
        return {"facts": values}

    def pool(self, size: Token, grown: Any, shares: Any, inside: Any, *regions: Any) -> Any:
        told = {**(grown or {}), **(shares or {}), **(inside or {})}
        return {"kind": "pool", "size": _whole(size), "regions": [*regions], **told}

    def route(self, pool: Token, router: Token, slots: Any, lowering: Any) -> Any:
        return {"kind": "route", "uses": {"pool": str(pool), "router": str(router)}, **slots, **(lowering or {})}

    def growth(self, pool: Token, router: Token, slots: Any) -> Any:
        return {"kind": "growth", "uses": {"pool": str(pool), "router": str(router)}, **slots}

    def scan(self, carried: Token, slots: Any, region: Any) -> Any:
        return {"kind": "scan", "carried": _whole(carried), **slots, "region": region}

    def word(self, name: Token) -> Any:
        return {"is": str(name), "settings": {}}

    def declared(self, name: Token, settings: Any) -> Any:
        return {"is": str(name), "settings": settings}

    def tail(self, *parts: Any) -> Any:
        return {
            key: value
            for part in parts
            if part is not None
            for key, value in (_flag(part) if isinstance(part, Token) else part).items()
        }

    def owner(self, name: Token) -> Any:
        return {"owner": str(name)}

    def initial(self, kind: Token, scale: Any) -> Any:
        return {"initial": {"kind": str(kind), "scale": scale, "fan": ""}}

    def grown(self, count: Token) -> Any:
        return {"grown": _whole(count)}

    def shares(self, pool: Token) -> Any:
        return {"shares": str(pool)}

    def inside(self, path: Token) -> Any:
        return {"inside": str(path)}

    def lowering(self, form: Token) -> Any:
        return {"lowering": str(form)}

    def region(self, arguments: list[str], results: list[Any], nodes: list[Any]) -> Any:
        return {"arguments": arguments, "results": results, "nodes": nodes}

    def arguments(self, *names: Token) -> list[str]:
        return [*map(str, names)]

    def results(self, *results: Any) -> list[Any]:
        return [*results]

    def result(self, node: Token, index: Token | None) -> list[Any]:
        return [str(node), _whole(index or "0")]

    def slots(self, inputs: Any, lengths: Any) -> Any:
        return {"inputs": inputs} | ({"lengths": lengths} if lengths else {})

    def sources(self, *slots: Any) -> Any:
        return [*slots]

    def slot(self, name: Token, source: list[Any]) -> list[Any]:
        return [str(name), *source]

    def types(self, *types: Any) -> list[Any]:
        return [*types]

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

    def axes(self, *axes: Any) -> list[Any]:
        return [*axes]

    def axis(self, name: Token, size: Token | None) -> Any:
        if size is not None:
            return {"name": str(name), "size": _whole(size)}
        return _whole(name) if name[0].isdigit() else str(name)

    def values(self, *settings: Any) -> Any:
        return dict(settings)

    def setting(self, name: Token, value: Any) -> Any:
        return str(name), value

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


def _inputs_of(nodes: list[Any]) -> list[str]:
    return [entry["name"] for entry in nodes if entry["kind"] == "input"]


def _flag(frozen: Token | None) -> dict[str, Any]:
    return {"frozen": True} if frozen is not None else {}


def _whole(text: str) -> Any:
    """A number, or the text itself, which is then refused as one."""
    return int(text) if text.isdecimal() and text.isascii() else str(text)
