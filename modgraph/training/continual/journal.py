"""What a continual training leaves in its run: edits of the graph, looks at batches, ends of tasks, a line each."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph.files import write_atomically, writing
from modgraph.store.records import json_text


@dataclass(frozen=True)
class Journal:
    """Lines of JSON in a file, with a number in each by which it is cut back to what a checkpoint knows of."""

    path: Path

    def add(self, *records: Mapping[str, Any]) -> None:
        """Write lines. Raises `ModgraphError`."""
        with writing(self.path), self.path.open("a") as file:
            file.writelines(json_text(record) + "\n" for record in records)
            file.flush()
            os.fsync(file.fileno())

    def cut(self, key: str, below: int) -> None:
        """Keep those lines alone that say of `key`, a number, that it is below another."""
        if self.path.exists():
            kept = [record for record in self.records() if record[key] < below]
            write_atomically(self.path, "".join(json_text(record) + "\n" for record in kept).encode())

    def records(self) -> list[dict[str, Any]]:
        """All lines that are whole."""
        lines = self.path.read_text().splitlines(keepends=True) if self.path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]
