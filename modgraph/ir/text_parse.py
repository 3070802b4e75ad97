"""Reads the graph's text form back: `parse_text(to_text(g)) == g`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from modgraph.ir.graph import Graph
from modgraph.ir.json_form import FORMAT, from_json
from modgraph.ir.stored import UnreadableGraph

HEAD = re.compile(r"graph (?P<name>\w*)\((?P<parameters>.*)\) \{")
LINE = re.compile(r"(?P<name>[\w.]+)(?:: (?P<types>(?:[^=]|(?<=[\w.])=(?=\d))+))? = (?P<rest>.+)")
TYPE = re.compile(r"(?P<dtype>\w+)(?:\[(?P<inside>[^\]]*)\])?(?P<batch> over batch)?")
DECLARED = re.compile(r"(?P<is>\w+)(?:\((?P<settings>(?:[^()\"]|\"(?:[^\"\\]|\\.)*\")*)\))?")
SLOTS = re.compile(r"(?<! lengths) \((?P<slots>[\w.]+ <- [^)]*)\)")
LENGTHS = re.compile(r" lengths \((?P<lengths>[\w.]+ <- [^)]*)\)")
POOL = re.compile(
    r"pool\[(?P<size>\d{1,6})\](?: grown (?P<grown>\d{1,6}))?(?: shares (?P<shares>[\w.]+))?"
    r"(?P<unlike> of unlike modules)?"
)
DECLARED_TAIL = re.compile(
    r"(?: of (?P<owner>[\w.]+))?(?: init (?P<kind>\w+)\((?P<scale>[^)]*)\))?(?P<frozen> frozen)?"
)
SCAN = re.compile(r"scan (?P<variable>[\w.]+)(?: with (?P<states>[\w., ]+?))? as (?P<stacked>[\w., ]+)")
RANGE_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|(-?\d{1,16})\.\.(-?\d{1,16})')
RANGE = '{{"range": [{}, {}]}}'
ROUTE = re.compile(r"route (?P<pool>[\w.]+) by (?P<router>[\w.]+)")


def parse_text(text: str) -> Graph:
    """The graph that a text describes. Raises `UnreadableGraph`, which names the line."""
    lines = iter(enumerate(text.splitlines(), start=1))
    return from_json(_graph(lines))


def _graph(lines: Iterator[tuple[int, str]]) -> dict[str, Any]:
    number, line = _next(lines)
    head = _match(HEAD, line.strip(), number)
    nodes: list[dict[str, Any]] = []
    while True:
        number, line = _next(lines)
        if line.strip() == "}":
            break
        nodes.append(_node(line.strip(), number, lines))
    record = {"format": FORMAT, "name": head["name"], "nodes": nodes}
    return record | {"parameters": _values(head["parameters"], number)}


def _node(line: str, number: int, lines: Iterator[tuple[int, str]]) -> dict[str, Any]:
    found = _match(LINE, line, number)
    entry: dict[str, Any] = {"name": found["name"]}
    entry["types"] = [_type(each, number) for each in re.split(r",(?![^\[]*\]) ", found["types"] or "") if each]
    rest = found["rest"]
    if lengths := LENGTHS.search(rest):
        entry["lengths"] = [_slot(each, number) for each in lengths["lengths"].split(", ")]
        rest = rest[: lengths.start()] + rest[lengths.end() :]
    if slots := SLOTS.search(rest):
        entry["inputs"] = [_slot(each, number) for each in slots["slots"].split(", ")]
        rest = rest[: slots.start()] + rest[slots.end() :]
    entry["kind"] = rest.split("[")[0].split(" ")[0]
    match entry["kind"]:
        case "op" | "router":
            entry |= _declaration(rest.partition(" ")[2], number)
        case "pool":
            pool = _match(POOL, rest, number)
            size = int(pool["size"])
            regions = [_graph(lines) for _ in range(size if pool["unlike"] else 1)]
            entry |= {"size": size, "regions": regions, "grown": int(pool["grown"] or 0)}
            entry |= {"shares": pool["shares"]} if pool["shares"] else {}
        case "scan":
            scan = _match(SCAN, rest, number).groupdict()
            entry |= {key: text.split(", ") if text else [] for key, text in scan.items()}
            entry |= {"variable": scan["variable"], "region": _graph(lines)}
        case "route":
            entry["uses"] = _match(ROUTE, rest, number, whole=False).groupdict()
            entry["lowering"] = rest.partition(" lowering ")[2]
    return entry


def _declaration(text: str, number: int) -> dict[str, Any]:
    found = _match(DECLARED, text, number, whole=False)
    entry = {"is": found["is"], "settings": _values(found["settings"] or "", number)}
    tail = _match(DECLARED_TAIL, text[found.end() :], number)
    if tail["owner"]:
        entry["owner"] = tail["owner"]
    if tail["kind"]:
        entry["initial"] = {"kind": tail["kind"], "scale": float(tail["scale"]), "fan": ""}
    return entry | ({"frozen": True} if tail["frozen"] else {})


def _slot(text: str, number: int) -> list[Any]:
    slot, _, source = text.partition(" <- ")
    node, _, index = source.partition(":")
    return [slot, node, int(index or 0)]


def _type(text: str, number: int) -> dict[str, Any]:
    found = _match(TYPE, text.strip(), number)
    inside = [_axis(axis) for axis in (found["inside"] or "").split(", ") if axis]
    record: dict[str, Any] = {"dtype": found["dtype"], "shape": inside}
    if found["dtype"] in ("token", "class"):
        record |= {"shape": inside[:-1], "size": inside[-1] if inside else None}
    if found["dtype"] == "length":
        record |= {"shape": [], "of": inside[0] if len(inside) == 1 else None}
    return record | ({"per": "batch"} if found["batch"] else {})


def _axis(text: str) -> Any:
    name, equals, size = text.partition("=")
    if equals:
        return {"name": name, "size": int(size)}
    return int(text) if text.isdigit() else text


def _values(text: str, number: int) -> dict[str, Any]:
    """`name=constant, …`; constants are written as in JSON, but for ranges."""
    text = RANGE_OR_STRING.sub(lambda found: RANGE.format(*found.groups()) if found[1] else found[0], text)
    decoder, values, at = json.JSONDecoder(strict=False), dict[str, Any](), 0
    while at < len(text):
        name, sign, _ = text[at:].partition("=")
        try:
            values[name], end = decoder.raw_decode(text, at + len(name) + len(sign))
        except ValueError as error:
            raise UnreadableGraph(f"line {number}: {text[at:]!r} is not name=constant") from error
        at = end + len(", ")
    return values


def _match(pattern: re.Pattern[str], text: str, number: int, whole: bool = True) -> re.Match[str]:
    found = pattern.fullmatch(text) if whole else pattern.match(text)
    if found is None:
        raise UnreadableGraph(f"line {number}: {text[:80]!r} is not of the graph's text form")
    return found


def _next(lines: Iterator[tuple[int, str]]) -> tuple[int, str]:
    try:
        return next(lines)
    except StopIteration:
        raise UnreadableGraph("the text ends before the graph's closing brace") from None
