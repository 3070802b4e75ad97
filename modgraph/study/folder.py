"""The folder of a sweep: its record, the trainings that failed, and its runs. Needs no torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from modgraph.diagnostics import ModgraphError, list_names
from modgraph.files import exists, is_partial, read_file, write_atomically, writing
from modgraph.store.journal import Journal
from modgraph.store.records import finite, seal
from modgraph.store.run_directory import FINISHED, STARTING, RunDirectory
from modgraph.study import errors
from modgraph.study.plan import identify_run
from modgraph.study.point import Point
from modgraph.study.specs import Specs
from modgraph.tables.sweep_folder import FAILURES, FORMAT, SWEEP, Failure, SweepPoint, SweepRecord, read_sweep

LOCK = ".lock"
WAIT = 10.0  # seconds in which the workers of a sweep that was killed end
OF_SEARCHES: dict[str, Any] = {"trial": None, "limits": {}, "pruned": False}  # facts that other points lack


@dataclass(frozen=True)
class SweepFolder:
    """A folder that holds a sweep, or will."""

    path: Path

    def refuse_foreign(self) -> None:
        """Raises `ModgraphError` unless the folder is missing, is that of a sweep, or has runs and nothing else."""
        reason = ""
        with writing(self.path):
            if not exists(self.path) or exists(self.path / SWEEP):
                return
            if not self.path.is_dir():
                reason = "it is a file"
            elif RunDirectory(self.path).record.exists():
                reason = "it is a run"
            else:
                foreign = sorted(each.name for each in self.path.iterdir() if not _is_ours(each))
                reason = f"it contains files that no sweep wrote: {list_names(foreign)}" if foreign else ""
        if reason:
            raise ModgraphError([errors.NotASweepFolder(path=str(self.path), reason=reason)])

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder against other sweeps, once the workers of one that was killed have ended. Raises
        `ModgraphError`."""
        lock = FileLock(self.path / LOCK, timeout=0)
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
                for path in sorted(self.path.glob(f"{LOCK}-*")):
                    with FileLock(path, timeout=WAIT):
                        pass
            except Timeout as error:
                lock.release()
                raise ModgraphError([errors.SweepBusy(path=str(self.path))]) from error
        try:
            self._cut_failures()
            yield
        finally:
            lock.release()

    def worker_lock(self, slot: int) -> Path:
        """Return the lock that the worker of a slot has while it lives."""
        return self.path / f"{LOCK}-{slot}"

    # ------------------------------------------------------------ its record

    def read(self) -> SweepRecord:
        """Read the record, an empty one where there is none. Raises `ModgraphError`."""
        return read_sweep(self.path) or SweepRecord(self.path, (), {}, {})

    def write(self, record: SweepRecord) -> None:
        """Write the record atomically. Raises `ModgraphError`."""
        from modgraph.version import VERSION

        points = [
            {
                name: value
                for name, value in asdict(each).items()
                if name not in OF_SEARCHES or value != OF_SEARCHES[name]
            }
            for each in record.points
        ]
        facts = {"format": FORMAT, "modgraph": VERSION, "command": record.command, "points": points}
        content = {**facts, "repeats": dict(record.repeats), "tables": dict(record.tables)}
        write_atomically(self.path / SWEEP, seal(finite(content)))

    # ------------------------------------------------------------ failures

    def add_failure(self, point: Point, failure: Failure) -> None:
        """Keep the failure of a point. Raises `ModgraphError`."""
        Journal(self.path / FAILURES).add({"run": point.run, "identity": point.identity, **asdict(failure)})

    def _cut_failures(self) -> None:
        """Remove a last line that a kill left without its end."""
        path = self.path / FAILURES
        content = read_file(path) if exists(path) else b""
        if content and not content.endswith(b"\n"):
            write_atomically(path, content[: content.rfind(b"\n") + 1])

    # ------------------------------------------------------------ its runs

    def find_runs(self, specs: Specs | None = None) -> dict[str, str]:
        """Find the runs below the folder that began: their names by the identity of their points. `specs`
        remembers what it elaborates."""
        specs, found = specs or Specs(), dict[str, str]()
        known = {each.run: each.identity for each in self.read().points}
        for record in sorted(self.path.rglob(RunDirectory(self.path).record.name)):
            run = RunDirectory(record.parent)
            if read_status(run) in (None, STARTING):
                continue
            name = run.path.relative_to(self.path).as_posix()
            try:
                identity = identify_run(run.path, specs, known.get(name, ""))
            except ModgraphError:  # a damaged run: training its point anew is refused by its folder's name
                continue
            found.setdefault(identity, name)
        return found

    def refuse_others(self, points: Iterable[Point], found: Mapping[str, str]) -> None:
        """Raises `ModgraphError` where the folder of a point holds another training. `found` are the runs that began,
        by identity."""
        known = {run: identity for identity, run in found.items()}
        other = [each.run for each in points if known.get(each.run, each.identity) != each.identity]
        if other:
            more = f", with {len(other) - 1} more," if other[1:] else ""
            raise ModgraphError([errors.OtherTraining(path=str(self.path / other[0]), more=more)])

    def read_metrics(self, run: str) -> dict[str, Any] | None:
        """Read the metrics that a run ended with; None where it has not finished."""
        directory = RunDirectory(self.path / run)
        if read_status(directory) != FINISHED:
            return None
        metrics: dict[str, Any] = directory.read_record()["metrics"]
        return metrics


def _is_ours(path: Path) -> bool:
    """Whether a path is a run, a folder of runs alone, a lock, or left by a writer that was killed."""
    if path.name.startswith(LOCK) or is_partial(path.name):
        return True
    return path.is_dir() and (RunDirectory(path).record.exists() or all(map(_is_ours, path.iterdir())))


def read_status(run: RunDirectory) -> str | None:
    """Return the status of a run, None where its record is missing or damaged."""
    try:
        return str(run.read_record()["status"]) if run.record.exists() else None
    except ModgraphError:
        return None


def record_point(point: Point, trial: int | None = None, limits: Mapping[str, float] | None = None) -> SweepPoint:
    """Return a point as sweep.json keeps it; that of a search with its trial and its limits."""
    facts = {name: getattr(point, name) for name in ("run", "sweep", "label", "values", "about", "identity", "seeds")}
    return SweepPoint(**facts, trial=trial, limits=limits or {})


def extend_record(
    record: SweepRecord,
    points: Iterable[SweepPoint],
    repeats: Mapping[str, str] | None = None,
    tables: Mapping[str, Any] | None = None,
) -> SweepRecord:
    """Return a record with the points of another sweep too; where both have a point, it has the values of both."""
    found = {(each.run, each.trial): each for each in record.points}
    for each in points:
        known = found.get((each.run, each.trial))
        if known is not None and known.identity == each.identity:
            values, about = {**known.values, **each.values}, {**known.about, **each.about}
            each = replace(each, values=values, about=about, limits=known.limits, pruned=known.pruned)
        found[each.run, each.trial] = each
    both = {**record.repeats, **(repeats or {})}, {**record.tables, **(tables or {})}
    return replace(record, points=tuple(found.values()), repeats=both[0], tables=both[1])
