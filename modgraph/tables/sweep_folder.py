"""The records of a sweep's folder: its points in sweep.json, the failed ones in failures.jsonl."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.files import explain_error, read_file
from modgraph.store.errors import OtherFormat
from modgraph.store.records import unseal
from modgraph.tables.errors import BadSweepRecord

SWEEP, FAILURES = "sweep.json", "failures.jsonl"
FORMAT = 1
SEEDS = ("train.seed", "data.seed")  # keys that are seeds in any sweep


@dataclass(frozen=True)
class SweepPoint:
    """A point as sweep.json keeps it: `run` is its folder below that of the sweep, `values` are those of the keys that
    vary, seeds included, `seeds` the keys that are seeds, `about` facts for tables. In a search `trial` is its number,
    and a `pruned` one ended early; `limits` are medians by epoch."""

    run: str
    sweep: str = ""
    label: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    identity: str = ""
    seeds: tuple[str, ...] = SEEDS
    trial: int | None = None
    pruned: bool = False
    limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SweepRecord:
    """The content of sweep.json: its points, the run that each repeated point repeats, and its tables by name."""

    folder: Path
    points: tuple[SweepPoint, ...]
    repeats: Mapping[str, str]
    tables: Mapping[str, Mapping[str, Any]]
    command: str = ""

    def folder_of(self, point: SweepPoint) -> Path:
        """Return the folder of a point's run."""
        return self.folder / self.repeats.get(point.run, point.run)


@dataclass(frozen=True)
class Failure:
    """Why a point failed."""

    codes: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        text = (self.message.splitlines() or [""])[0]
        return text if any(code in text for code in self.codes) else " ".join([*self.codes, text]).strip()


def read_sweep(folder: Path) -> SweepRecord | None:
    """Read the sweep of a folder; None if it is the folder of none. Raises `ModgraphError`."""
    path = folder / SWEEP
    try:
        content = json.loads(read_file(path))
        if not isinstance(content, dict) or "format" not in content:
            raise ValueError("it has no format")
        OtherFormat.refuse(path, content["format"], FORMAT, f"run the sweep again into another folder than {folder}")
        content = unseal(content)
        points = tuple(_point_from(record) for record in content["points"])
        repeats, tables = dict(content.get("repeats", {})), dict(content.get("tables", {}))
        return SweepRecord(folder, points, repeats, tables, str(content.get("command", "")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _fault(path, error) from error


def read_failures(folder: Path) -> dict[str, Failure]:
    """Read the failures of a sweep by identity of the point; the newest counts. A last line without an end is still
    being written. Raises `ModgraphError`."""
    path, found = folder / FAILURES, dict[str, Failure]()
    try:
        whole, _, _ = read_file(path).decode(errors="replace").rpartition("\n")
        for line in whole.splitlines():
            record = json.loads(line)
            found[str(record["identity"])] = Failure(tuple(map(str, record["codes"])), str(record["message"]))
    except FileNotFoundError:
        return {}
    except (OSError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _fault(path, error) from error
    return found


def _point_from(record: Mapping[str, Any]) -> SweepPoint:
    return SweepPoint(
        run=str(record["run"]),
        sweep=str(record.get("sweep", "")),
        label=str(record.get("label", "")),
        values=dict(record.get("values", {})),
        about=dict(record.get("about", {})),
        identity=str(record["identity"]),
        seeds=tuple(dict.fromkeys((*SEEDS, *map(str, record.get("seeds", ()))))),
        trial=record.get("trial"),
        pruned=bool(record.get("pruned", False)),
        limits=dict(record.get("limits", {})),
    )


def _fault(path: Path, error: Exception) -> ModgraphError:
    reason = f"it has no {error.args[0]}" if isinstance(error, LookupError) and error.args else explain_error(error)
    return ModgraphError([BadSweepRecord(path=str(path), folder=str(path.parent), reason=reason)])
