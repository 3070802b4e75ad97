"""Messages about runs and checkpoints (MG6xx)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modgraph.diagnostics import Diagnostic, ModgraphError


class RunExists(Diagnostic, code="MG601"):
    """A folder with a run is never overwritten."""

    message = '"{path}" already contains a run'
    help = "resume it, --resume {path} or run.resume() in Python, or choose another folder: --out DIR"


class NotARun(Diagnostic, code="MG602"):
    """A folder is no run directory, or part of it is missing or damaged."""

    message = '"{path}" is not a run: {reason}'
    help = "name a folder that modgraph train wrote"


class BadCheckpoint(Diagnostic, code="MG603"):
    """A checkpoint is missing, truncated, edited, or belongs to another model."""

    message = 'cannot read checkpoint "{path}": {reason}'
    help = "delete it to resume from the one before, or train again"


class RunBusy(Diagnostic, code="MG606"):
    """Another process trains in this folder. Two would overwrite each other's checkpoints."""

    message = 'another process trains in "{path}"'
    help = "wait for it or stop it, or choose another folder: --out DIR"


class ForeignFiles(Diagnostic, code="MG608"):
    """A run needs a new or empty folder. modgraph deletes and overwrites only files that it wrote."""

    message = '"{path}" contains files that modgraph did not write: {names}'
    help = "choose another folder: --out DIR"


class RecordLost(Diagnostic, code="MG609"):
    """A folder with the files of a run but no readable run.json may contain a trained model."""

    message = '"{path}" contains a run, but its run.json is missing or damaged'
    help = "restore run.json to resume it, or choose another folder: --out DIR"


class NeverBegan(Diagnostic, code="MG610"):
    """A training ended while it created its folder, before the first step; or it is creating it now."""

    message = 'the run in "{path}" stopped before its first step'
    help = "start it again: modgraph train SPEC --out {path}"


class RunChanged(Diagnostic, code="MG611"):
    """A run keeps the spec, the graph and the recipe of its start. Others would make it another training."""

    message = 'files of run "{path}" are missing or changed: {names}'
    help = "restore them; for other settings start a new run from these weights: start: {{run: {path}}}"


class LogsChanged(Diagnostic, code="MG621"):
    """The logs of a run document how its model was trained. Each checkpoint keeps their lengths and digests. Only lines
    after these may be missing or damaged, if the training was killed."""

    message = 'logs of run "{path}" have changed: {names}'
    help = "restore them, or start a new run from its weights: start: {{run: {path}}}"


TRAIN_ANEW = "train the model anew: modgraph train SPEC"


class OtherFormat(Diagnostic, code="MG630"):
    """Each kind of stored file has a numbered format. modgraph reads only the one that it writes."""

    message = '"{path}" has format {format}, but this modgraph reads format {known}'
    help = "{way_out}, or read it with the modgraph that wrote it"

    @classmethod
    def refuse(cls, path: Path, format_: Any, known: int, way_out: str = TRAIN_ANEW) -> None:
        """Raises `ModgraphError` for any format but the known one."""
        if type(format_) is not int or format_ != known:
            raise ModgraphError([cls(path=str(path), format=repr(format_), known=known, way_out=way_out)])


class NotABundle(Diagnostic, code="MG632"):
    """A file that ends in .onnx is no bundle, or is damaged."""

    message = 'cannot read bundle "{path}": {reason}'
    way_out = "write one: modgraph export RUN -o model.onnx"


class NotAGraph(Diagnostic, code="MG618"):
    """A file that ends in .json contains no graph as `modgraph show --format json` prints it and runs keep it."""

    message = 'cannot read graph "{path}": {reason}'
    help = "write one, modgraph show SPEC --format json, or name a run's: RUN/ir.json"


class SetOfStored(Diagnostic, code="MG633"):
    """Only a spec has parameters to set. A run or a bundle keeps the parameters of its start."""

    message = 'cannot set {name} of "{path}": a {kind} keeps its parameters'
    help = "remove -s {name}=…, or name the spec"


class BadTrace(Diagnostic, code="MG835"):
    """A run's trace.json is damaged or no trace. `modgraph trace` writes it again."""

    message = 'cannot read trace "{path}": {reason}'
    help = "trace the run again: modgraph trace {run} --force"


class DamagedGrowth(Diagnostic, code="MG617"):
    """Each line of a run's `growth.jsonl` records edits of its graph, of `detections.jsonl` a scan of batches of a
    task, of `tasks.jsonl` the end of a task. The last line may be incomplete while a training writes it."""

    message = 'line {line} of "{path}" is no record of growth'
    help = "resume the run, which cuts the file back: modgraph train --resume RUN"


class DamagedMetrics(Diagnostic, code="MG141"):
    """Each line of a run's `metrics.jsonl` is a JSON object: step, epoch, split, and metrics by name; of `steps.jsonl`,
    step, loss, gradient_norm and load. The last line may be incomplete while a training writes it."""

    message = 'line {line} of "{path}" has no metrics'
    help = "resume the run, which cuts the file back: modgraph train --resume RUN"
