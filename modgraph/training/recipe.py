"""The recipe of a training: which data, which algorithm, how long."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml

from modgraph.diagnostics import ModgraphError, Report, did_you_mean
from modgraph.ops.declaration import setting
from modgraph.syntax import read
from modgraph.training import errors
from modgraph.training.data import DataSet
from modgraph.training.schema import Named, Section, read_section
from modgraph.training.yaml_tree import Branch, Leaf, read_tree

SECTIONS = ("model", "data", "train")


class Optimizer(Named):
    """How a gradient moves the weights."""

    what = "optimizer"
    torch: ClassVar[str]

    def arguments(self) -> dict[str, Any]:
        """What the torch optimizer's constructor takes."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


class SGD(Optimizer):
    """Stochastic gradient descent."""

    name = "sgd"
    torch = "torch.optim.SGD"
    lr: float = setting(0.01, min=0, doc="learning rate")
    momentum: float = setting(0.0, min=0, below=1, doc="share of the last move that is kept")
    weight_decay: float = setting(0.0, min=0, doc="pull of every weight towards zero")
    nesterov: bool = setting(False, doc="look ahead along the momentum")


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015)."""

    name = "adam"
    torch = "torch.optim.Adam"
    lr: float = setting(0.001, min=0, doc="learning rate")
    beta1: float = setting(0.9, min=0, below=1, doc="memory of the gradient's mean")
    beta2: float = setting(0.999, min=0, below=1, doc="memory of the gradient's square")
    eps: float = setting(1e-8, min=0, doc="added to the root of the square")
    weight_decay: float = setting(0.0, min=0, doc="pull of every weight towards zero")

    def arguments(self) -> dict[str, Any]:
        arguments = super().arguments()
        arguments["betas"] = (arguments.pop("beta1"), arguments.pop("beta2"))
        return arguments


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2019)."""

    name = "adamw"
    torch = "torch.optim.AdamW"
    weight_decay: float = setting(0.01, min=0, doc="pull of every weight towards zero")


DEFAULT_OPTIMIZER: Any = Adam


class EarlyStop(Section):
    """Stop after the epoch in which a training metric reaches a value."""

    metric: str = setting("accuracy", doc="a metric of the training split")
    at: float = setting(doc="the value that is enough")


class Train(Section):
    """How to train."""

    algorithm: str = setting("gradient", choices=("gradient",), doc="gradient descent on the declared losses")
    epochs: int = setting(10, min=1, max=100_000, doc="passes over the training data")
    batch: int = setting(64, min=1, max=1_000_000, doc="examples a step")
    seed: int = setting(0, min=0, doc="of weights, order and noise")
    optimizer: Optimizer = DEFAULT_OPTIMIZER()
    threads: int = setting(1, min=1, max=1024, doc="processor threads; the last bits of a sum depend on them")
    schedule: str = setting("constant", choices=("constant", "cosine"), doc="of the learning rate, over all steps")
    early_stop: EarlyStop | None = None


@dataclass(frozen=True)
class Recipe:
    """A recipe, whole and checked. `model` holds parameters of the spec."""

    model: Mapping[str, Any]
    data: DataSet
    train: Train

    def to_yaml(self) -> str:
        """Every key, defaults included; reads back as the same recipe."""
        model = {name: list(value) if isinstance(value, tuple) else value for name, value in self.model.items()}
        record = {"model": model, "data": self.data.plain(), "train": self.train.plain()}
        return yaml.safe_dump(record, sort_keys=False)


def read_recipe(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """The recipe of a file under overrides by dotted key. Raises `ModgraphError` with every mistake."""
    report = Report()
    if not Path(path).exists():
        raise ModgraphError([errors.NoRecipe(path=str(path))])
    source = read(path, report)
    if source is None:
        raise ModgraphError(report.diagnostics)
    tree = read_tree(source)
    for key, value in (overrides or {}).items():
        tree.put(key, value)
    recipe = _recipe(tree, report)
    if recipe is None or report.errors:
        raise ModgraphError(report.in_order())
    return recipe


def _recipe(tree: Branch, report: Report) -> Recipe | None:
    for key in tree.items:
        if key not in SECTIONS:
            suggestion = did_you_mean(key, SECTIONS, "its sections are: {known}")
            span = tree.keys.get(key)
            report.add(errors.UnknownKey(span=span, section="a recipe", key=key, suggestion=suggestion))
    sections = {name: _branch(tree, name, report) for name in SECTIONS}
    data = read_section(DataSet, sections["data"], "data", report)  # type: ignore[type-abstract]
    train = read_section(Train, sections["train"], "train", report)
    model = {name: leaf.value for name, leaf in sections["model"].items.items() if isinstance(leaf, Leaf)}
    return Recipe(model, data, train) if data is not None and train is not None else None


def _branch(tree: Branch, name: str, report: Report) -> Branch:
    item = tree.items.get(name)
    if isinstance(item, Branch):
        return item
    if isinstance(item, Leaf) and item.value is not None:
        problem = f"must be a mapping, not {item.value!r}"
        report.add(errors.BadValue(span=item.span, key=name, problem=problem, meaning="a section of the recipe"))
    return Branch(span=tree.span)
