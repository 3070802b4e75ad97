"""Starting, resuming and loading runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from modgraph.backends.torch import Model, build
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.program import Program, load
from modgraph.training.checkpoint import newest_checkpoint
from modgraph.training.data import TRAIN, Arrays
from modgraph.training.engine import Engine, evaluate, load_weights
from modgraph.training.errors import BadCheckpoint, NotForEval
from modgraph.training.recipe import Recipe, read_recipe
from modgraph.training.run_directory import RunDirectory


@dataclass(frozen=True)
class Run:
    """A run on disk. `overrides` choose its data anew."""

    directory: RunDirectory
    overrides: Mapping[str, Any]

    @property
    def path(self) -> Path:
        return self.directory.path

    @cached_property
    def graph(self) -> Graph:
        return self.directory.read_graph()

    @cached_property
    def recipe(self) -> Recipe:
        return read_recipe(self.directory.recipe, self.overrides)

    def model(self, device: str = "cpu") -> Model:
        """The model with the weights of the newest checkpoint, in evaluation mode. Raises `ModgraphError`."""
        checkpoint = newest_checkpoint(self.directory.checkpoints)
        if checkpoint is None:
            reason = "the run has none yet: no epoch was finished"
            raise ModgraphError([BadCheckpoint(path=str(self.directory.checkpoints), reason=reason)])
        model = build(self.graph, self.recipe.train.seed)
        load_weights(model, checkpoint, str(self.directory.checkpoints))
        return model.to(device).eval()

    def splits(self) -> dict[str, Arrays]:
        """The arrays of every split of its data."""
        return self.recipe.data.splits(self.graph)

    def test_data(self) -> dict[str, Arrays]:
        """The arrays of every split that was not learnt from."""
        return {name: arrays for name, arrays in self.splits().items() if name != TRAIN}

    def description(self) -> dict[str, Any]:
        """Names of classes and how inputs were made, for those who deploy the model."""
        return self.recipe.data.description()


def load_run(path: str | Path, **data: Any) -> Run:
    """A run directory; keywords choose keys of its data anew (`seed=1`). Raises `ModgraphError`."""
    directory = RunDirectory(Path(path))
    directory.read_record()
    return Run(directory, {f"data.{key}": value for key, value in data.items()})


def data_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of `data` among dotted overrides. Raises `ModgraphError` for any other key."""
    wrong = [name for name in overrides if not name.startswith("data.")]
    if wrong:
        raise ModgraphError([NotForEval(name=name) for name in wrong])
    return {name.removeprefix("data."): value for name, value in overrides.items()}


def start(spec: str, recipe_path: str | None, overrides: Mapping[str, Any], out: str | None) -> Engine:
    """A new training of a spec, its run directory made. Raises `ModgraphError`."""
    path = recipe_path or str(Path(spec).with_suffix(".yaml"))
    recipe = read_recipe(path, {_key(name): value for name, value in overrides.items()})
    program: Program = load(spec, **recipe.model)
    directory = RunDirectory(Path(out or f"runs/{Path(spec).stem}"))
    data = recipe.data.splits(program.ir)[TRAIN]
    engine = Engine(program.ir, recipe.train, data, directory)
    assert program.source is not None
    directory.create(program.source.text, program.ir, recipe.to_yaml())
    return engine


def _key(name: str) -> str:
    """A plain name sets a parameter of the model, a dotted one a key of the recipe."""
    return name if "." in name else f"model.{name}"


def resume(path: str) -> Engine:
    """A run taken up where its newest checkpoint left it. Raises `ModgraphError`."""
    run = load_run(path)
    engine = Engine(run.graph, run.recipe.train, run.splits()[TRAIN], run.directory)
    engine.restore()
    return engine


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use so many processor threads.

    The recipe says how many, not the machine: sums would differ in their last bits, and threads that wait for each
    other on a busy processor are slower by far than a single one.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def finish(engine: Engine) -> dict[str, Any]:
    """Train to the end, test on every other split, and record it: metrics by `split.metric`."""
    metrics: dict[str, Any] = {}
    with threads(engine.train.threads):
        engine.run()
        metrics |= {"epochs": engine.epoch, "steps": engine.step}
        for split, arrays in load_run(engine.directory.path).test_data().items():
            for name, value in evaluate(engine.model, arrays).items():
                metrics[f"{split}.{name}"] = value
    engine.directory.write_record({"status": "finished", "metrics": metrics})
    return metrics
