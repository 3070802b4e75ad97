"""What two graphs differ in, as frozen values.

A place is the name of a node; of one in a region the place of the node that has it, the region's number and the name:
`expert/0/fc1`. Names that messages show are those after the change, wherever a thing is known by two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Entry = Mapping[str, Any]  # a node as JSON, its edges and regions included


@dataclass(frozen=True)
class Attribute:
    """One fact of a node before and after, as JSON values; None where there is none."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Alone:
    """A node that one of the graphs has and the other has not."""

    place: str
    entry: Entry

    @property
    def kind(self) -> str:
        return str(self.entry["kind"])


class Added(Alone):
    """A node that is there after alone."""


class Removed(Alone):
    """A node that was there before alone."""


@dataclass(frozen=True)
class Moved:
    """A thing under another name: a node, an axis (`axis`), or weights whose name is not that of a node (`weights`)."""

    kind: str
    before: str
    after: str


@dataclass(frozen=True)
class Changed:
    """A node that is there before and after, and what is not the same of it."""

    kind: str
    before: str
    after: str
    attributes: tuple[Attribute, ...]

    @property
    def follows(self) -> bool:
        """Whether its types alone are others: they follow from what flows in."""
        made = self.kind in ("op", "route", "scan") or (self.kind == "input" and "/" in self.after)
        return made and all(each.name.startswith("types.") for each in self.attributes)


@dataclass(frozen=True)
class Doubt:
    """A node that was removed and one that was added, which may be the same under another name."""

    kind: str
    before: str
    after: str

    @property
    def declaration(self) -> str:
        """What settles it, in the spec that comes after."""
        return f"moved {self.before} -> {self.after}"


@dataclass(frozen=True)
class Diff:
    """All that leads from one graph to another; `model` is what is no part of a graph's identity: the model's name, its
    parameters, the order of its inputs."""

    added: tuple[Added, ...] = ()
    removed: tuple[Removed, ...] = ()
    moved: tuple[Moved, ...] = ()
    changed: tuple[Changed, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    model: tuple[Attribute, ...] = ()

    def __repr__(self) -> str:
        kinds = ("added", "removed", "changed", "moved", "doubts")
        counts = {kind: len(getattr(self, kind)) for kind in kinds}
        return f"<Diff: {', '.join(f'{count} {kind}' for kind, count in counts.items() if count) or 'nothing'}>"

    def __bool__(self) -> bool:
        """Whether the graphs are different."""
        return bool(self.added or self.removed or self.moved or self.changed)
