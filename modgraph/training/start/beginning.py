"""What a run begins with instead of random weights."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import PurePath

from modgraph.store.records import json_text


@dataclass(frozen=True)
class Beginning:
    """Where a run's first weights come from; as a text it is what a user is told."""

    source: str

    def record(self) -> bytes:
        """The record in a run: with the name of the source alone, since a run may move to another machine."""
        facts = {**asdict(self), "source": PurePath(self.source).name}
        return (json_text(facts, indent=1) + "\n").encode()
