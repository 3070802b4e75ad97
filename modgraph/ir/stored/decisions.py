"""Routers that are written in the language, and what they decide: as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from modgraph.declare import ROLES, Record
from modgraph.ir.invalid import ask
from modgraph.ir.node import DecisionNode
from modgraph.ir.stored.fields import Fields, constants_of, list_of, name_of, relative_name_of, whole_of
from modgraph.routers import RouterFacts, RouterText

MOST_ROUNDS = 1_000_000
FACTS: Mapping[str, tuple[Any, ...]] = {
    "one_for_each": ("sender", "module", "pair"),
    "chooses_along": ("modules", "senders"),
    "k": (),
    "balanced": (True,),
    "draws": (True,),
}


def text_to_json(router: RouterText) -> dict[str, Any]:
    arguments = {"given": router.given, "defaults": router.defaults}
    return {"text": router.name, **{name: [*map(list, each)] for name, each in arguments.items() if each}}


def decision_to_json(node: DecisionNode) -> dict[str, Any]:
    """Facts at their default are left out."""
    entry: dict[str, Any] = {"rounds": node.rounds} if node.rounds > 1 else {}
    entry |= {"label": node.label} if node.label else {}
    if node.records:
        entry["records"] = [[each.name, each.role.name.lower()] for each in node.records]
    defaults = asdict(RouterFacts())
    facts = {name: value for name, value in asdict(node.facts).items() if value != defaults[name]}
    return entry | ({"facts": facts} if facts else {})


def read_text(fields: Fields) -> RouterText:
    name = fields.read("text", name_of)
    return RouterText(name, fields.read("given", _written, ()), fields.read("defaults", _written, ()))


def read_decision(fields: Fields, common: Mapping[str, Any]) -> DecisionNode:
    rounds = fields.read("rounds", whole_of(1, MOST_ROUNDS), 1)
    records, facts = fields.read("records", _records, ()), fields.read("facts", _facts, RouterFacts())
    label = fields.read("label", relative_name_of, "")
    return DecisionNode(**common, label=label, records=records, rounds=rounds, facts=facts)


def _written(value: Any) -> tuple[tuple[str, str], ...]:
    """Arguments, each with its value as a spec writes it."""
    pairs = [*map(list_of, list_of(value))]
    written = all(len(pair) == 2 and all(isinstance(each, str) for each in pair) for pair in pairs)
    ask(written, "it is no list of names, each with a text")
    return tuple((name_of(name), text) for name, text in pairs)


def _records(value: Any) -> tuple[Record, ...]:
    roles = _written(value)
    unknown = next((role for _, role in roles if role not in ROLES), None)
    ask(unknown is None, f'"{unknown}" is no role of a record')
    return tuple(Record(name, "...", ROLES[role]) for name, role in roles)


def _facts(value: Any) -> RouterFacts:
    facts = constants_of(value)
    for name, each in facts.items():
        ask(name in FACTS, f'a decision has no fact "{name}"')
        known = type(each) is int and each > 0 if name == "k" else each in FACTS[name]
        ask(known and (name == "k" or isinstance(each, type(FACTS[name][0]))), f'"{name}" is not {each!r}')
    return RouterFacts(**facts)
