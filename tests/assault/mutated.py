"""Specs that were sound before they were changed: bytes, words, lines, parts of the tree, halves of two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from random import Random

from modgraph.diagnostics import Report, Source
from modgraph.syntax import ast, parse
from modgraph.syntax.tokens import tokens
from tests.assault.vocabulary import CHARACTERS, LARGE, SMALL, SPECS, WORDS, number


def mutated(rng: Random) -> str:
    """A spec with one to four changes."""
    text = rng.choice(LARGE if rng.random() < 0.3 else SMALL)
    kind = rng.random()
    if kind < 0.35:
        text = _tree(text, rng)
    elif kind < 0.5:
        text = _splice(text, rng)
    for _ in range(rng.randint(kind > 0.35, 3)):
        text = rng.choice(CHANGES)(text, rng)
    return text


def _byte(text: str, rng: Random) -> str:
    at = rng.randint(0, len(text))
    new = rng.choice(CHARACTERS) if rng.random() < 0.5 else chr(rng.randrange(32, 300))
    return text[:at] + new + text[at + rng.randint(0, 2) :]


def _word(text: str, rng: Random) -> str:
    """A word dropped, doubled, put elsewhere, or replaced by another, a number by a number."""
    words = [(token.span.start, token.span.end) for token in tokens(Source("", text), Report())]
    if not words:
        return text
    start, end = rng.choice(words)
    word = text[start:end]
    kind = rng.randrange(5)
    if kind == 0:
        return text[:start] + text[end:]
    if kind == 1:
        return f"{text[:end]} {word}{text[end:]}"
    if word.isdigit() and kind < 4:
        return text[:start] + number(rng) + text[end:]
    if kind == 2:
        first, last = rng.choice(words)
        return text[:start] + text[first:last] + text[end:]
    return text[:start] + rng.choice(WORDS) + text[end:]


def _line(text: str, rng: Random) -> str:
    lines = text.split("\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(3)
    if kind == 0:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 1:
        lines.insert(other, lines[at])
    else:
        del lines[at]
    return "\n".join(lines)


CHANGES = (_byte, _word, _word, _word, _line)


def _tree(text: str, rng: Random) -> str:
    """A part of the tree dropped, doubled, or replaced by one like it of this or another spec."""
    family = rng.choice((ast.Expression, ast.Statement, ast.Stage, ast.Argument, ast.TypeOf, ast.Body))
    start, end = rng.choice(_parts(text, family) or _parts(text, ast.Statement))
    kind = rng.randrange(6)
    if kind == 0:
        return text[:start] + text[end:]
    if kind == 1:
        return f"{text[:end]} {text[start:end]}{text[end:]}"
    other = text if kind == 2 else rng.choice(SPECS)
    first, last = rng.choice(_parts(other, family) or _parts(other, ast.Statement))
    return text[:start] + other[first:last] + text[end:]


@cache
def _parts(text: str, family: type[ast.Tree]) -> list[tuple[int, int]]:
    """Where the parts of one family stand in a sound spec."""
    file = parse(Source("", text), Report())
    assert file is not None
    return [(each.span.start, each.span.end) for each in _within(file) if isinstance(each, family)]


def _within(tree: ast.Tree) -> Iterator[ast.Tree]:
    yield tree
    for field in fields(tree):
        value = getattr(tree, field.name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, ast.Tree):
                yield from _within(child)


def _splice(text: str, rng: Random) -> str:
    """The beginning of one spec and the end of another, cut at statements."""
    other = rng.choice(SPECS)
    end, start = rng.choice(_parts(text, ast.Statement))[0], rng.choice(_parts(other, ast.Statement))[0]
    return text[:end] + other[start:]
