"""Logs of a training, a line of JSON for each thing that is told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph.files import write_atomically, writing
from modgraph.store.records import json_text


@dataclass(frozen=True)
class Journal:
    """A log that is cut back, when a training is taken up, to what its checkpoint knows of."""

    path: Path

    def add(self, *records: Mapping[str, Any]) -> None:
        """Write lines. Raises `ModgraphError`."""
        with writing(self.path), self.path.open("a") as file:
            file.writelines(json_text(record) + "\n" for record in records)
            file.flush()
            os.fsync(file.fileno())

    def cut(self, key: str, below: int) -> None:
        """Keep those lines alone that say of `key`, a number, that it is below another; one that was cut off in the
        middle is dropped."""
        if self.path.exists():
            write_atomically(self.path, "".join(self._kept(key, below)).encode())

    def _kept(self, key: str, below: int) -> Iterator[str]:
        for line in self.path.read_text().splitlines(keepends=True):
            try:
                if line.endswith("\n") and json.loads(line)[key] < below:
                    yield line
            except (ValueError, KeyError, TypeError):
                continue
