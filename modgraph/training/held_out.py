"""What is held out of the training data, a share of each of its groups, to be measured every epoch."""

from __future__ import annotations

import numpy as np

from modgraph.data import TRAIN, VALIDATION, Arrays
from modgraph.data.batches import indices_by_group
from modgraph.data.errors import DataDoesNotFit
from modgraph.diagnostics import ModgraphError
from modgraph.training.sections import Train


def with_validation(splits: dict[str, Arrays], train: Train) -> dict[str, Arrays]:
    """The splits, a share of each group of the training data held out if the recipe asks for it.

    Raises `ModgraphError`.
    """
    arrays = splits[TRAIN]
    groups = indices_by_group(arrays, train.by)
    if not train.validation:
        return splits
    if VALIDATION in splits:
        reason = "the data has a validation split of its own"
        raise ModgraphError([DataDoesNotFit(reason=reason, way_out="leave out train.validation")])
    rng = np.random.default_rng((train.seed, 1))
    learnt, held = [], []
    for indices in groups:
        order = indices[rng.permutation(len(indices))]
        kept = max(1, round(train.validation * len(indices)))
        if kept >= len(indices):
            raise ModgraphError([DataDoesNotFit(reason=f"{len(indices)} examples are too few to hold some out")])
        learnt.append(order[kept:])
        held.append(order[:kept])
    mixed = [parts[0] if len(parts) == 1 else rng.permutation(np.concatenate(parts)) for parts in (learnt, held)]
    return {**splits, TRAIN: arrays.take(mixed[0]), VALIDATION: arrays.take(mixed[1])}
