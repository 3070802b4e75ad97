"""Messages in the words of the text that they speak of: axes by the names that its author gave them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from modgraph.diagnostics import Diagnostic
from modgraph.elaboration.entities import WithAxis
from modgraph.elaboration.scope import Scope
from modgraph.types import Axis


def in_own_words(diagnostic: Diagnostic, scope: Scope, named: Mapping[str, Axis]) -> Diagnostic:
    """A message with axes called as the scope calls them or their pools, and those `named` by their words.

    Only paths are replaced: a name without a dot is one that a user wrote.
    """
    words = {path: word for path, word in _words(scope, named).items() if "." in path}
    if not words:
        return diagnostic
    paths = "|".join(re.escape(path) for path in sorted(words, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w.])({paths})(?![\w.])")

    def plain(text: str) -> str:
        return pattern.sub(lambda found: words[found[0]], text)

    texts: dict[str, Any] = {name: plain(text) for name, text in vars(diagnostic).items() if isinstance(text, str)}
    notes = tuple(replace(note, text=plain(note.text)) for note in diagnostic.notes)
    return diagnostic.changed(**texts, notes=notes)


def _words(scope: Scope, named: Mapping[str, Axis]) -> dict[str, str]:
    """What the names of axes are called, by these names; what is further in hides what is further out."""
    words = {axis.name: word for word, axis in named.items()}
    for name, value in ((name, value) for each in scope.chain() for name, value in each.names.items()):
        if isinstance(value, WithAxis):
            words.setdefault(value.axis.name, name)
    return words
