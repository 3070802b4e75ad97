"""Messages about runs and checkpoints (MG6xx)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modgraph.diagnostics import Diagnostic, ModgraphError


class RunExists(Diagnostic, code="MG601"):
    """A folder that already holds a run is not overwritten."""

    message = '"{path}" holds a run already'
    help = "go on with it: --resume {path}, or choose another folder with --out"


class NotARun(Diagnostic, code="MG602"):
    """A folder is not a run directory, or part of it is missing or damaged."""

    message = '"{path}" is not a run: {reason}'
    help = "a run is a folder that modgraph train has written"


class BadCheckpoint(Diagnostic, code="MG603"):
    """A checkpoint is missing, truncated, edited, or belongs to another model."""

    message = 'checkpoint "{path}" cannot be used: {reason}'
    help = "delete it to go on from the one before, or train again"


class RunBusy(Diagnostic, code="MG606"):
    """Another process trains in this folder. Two would overwrite each other's checkpoints."""

    message = 'another training is at work in "{path}"'
    help = "wait for it or stop it, or choose another folder with --out"


class ForeignFiles(Diagnostic, code="MG608"):
    """A run needs a new or empty folder. modgraph deletes and overwrites only files that it wrote."""

    message = '"{path}" holds files that modgraph did not make: {names}'
    help = "choose another folder with --out"


class RecordLost(Diagnostic, code="MG609"):
    """A folder with the files of a run but no readable run.json may hold a trained model."""

    message = '"{path}" has the files of a run, but its run.json is missing or damaged'
    help = "put its run.json back to go on with it, or choose another folder with --out"


class NeverBegan(Diagnostic, code="MG610"):
    """A training was killed while it created its folder, before the first step; or it is creating it now."""

    message = 'the run in "{path}" was cut off before it began'
    help = "begin it again: modgraph train SPEC --out {path}"


class RunChanged(Diagnostic, code="MG611"):
    """A run keeps the spec, the graph and the recipe that it began with. Others would make it another training."""

    message = 'files of the run "{path}" are missing or not what modgraph wrote: {names}'
    help = (
        "put them back as they were; for other settings begin a new run, from these weights with start: {{run: {path}}}"
    )


class LogsChanged(Diagnostic, code="MG621"):
    """The logs of a run document how its model was trained. Each checkpoint keeps their lengths and digests. Only lines
    after these may be missing or damaged, where training was killed."""

    message = 'logs of the run "{path}" have changed since its training wrote them: {names}'
    help = "put them back as they were, or begin a new run from its weights, with start: {{run: {path}}}"


TRAIN_ANEW = "train the model anew: modgraph train SPEC"


class OtherFormat(Diagnostic, code="MG630"):
    """Each kind of stored file has a numbered format. modgraph reads only the one that it writes."""

    message = '"{path}" has format {format}; this modgraph reads format {known}'
    help = "{way_out}, or read it with the modgraph that wrote it"

    @classmethod
    def refuse(cls, path: Path, format_: Any, known: int, way_out: str = TRAIN_ANEW) -> None:
        """Raises `ModgraphError` for any format but the known one."""
        if type(format_) is not int or format_ != known:
            raise ModgraphError([cls(path=str(path), format=repr(format_), known=known, way_out=way_out)])


class NotABundle(Diagnostic, code="MG632"):
    """A file that ends in .onnx is no bundle, or is damaged."""

    message = 'cannot open the bundle "{path}": {reason}'
    way_out = "modgraph export RUN -o model.onnx makes one"


class NotAGraph(Diagnostic, code="MG618"):
    """A file that ends in .json holds no graph as `modgraph show --format json` prints it and runs keep it."""

    message = 'cannot open the graph "{path}": {reason}'
    help = (
        "modgraph show SPEC --format json prints one; a run's first is RUN/ir.json, later ones are in RUN/checkpoints"
    )


class SetOfStored(Diagnostic, code="MG633"):
    """Only a spec has parameters to set. A run or a bundle was made with its own."""

    message = '"{path}" is a {kind}: nothing can be set in it, such as {name}'
    help = "leave -s {name}=… out, or name the spec"


class BadTrace(Diagnostic, code="MG835"):
    """A run's trace.json is damaged or no trace. `modgraph trace` writes it again."""

    message = '"{path}" cannot be read as a trace: {reason}'
    help = "trace the run anew: modgraph trace {run} --force"


class DamagedGrowth(Diagnostic, code="MG617"):
    """A line of a run's `growth.jsonl` records edits of its graph, one of `detections.jsonl` a scan of batches of a
    task, one of `tasks.jsonl` the end of a task. A last line without its end is one that a training is writing."""

    message = 'line {line} of "{path}" is no record of growth'
    help = "take the run up again, which cuts the file back: modgraph train --resume RUN"


class DamagedMetrics(Diagnostic, code="MG141"):
    """Each line of a run's `metrics.jsonl` is a JSON object: step, epoch, split, and metrics by name. A last line
    without its end is one that a training is writing."""

    message = 'line {line} of "{path}" holds no metrics'
    help = "take the run up again, which cuts the file back: modgraph train --resume RUN"
