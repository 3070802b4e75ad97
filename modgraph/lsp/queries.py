"""Completion, hover and definition, as functions of an analysis and a place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from modgraph.diagnostics import Span
from modgraph.elaboration import entities
from modgraph.elaboration.imports import find_prelude_block, find_prelude_definition, find_prelude_router
from modgraph.inspect.cost import Cost
from modgraph.inspect.cost_text import readable
from modgraph.inspect.reference import declaration_page, signature_of
from modgraph.lsp.analysis import CALLABLE, Analysis, heads, list_declarations
from modgraph.lsp.symbols import Kind, Occurrence
from modgraph.ops import Op
from modgraph.prelude import blocks, find_written, routers
from modgraph.routers import Router
from modgraph.syntax import ast, keywords
from modgraph.syntax.tokens import PlacedToken
from modgraph.vocabulary import find_op, find_router

NAMED = ast.Parameter | ast.NamedAxis | ast.Array | ast.Module | ast.Pool | ast.Router | ast.Carry


class ItemKind(StrEnum):
    """What an item of a completion is."""

    OP = "op"
    ROUTER = "router"
    ARGUMENT = "argument"
    KEYWORD = "keyword"
    NAME = "name"
    OTHER = "other"


@dataclass(frozen=True)
class Item:
    """A word that could be written, with its signature or its meaning."""

    label: str
    kind: ItemKind
    detail: str | None = None


def complete(analysis: Analysis, offset: int) -> list[Item]:
    """What could be written at a place: ops after an arrow, routers after `by`, records of a router after its dot,
    arguments in a call, or names."""
    before = [token for token in analysis.tokens if token.span.end < offset or _is_done(token, offset)]
    last = before[-1].type if before else ""
    declared = dict(list_declarations(analysis.tokens))
    if last == "BY":
        return [Item(name, kind=ItemKind.ROUTER) for name, kind in declared.items() if kind == "ROUTER"]
    around = [*heads(before)][-1:]  # the definition that the place lies in
    names = [name for each in around if each.keyword.type != "MODEL" for name in each.parameters]
    parameters = [Item(name, kind=ItemKind.OTHER) for name in names]
    if last == "ARROW":
        callables = [Item(name, kind=ItemKind.OTHER) for name, kind in declared.items() if kind in CALLABLE]
        return [*callables, *parameters, *_ops()]
    if len(before) >= 2 and last == "DOT":
        return _records(str(before[-2]), analysis)
    if len(before) >= 3 and last == "EQUAL" and before[-3].type == "ROUTER":
        return [*parameters, *_routers(analysis)]
    suggestions = _arguments(before, analysis)
    suggestions += [Item(name, kind=ItemKind.NAME) for name in sorted(declared)]
    suggestions += [each for each in parameters if each.label not in declared]
    if not before or last in ("LBRACE", "RBRACE", "NAME", "RPAR", "RSQB", "INTEGER", "DECIMAL", "STRING"):
        suggestions += [Item(word, kind=ItemKind.KEYWORD) for word in sorted(keywords())]
    return suggestions + (_ops() if last in ("EQUAL", "LSQB", "COMMA", "LPAR", "LOSS") else [])


def _is_done(token: PlacedToken, offset: int) -> bool:
    """Whether a token that ends at the place is complete: a sign is, a word is still being written."""
    return token.span.end == offset and not str(token).replace("_", "a").isalnum()


def _ops() -> list[Item]:
    written = [Item(each.name, kind=ItemKind.OP, detail=each.signature) for each in blocks().values()]
    return [*written, *(Item(op.name, kind=ItemKind.OP, detail=signature_of(op)) for op in Op.registry.every())]


def _routers(analysis: Analysis) -> list[Item]:
    """Kinds of routers: the text's own, and those of the vocabulary."""
    here = [Item(each.name, kind=ItemKind.ROUTER) for each in (analysis.file.routers if analysis.file else ())]
    written = [Item(each.name, kind=ItemKind.ROUTER, detail=each.signature) for each in routers().values()]
    kinds = [Item(each.name, kind=ItemKind.ROUTER, detail=signature_of(each)) for each in Router.registry.every()]
    return [*here, *written, *kinds]


def _definition_of(name: str, analysis: Analysis) -> ast.Definition | None:
    """The text's own definition of a router, or that of the vocabulary."""
    own = analysis.file.routers if analysis.file else ()
    known = find_prelude_router(name)
    return next((each for each in own if each.name == name), known.definition if known is not None else None)


def _records(name: str, analysis: Analysis) -> list[Item]:
    tokens = analysis.tokens
    declared = (at for at, token in enumerate(tokens[:-3]) if token.type == "ROUTER" and str(tokens[at + 1]) == name)
    router = next((str(tokens[at + 3]) for at in declared), "")
    defined, kind = _definition_of(router, analysis), find_router(router)
    if defined is not None:
        roles = {each.name: entities.find_role(each) for each in entities.find_records(defined.body)}
    else:
        roles = {} if kind is None else {each.name: each.role for each in kind.records}
    return [Item(name, kind=ItemKind.OTHER, detail=role.value if role else "") for name, role in roles.items()]


def _arguments(before: list[PlacedToken], analysis: Analysis) -> list[Item]:
    """Settings of the op or router whose parentheses are open; of a block, what may be its arguments."""
    depth = 0
    for at in range(len(before) - 1, 0, -1):
        depth += (before[at].type == "RPAR") - (before[at].type == "LPAR")
        if depth < 0 and before[at - 1].type == "NAME":
            name = str(before[at - 1])
            of_router = at >= 4 and before[at - 4].type == "ROUTER"
            defined = _definition_of(name, analysis) if of_router else None
            names = [each.name for each in defined.parameters] if defined is not None else []
            if not names and (block := analysis.block(name)) is not None:
                names = block.parameters
            elif not names and not of_router and name in blocks():
                names = [each.name for each in find_prelude_block(name).definition.parameters]
            if names:
                return [*(Item(f"{each}=", kind=ItemKind.ARGUMENT) for each in names), *_routers(analysis)]
            declaration = (find_router if of_router else find_op)(name)
            settings = declaration.settings().values() if declaration is not None else ()
            return [Item(f"{each.name}=", kind=ItemKind.ARGUMENT, detail=each.bounds["doc"]) for each in settings]
    return []


def hover(analysis: Analysis, offset: int, occurrences: Sequence[Occurrence] = ()) -> str | None:
    """What stands at a place: its meaning, what it costs, and the page of an op or router. Markdown.

    `occurrences` are those of the text's symbols.
    """
    word = analysis.word_at(offset)
    if word is None:
        return None
    here = next((each for each in occurrences if each.span == word.span), None)
    described = _describe(analysis.value_at(offset)) or (
        _describe_symbol(analysis, here, occurrences) if here else None
    )
    lines = [f"`{described}`"] if described is not None else []
    if here is not None and (cost := _describe_cost(analysis, here, occurrences)):
        lines.append(cost)
    if word.type == "NAME" and (here is None or not here.symbol.definition):
        kinds = find_op(str(word)), find_router(str(word))  # or both: each has its own place in a spec
        lines += [f"```\n{declaration_page(each)}\n```" for each in kinds if each is not None]
        lines += [f"```\n{written.whole}```"] if (written := find_written(str(word))) is not None else []
        head = analysis.head(str(word))
        lines += [f"`{head}`"] if head is not None else []
        if head is not None and head.keyword.type == "MODEL" and analysis.costs is not None:
            lines += [_format_cost(analysis.costs) or "no parameters"]
    return "\n\n".join(lines) or None


def _describe_symbol(analysis: Analysis, here: Occurrence, occurrences: Sequence[Occurrence]) -> str | None:
    """A symbol by its declaration: its meaning there, or else its kind and, of a parameter, its default."""
    start = _find_declaration(here, occurrences).span.start
    value = analysis.meaning_of(here.symbol.name, start)
    if value is None:
        value = analysis.value_at(start)
    if (described := _describe(value)) is not None:
        return described
    if here.kind is Kind.PARAMETER and analysis.file is not None:
        trees = (tree for tree in ast.walk(analysis.file) if isinstance(tree, ast.Parameter))
        found = next((tree for tree in trees if tree.span.start == start), None)
        return f"parameter {found.span.text}" if found is not None else None
    return None if not here.symbol.definition else f"{here.kind} {here.symbol.name}"


def _find_declaration(here: Occurrence, occurrences: Sequence[Occurrence]) -> Occurrence:
    """The last declaration of a symbol before a place, else the first."""
    declared = [each for each in occurrences if each.declares and each.symbol == here.symbol]
    before = [each for each in declared if each.span.start <= here.span.start]
    return (before[-1:] or declared[:1] or [here])[0]


def _describe_cost(analysis: Analysis, here: Occurrence, occurrences: Sequence[Occurrence]) -> str | None:
    """What the statement that declares a value adds, or what a pool or module has."""
    start = _find_declaration(here, occurrences).span.start
    value = analysis.meaning_of(here.symbol.name, start)
    if isinstance(value, entities.PoolEntity | entities.ModuleEntity) and analysis.costs is not None:
        return _format_cost(analysis.costs.nodes.get(value.path, Cost()))
    found = analysis.cost_at(start) if here.kind is Kind.VALUE else None
    if found is None:
        return None
    cost, count = found
    text = _format_cost(cost)
    return f"{text}, in {count} rounds" if text is not None and count > 1 else text


def _format_cost(cost: Cost) -> str | None:
    if not (cost.parameters or cost.macs):
        return None
    active = "" if cost.macs == cost.active_macs else f", {readable(cost.active_macs)} of them active"
    return f"{cost.parameters:,} parameters, {readable(cost.macs)} MACs{active}"


def _describe(value: Any) -> str | None:
    match value:
        case entities.Tensor():
            return str(value.type)
        case entities.TensorTuple():
            return ", ".join(str(each.type) for each in entities.flatten_values(value))
        case entities.Family() if value.of_values:
            return ", ".join(f"{key}: {each.type}" for key, each in value.members.items())
        case entities.RouterEntity():
            return f"router {value.path} = {value.router}"
        case entities.PoolEntity():
            return f"pool {value.path}[{value.size}]"
        case entities.AxisEntity():
            return f"axis {value.axis}"
        case entities.ModuleEntity():
            return f"module {value.path}"
        case entities.Template():
            return str(value)
        case bool() | int() | float() | str() | tuple() | range():
            return repr(value)
    return None


def definition(analysis: Analysis, offset: int) -> Span | None:
    """Where the name at a place is declared: the last declaration before it, or the block of an imported file."""
    word = analysis.word_at(offset)
    if word is None or word.type != "NAME" or analysis.file is None:
        return None
    imported, known = analysis.find_import(str(word)), find_prelude_definition(str(word))
    if imported is not None:
        return imported.name.span
    found = [span for name, span in _declarations(analysis.file) if name == str(word)]
    if not found and known is not None:
        return known.definition.name_span
    earlier = [span for span in found if span.start <= offset]
    return max(earlier, key=lambda span: span.start) if earlier else next(iter(found), None)


def _declarations(file: ast.File) -> Iterator[tuple[str, Span]]:
    """Every name that the file declares or binds, with its place."""
    for tree in ast.walk(file):
        match tree:
            case ast.Definition():
                yield tree.name, tree.name_span
            case ast.Binding():
                yield from ((reference.name, reference.span) for reference in tree.references)
            case ast.Input() | ast.Target():
                yield tree.reference.name, tree.span
            case ast.Loop():
                yield tree.variable, tree.span
            case ast.Scan():
                yield from ((name, tree.sequence.span) for name in (tree.variable, *tree.names))
            case _ if isinstance(tree, NAMED):
                yield tree.name, tree.span
