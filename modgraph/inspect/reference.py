"""Pages on everything that is declared: ops, routers, data sets, optimizers, …, and messages.

They cover declarations of imported modules and of installed packages; the command line imports all modules of modgraph.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from typing import Any

from modgraph.declare import MISSING, Declaration, Registered, Registry, Setting, format_value
from modgraph.diagnostics import Diagnostic, Report, Source, did_you_mean
from modgraph.elaboration import elaborate
from modgraph.inspect.cost import compute_cost
from modgraph.ops import Op
from modgraph.prelude import IN_TORCH, Written, blocks, find_written, routers
from modgraph.routers import Router
from modgraph.syntax import keywords, parse
from modgraph.syntax.advice import find_examples
from modgraph.vocabulary import ONE_LETTER, suggest_synonym

LANGUAGE = "docs/language.md describes the whole language."


def explain(name: str) -> str | None:
    """Return the pages of everything with this name, or of a message's code; None if there is none."""
    if name.upper() in Diagnostic.catalogue:
        return message_page(Diagnostic.catalogue[name.upper()])
    found = (registry.get(name) for registry in registries())
    pages = [page_of(each) for each in found if each is not None]
    if (written := find_written(name)) is not None:
        pages.append(text_page(written))
    if name in set(keywords()):
        examples = find_examples(name) or ["docs/language.md shows how to write it"]
        lines = [f"{name}: a word of the language", "", *(f"    {example}" for example in examples), "", LANGUAGE]
        pages.append("\n".join(lines))
    return "\n\n".join(pages) or None


def suggestion(name: str, more: Iterable[str] = ()) -> str:
    """Return the help line for a name without a page; `more` names have a page elsewhere."""
    known = [*more, *routers(), *blocks(), *(each for registry in registries() for each in registry)]
    known += [*keywords(), *Diagnostic.catalogue]
    return suggest_synonym(name) or did_you_mean(name, known, "all that there is: modgraph explain", ONE_LETTER)


def registries() -> list[Registry[Any]]:
    """List the registries of the language, then those of recipes by name."""
    language: list[Registry[Any]] = [Op.registry, Router.registry]
    others = [each for kind, each in sorted(Registry.all.items()) if each not in language and kind != "primitive"]
    return [*language, *others]


def page_of(declared: type[Registered]) -> str:
    return declaration_page(declared) if issubclass(declared, Declaration) else section_page(declared)


def text_page(written: Written) -> str:
    """Write the page of a router or block in the language: use, description, text."""
    comment = [line for line in written.text.splitlines() if line.startswith("#")]
    prose = "\n".join(line.removeprefix("#").strip() for line in comment if not line.startswith(IN_TORCH))
    code = "\n".join(f"    {line}".rstrip() for line in written.whole.splitlines()[len(comment) :])
    return f"{written.keyword} {written.signature}\n\n{prose}\n\n{code}"


def message_page(message: type[Diagnostic]) -> str:
    """Write the page of a message: its meaning, its help line, and a spec that triggers it."""
    lines = [f"{message.code} ({message.severity}): {message.message}", "", _prose(message)]
    lines += ["", f"help: {message.help}"] if message.help else []
    if message.example and len(message.example) < 400:
        lines += ["", "for example:", "", f"    {message.example}"]
    return "\n".join(lines)


def declaration_page(declaration: type[Declaration]) -> str:
    """Write the page of an op or router: its syntax, operands, results and weights, and its cost in the declared
    example."""
    lines = [f"{declaration.registry.kind} {signature_of(declaration)}", "", _prose(declaration), ""]
    takes = ((f"{each.name}: {each.dtype}{_axes(each.axes)}", each.optional) for each in declaration.operands)
    lines += [f"    takes   {words}{', if given' * optional}" for words, optional in takes]
    lines += [f"    gives   {_axes(axes)}" for axes in declaration.results[:1]]
    for record in declaration.records if issubclass(declaration, Router) else ():
        lines.append(f"    {record.name:7} {_axes(record.axes)}, {record.role.value}")
    lines += map(setting_line, declaration.settings().values())
    for weight in declaration.weights:
        shared = ", shared by the modules of a pool" if weight.shared else ""
        state = " (state, not trained)" if weight.buffer else ""
        condition = f", if {' and '.join(weight.when.split())}" if weight.when else ""
        lines.append(f"    weight  {weight.name} {_axes(weight.axes)}{shared}{state}{condition}")
    report = Report()
    file = parse(Source("example", f"model example() {{ {declaration.example} }}"), report)
    graph = elaborate(file, {}, report) if file is not None else None
    assert graph is not None, f"the example of {declaration.name} is wrong: {report.errors}"
    cost = compute_cost(graph)
    counts = f"{cost.parameters:,} parameters, {cost.macs:,} MACs per example"
    return "\n".join([*lines, "", f"    example {declaration.example}", f"    costs   {counts}"])


def section_page(declared: type[Registered]) -> str:
    """Write the page of a section of a recipe: its syntax and its keys."""
    settings = declared.settings().values()
    keys = [f"name: {declared.name}", *(f"{each.name}: {_default(each, 'null', '…')}" for each in settings)]
    lines = [f"{declared.registry.kind} {declared.name}", "", _prose(declared), "", *map(setting_line, settings)]
    return "\n".join([*lines, "", f"    written {{{', '.join(keys)}}}"])


def signature_of(declaration: type[Declaration]) -> str:
    """Write a signature: `conv(width, kernel=3, …)`."""
    settings = declaration.settings().values()
    given = [each.name if each.default is MISSING else f"{each.name}={_default(each, '…')}" for each in settings]
    return f"{declaration.name}({', '.join(given)})" if given else declaration.name


def reference() -> str:
    """Write the reference of the whole vocabulary, as Markdown."""
    lines = [
        "# Reference",
        "",
        "Generated from the declarations: `modgraph explain --all > docs/reference.md`.",
        "`modgraph explain NAME` prints one entry. Axes: `...` is any number of outer axes, N tokens, M modules.",
    ]
    sections = [(f"{each.kind.capitalize()}s", [*map(page_of, each.every())]) for each in registries()]
    sections.append(("Blocks in the language", [*map(text_page, blocks().values())]))
    sections.append(("Routers in the language", [*map(text_page, routers().values())]))
    sections.append(("Messages", [message_page(each) for _, each in sorted(Diagnostic.catalogue.items())]))
    for title, pages in sections:
        lines += ["", f"## {title}"]
        for page in pages:
            head, _, rest = page.partition("\n")
            lines += ["", f"### `{head}`", rest]
    return "\n".join(lines)


def _prose(declared: type) -> str:
    if sys.flags.optimize >= 2:  # the default docstring of a dataclass is its signature
        return "(No explanation: Python runs with -OO, which leaves them out.)"
    return inspect.cleandoc(declared.__doc__ or "")


def _axes(pattern: str) -> str:
    return f"[{', '.join(pattern.split())}]"


def _default(setting: Setting, none: str, missing: str = "") -> str:
    if setting.default is MISSING:
        return missing
    return none if setting.default is None else format_value(setting.default)


def setting_line(setting: Setting) -> str:
    choices = setting.bounds.get("choices")
    kind = " or ".join(f'"{choice}"' for choice in choices) if choices else setting.describe()
    return f"    {setting.name}: {kind}; {setting.bounds['doc']}"
