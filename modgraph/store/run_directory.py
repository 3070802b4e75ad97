"""The files of a run. Needs no torch.

    spec.mod  imports.json  ir.json  recipe.yaml  data.json  start.json  run.json
    of its training: metrics.jsonl  steps.jsonl  seconds.jsonl  tensorboard/  checkpoints/
    of its tests: confusion.json
    of its trace: trace.json  trace/
    of a continual training: growth.jsonl  detections.jsonl  tasks.jsonl

A data set may add files of its own, such as a vocabulary.

A run is created in three atomic steps. run.json gets the status `starting` and names every file to come, with its hash.
The files are written. run.json gets the status `started`. So a start that was killed leaves only files that are known
to be ours, and a folder with any other file in it is never touched. The same holds for a run that ended before it kept
a step: it has no checkpoint, no log, and nothing but these files, so the next training begins in its folder.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph.diagnostics import ModgraphError, list_names
from modgraph.elaboration import parse_kept_texts
from modgraph.elaboration.imports import KEPT, RECORD, SPEC
from modgraph.files import (
    CannotWrite,
    exists,
    explain_error,
    is_not_utf8,
    is_partial,
    read_file,
    write_atomically,
    writing,
)
from modgraph.ir import Graph, UnreadableGraph, from_json, to_verified_json
from modgraph.store import errors
from modgraph.store.checkpoint_record import CheckpointRecord, path_of, read_newest_record
from modgraph.store.records import seal, unseal

RECIPE = "recipe.yaml"
FORMAT = 2
STARTING, STARTED, FINISHED = "starting", "started", "finished"
CHANGED = "changed"  # the key of run.json that lists keys of the recipe whose values are no defaults
UNREADABLE, REPAIRED = "unreadable", "repaired"  # keys of run.json: test splits with damaged files; their data since


class _Inside:
    """The path of a file or folder in a run's folder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, run: RunDirectory, kind: type[RunDirectory]) -> Path:
        return run.path / self.name


@dataclass(frozen=True)
class RunDirectory:
    """A folder that holds a run, or will."""

    path: Path

    spec = _Inside(SPEC)
    imports = _Inside(KEPT)  # texts of imported files, by their paths from the spec's folder
    ir = _Inside("ir.json")
    recipe = _Inside(RECIPE)
    data = _Inside("data.json")
    start = _Inside("start.json")
    record = _Inside(RECORD)
    metrics = _Inside("metrics.jsonl")
    steps = _Inside("steps.jsonl")  # samples of single steps
    confusion = _Inside("confusion.json")  # matrices of its test splits
    seconds = _Inside("seconds.jsonl")  # how long its steps took
    tensorboard = _Inside("tensorboard")
    growth = _Inside("growth.jsonl")  # edits of its graph
    detections = _Inside("detections.jsonl")  # novelty of the batches of a continual training
    tasks = _Inside("tasks.jsonl")  # metrics at the end of each task
    checkpoints = _Inside("checkpoints")
    trace = _Inside("trace.json")
    pictures = _Inside("trace")  # the pictures of its trace

    @property
    def logs(self) -> tuple[Path, ...]:
        """The files to which training appends lines that a checkpoint seals."""
        return self.metrics, self.steps, self.growth, self.detections, self.tasks

    # ------------------------------------------------------------ making a run

    def refuse_existing(self) -> None:
        """Raises `ModgraphError` unless the folder is missing, empty, or left by a start that was killed or by a run
        that kept no step, and its name is UTF-8, which TensorBoard needs."""
        path = str(self.path)
        if is_not_utf8(self.path):
            reason = "choose another folder with --out: its name must be UTF-8"
            raise ModgraphError([CannotWrite(path=path, reason=reason)])
        with writing(self.path):
            if self.path.exists() and not self.path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "it is a file, and a run is a folder")
            above = (each for each in (self.path, *self.path.absolute().parents) if each.exists())
            if not os.access(next(above, self.path), os.W_OK | os.X_OK):  # reported before any work
                raise PermissionError(errno.EACCES, "it is write-protected")
            names = _names(self.path) if self.path.exists() else []
        if not names:
            return
        try:
            record = self.read_record()
        except ModgraphError as error:
            lost = self.spec.exists() and self.recipe.exists()
            fault = errors.RecordLost(path=path) if lost else errors.ForeignFiles(path=path, names=list_names(names))
            raise ModgraphError([fault]) from error
        foreign = [name for name in names if not self._is_of_start(name, record)]
        if record["status"] != STARTING and (foreign or self.has_kept_steps()):
            raise ModgraphError([errors.RunExists(path=path)])
        if foreign:
            raise ModgraphError([errors.ForeignFiles(path=path, names=list_names(foreign))])

    def has_kept_steps(self) -> bool:
        """Whether the run has a checkpoint, even a damaged one, a log, or seconds of steps."""
        kept = self.checkpoints.exists() and _names(self.checkpoints)
        return bool(kept) or any(path.exists() for path in (*self.logs, self.seconds))

    def _is_of_start(self, name: str, record: Mapping[str, Any]) -> bool:
        """Whether a start that was killed wrote this file."""
        if name == self.checkpoints.name:
            return set(_names(self.checkpoints)) <= {path.name for path in self._first_checkpoint(record)}
        return name == self.record.name or (name in record["files"] and self._is_as_written(name, record))

    @contextmanager
    def lock_folder(self) -> Iterator[None]:
        """Lock the folder against other trainings until this process unlocks it or ends. Raises `ModgraphError`."""
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / ".lock", timeout=0)
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except Timeout as error:
                raise ModgraphError([errors.RunBusy(path=str(self.path))]) from error
        try:
            yield
        finally:
            lock.release()

    def create(
        self,
        spec: str,
        imported: Mapping[str, str],
        graph: Graph,
        recipe: str,
        kept: Mapping[str, bytes],
        step: int = 0,
    ) -> None:
        """Write the files of a new run in a locked folder; it counts once `mark` sets its status. A run that does not
        begin with random weights has a checkpoint of its first `step` from the start. Raises `ModgraphError` if the
        folder holds anything else."""
        self.refuse_existing()
        files = {
            self.spec.name: spec.encode(),
            self.ir.name: json.dumps(to_verified_json(graph), indent=1).encode(),
            self.recipe.name: recipe.encode(),
            **({self.imports.name: json.dumps(dict(imported), indent=1).encode()} if imported else {}),
            **kept,
        }
        if self.record.exists():  # it stays until the next one replaces it
            before = self.read_record()
            with writing(self.path):
                for path in [*(self.path / name for name in before["files"]), *self._first_checkpoint(before)]:
                    path.unlink(missing_ok=True)
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        self._write_record({"status": STARTING, "files": digests, "step": step})
        for name, content in files.items():
            write_atomically(self.path / name, content)

    def _first_checkpoint(self, record: Mapping[str, Any]) -> list[Path]:
        """Return the paths of the checkpoint that a start writes."""
        tensors = path_of(self.checkpoints, record.get("step", 0))
        return [tensors, tensors.with_suffix(".json")]

    def mark(self, status: str, **facts: Any) -> None:
        """Set the status of the run and add facts to its record. Raises `ModgraphError`."""
        self._write_record({**self.read_record(), "status": status, **facts})

    def _write_record(self, facts: Mapping[str, Any]) -> None:
        from modgraph.version import VERSION

        write_atomically(self.record, seal({**facts, "format": FORMAT, "modgraph": VERSION}))

    # ------------------------------------------------------------ reading a run

    def read_record(self) -> dict[str, Any]:
        """Read the run's record with its status. Raises `ModgraphError` if this is no run."""
        record = self.parse_file(self.record)
        if not isinstance(record, dict) or "format" not in record:
            raise self.fault("run.json has no format")
        errors.OtherFormat.refuse(self.record, record["format"], FORMAT)
        try:
            return unseal(record)
        except (ValueError, RecursionError) as error:
            raise self.fault("run.json is damaged") from error

    def check(self) -> None:
        """Raises `ModgraphError` unless this is a whole run whose files are unchanged."""
        record = self.read_record()
        if record["status"] == STARTING:
            raise ModgraphError([errors.NeverBegan(path=str(self.path))])
        changed = [name for name in record["files"] if not self._is_as_written(name, record)]
        if changed:
            raise ModgraphError([errors.RunChanged(path=str(self.path), names=list_names(changed))])

    def _is_as_written(self, name: str, record: Mapping[str, Any]) -> bool:
        content = self.content(self.path / name)
        return content is not None and hashlib.sha256(content).hexdigest() == record["files"][name]

    def read_graph(self) -> Graph:
        """Read the graph that the run began with. Raises `ModgraphError` if this is no run."""
        self.check()
        try:
            return from_json(self.parse_file(self.ir))
        except UnreadableGraph as error:
            raise self.fault(f"ir.json cannot be used: {error}") from error

    def origin(self) -> str:
        """Return the hash of that graph, which all checkpoints of the run name. Raises `ModgraphError`."""
        return self.read_graph().hash()

    def graph_now(self) -> Graph:
        """Read the graph of the best checkpoint, else of the newest, else the first. Raises `ModgraphError`."""
        return self.now()[0]

    def now(self) -> tuple[Graph, CheckpointRecord | None]:
        """Read its current graph and the record of that graph's checkpoint, None before the first. Raises
        `ModgraphError`."""
        began = self.read_graph()
        record = read_newest_record(self.checkpoints, began.hash())
        return began if record is None else record.graph, record

    def read_data_record(self) -> Any:
        """Read the number of examples and the digest of each split that the run began with, or of those repaired since.
        Raises `ModgraphError`."""
        record = self.parse_file(self.data)
        repaired = self.read_record().get(REPAIRED) if self.record.exists() else None
        return {**record, "splits": {**record["splits"], **repaired}} if repaired else record

    def read_texts(self, model: str) -> dict[str, str]:
        """Read the spec of a model, under its name, and the files that it imports. Raises `ModgraphError`."""
        return {f"{model}.mod": self.parse_file(self.spec, str), **self.read_imports()}

    def read_imports(self) -> dict[str, str]:
        """Read the texts of the files that the spec imports, by path. Raises `ModgraphError`."""
        texts: dict[str, str] = self.parse_file(self.imports, parse_kept_texts) if self.imports.exists() else {}
        return texts

    def content(self, path: Path) -> bytes | None:
        """Read one of its files, None where there is none. Raises `ModgraphError`."""
        try:
            return read_file(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.fault(f"{path.name} cannot be read: {explain_error(error)}") from error

    def parse_file(self, path: Path, parse: Callable[[str], Any] = json.loads) -> Any:
        """Parse one of its files, which must exist. Raises `ModgraphError`."""
        content = self.content(path) if path.exists() else None
        if content is None:
            there = "it is a file" if self.path.is_file() else "no such folder"
            raise self.fault(f"it has no {path.name}" if self.path.is_dir() else there)
        try:
            return parse(content.decode())
        except (ValueError, RecursionError) as error:
            raise self.fault(f"{path.name} is damaged") from error

    def fault(self, reason: str) -> ModgraphError:
        return ModgraphError([errors.NotARun(path=str(self.path), reason=reason)])


def locate_recipe(spec: str | Path) -> Path:
    """Return the path of a spec's recipe: the YAML file of its name; for the spec of a run, the run's recipe."""
    path = Path(spec)
    is_of_run = path.name == SPEC and exists(path.with_name(RECORD))
    return path.with_name(RECIPE) if is_of_run else path.parent / f"{path.stem}.yaml"


def _names(folder: Path) -> list[str]:
    """Return the names in a folder, but for locks and partial files of killed writers."""
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock" and not is_partial(path.name))
