"""What a model's outputs read of one axis of an input, found by changing the input, against what the graph says."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import torch
from torch import Tensor

from modgraph.ir import Result
from modgraph.ir.analysis.causality import Causality, Reads, Tokens
from modgraph.ir.analysis.lattice import Interval, Reach
from tests.assault.differential.case import Case, in_64_bits

PLACES = 3  # of an axis that are changed
LARGE = 10.0  # by how much numbers change


def list_axes(case: Case) -> Iterator[Tokens]:
    """Every axis of every input."""
    for name, type_ in case.graph.input_types.items():
        if type_.dtype != "length":
            yield from (Tokens(Result(name), axis) for axis in range(-len(type_.shape), 0))


def find_wrong(case: Case, training: bool, axes: list[Tokens], rng: Random) -> Iterator[str]:
    """What outputs read though the graph says that they do not."""
    outputs = compute(case, training, case.batch)
    for tokens in axes:
        causality = Causality.build(case.graph, tokens, training)
        size = case.batch[tokens.value.node].shape[tokens.axis]
        for place in sorted({size - 1, *rng.sample(range(size), min(size, PLACES - 1))}) if size else []:
            changed = compute(case, training, change(case, tokens, place, rng))
            for name, result in case.graph.outputs.items():
                moved = differ(outputs[name], changed[name])
                reads = causality.read(result)
                wrong = list_beyond(moved, causality.reaches.get(result, {}), place)
                wrong += [] if reads is None else list_beyond(moved, as_reach(reads), place)
                if wrong:
                    yield f"{name}{wrong[0]} reads place {place} of axis {tokens.axis} of {tokens.value.node}"


def is_future_read(case: Case, training: bool, tokens: Tokens, output: str, axis: int, rng: Random) -> bool:
    """Whether entries of an output move with a later place of an input."""
    before = compute(case, training, case.batch)[output]
    for place in range(1, case.batch[tokens.value.node].shape[tokens.axis]):
        after = compute(case, training, change(case, tokens, place, rng))[output]
        if differ(before, after).narrow(axis, 0, min(place, before.shape[axis])).any():
            return True
    return False


def change(case: Case, tokens: Tokens, place: int, rng: Random) -> dict[str, Tensor]:
    """The batch with other numbers or ids at one place of the first example."""
    batch = {name: value.clone() for name, value in case.batch.items()}
    at = batch[tokens.value.node][0].select(tokens.axis, place)
    if at.is_floating_point():
        generator = torch.Generator().manual_seed(rng.randrange(2**31))
        at.copy_(torch.nan_to_num(at) + LARGE * torch.randn(at.shape, dtype=at.dtype, generator=generator))
    else:
        type_ = case.graph.input_types[tokens.value.node]
        at.copy_((at + 1) % (type_.size or min([axis.size or 1 for axis in type_.ends], default=1)))
    return batch


def compute(case: Case, training: bool, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The outputs of the first example, with zeros in padding."""
    case.model.train(training)
    torch.manual_seed(5)
    with torch.no_grad(), in_64_bits():
        found = case.without_padding(case.model.compute(batch, moves=False).outputs)
    case.model.eval()
    return {name: value[0] for name, value in found.items() if case.types[name].per == "example"} | {
        name: value for name, value in found.items() if case.types[name].per == "batch"
    }


def differ(before: Tensor, after: Tensor) -> Tensor:
    """Where two values differ by more than rounding."""
    same = torch.isclose(before, after, rtol=1e-8, atol=1e-8, equal_nan=True)
    return ~same


def list_beyond(moved: Tensor, reach: Reach, place: int) -> list[tuple[int, ...]]:
    """The entries that moved with a place which no range of a reach contains."""
    return [index for index in map(tuple, moved.nonzero().tolist()) if not reaches(reach, index, place)]


def as_reach(reads: Reads) -> Reach:
    """What an entry reads, as a reach by its index along an axis."""
    return {frozenset() if reads.axis is None else frozenset({(reads.axis, 1)}): Interval(reads.low, reads.high)}


def reaches(reach: Reach, index: tuple[int, ...], place: int) -> bool:
    """Whether an entry may read a place."""
    for terms, (low, high) in reach.items():
        start = sum(factor * index[axis] for axis, factor in terms if isinstance(axis, int))
        if (low is None or start + low <= place) and (high is None or place <= start + high):
            return True
    return False
