"""The order of an epoch: drawn as it is needed, the same however it is taken up."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from modgraph.backends.torch import make_generator
from modgraph.data import Arrays
from modgraph.data.batches import RandomOrder, batches
from tests.ordinary_run import some_examples

EXAMPLES = 23
WORDS = np.array(["a"] * 4 + ["b"] * 12 + ["c"] * 7)
ARRAYS = Arrays({"x": np.arange(EXAMPLES)}, {"domain": WORDS}, padded={"x": ((1, "x"),)})


def sample_order(batch: int, steps: int | None, seed: int, epoch: int) -> list[Tensor]:
    """All steps of an epoch without grouping, from all its passes laid end to end."""
    generator = make_generator(seed, "order", epoch)
    count = EXAMPLES if steps is None else steps * batch
    passes = [torch.randperm(EXAMPLES, generator=generator) for _ in range(math.ceil(count / EXAMPLES))]
    return list(torch.split(torch.cat(passes)[:count], batch))


PLANS = [(batch, steps) for batch in (1, 4, 23, 60) for steps in (None, 1, 13)]


@pytest.mark.parametrize(("batch", "count"), PLANS)
def test_an_epoch_is_one_pass_after_another(batch: int, count: int | None) -> None:
    order = RandomOrder(ARRAYS, batch, steps=count)
    for epoch in range(3):
        steps = list(order.draw(7, epoch))
        expected = sample_order(batch, count, 7, epoch)
        assert len(steps) == len(expected) == order.steps
        assert all(torch.equal(one, other) for one, other in zip(steps, expected, strict=True))


@pytest.mark.parametrize("by", [None, "domain"])
def test_an_epoch_goes_on_from_any_step_as_if_it_had_never_stopped(by: str | None) -> None:
    order = RandomOrder(ARRAYS, batch=5, steps=9, by=by)
    whole = list(order.draw(3, 1))
    for since in range(10):
        rest = list(order.draw(3, 1, since))
        assert len(rest) == 9 - since
        assert all(torch.equal(one, other) for one, other in zip(rest, whole[since:], strict=True))


@st.composite
def bucketed(draw: st.DrawFn) -> tuple[Arrays, dict[str, Any]]:
    """Examples of drawn lengths, and an order of them in buckets, with or without groups."""
    lengths = np.array(draw(st.lists(st.integers(0, 9), min_size=1, max_size=40)))
    groups = {"domain": np.array(draw(st.lists(st.sampled_from("abc"), min_size=len(lengths), max_size=len(lengths))))}
    arrays = Arrays({"time_length": lengths}, groups, padded={"x": ((1, "time_length"),)})
    by, steps = draw(st.sampled_from([None, "domain"])), draw(st.none() | st.integers(1, 12))
    return arrays, {"batch": draw(st.integers(1, 9)), "by": by, "steps": steps, "bucket": draw(st.integers(2, 6))}


@given(bucketed(), st.integers(0, 3))
@some_examples(60)
def test_a_bucket_deals_the_examples_of_its_steps_by_length(plan: tuple[Arrays, dict[str, Any]], epoch: int) -> None:
    """The same examples in as many steps, lengths of steps that do not overlap; each once in a pass."""
    arrays, known = plan
    order, plain = RandomOrder(arrays, **known), RandomOrder(arrays, **{**known, "bucket": None})
    whole, sampled = [list(each.draw(7, epoch)) for each in (order, plain)]
    assert len(whole) == order.steps == plain.steps
    for start in range(0, len(whole), known["bucket"]):
        dealt, before = [steps[start : start + known["bucket"]] for steps in (whole, sampled)]
        assert sorted(torch.cat(dealt).tolist()) == sorted(torch.cat(before).tolist())
        assert sorted(map(len, dealt)) == sorted(map(len, before))
        for group in set(arrays.groups["domain"]) if known["by"] else {None}:
            parts = [[at for at in step.tolist() if group in (None, arrays.groups["domain"][at])] for step in dealt]
            ranges = sorted(
                (arrays.values["time_length"][part].min(), arrays.values["time_length"][part].max()) for part in parts
            )
            assert all(one[1] <= other[0] for one, other in itertools.pairwise(ranges))
    if order.one_pass:
        assert sorted(torch.cat(whole).tolist()) == list(range(len(arrays)))
    for since in range(order.steps + 1):
        rest = list(order.draw(7, epoch, since))
        assert len(rest) == order.steps - since
        assert all(torch.equal(one, other) for one, other in zip(rest, whole[since:], strict=True))


@pytest.mark.parametrize("by", [None, "domain"])
def test_nothing_is_rendered_before_it_is_needed(by: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an epoch of 10^12 steps would fill the memory before the first."""
    permutations, plain = itertools.count(1), torch.randperm

    def counted(*arguments: Any, **options: Any) -> Tensor:
        assert next(permutations) <= 120
        return plain(*arguments, **options)

    monkeypatch.setattr(torch, "randperm", counted)
    for bucket in (None, 6):
        order = RandomOrder(ARRAYS, batch=5, steps=10**12, by=by, bucket=bucket)
        assert len(list(itertools.islice(order.draw(0, 0), 20))) == 20


def test_groups_have_equal_shares_and_each_is_passed_through_before_it_begins_anew() -> None:
    steps = list(RandomOrder(ARRAYS, batch=5, steps=9, by="domain").draw(0, 0))
    for group, size in {"a": 4, "b": 12, "c": 7}.items():
        stream = [place for step in steps for place in step.tolist() if WORDS[place] == group]
        assert len(stream) == 5 * 9
        for start in range(0, len(stream) - size + 1, size):
            assert len(set(stream[start : start + size])) == size


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_an_evaluation_sees_every_example_once_as_they_stand_whatever_processes_share_it(parts: int) -> None:
    arrays = Arrays({"x": np.arange(600)})
    shares = [list(batches(arrays, part, parts)) for part in range(parts)]
    found = sorted((indices.start, batch["x"]) for share in shares for indices, batch in share)
    assert torch.cat([rows for _, rows in found]).tolist() == list(range(600))
    assert [len(rows) for _, rows in found] == [256, 256, 88]
