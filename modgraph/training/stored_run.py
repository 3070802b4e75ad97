"""A run on disk: its graph, its model, its data, its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import torch

from modgraph.backends.torch import Model, build
from modgraph.data import TRAIN, VALIDATION, Arrays, DataSet
from modgraph.data.declaration import drop_unknown_classes, find_unreadable, refuse_unreadable
from modgraph.data.errors import DataChanged
from modgraph.data.fingerprint import Fingerprint, find_changes, from_json, suggest_way_out
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph
from modgraph.ir.analysis.division import find_holders
from modgraph.log import log
from modgraph.nn import Group
from modgraph.store.checkpoint import Checkpoint, read_newest_checkpoint
from modgraph.store.errors import BadCheckpoint
from modgraph.store.run_directory import REPAIRED, STARTED, UNREADABLE, RunDirectory
from modgraph.training.errors import NotForEval
from modgraph.training.recipe import Recipe, read_recipe, with_validation
from modgraph.training.state import refuse_other_weights

T = TypeVar("T")


@dataclass(frozen=True)
class StoredRun:
    """A run on disk. `overrides` choose its data anew. `given` are data that were given in Python, the run's own or,
    where they are chosen `anew`, others."""

    directory: RunDirectory
    overrides: Mapping[str, Any] = field(default_factory=dict)
    given: DataSet | None = field(default=None, repr=False)
    anew: bool = False

    @classmethod
    def load(cls, path: str | Path, data: Mapping[str, Any]) -> Self:
        """Open the run in a folder, with other values for keys of its data. Raises `ModgraphError`."""
        directory = RunDirectory(Path(path))
        directory.check()
        return cls(directory, {f"data.{key}": value for key, value in data.items()})

    @property
    def path(self) -> Path:
        return self.directory.path

    def __repr__(self) -> str:
        """Reads no file, so that it works for a damaged run."""
        overridden = "".join(f", {key}={value!r}" for key, value in self.overrides.items())
        return f"<Run in {self.path}{overridden}>"

    @cached_property
    def began_with(self) -> Graph:
        """The graph that the run began with."""
        return self.directory.read_graph()

    @cached_property
    def graph(self) -> Graph:
        """The graph of its current model."""
        return self.directory.graph_now()

    @cached_property
    def recipe(self) -> Recipe:
        return read_recipe(self.directory.recipe, self.overrides)

    @property
    def _data(self) -> DataSet:
        """Its data set, with the files that the run keeps."""
        return self.given or self.recipe.data.with_kept_files(self.path)

    def with_data(self, data: DataSet | None, anew: bool = False) -> Self:
        """The run with data that are given in Python."""
        return self if data is None else replace(self, given=data, anew=anew)

    def checkpoint(self, best: bool = True) -> Checkpoint:
        """Return the best checkpoint if the recipe requests it, else the newest. Raises `ModgraphError`."""
        folder = self.directory.checkpoints
        found = read_newest_checkpoint(folder, best=best, origin=self.directory.origin())
        if found is None:
            reason = "the run has none yet: no epoch is finished"
            raise ModgraphError([BadCheckpoint(path=str(folder), reason=reason)])
        log.debug(f"the checkpoint of step {found.step}, epoch {found.epoch}, is taken")
        return found

    def model(
        self,
        device: str | torch.device = "cpu",
        checkpoint: Checkpoint | None = None,
        group: Group | None = None,
    ) -> Model:
        """Return the model with the weights of its checkpoint, or of a given one, in evaluation mode; the processes of
        a `group` divide its pools. Raises `ModgraphError`."""
        checkpoint = checkpoint or self.checkpoint()
        model = build(checkpoint.graph, self.recipe.train.seed, group=group)
        own = model.state_dict()
        others = find_holders(checkpoint.graph, 1 if group is None else group.size).keys() - own.keys()
        refuse_other_weights(own, checkpoint, others)
        model.load_state_dict({name: checkpoint.weights[name] for name in own})
        return model.to(device).eval()

    def splits(self) -> dict[str, Arrays]:
        """Return the arrays of every split of its data, as they are now."""
        found = self._data.splits(self.graph)
        return found if self.anew else with_validation(found, self.recipe.train)

    def so_far(self, splits: Mapping[str, Arrays]) -> dict[str, Arrays]:
        """Return splits without the classes of tasks to come, in the middle of a training on several tasks."""
        if self.recipe.train.algorithm.one_phase:
            return dict(splits)
        return {name: drop_unknown_classes(arrays, self.graph) for name, arrays in splits.items()}

    def test_data(self) -> dict[str, Arrays]:
        """Return the arrays of the test splits, of the tasks so far. Raises `ModgraphError`, also where they have
        changed since the run began."""
        found = unseen(self.splits())
        self.refuse_changed(found, unseen(self.fingerprints))
        return self.so_far(found)

    @cached_property
    def fingerprints(self) -> dict[str, Fingerprint]:
        """The fingerprints of the splits that the run began with, or repaired since. Raises `ModgraphError`."""
        try:
            return from_json(self.directory.read_data_record())
        except ValueError as error:
            raise self.directory.fault(str(error)) from error

    def keep_unreadable(self, tests: Mapping[str, Arrays]) -> None:
        """Record the test splits with a file that cannot be read. Once it is repaired, the run resumes, though its data
        have changed. Raises `ModgraphError` if there is one."""
        if found := [*find_unreadable(tests)]:
            self.directory.mark(STARTED, **{UNREADABLE: found})
        refuse_unreadable({split: tests[split] for split in found})

    def refuse_changed(
        self, splits: Mapping[str, Arrays], known: Mapping[str, Fingerprint] | None = None, way_out: str | None = None
    ) -> None:
        """Raises `ModgraphError` where splits have changed since the run began, unless its data are overridden."""
        if self.overrides or self.anew:
            return
        expected = {name: self.fingerprints.get(name) for name in splits} if known is None else known
        changes = find_changes(expected, {name: Fingerprint.compute(self._data, each) for name, each in splits.items()})
        if changes:
            path, advice = str(self.path), way_out or suggest_way_out(self.recipe.data)
            raise ModgraphError(DataChanged(path=path, split=at, change=each, way_out=advice) for at, each in changes)

    def refuse_to_resume(self, splits: Mapping[str, Arrays], way_out: str) -> None:
        """Raises `ModgraphError` where splits have changed since the run began. A test split that could not be read may
        have: its fingerprint is that of the repaired files."""
        record = self.directory.read_record()
        again = {split: splits[split] for split in record.get(UNREADABLE, ()) if split in splits}
        others = {name: each for name, each in splits.items() if name not in again}
        known = {name: each for name, each in self.fingerprints.items() if name not in again}
        self.refuse_changed(others, known, way_out)
        refuse_unreadable(again)
        if again:
            repaired = {split: asdict(Fingerprint.compute(self._data, arrays)) for split, arrays in again.items()}
            self.directory.mark(STARTED, **{UNREADABLE: [], REPAIRED: {**record.get(REPAIRED, {}), **repaired}})
            log.info(f"files of {', '.join(again)} that could not be read are repaired, so it is measured as it is now")

    def description(self) -> dict[str, Any]:
        """Return the names of classes and how inputs are made, for deploying the model."""
        return self._data.description()


def unseen(splits: Mapping[str, T]) -> dict[str, T]:
    """Return the splits for neither training nor validation."""
    return {name: value for name, value in splits.items() if name not in (TRAIN, VALIDATION)}


def load_run(path: str | Path, /, **data: Any) -> StoredRun:
    """Open a run directory; keywords override keys of its data (`seed=1`). Raises `ModgraphError`."""
    return StoredRun.load(path, data)


def select_data_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of `data` among dotted overrides. Raises `ModgraphError` for any other key."""
    wrong = [name for name in overrides if not name.startswith("data.")]
    if wrong:
        raise ModgraphError(NotForEval(name=name) for name in wrong)
    return {name.removeprefix("data."): value for name, value in overrides.items()}
