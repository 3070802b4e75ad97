"""The signature of the call that a place stands in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modgraph.inspect.reference import signature_of
from modgraph.lsp.analysis import CLOSING, OPENING, Analysis
from modgraph.lsp.project import Project
from modgraph.prelude import find_written
from modgraph.syntax import ast
from modgraph.syntax.tokens import PlacedToken
from modgraph.vocabulary import find_op, find_router


@dataclass(frozen=True)
class Signature:
    """How something is called: its label, its parameters with what they mean, and the one at the place."""

    label: str
    parameters: tuple[tuple[str, str], ...]
    active: int
    doc: str = ""


def signature_at(analysis: Analysis, project: Project, offset: int) -> Signature | None:
    """The signature of the innermost call whose parentheses are open at a place."""
    before = [token for token in analysis.tokens if token.span.end <= offset]
    opened: list[int] = []
    for at, token in enumerate(before):
        if token.type in OPENING:
            opened.append(at)
        elif token.type in CLOSING and opened:
            opened.pop()
        elif token.type in ("LBRACE", "RBRACE"):
            opened.clear()
    calls = [at for at in opened if before[at].type == "LPAR" and at and before[at - 1].type == "NAME"]
    if not calls or (before[calls[-1] - 2 : calls[-1] - 1] and before[calls[-1] - 2].type in ("MODEL", "BLOCK")):
        return None
    at = calls[-1]
    is_router = at >= 4 and before[at - 4].type == "ROUTER"
    found = _signature_of(str(before[at - 1]), is_router, analysis, project)
    if found is None:
        return None
    label, parameters, doc = found
    return Signature(label, parameters, _active(before[at + 1 :], [name for name, _ in parameters]), doc)


Described = tuple[str, tuple[tuple[str, str], ...], str]


def _signature_of(name: str, is_router: bool, analysis: Analysis, project: Project) -> Described | None:
    """The label, the parameters and the first line of the documentation of what has a name."""
    own = project.find_definition(analysis.source.name, name)
    known = own.definition if own is not None else None
    written = find_written(name)
    if known is None and written is not None and (is_router or find_op(name) is None):
        return f"{written.keyword} {written.signature}", _names_in(written.signature), written.comment
    if known is not None:
        parameters = tuple((each.name, f"default {_text(each.default)}") for each in known.parameters)
        return f"{known.keyword} {head_of(known)}", parameters, ""
    declaration = (find_router(name) if is_router else None) or find_op(name) or find_router(name)
    if declaration is None:
        return None
    settings = tuple((each.name, str(each.bounds["doc"])) for each in declaration.settings().values())
    doc = (declaration.__doc__ or "").strip().partition("\n")[0]
    return f"{declaration.registry.kind} {signature_of(declaration)}", settings, doc


def head_of(definition: ast.Definition) -> str:
    """A definition with its parameters, as a call of it is written."""
    parameters = ", ".join(
        each.name if each.default is None else f"{each.name}={each.default.span.text}" for each in definition.parameters
    )
    return f"{definition.name}({parameters})"


def _text(default: ast.Expression | None) -> str:
    return "none" if default is None else default.span.text


def _names_in(signature: str) -> tuple[tuple[str, str], ...]:
    inside = signature.partition("(")[2].rpartition(")")[0]
    pairs = (each.strip().partition("=") for each in inside.split(",") if each.strip())
    return tuple((name, f"default {default}" if default else "") for name, _, default in pairs)


def _active(arguments: Sequence[PlacedToken], names: Sequence[str]) -> int:
    """Which parameter is being written: the one that is named, or else by its position."""
    depth, position, name = 0, 0, ""
    for at, token in enumerate(arguments):
        depth += (token.type in OPENING) - (token.type in CLOSING)
        if depth == 0 and token.type == "COMMA":
            position, name = position + 1, ""
        elif depth == 0 and token.type == "EQUAL" and at:
            name = str(arguments[at - 1])
    return names.index(name) if name in names else position
