"""Finds words that the glossary replaces: in identifiers of Python and JavaScript, in the names of files, and
in messages.

python -m tests.words [FOLDER…]
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDERS = ("modgraph", "grammar", "export", "benchmarks", "editors", "docs", "tests")
CODE = ("modgraph", "grammar", "export")
GLOSSARY = Path(__file__).parents[1] / "docs/glossary.md"
VERBS = {"embed", "exceed", "feed", "need", "proceed", "seed", "speed"}
IRREGULAR = (
    "begun built drawn found given gone grown held hidden kept known laid left made meant met seen sent taken told"
)
PARTICIPLES = {*IRREGULAR.split(), "shown", "chosen", "written"}
BEFORE_NOUNS = "above across after along among at before behind below between by for in into of over through under"
PREPOSITIONS = {*BEFORE_NOUNS.split(), "within", "without"}
HELD_OUT = re.compile("held_out", re.IGNORECASE)  # the field's word for what is not trained on
OF_BROWSERS = {"selected", "selection", "form"}  # the words of HTML
IN_FILES = {"alike"}  # a key of pages that were written before
TEXTS = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|//[^\n]*|/\*.*?\*/|(?<=\()/(?:[^/\\\n]|\\.)+/', re.DOTALL
)  # of JavaScript: strings, comments, patterns
OF_TORCH = {"named_buffers", "named_children", "named_modules", "named_parameters"}


def replaced_words() -> frozenset[str]:
    """The words of the glossary's left column."""
    table = GLOSSARY.read_text().split("| not | but |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    return frozenset(word.strip() for row in rows for word in row.split(","))


@functools.cache
def split_name(name: str) -> list[str]:
    """The words of an identifier: `find_tokensOf` is find, tokens, of."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", HELD_OUT.sub("heldout", name))
    return [part.lower() for part in parts]


def identifiers(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """What a file defines: functions, classes, parameters, variables, attributes and names that imports give."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.alias(asname=str(name)):
                yield name, node.lineno


def identifiers_of_script(text: str) -> Iterator[tuple[str, int]]:
    """The names in JavaScript, but for texts and comments, and `startsWith`."""
    code = TEXTS.sub(lambda found: "\n" * found[0].count("\n"), text)
    for line, each in enumerate(code.splitlines(), 1):
        yield from ((name, line) for name in re.findall(r"[A-Za-z_$][\w$]*", each) if name != "startsWith")


def messages(nodes: Sequence[ast.AST], path: Path) -> Iterator[tuple[str, int]]:
    """The texts that a user reads: strings, but for docstrings, of files of errors and of commands."""
    if path.parts[0] == "tests" or ("errors" not in (path.stem, path.parent.name) and "cli" not in path.parts):
        return
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value, node.lineno


def functions(nodes: Sequence[ast.AST]) -> Iterator[ast.FunctionDef]:
    """The functions and methods of a file, but for properties and those that Python or torch names."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and not any(
            "property" in ast.unparse(each) for each in node.decorator_list
        ):
            yield node


def is_no_verb(name: str) -> bool:
    """Whether a function's name begins with a participle or a preposition."""
    first = (split_name(name) or [""])[0]
    if name.startswith("__") or name in OF_TORCH:
        return False
    participle = first in PARTICIPLES or (first.endswith("ed") and first not in VERBS)
    return participle or first in PREPOSITIONS


def find_words(root: Path, folders: tuple[str, ...] = FOLDERS) -> Iterator[str]:
    """Every place, `file:line: what`, at which a name or a message is not in the words of the glossary."""
    replaced = replaced_words()
    for path in sorted(each for folder in folders for each in (root / folder).rglob("*")):
        place = path.relative_to(root)
        if path.suffix == ".pyc" or "node_modules" in path.parts or not path.is_file():
            continue
        for word in sorted(replaced & {*split_name(path.stem)}):
            yield f"{place}: the file is called {word!r}"
        if path.suffix in (".js", ".ts") and "vendor" not in path.parts:
            for name, line in dict.fromkeys(identifiers_of_script(path.read_text())):
                for word in sorted((replaced - OF_BROWSERS - IN_FILES).intersection(split_name(name))):
                    yield f"{place}:{line}: {name} says {word!r}"
        if path.suffix != ".py" or path.parent.name == "golden":  # written by the compiler, with names of specs
            continue
        nodes = [*ast.walk(ast.parse(path.read_text()))]
        for name, line in dict.fromkeys(identifiers(nodes)):
            for word in sorted(replaced.intersection(split_name(name))):
                yield f"{place}:{line}: {name} says {word!r}"
        for text, line in messages(nodes, place):
            for word in sorted(replaced & {*re.findall(r"[a-z]+", text.lower())}):
                yield f"{place}:{line}: a message says {word!r}"
        if place.parts[0] in CODE:
            yield from (
                f"{place}:{each.lineno}: {each.name}() is no verb" for each in functions(nodes) if is_no_verb(each.name)
            )


if __name__ == "__main__":
    found = [*find_words(Path(), tuple(sys.argv[1:]) or FOLDERS)]
    print(*found, f"{len(found)} found", sep="\n")
