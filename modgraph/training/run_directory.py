"""The files of a run. Needs no torch.

spec.mod  ir.json  recipe.yaml  data.json  start.json  run.json  metrics.jsonl  tensorboard/  checkpoints/
and what its data set keeps
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from modgraph.diagnostics import ModgraphError, Report
from modgraph.files import write_atomically, writing
from modgraph.ir import Graph, UnreadableGraph, from_json, to_json
from modgraph.syntax import read
from modgraph.training.errors import NotARun, RunBusy, RunExists

FORMAT = 1


@dataclass(frozen=True)
class RunDirectory:
    """A folder that holds a run, or will."""

    path: Path

    @property
    def spec(self) -> Path:
        return self.path / "spec.mod"

    @property
    def ir(self) -> Path:
        return self.path / "ir.json"

    @property
    def recipe(self) -> Path:
        return self.path / "recipe.yaml"

    @property
    def data(self) -> Path:
        return self.path / "data.json"

    @property
    def start(self) -> Path:
        return self.path / "start.json"

    @property
    def record(self) -> Path:
        return self.path / "run.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def refuse_existing(self) -> None:
        """Raises `ModgraphError` if the folder holds a run."""
        if self.record.exists():
            raise ModgraphError([RunExists(path=str(self.path))])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from training here, until the end or the process's death. Raises `ModgraphError`."""
        lock = FileLock(self.path / ".lock", timeout=0)
        with writing(self.path):
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except Timeout as error:
                raise ModgraphError([RunBusy(path=str(self.path))]) from error
        try:
            yield
        finally:
            lock.release()

    def lay_out(self, spec: str, graph: Graph, recipe: str, kept: Mapping[str, bytes]) -> None:
        """Write what a new run is made from, in a folder that is locked; `write_record` then makes it count.

        Raises `ModgraphError` if the folder holds a run.
        """
        self.refuse_existing()
        for left in self.checkpoints.iterdir():  # by a start that was cut off
            left.unlink()
        write_atomically(self.spec, spec.encode())
        write_atomically(self.ir, json.dumps(to_json(graph), indent=1).encode())
        write_atomically(self.recipe, recipe.encode())
        self.start.unlink(missing_ok=True)
        for name, content in kept.items():
            write_atomically(self.path / name, content)

    def write_start(self, report: dict[str, Any]) -> None:
        """Which weights came from elsewhere."""
        write_atomically(self.start, (json.dumps(report, indent=1) + "\n").encode())

    def write_record(self, facts: dict[str, Any]) -> None:
        """What the run is and how far it came; written last when a run is made: it marks a whole one."""
        from modgraph.version import VERSION

        record = {"format": FORMAT, "modgraph": VERSION, **facts}
        write_atomically(self.record, (json.dumps(record, indent=2) + "\n").encode())

    def read_record(self) -> dict[str, Any]:
        """Raises `ModgraphError` if this is no run."""
        record = self._json(self.record)
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise self.fault("run.json is not of a format that this version reads")
        return record

    def read_graph(self) -> Graph:
        """The graph that was trained. Raises `ModgraphError` if this is no run."""
        self.read_record()
        try:
            return from_json(self._json(self.ir))
        except UnreadableGraph as error:
            raise self.fault(f"ir.json cannot be used: {error}") from error

    def read_data(self) -> Any:
        """What tells its data from others. Raises `ModgraphError`."""
        return self._json(self.data)

    def _json(self, path: Path) -> Any:
        report = Report()
        if not path.exists():
            raise self.fault(f"there is no {path.name} in it" if self.path.is_dir() else "there is no such folder")
        source = read(path, report)
        if source is None:
            raise ModgraphError(report.diagnostics)
        try:
            return json.loads(source.text)
        except (ValueError, RecursionError) as error:
            raise self.fault(f"{path.name} is damaged") from error

    def fault(self, reason: str) -> ModgraphError:
        return ModgraphError([NotARun(path=str(self.path), reason=reason)])


def graph_of_run(path: str | Path) -> Graph:
    """The graph of a run directory. Raises `ModgraphError`."""
    return RunDirectory(Path(path)).read_graph()
