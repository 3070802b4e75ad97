"""The sections of a recipe besides data: how to train, and where weights start. Needs neither torch nor numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from yaml.representer import RepresenterError

import modgraph.training.continual  # noqa: F401 - an algorithm too
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError, Report, Source
from modgraph.files import exists
from modgraph.recipes import errors
from modgraph.recipes.optimizers import Adam, Constant, Optimizer, Schedule
from modgraph.recipes.schema import Section, read_section, refuse
from modgraph.recipes.yaml_tree import NODES, Branch, dump_yaml, read_tree
from modgraph.syntax import read
from modgraph.training.algorithms import Algorithm, Backprop

BLOCKS = "blocks"  # of `train.compile`: compile only rounds and blocks
DIVISION = ("train.experts", "train.strategy")  # keys that may change when a run is resumed
DEFAULT_ALGORITHM: Any = Backprop
DEFAULT_OPTIMIZER: Any = Adam
DEFAULT_SCHEDULE: Any = Constant


class EarlyStop(Section):
    """Stops a training after an epoch in which a metric reaches a value, or has not improved for some epochs."""

    metric: str | tuple[str, ...] = setting(
        "accuracy", doc="a metric of the training data, or such as validation.accuracy; the mean of several"
    )
    at: float | None = setting(None, doc="stop once the metric reaches this value")
    patience: int | None = setting(None, min=1, doc="stop after so many epochs without improvement")

    def contradiction(self) -> str | None:
        return "needs at or patience" if self.at is None and self.patience is None else None


class Labels(Section):
    """How the labels of one target count in its losses and metrics; overrides the spec."""

    weights: str | tuple[float, ...] | None = setting(
        None,
        min=0,
        choices=("balanced",),
        doc="a weight for each class, or balanced: each class weighs the same in total",
    )
    ignore: int | None = setting(None, doc="the label that does not count")
    missing: bool = setting(False, doc="labels may be missing: classes below 0, numbers that are NaN")


class Augment(Section):
    """Random transforms of the images of one input, sampled at each step."""

    crop: float = setting(1.0, min=0.01, max=1, doc="smallest share of an image's area that a random crop keeps")
    shift: float = setting(0.0, min=0, max=0.5, doc="largest random shift, as a share of the image's side")
    flip: bool = setting(False, doc="mirror half of the images from left to right")


class Start(Section):
    """Where the initial weights come from, if not random."""

    run: str | None = setting(None, path=True, doc="the run whose weights are copied by name")
    fresh: tuple[str, ...] = setting(
        (), doc="weights that start anew although the run has them, or their modules, with *"
    )
    weights: str | None = setting(
        None,
        path=True,
        doc="the file (safetensors, an index of shards, or torch) or folder whose weights are copied by a map",
    )
    map: str | None = setting(None, path=True, doc="the map from names in the file to names in the model")

    def contradiction(self) -> str | None:
        if self.run is None and self.weights is None:
            return "needs run or weights"
        if self.run is not None and self.weights is not None:
            return "must have run or weights, not both"
        if self.fresh and self.run is None:
            return "cannot combine fresh with weights; list them under random in the map"
        return "needs weights and map together" if (self.weights is None) != (self.map is None) else None


class Train(Section):
    """How to train."""

    algorithm: Algorithm = DEFAULT_ALGORITHM()
    epochs: int = setting(
        10, min=0, max=100_000, doc="passes over the training data; 0 tests and keeps the weights of start"
    )
    steps_per_epoch: int | None = setting(None, min=1, doc="steps per epoch, instead of a pass over the data")
    batch: int = setting(
        64, min=1, max=1_000_000, doc="examples per step, over all processes; with by, examples of each group"
    )
    by: str | None = setting(
        None,
        doc="a grouping of the data, such as domain: it balances each step, validation and metrics over its groups",
    )
    bucket: int | None = setting(
        None,
        min=2,
        max=1_000_000,
        doc="sort the examples of so many steps by length, so that batches have little padding",
    )
    seed: int = setting(0, min=0, doc="seed of initial weights, order and noise")
    optimizer: Optimizer = DEFAULT_OPTIMIZER()
    schedule: Schedule = DEFAULT_SCHEDULE()
    states: Mapping[str, Schedule] | None = setting(
        None,
        doc="schedule of a number of the spec, a state without axes and without a rule (modgraph explain state); "
        "metrics.jsonl has its value after each epoch, state.NAME",
    )
    clip: float | None = setting(None, min=0, doc="largest norm of the gradient; larger ones are scaled down")
    validation: float = setting(
        0.0, min=0, max=0.9, doc="share of the training data held out and measured after every epoch"
    )
    metrics: Mapping[str, str | tuple[str, ...]] | None = setting(
        None, doc="further metrics by target: f1, auc of classes; mae, r2 of numbers"
    )
    best: str | tuple[str, ...] | None = setting(
        None,
        doc="keep the weights of the epoch with the best metric, such as validation.accuracy; or mean of several",
    )
    early_stop: EarlyStop | None = None
    losses: Mapping[str, float] | None = setting(None, min=0, doc="weight of each loss by name; 1 if not given")
    labels: Mapping[str, Labels] | None = None
    augment: Mapping[str, Augment] | None = None
    checkpoint_every: int | None = setting(None, min=1, doc="steps between further checkpoints; each epoch has one")
    keep: int = setting(2, min=1, doc="newest checkpoints to keep, in addition to the best")
    device: str = setting("cpu", doc="cpu, cuda, cuda:1 or mps; auto takes an accelerator if there is one")
    precision: str = setting(
        "float32",
        choices=("float32", "bfloat16", "float64"),
        doc="precision of the arithmetic; bfloat16 keeps the weights in float32",
    )
    strategy: str = setting(
        "ddp",
        choices=("ddp", "fsdp"),
        doc="each of several processes has all weights (ddp), or a shard of weights and optimizer state (fsdp)",
    )
    pools: str = setting(
        "auto",
        choices=("auto", "stored", "modules"),
        doc="a pool's weights are one tensor for all modules (stored), or one for each module (modules), or one where "
        "a step is faster so (auto); checkpoints are the same",
    )
    experts: int = setting(
        1,
        min=1,
        max=4096,
        doc="processes that divide the modules of each pool among them; it divides their number",
    )
    compile: bool | str = setting(
        False,
        choices=(BLOCKS,),
        doc="let torch compile a step, which takes minutes before the first: all of it (true), or its "
        "rounds and blocks, each definition once (blocks)",
    )
    threads: int = setting(1, min=1, max=1024, doc="processor threads; they affect the last bits of sums")

    def contradiction(self) -> str | None:
        if self.compile and self.strategy == "fsdp":
            return "cannot combine compile with strategy: fsdp; train it with ddp"
        if self.compile and self.experts > 1:
            return "cannot combine compile with experts, whose tokens travel between processes"
        if self.experts > 1 and self.algorithm.one_process:
            return f"cannot combine experts with {self.algorithm.name}, which runs in one process"
        if self.algorithm.one_phase:
            return None
        if self.epochs == 0:
            return f"cannot combine epochs: 0 with {self.algorithm.name}, which trains in many phases"
        if self.strategy == "fsdp":
            return f"cannot combine strategy: fsdp with {self.algorithm.name}, whose model may grow; train it with ddp"
        weighed = [name for name, each in (self.labels or {}).items() if each.weights is not None]
        if self.best is not None or self.early_stop is not None:
            asked = "best" if self.best is not None else "early_stop"
            return f"cannot combine {asked} with {self.algorithm.name}, which trains in many phases"
        if weighed:
            return f"cannot weight classes of {weighed[0]}, whose number changes with {self.algorithm.name}"
        return None


def names_in(metric: str | Sequence[str]) -> Sequence[str]:
    """The metrics that a key of a recipe names, one or several."""
    return (metric,) if isinstance(metric, str) else metric


def read_mapping(tree: Branch, name: str, report: Report) -> Branch:
    """Return a section of a recipe as a mapping, empty where the recipe lacks it; mistakes are reported."""
    item = tree.items.get(name)
    if isinstance(item, Branch):
        return item
    if name == "data" and item is not None and isinstance(item.value, str):
        return Branch({"name": item}, span=item.span)
    if item is not None and item.value is not None:
        refuse(report, item.span, name, f"must be a mapping, not {item.value!r}", "a section of the recipe")
    return Branch(span=tree.span, whole=tree.whole)


def parameters_in(section: Branch, report: Report) -> dict[str, Any]:
    """Return the values of the spec's parameters."""
    found = {}
    for name, item in section.items.items():
        if isinstance(item, Branch):
            problem = "must be a plain value, not a mapping"
        elif isinstance(item.value, range) and len(item.value) > NODES:
            problem = f"must have at most {NODES:,} values"
        else:
            found[name] = item.value
            continue
        refuse(report, section.keys.get(name, item.span), f"model.{name}", problem, "a parameter of the spec")
    return found


def read_train(path: str | Path | None = None) -> Train:
    """Read how to train from the recipe in a file, whatever its data, or the defaults. Raises `ModgraphError`."""
    report = Report()
    tree = Branch() if path is None else read_recipe_tree(path, report)
    train = read_section(Train, read_mapping(tree, "train", report), "train", report)
    if train is None or report.errors:
        raise ModgraphError(report.list_diagnostics())
    return train


def read_parameters(path: str | Path) -> dict[str, Any]:
    """Read the parameters of the spec that the recipe in a file sets. Raises `ModgraphError`."""
    report = Report()
    parameters = parameters_in(read_mapping(read_recipe_tree(path, report), "model", report), report)
    if report.errors:
        raise ModgraphError(report.list_diagnostics())
    return parameters


def read_recipe_tree(recipe: str | Path | Mapping[str, Any], report: Report) -> Branch:
    """Read the tree of a recipe. Raises `ModgraphError` where the file cannot be read."""
    if isinstance(recipe, Mapping):
        return read_tree(Source("recipe", _yaml_of(recipe)), report)
    if not exists(recipe):
        raise ModgraphError([errors.NoRecipe(path=str(recipe))])
    source = read(recipe, report)
    if source is None:
        raise ModgraphError(report.list_diagnostics())
    return read_tree(source, report)


def _yaml_of(recipe: Mapping[str, Any]) -> str:
    try:
        return dump_yaml(recipe) if recipe else ""
    except RepresenterError as error:
        value = error.args[-1]
        raise TypeError(f"a recipe must contain plain values, not {type(value).__name__}: {value!r}") from error
