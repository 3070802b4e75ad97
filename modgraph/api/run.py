"""A run, as Python programs use it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.data.batches import EXAMPLES
from modgraph.data.declaration import TRAIN
from modgraph.data.in_python import InPython
from modgraph.log import log, printing_progress
from modgraph.store.journal import check_logs, read_metrics
from modgraph.training.callbacks import Watch
from modgraph.training.evaluate import evaluate
from modgraph.training.run import finish, resume_run
from modgraph.training.stored_run import StoredRun

if TYPE_CHECKING:
    from modgraph.backends.onnx import Report
    from modgraph.data import Arrays
    from modgraph.differences import HasArchitecture
    from modgraph.drawings import Drawing
    from modgraph.inspect.diff import Comparison
    from modgraph.prediction.predictions import Predictions
    from modgraph.store.architecture import Architecture
    from modgraph.trace.trace import Trace
    from modgraph.training.engine import Engine

MOST_MEASURES = 5  # in a notebook's table of epochs
CALIBRATION = 256  # training examples that scales of eight bits are fitted on


@dataclass(frozen=True, repr=False)
class Run(StoredRun):
    """A run: the folder that a training writes. Nothing is read before it is asked for.

    `path` is the folder, `graph` the graph of its model, `recipe` what it was trained by. `model()` is the trained
    model in evaluation mode, `checkpoint()` has the weights and the optimizer's state by name.
    """

    @property
    def metrics(self) -> dict[str, Any]:
        """What the training ended with, by `split.metric`, as `modgraph train` prints it; empty while it goes on."""
        return dict(self.directory.read_record().get("metrics", {}))

    @property
    def history(self) -> list[dict[str, Any]]:
        """What was measured after each epoch: records with `step`, `epoch`, `split` and the metrics, which
        `pandas.DataFrame` takes. Raises `ModgraphError` where the log is damaged."""
        check_logs(self.directory)
        return read_metrics(self.directory)

    def evaluate(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        bundle: str | Path | None = None,
        detail: bool = False,
        check: bool = True,
    ) -> dict[str, Any]:
        """Metrics by `split.metric` on the test data of the run, or on `data`: data sets by split, as `train` takes
        them.

        With `bundle`, the path of an exported bundle of this run, ONNX Runtime computes the outputs; `check=False`
        takes one whose digest does not fit. `detail` adds confusion matrices and metrics by the data's groups. Raises
        `ModgraphError` where the data have changed since the run began, or do not fit the spec.
        """
        found = evaluate(self._on(data), bundle, detail, check)
        for note in found.notes:
            log.info(f"note: {note}")
        return found.flat()

    def trace(
        self,
        split: str | None = None,
        route: str | None = None,
        examples: int = 512,
        data: Mapping[str, Any] | None = None,
    ) -> Trace:
        """What the routers do on the first `examples` of a split, by default the first but `train`; of one `route`
        alone, if it is named. `data` are data sets by split, in place of the run's.

        Arrays of the trace have the axes [rounds, examples, ..., tokens, modules]. Raises `ModgraphError` where nothing
        is routed, for an unknown split or route, and where the data have changed.
        """
        from modgraph.trace.trace_run import trace_run
        from modgraph.training.run import threads

        with threads(self.recipe.train.threads):
            return trace_run(self._on(data), split, route, examples)

    def export(
        self,
        path: str | Path,
        *,
        routing: bool = False,
        novelty: bool = False,
        int8: bool = False,
        stepwise: bool = False,
        only: Collection[str] = (),
        force: bool = False,
    ) -> Report:
        """Write the model as a bundle for ONNX Runtime, `model.onnx`, and its manifest next to it.

        It is verified on test data against torch at several batch sizes. `routing` and `novelty` add the routers'
        records as outputs; `int8` rounds weights to eight bits, with scales
        fitted on training data, and the report says what that changes; `stepwise` takes
        tokens one after another, to continue texts; `only` names the outputs to keep. Raises `ModgraphError`, and then
        leaves what was there, also for a file that modgraph did not write, unless `force` is true.
        """
        from modgraph.backends.onnx import Test, export

        data, tests, calibration = self.test_data(), dict[str, Test](), None
        if int8:
            from modgraph.training.bundle_metrics import compute_metrics_of_outputs

            splits = {split: arrays.read(slice(None)) for split, arrays in data.items()}
            measure = {
                split: partial(compute_metrics_of_outputs, graph=self.graph, rows=rows)
                for split, rows in splits.items()
            }
            tests = {split: Test(rows, measure[split]) for split, rows in splits.items()}
            calibration = self._read_calibration()
        first: Arrays | None = next(iter(data.values()), None)
        return export(
            self.model(),
            path,
            routing=routing,
            novelty=novelty,
            int8=int8,
            stepwise=stepwise,
            only=only,
            examples=None if first is None else first.read(slice(EXAMPLES)),
            tests=tests,
            calibration=calibration,
            description=self.description(),
            force=force,
        )

    def _read_calibration(self) -> dict[str, Any] | None:
        """Training data to fit scales on, from the whole split."""
        import numpy as np

        found = self.so_far(self.splits()).get(TRAIN)
        if found is None or not len(found):
            return None
        return found.read(np.unique(np.linspace(0, len(found) - 1, CALIBRATION).astype(int)))

    def predict(self, inputs: Any) -> Predictions:
        """What the model predicts of images, arrays, tables or texts: paths, or a dictionary of arrays by input, as
        `modgraph.predict` takes them. Raises `ModgraphError` for inputs that do not fit, and `TypeError` for another
        kind of value."""
        from modgraph.prediction.predictions import predict

        return predict(self.path, inputs)

    def resume(self, data: Mapping[str, Any] | None = None, callbacks: Sequence[Any] = (), quiet: bool = False) -> Run:
        """Go on with the training where its newest checkpoint is, to the same end as without the interruption.

        `data` are those that it began with, where they were given in Python. `callbacks` and `quiet` are as for
        `train`. Raises `ModgraphError`, also where the data have changed.
        """
        watch, given = Watch(callbacks), None if data is None else InPython.from_splits(data)
        with printing_progress(quiet), resume_run(self.path, given, watch) as engine:
            run = self.with_data(given)
            train_to_end(engine, run, watch)
        return run

    def diff(self, other: HasArchitecture | str | Path, **lengths: int) -> Comparison:
        """What `other` (a program, a run, or a path of a spec, run, checkpoint, graph or bundle) differs in, values of
        weights included, and from a run in recipe, data, metrics, seconds and routing.

        Axes of any length have the given ones, or 1. Raises `ModgraphError` for what cannot be read, and `TypeError`
        for anything else.
        """
        from modgraph.differences import differences, to_architecture

        return differences(self.architecture(), to_architecture(other), lengths)

    def visualize(
        self,
        path: str | Path | None = None,
        force: bool = False,
        *,
        depth: int | None = None,
        direction: str = "down",
        without: str | Sequence[str] = (),
        lengths: bool = False,
    ) -> Drawing:
        """The graph with what was measured and traced, as a drawing that a notebook shows; with a path written there
        (`.html`, `.svg`, `.dot`, `.mmd`). The options are those of `modgraph.visualize`. Raises `ModgraphError`."""
        from modgraph.drawings import draw

        return draw(self, path, force, depth=depth, direction=direction, without=without, lengths=lengths)

    def architecture(self) -> Architecture:
        """The run as readers of files take it."""
        from modgraph.store.architecture import read_architecture

        return read_architecture(self.path)

    def _on(self, data: Mapping[str, Any] | None) -> Run:
        return self if data is None else self.with_data(InPython.from_splits(data), anew=True)

    def _repr_html_(self) -> str:
        """Render its metrics and its graph for a notebook. Raises `ModgraphError`."""
        from modgraph.inspect.notebook import render, render_picture, render_table
        from modgraph.inspect.scene import scene_of

        ended = [{"metric": name, "value": value} for name, value in self.metrics.items()]
        parts = render_table(ended, "at the end"), render_table(*self._summarize_epochs())
        return render(repr(self), *parts, render_picture(scene_of(self.graph)))

    def _summarize_epochs(self) -> tuple[list[dict[str, Any]], str]:
        """Return the last records of the history with the metrics that say most, and a title."""
        from modgraph.tables.metrics import rank_measures

        history = self.history[-20:]
        shared = ("epoch", "step", "split")
        every = {name for record in history for name in record if name not in shared}
        names = rank_measures(history)[:MOST_MEASURES]
        records = [{name: record.get(name, "") for name in (*shared, *names)} for record in history]
        more = f"; Run.history has {len(every) - len(names)} more metrics" if len(every) > len(names) else ""
        return records, f"the last epochs{more}"


def train_to_end(engine: Engine, run: Run, watch: Watch) -> None:
    """Train a run to the end and test it; one of several processes calls what watches it."""
    if engine.processes.is_rank_zero:
        watch.call("on_begin", run)
    finish(engine, run.given)
    engine.say(f"the run is in {run.path}")
    if engine.processes.is_rank_zero:
        watch.call("on_end", run)


def load_run(path: str | Path, /, **data: Any) -> Run:
    """A run on disk. Keywords choose keys of its data anew, `load_run("runs/smn", test="other.npz")`.

    Raises `ModgraphError` where there is no run, and `TypeError` for anything but a path.
    """
    if not isinstance(path, str | Path):
        raise TypeError(f"load_run takes the path of a run's folder, not {type(path).__name__}")
    return Run.load(path, data)
