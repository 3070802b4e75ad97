"""Reads the facts of all runs below some folders. Reads no weights and writes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.elaboration.imports import RECORD, SPEC
from modgraph.files import exists, explain_error
from modgraph.inspect.cost import UnknownAxis, compute_cost, list_axes_of_any_length
from modgraph.ir import Graph
from modgraph.store.journal import LOGS, seal_logs
from modgraph.store.run_directory import FINISHED, RECIPE, STARTING, RunDirectory
from modgraph.store.seconds import read_seconds
from modgraph.tables import facts
from modgraph.tables.errors import TRAIN_SOME, NoRuns
from modgraph.tables.facts import RunFacts
from modgraph.tables.layout import TableLayout, make_layout
from modgraph.tables.numbers import order_of
from modgraph.tables.sweep_folder import SweepPoint, SweepRecord, read_failures, read_sweep

DIGEST = 8  # letters of a digest that tables tell apart
TAIL = 2**18  # bytes at the end of metrics.jsonl in which the newest metrics of each split are looked for
ABOVE = 2  # folders between a sweep's and that of a run in it
DAMAGE = (OSError, AttributeError, LookupError, RecursionError, TypeError, ValueError, yaml.YAMLError)


def collect(
    paths: Iterable[str | Path], lengths: Mapping[str, int] | None = None, defaults: Mapping[str, int] | None = None
) -> list[RunFacts]:
    """Read the facts of every run in some folders and below them, and of points of sweeps that have none yet.

    Axes of any length count with their length in `lengths`, else in `defaults`, which may name axes that no run has,
    else 1. A damaged run is listed with the reason. Raises `ModgraphError` for a damaged sweep.json.
    """
    collector = _Collector({**(defaults or {}), **(lengths or {})})
    found = dict[tuple[Path, str, str], RunFacts]()
    for path in dict.fromkeys(map(Path, paths)):
        if not path.is_dir():
            reason = ": it is a file" if exists(path) else ": there is no such folder"
            raise ModgraphError([NoRuns(path=str(path), reason=reason, way_out=TRAIN_SOME)])
        for each in collector.read_below(path):
            found.setdefault((each.path.resolve(), each.sweep, each.label), each)
    unknown = [name for name in lengths or () if name not in collector.axes]
    if unknown and found:
        known, none = "their axes without a number: {known}", "leave it out: all axes have a number"
        suggestions = {name: did_you_mean(name, collector.axes, known) if collector.axes else none for name in unknown}
        raise ModgraphError(UnknownAxis(name=name, suggestion=each) for name, each in suggestions.items())
    return [_describe_start(each, found.values()) for each in found.values()]


def collect_tables(paths: Iterable[str | Path]) -> list[NamedLayout]:
    """Read the tables that the sweeps in some folders and below them list. Raises `ModgraphError`."""
    found = dict[Path, SweepRecord]()
    for path in map(Path, paths):
        for folder in (folder for folder, _ in _search(path) if not _is_run(folder)):
            if (sweep := read_sweep(folder)) is not None:
                found[_normalise(folder)] = sweep
    return [
        NamedLayout(name, make_layout(**layout), folder)
        for folder, sweep in found.items()
        for name, layout in sweep.tables.items()
    ]


@dataclass(frozen=True)
class NamedLayout:
    """A table that a sweep lists, and the folder of the sweep."""

    name: str
    layout: TableLayout
    folder: Path

    def take_runs(self, runs: Iterable[RunFacts]) -> list[RunFacts]:
        """Return those of some runs that belong to the sweep's folder."""
        return [run for run in runs if _is_below(run.path, self.folder)]


def read_run(path: str | Path, lengths: Mapping[str, int] | None = None) -> RunFacts:
    """Read the facts of the run in a folder, without those of its sweep; one that cannot be read is damaged."""
    return _Collector(lengths or {}).read_run(Path(path), str(path))


@dataclass(frozen=True)
class _Described:
    """A graph's name, parameters and counts, and its axes of any length to which none was given."""

    name: str
    parameters: Mapping[str, Any]
    counts: Mapping[str, int]
    axes: tuple[str, ...]


@dataclass
class _Collector:
    """Reads runs, and the costs of each graph once."""

    lengths: Mapping[str, int]
    graphs: dict[str, _Described] = field(default_factory=dict)
    axes: set[str] = field(default_factory=set)  # of any length, of all graphs

    def read_below(self, top: Path) -> Iterator[RunFacts]:
        """Yield the runs in a folder and below it: those of a sweep in the order of its points."""
        found = list(_search(top))
        folders = [*(folder for folder, _ in found if not _is_run(folder)), *_normalise(top).parents[:ABOVE]]
        seen = set[Path]()
        for sweep in filter(None, map(read_sweep, folders)):
            for each in self._read_sweep(sweep, top):
                seen.add(_normalise(each.path))
                yield each
        for folder, problem in found:
            if _normalise(folder) not in seen and (problem or _is_run(folder)):
                yield self.read_run(folder, _name_below(folder, top), problem)

    def _read_sweep(self, sweep: SweepRecord, top: Path) -> Iterator[RunFacts]:
        """Yield the points of a sweep below a folder; one that repeats another of its own row is left out."""
        failures, seen = read_failures(sweep.folder), set[tuple[Path, str, str]]()
        for point in sweep.points:
            folder = sweep.folder_of(point)
            key = (folder, point.sweep, point.label)
            if key in seen or not _is_below(sweep.folder / point.run, top):
                continue
            seen.add(key)
            path = top / os.path.relpath(folder, top)
            found = self._read_point(path, point, _name_below(sweep.folder / point.run, top))
            failure = failures.get(point.identity)
            if failure is not None and not found.is_finished:
                found = replace(found, state=facts.FAILED, reason=str(failure))
            yield found

    def _read_point(self, path: Path, point: SweepPoint, name: str) -> RunFacts:
        found = self.read_run(path, name) if path.exists() else RunFacts(path, name, facts.PLANNED)
        same = ("sweep", "label", "trial", "pruned", "about", "values", "seeds")
        return replace(found, **{each: getattr(point, each) for each in same})

    def read_run(self, path: Path, name: str, problem: str = "") -> RunFacts:
        """Read a run's folder; one that cannot be read is damaged, with the reason."""
        run = RunDirectory(path)
        try:
            if problem:
                raise ValueError(problem)
            record = run.read_record()
            if record["status"] == STARTING:
                return RunFacts(path, name, facts.UNFINISHED, "it stopped before its first step")
            return self._read_started(run, record, name)
        except ModgraphError as error:
            fault = error.diagnostics[0]
            return RunFacts(path, name, facts.DAMAGED, getattr(fault, "reason", fault.text()))
        except DAMAGE as error:
            return RunFacts(path, name, facts.DAMAGED, explain_error(error))

    def _read_started(self, run: RunDirectory, record: Mapping[str, Any], name: str) -> RunFacts:
        run.check()
        ended = record["status"] == FINISHED
        if ended and LOGS in record and seal_logs(run) != record[LOGS]:
            raise ValueError("its logs have changed")
        graph = self._read_graph(run, record["files"].get(run.ir.name, ""))
        metrics, latest = dict(record.get("metrics", {})), _read_latest(run)
        done = {each: metrics.get(each, latest.get(each)) for each in ("steps", "epochs")}
        trained = read_seconds(run)
        return RunFacts(
            path=run.path,
            name=name,
            state=facts.FINISHED if ended else facts.UNFINISHED,
            model=graph.name,
            settings={**graph.parameters, **_read_settings(run)},
            metrics=metrics,
            latest=latest,
            costs={**graph.counts, "seconds": trained[-1][1] if trained else None, **done},
            graph=record["files"].get(run.ir.name, "")[:DIGEST],
            data=record["files"].get(run.data.name, "")[:DIGEST],
            axes=graph.axes,
        )

    def _read_graph(self, run: RunDirectory, digest: str) -> _Described:
        """Describe the graph of a run as it is now, one of equal files once."""
        if run.growth.exists():  # edits of the graph: the newest checkpoint has it
            return self._describe(run.graph_now())
        if digest not in self.graphs:
            self.graphs[digest] = self._describe(run.read_graph())
        return self.graphs[digest]

    def _describe(self, graph: Graph) -> _Described:
        axes = list_axes_of_any_length(graph)
        self.axes.update(axes)
        lengths = {name: self.lengths[name] for name in axes if name in self.lengths}
        parameters = {name: _plain(value) for name, value in graph.parameters.items()}
        counts = compute_cost(graph, lengths).counts
        return _Described(graph.name, parameters, counts, tuple(name for name in axes if name not in lengths))


def _describe_start(run: RunFacts, others: Iterable[RunFacts]) -> RunFacts:
    """Describe the run that another one starts from by what varies in its sweep, so that seeds do not matter."""
    start = run.settings.get("start.run")
    if start is None:
        return run
    path = Path(start).resolve()
    found = next((each for each in others if each.path.resolve() == path and each.sweep), None)
    if found is None:
        return run
    values = [f"{key}={value}" for key, value in found.values.items() if key not in found.seeds]
    return replace(run, start=" ".join([found.sweep, *filter(None, [found.label]), *([] if found.label else values)]))


def _search(top: Path) -> Iterator[tuple[Path, str]]:
    """Yield a folder and those below it, each with the problem of reading it; runs are not searched."""
    problems = list[OSError]()
    for path, names, files in os.walk(top, onerror=problems.append):
        folder = Path(path)
        names[:] = [] if _is_run(folder) else sorted((name for name in names if name[0] != "."), key=order_of)
        lost = RECORD not in files and {SPEC, RECIPE} <= {*files}
        yield folder, "its run.json is missing" if lost else ""
    yield from ((Path(each.filename), explain_error(each)) for each in problems)


def _is_run(folder: Path) -> bool:
    return (folder / RECORD).exists() or ((folder / SPEC).exists() and (folder / RECIPE).exists())


def _normalise(path: Path) -> Path:
    """Return an absolute path without `..`; links stay."""
    return Path(os.path.abspath(path))  # noqa: PTH100 (`Path.absolute` keeps `..`)


def _is_below(folder: Path, top: Path) -> bool:
    return _normalise(folder).is_relative_to(_normalise(top))


def _name_below(folder: Path, top: Path) -> str:
    """Return the name of a run below a folder; that of the folder itself is its own."""
    found = os.path.relpath(folder, top)
    return _normalise(top).name if found == os.curdir else found


def _read_settings(run: RunDirectory) -> dict[str, Any]:
    """Read the keys of a run's recipe, dotted but for those of the model. Raises what `DAMAGE` lists."""
    text = (run.content(run.recipe) or b"").decode()
    recipe = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # twelve times as fast, where it is built
    return {key.removeprefix("model."): value for key, value in flatten(recipe)}


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested mappings by dotted key."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _plain(value: Any) -> Any:
    return [*map(_plain, value)] if isinstance(value, list | tuple | range) else value


def _read_latest(run: RunDirectory) -> dict[str, float | None]:
    """Read the newest metrics of each split, by `split.metric`, and the steps and epochs so far. Raises `ValueError`
    for a line that is none of a log; a last one without its end is still being written."""
    try:
        with run.metrics.open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - TAIL)
            file.seek(start)
            lines = file.read().decode(errors="replace").split("\n")
    except FileNotFoundError:
        return {}
    found = dict[str, float | None]()
    for line in lines[1 if start else 0 : -1]:
        try:
            record = json.loads(line)
            split, step, epoch = record.pop("split"), record.pop("step"), record.pop("epoch", None)
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ValueError("a line of metrics.jsonl is damaged") from error
        found |= {"steps": step, "epochs": epoch, **{f"{split}.{name}": value for name, value in record.items()}}
    return found
