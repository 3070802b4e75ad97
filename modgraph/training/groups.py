"""Groups of the training data, such as its domains: what is held out of each, and which of each a step sees."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.torch import generator_for
from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.data.errors import DataDoesNotFit, UnknownGrouping
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.training.recipe import Train


def places_by_group(arrays: Arrays, by: str | None) -> list[NDArray[np.int64]]:
    """The places of each group's examples; of all in one without a grouping. Raises `ModgraphError`."""
    if by is None:
        return [np.arange(len(arrays))]
    if by not in arrays.groups:
        suggestion = did_you_mean(by, arrays.groups, "groupings of this data are: {known}")
        raise ModgraphError([UnknownGrouping(name=by, suggestion=suggestion)])
    words = arrays.groups[by]
    return [np.flatnonzero(words == group) for group in np.unique(words)]


def with_validation(splits: dict[str, Arrays], train: Train) -> dict[str, Arrays]:
    """The splits, a share of each group of the training data held out if the recipe asks for it.

    Raises `ModgraphError`.
    """
    arrays = splits[TRAIN]
    groups = places_by_group(arrays, train.by)
    if not train.validation:
        return splits
    if VALIDATION in splits:
        reason = "the data has a validation split of its own"
        raise ModgraphError([DataDoesNotFit(reason=reason, way_out="leave out train.validation")])
    rng = np.random.default_rng((train.seed, 1))
    learnt, held = [], []
    for places in groups:
        order = places[rng.permutation(len(places))]
        kept = max(1, round(train.validation * len(places)))
        if kept >= len(places):
            raise ModgraphError([DataDoesNotFit(reason=f"{len(places)} examples are too few to hold some out")])
        learnt.append(order[kept:])
        held.append(order[:kept])
    mixed = [parts[0] if len(parts) == 1 else rng.permutation(np.concatenate(parts)) for parts in (learnt, held)]
    return {**splits, TRAIN: arrays.take(mixed[0]), VALIDATION: arrays.take(mixed[1])}


class Order:
    """Which examples each step of an epoch sees: `batch` of each group, a group that ends beginning anew.

    Without grouping and a number of steps, an epoch is one pass, and its last step may see fewer.
    """

    def __init__(self, arrays: Arrays, train: Train) -> None:
        self.groups = [torch.from_numpy(places) for places in places_by_group(arrays, train.by)]
        self.batch = train.batch
        self.one_pass = train.by is None and train.steps_per_epoch is None
        self.steps = train.steps_per_epoch or math.ceil(len(arrays) / (train.batch * len(self.groups)))

    def draw(self, seed: int, epoch: int, since: int = 0) -> Iterator[Tensor]:
        """The examples of each step of an epoch, from step `since` on, drawn as they are needed."""
        groups = enumerate(self.groups)
        columns = [self._stream(places, _generator(seed, epoch, group), since) for group, places in groups]
        for step in zip(*columns, strict=True):
            yield torch.cat(step)

    def _stream(self, places: Tensor, generator: torch.Generator, since: int) -> Iterator[Tensor]:
        """A group's part of each step, from one random order of the group after another."""
        passes, begun = divmod(since * self.batch, len(places))
        for _ in range(passes):
            torch.randperm(len(places), generator=generator)
        left = places[torch.randperm(len(places), generator=generator)][begun:]
        for step in range(since, self.steps):
            size = min(self.batch, len(places) - step * self.batch) if self.one_pass else self.batch
            parts = [left]
            missing = size - len(left)
            while missing > 0:
                parts.append(places[torch.randperm(len(places), generator=generator)])
                missing -= len(places)
            drawn = torch.cat(parts)
            yield drawn[:size]
            left = drawn[size:]


def _generator(seed: int, epoch: int, group: int) -> torch.Generator:
    """Each group has one of its own, so that none is drawn further ahead than the others need."""
    return generator_for(seed, "order", epoch, *([group] if group else []))
