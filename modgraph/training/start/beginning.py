"""What a run begins with instead of random weights."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from modgraph.store.records import json_text


@dataclass(frozen=True)
class Beginning:
    """Where a run's first weights come from; as a text it is what a user is told."""

    source: str

    def record(self) -> bytes:
        """What a run keeps of it."""
        return (json_text(asdict(self), indent=1) + "\n").encode()
