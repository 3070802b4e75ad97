"""Collects the mistakes of many points, each once, with the points that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from modgraph.diagnostics import Diagnostic, Note, list_names


@dataclass
class Findings:
    """Diagnostics by code, text and place; `at` has the points of each, `every` all points of each sweep."""

    found: dict[tuple[str, str, str], Diagnostic] = field(default_factory=dict)
    at: dict[tuple[str, str, str], dict[str, dict[str, None]]] = field(default_factory=dict)
    every: dict[str, dict[str, None]] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)  # sweeps whose points are not planned

    def add(self, diagnostics: Iterable[Diagnostic], sweep: str = "", point: str = "") -> None:
        """Add diagnostics of a point; without one, of a whole sweep."""
        for each in diagnostics:
            key = each.code, each.text(), str(each.span)
            self.found.setdefault(key, each)
            self.at.setdefault(key, {}).setdefault(sweep, {})[point] = None

    def has_mistake(self, sweep: str | None) -> bool:
        """Whether a sweep has a mistake, or one from which it starts."""
        mistakes = (sweeps for key, sweeps in self.at.items() if self.found[key].severity == "error")
        return sweep in self.skipped or any(sweep in sweeps for sweeps in mistakes)

    def list_diagnostics(self, severity: str) -> list[Diagnostic]:
        """List the diagnostics of a severity; a note names the points, unless all points of all sweeps have it."""
        kept = [(key, each) for key, each in self.found.items() if each.severity == severity]
        return [each.replace(notes=(*each.notes, *self._name_points(key))) for key, each in kept]

    def _name_points(self, key: tuple[str, str, str]) -> list[Note]:
        if "point" in vars(self.found[key]):  # the message names it
            return []
        names = []
        is_partial = len(self.every) > len(self.at[key])
        for sweep, points in self.at[key].items():
            if points.keys() >= self.every.get(sweep, {}).keys() or "" in points:
                names += [f'every point of "{sweep}"'] if sweep else []
            else:
                is_partial = True
                names += [f"{sweep}/{point}" if sweep else point for point in points]
        return [Note(text=f"this is so at {list_names(names)}")] if names and is_partial else []
