"""Runs sweeps: trains each point once, in processes of its own, and keeps what failed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from modgraph.log import log
from modgraph.ops.measures import is_larger_better
from modgraph.study import workers
from modgraph.study.adaptive import Trials
from modgraph.study.folder import SweepFolder, extend_record, record_point
from modgraph.study.plan import Plan
from modgraph.study.point import Point
from modgraph.study.progress import Progress, choose_metric
from modgraph.study.workers import Answer, Worker, Workers, describe_end
from modgraph.tables.sweep_folder import Failure, SweepRecord, read_failures

DEATHS = 2  # of processes that train a point, after which it counts as failed


@dataclass(frozen=True)
class Outcome:
    """What a sweep has come to: how many points it has and repeats, the metrics of those that finished and the reasons
    of those that failed, by run, and the best by a metric, where one is asked for."""

    points: int
    repeated: int
    metrics: Mapping[str, Mapping[str, Any]]
    failures: Mapping[str, Failure]
    best: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the counts, and the best."""
        counts = {"points": self.points, "finished": len(self.metrics), "failed": len(self.failures)}
        best = {} if self.best is None else {"best": dict(self.best)}
        return {**counts, "repeated": self.repeated, **best}


def run_sweep(plan: Plan, command: str, jobs: int = 1, retry: bool = False, metric: str | None = None) -> Outcome:
    """Train the points of a plan, at most `jobs` at once, and those that its searches propose. What finished before
    stays as it is; what failed before is tried again with `retry`. Lines of progress have the value of `metric`.

    `command` is recorded. Raises `ModgraphError` where the folder is in use or holds something else, and
    `KeyboardInterrupt` after a Ctrl-C, when every process has kept its step.
    """
    folder = SweepFolder(plan.out)
    folder.refuse_foreign()
    with folder.lock():
        return Execution(plan, folder, command, jobs, retry, metric).run()


class Execution:
    """A sweep that is running. Points are known by identity: `finished` has the metrics at their ends."""

    def __init__(
        self, plan: Plan, folder: SweepFolder, command: str, jobs: int, retry: bool, metric: str | None
    ) -> None:
        self.plan, self.folder, self.jobs = plan, folder, jobs
        self.pending: deque[Point] = deque()
        self.points: dict[str, Point] = {}
        self.finished: dict[str, Mapping[str, Any]] = {}
        self.failed: dict[str, Failure] = {}
        self.deaths: Counter[str] = Counter()
        self.found = folder.find_runs()
        self.failed_before = {} if retry else read_failures(folder.path)
        before = folder.read()
        self.record = replace(before, command=command)
        self.searches = [Trials(each, jobs, folder, before) for each in plan.searches]
        self.progress, self.metric = Progress(0, 0, jobs), metric
        self.workers = Workers(folder.worker_lock)
        folder.refuse_others(plan.trained, self.found)
        self._keep(extend_record(self.record, map(record_point, plan.points), plan.repeats, plan.tables))
        self._add(plan.trained)
        self._ask()
        self._report_others(before)

    def _report_others(self, before: SweepRecord) -> None:
        """Say how many points of earlier sweeps in the folder are not among these."""
        own = {each.run for each in self.plan.points} | {each.run for each in self.points.values()}
        others = sum(each.run not in own for each in before.points)
        if others:
            what = "1 point of an earlier sweep" if others == 1 else f"{others} points of earlier sweeps"
            log.info(f"kept as before: {what} in {self.folder.path}")

    def _keep(self, record: SweepRecord) -> None:
        """Write the record. Raises `ModgraphError`."""
        self.record = record
        self.folder.write(record)

    def _add(self, points: Sequence[Point]) -> None:
        """Queue points, but for those that have finished or failed."""
        for point in points:
            if point.identity in self.points:
                continue
            self.points[point.identity] = point
            metrics = self._read_finished(point)
            if metrics is not None:
                self.finished[point.identity] = metrics
            elif point.identity in self.failed_before:
                self.failed[point.identity] = self.failed_before[point.identity]
            else:
                self.pending.append(point)

    def _read_finished(self, point: Point) -> Mapping[str, Any] | None:
        """Return the metrics of a point that has finished. A run that may have ended at the limit of a search counts
        only in searches; elsewhere it goes on, which changes nothing if it was at its end."""
        run = self.found.get(point.identity)
        metrics = None if run is None else self.folder.read_metrics(run)
        if metrics is None or self._find_limits(point)[0] is not None:
            return metrics
        limits = [each.limits for each in self.record.points if each.identity == point.identity]
        return None if any(str(metrics.get("epochs")) in each for each in limits) else metrics

    def _ask(self) -> None:
        """Queue what searches propose now. Raises `ModgraphError`."""
        for search in self.searches:
            while (trial := search.propose(self.finished, self.failed)) is not None:
                self.folder.refuse_others(trial.points, self.found)
                self._keep(extend_record(self.record, trial.records(), self.plan.repeats))
                self._add(trial.points)
                self._mark_pruned([each for each in trial.points if each.identity in self.finished])
        self.progress.total = len(self.points) + sum(each.count_left() for each in self.searches)

    def _find_limits(self, point: Point) -> tuple[Trials | None, Mapping[str, float]]:
        """Return the search of a point and its limits there."""
        found = ((each, each.find_limits(point)) for each in self.searches)
        return next(((search, limits) for search, limits in found if limits is not None), (None, {}))

    # ------------------------------------------------------------ training

    def run(self) -> Outcome:
        """Train to the end. Raises `KeyboardInterrupt` after a Ctrl-C."""
        self.progress.done = len(self.finished) + len(self.failed)
        if self.progress.done:
            log.info(f"{self.progress.done} of {self.progress.total} points are done already")
        try:
            while self._assign():
                self._handle(*self.workers.wait())
        except KeyboardInterrupt:
            log.info("stopping: each training keeps its step (Ctrl-C again ends them at once)")
            self.workers.stop()
            raise
        finally:
            self.workers.close()
        return self._conclude()

    def _assign(self) -> bool:
        """Give points to idle workers, and start those that are needed; false once nothing is left to do."""
        for worker in self.workers.alive:
            if worker.is_ready and worker.point is None and (point := self._take_point()) is not None:
                worker.point = point
                worker.send(self._make_task(point))
        busy = sum(each.point is not None for each in self.workers.alive)
        wanted = min(self.jobs, busy + len(self.pending))
        while len(self.workers.alive) < wanted:
            self.workers.start()
        return wanted > 0

    def _take_point(self) -> Point | None:
        """Take the first point whose start can be read; one whose start has failed fails too."""
        for point in [*self.pending]:
            first = next((each for each in self.points.values() if each.run == point.after), None)
            if first is None or first.identity in self.finished:
                self.pending.remove(point)
                return point
            if first.identity in self.failed:
                self.pending.remove(point)
                self._fail(point, Failure((), f'run "{first.run}", from which it starts, has failed'), is_kept=False)
        return None

    def _make_task(self, point: Point) -> dict[str, Any]:
        search, limits = self._find_limits(point)
        rule = {"metric": search.settings.metric, "larger": search.larger, "by_epoch": dict(limits)} if search else None
        return {
            "point": {**vars(point), "recipe": point.recipe if isinstance(point.recipe, Path) else dict(point.recipe)},
            "out": str(self.folder.path / self.found.get(point.identity, point.run)),
            "limits": rule,
        }

    # ------------------------------------------------------------ answers

    def _handle(self, worker: Worker, answer: Answer) -> None:
        """Handle what a worker answers."""
        point, kind = worker.point, answer["kind"]
        if point is None:
            return
        if kind == workers.EPOCH:
            self.progress.report_epoch(point.run, answer["epoch"])
            return
        worker.point = None
        if kind == workers.FINISHED:
            self._finish(point, answer["metrics"], answer["latest"], answer["seconds"])
        elif kind == workers.FAILED:
            self._fail(point, Failure(tuple(answer["codes"]), answer["message"]), is_kept=answer["is_kept"])
        elif kind == workers.ENDED:
            self.deaths[point.identity] += 1
            if answer["code"] < 0 and self.deaths[point.identity] < DEATHS:
                self.pending.appendleft(point)
            else:
                text = "\n".join([describe_end(worker, answer["code"]), *worker.tail])
                self._fail(point, Failure((), text))

    def _finish(self, point: Point, metrics: Mapping[str, Any], latest: Mapping[str, Any], seconds: float) -> None:
        self.finished[point.identity] = metrics
        self.found.setdefault(point.identity, point.run)
        pruned = self._mark_pruned([point])
        search, _ = self._find_limits(point)
        name = (self.metric if search is None else search.settings.metric) or choose_metric(metrics)
        value = {**latest, **metrics}.get(name)
        self.progress.finish(point.run, name, value, seconds, "pruned" if pruned else "")
        self._ask()

    def _mark_pruned(self, points: Sequence[Point]) -> list[str]:
        """Record which of some finished points a search stopped early; returns their identities."""
        ended = [(self._find_limits(each)[0], each, self.finished[each.identity]) for each in points]
        pruned = [each.identity for search, each, metrics in ended if search and search.is_pruned(each, metrics)]
        own = {each.identity for each in points}
        marked = tuple(
            replace(each, pruned=each.identity in pruned) if each.identity in own else each
            for each in self.record.points
        )
        if marked != self.record.points:
            self._keep(replace(self.record, points=marked))
        return pruned

    def _fail(self, point: Point, failure: Failure, is_kept: bool = True) -> None:
        self.failed[point.identity] = failure
        if is_kept:
            self.folder.add_failure(point, failure)
        self.progress.fail(point.run, str(failure))
        self._ask()

    def _find_best(self, metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
        """Return the best run by the metric of lines of progress, if one is asked for that runs end with."""
        metric = self.metric or ""
        found = {run: each[metric] for run, each in metrics.items() if each.get(metric) is not None}
        if not found:
            return None
        run = (max if is_larger_better(metric) else min)(found, key=found.__getitem__)
        return {"run": run, metric: found[run]}

    def _conclude(self) -> Outcome:
        metrics = {self.points[identity].run: each for identity, each in self.finished.items()}
        failures = {self.points[identity].run: each for identity, each in self.failed.items()}
        searched = {each.search.sweep.name: each.find_best() for each in self.searches}
        best = searched or self._find_best(metrics)
        if len(searched) == 1:
            (best,) = searched.values()
        points = len(self.plan.points) + sum(len(each.points) for each in self.searches)
        return Outcome(points, points - len(self.points), metrics, failures, best)
