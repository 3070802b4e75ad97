"""Reads sweep files: one sweep at the top level, or several under `sweeps`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph.study.sweep import Sweep


@dataclass(frozen=True)
class SweepFile:
    """The sweeps of a file, the folder that it names for them, and its tables by name."""

    sweeps: tuple[Sweep, ...]
    out: Path | None
    tables: Mapping[str, Any]


def read_sweep_file(path: str | Path) -> SweepFile:
    """Read a sweep file. Raises `ModgraphError` with every mistake."""
    raise NotImplementedError


def read_settings(texts: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read texts NAME=VALUE of a command: the fixed values by key, and what is tried of the others (`Sweep.grid`).
    Raises `ModgraphError`."""
    raise NotImplementedError
