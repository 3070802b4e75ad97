"""Wherever a message is made, it gets its facts, no more and no less: their names stand in its format strings."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from modgraph.diagnostics import Diagnostic
from modgraph.elaboration.errors import UnknownType

SOURCES = {path: path.read_text() for path in sorted(Path("modgraph").rglob("*.py"))}
for path, text in SOURCES.items():
    if 'code="MG' in text:
        import_module(".".join(path.with_suffix("").parts))


def messages_in(path: Path, nodes: Sequence[ast.AST]) -> dict[str, Any]:
    """The messages that a file of some nodes can make, as it calls them."""
    known = dict(vars(sys.modules.get(".".join(path.with_suffix("").parts), object)))
    for tree in nodes:
        for alias in tree.names if isinstance(tree, ast.ImportFrom) and tree.module else ():
            module, within = sys.modules.get(tree.module), sys.modules.get(f"{tree.module}.{alias.name}")
            known |= {f"{alias.name}.{name}": each for name, each in vars(within or object).items()}
            known[alias.name] = getattr(module, alias.name, None)
    return {name: each for name, each in known.items() if isinstance(each, type) and issubclass(each, Diagnostic)}


def name_of(called: ast.expr) -> str:
    """What a call names, `module.Name` or `Name`; nothing else makes a message."""
    match called:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}"
    return ""


def made() -> Iterator[tuple[str, type[Diagnostic], list[str | None]]]:
    for path, text in SOURCES.items():
        nodes = [*ast.walk(ast.parse(text))]
        known = messages_in(path, nodes)
        for tree in nodes:
            if isinstance(tree, ast.Call) and (message := known.get(name_of(tree.func))):
                yield f"{path}:{tree.lineno}", message, [each.arg for each in tree.keywords]


def test_every_message_is_made_with_its_facts() -> None:
    calls = [*made()]
    assert len({message for _, message, _ in calls}) > 150, "hardly any message is made"
    for place, message, given in calls:
        extra = {*given} - {*message.facts(), "span", "notes", None}
        lacking = {name for name in message.facts() if not hasattr(message, name)} - {*given}
        assert not extra, f"{place}: {message.__name__} has no {extra}"
        assert not lacking or None in given, f"{place}: {message.__name__} needs {lacking}"


@pytest.mark.parametrize("message", Diagnostic.catalogue.values(), ids=Diagnostic.catalogue)
def test_no_fact_hides_what_all_messages_have(message: type[Diagnostic]) -> None:
    assert message.facts().isdisjoint({*dir(Diagnostic), "span", "notes"}), message.facts()


def test_a_fact_too_few_or_too_many_is_refused() -> None:
    with pytest.raises(TypeError, match="suggestion"):
        UnknownType(name="flaot")
    with pytest.raises(TypeError, match="reason"):
        UnknownType(name="flaot", suggestion="", reason="")
