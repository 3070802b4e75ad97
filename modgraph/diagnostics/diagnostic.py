"""What a message is: words on the class, facts in its fields.

A mistake of the user's is a value: it is collected in a `Report`, and shown with all others. One class is one
code; its docstring is the page that `modgraph explain` prints, and its `example` is a spec that provokes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from string import Formatter
from typing import Any, ClassVar, Self

from modgraph.diagnostics.source import Span


@dataclass(frozen=True, kw_only=True)
class Note:
    """A second place that a message speaks of."""

    text: str
    span: Span | None = None


class Diagnostic:
    """Base of all messages; a subclass names its `code`, its `message` and its `help` as format strings.

    The words in braces are its facts. Who makes a message gives those for which the class has no value or property.
    """

    catalogue: ClassVar[dict[str, type[Diagnostic]]] = {}

    code: ClassVar[str]
    severity: ClassVar[str] = "error"
    message: ClassVar[str]
    help: ClassVar[str] = ""
    example: ClassVar[str] = ""
    ours: ClassVar[bool] = False  # whether the fault is modgraph's

    def __init__(self, *, span: Span | None = None, notes: tuple[Note, ...] = (), **facts: Any) -> None:
        wrong = {name for name in self.facts() if not hasattr(type(self), name)} - {*facts} or {*facts} - self.facts()
        if wrong:
            raise TypeError(f"{type(self).__name__} is given {[*facts]}, and these lack or are too many: {[*wrong]}")
        self.span, self.notes = span, notes
        vars(self).update(facts)

    @classmethod
    def facts(cls) -> set[str]:
        """The names in its format strings."""
        return {name for text in (cls.message, cls.help) for _, name, _, _ in Formatter().parse(text) if name}

    def changed(self, **facts: Any) -> Self:
        """The same message with other facts, or at another place."""
        return type(self)(**{**vars(self), **facts})

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "code" in vars(cls):
            assert cls.code not in Diagnostic.catalogue, f"{cls.code} is declared twice"
            assert cls.__doc__, f"{cls.code} needs a docstring: it is what `explain` prints"
            Diagnostic.catalogue[cls.code] = cls

    def __repr__(self) -> str:
        return f"<{self.code}: {self.text()}>"

    def text(self) -> str:
        return self.message.format_map(_Facts(self))

    def advice(self) -> str:
        return self.help.format_map(_Facts(self))

    def as_json(self) -> dict[str, Any]:
        """The message for tools: code, severity, texts, and place (line and column from 1)."""
        record: dict[str, Any] = {"code": self.code, "severity": self.severity, "message": self.text()}
        record["help"] = self.advice()
        if self.span is not None:
            line, column = self.span.source.position(self.span.start)
            end_line, end_column = self.span.source.position(self.span.end)
            record |= {"file": self.span.source.name, "line": line, "column": column}
            record |= {"end_line": end_line, "end_column": end_column}
        record["notes"] = [note.text for note in self.notes]
        return record


class _Facts(dict[str, Any]):
    """Format arguments read from a diagnostic's fields and properties."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__()
        self._diagnostic = diagnostic

    def __missing__(self, name: str) -> Any:
        return getattr(self._diagnostic, name)


class Caution(Diagnostic):
    """Base of messages that do not stop the work."""

    severity = "warning"


class Report:
    """Collects the messages of one run; the same mistake at the same place is told once."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._seen: set[tuple[str, int, str]] = set()

    def in_order(self) -> list[Diagnostic]:
        """The messages in the order of the text."""
        return sorted(self.diagnostics, key=lambda each: each.span.start if each.span else -1)

    def add(self, diagnostic: Diagnostic) -> None:
        offset = diagnostic.span.start if diagnostic.span else -1
        key = (diagnostic.code, offset, diagnostic.text())
        if key not in self._seen:
            self._seen.add(key)
            self.diagnostics.append(diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            self.add(diagnostic)

    @property
    def errors(self) -> list[Diagnostic]:
        return [diagnostic for diagnostic in self.diagnostics if diagnostic.severity == "error"]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [diagnostic for diagnostic in self.diagnostics if diagnostic.severity == "warning"]
