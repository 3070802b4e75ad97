"""A loop that ends by a value: one step function applied until nothing goes on. B is the batch axis, T that of steps.

C are the axes of the entries that go on or end by themselves, such as tokens; without any, an example is one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._guards import detect_fake_mode
from torch._higher_order_ops.while_loop import while_loop_op
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from modgraph.nn.scan import Outside, Replaced, Tensors

Round = Callable[[Tensors, Tensors], tuple[Tensors, Tensor, Tensors]]


def loop(
    step: Round,
    sequences: Tensors,
    states: Tensors,
    shared: Sequence[int],
    length: Tensor | None = None,
    narrow: Callable[[Tensor], Round] | None = None,
    agree: Callable[[bool], bool] = bool,
) -> list[Tensor]:
    """Apply a step along sequences [B, T, ...] until no entry goes on, or to their end.

    The step takes slices [B, ...] and states [B, C, ...]. It returns the next states, a value [B, C] that is zero for
    entries that end, and results: first those that are final, [B, C, ...], then those that are stacked, [B, ...]; each
    of these has the first `shared` axes of C. From its end on, or from an example's `length` [B], an entry's states
    stay as they are. Returns final results of the last step of each entry, zero without one, and stacked ones
    [B, T, ...], zero from its end on. With `narrow`, which gives the step for some examples alone, examples that have
    ended are not computed. `agree` says whether to end where all examples of this process have ended or not, so that
    processes which compute a step together take as many.
    """
    steps = sequences[0].shape[1]
    length = None if length is None else length.to(sequences[0].device)
    if torch.compiler.is_exporting():
        return _export(step, sequences, states, shared, length)
    if steps == 0:
        ones = [each.new_zeros(each.shape[0], 1, *each.shape[2:]) for each in sequences]
        found = loop(step, ones, states, shared, ones[0].new_zeros(len(ones[0]), dtype=torch.int64))
        first = len(found) - len(shared)
        return [*found[:first], *(each[:, :0] for each in found[first:])]
    entries = Entries(states)
    stacked: list[Tensors] = []
    for time, slices in enumerate(zip(*(each.unbind(1) for each in sequences), strict=True)):
        there, rows = _find_reached(time, length), entries.find_rows()
        is_idle = len(slices[0]) == 0 or (rows is not None and len(rows) == 0)
        if agree(bool(stacked) and is_idle):  # the first round gives the shapes of results
            break
        if rows is None or narrow is None:
            entries, now = run_round(step, slices, entries, shared, there)
        else:
            own, some = [take_rows(each, rows) for each in slices], entries.take(rows)
            some, of_some = run_round(narrow(rows), own, some, shared, there if there is None else there[rows])
            now = [x.new_zeros(len(slices[0]), *x.shape[1:]).index_copy(0, rows, x) for x in of_some]
            entries = entries.put(rows, some)
        stacked.append(now)
    rest = steps - len(stacked)
    columns = [torch.stack(list(each), dim=1) for each in zip(*stacked, strict=True)]
    return [*entries.final, *(torch.cat([x, x.new_zeros(len(x), rest, *x.shape[2:])], dim=1) for x in columns)]


class Entries(NamedTuple):
    """The entries of a loop: their states, which of them go on [B, C] (None is all), their final results so far."""

    states: Tensors
    going: Tensor | None = None
    final: Tensors = ()

    def find_rows(self) -> Tensor | None:
        """The examples that go on; None is all, as is not known while a graph is compiled."""
        if self.going is None or torch.compiler.is_compiling():
            return None
        on = self.going.flatten(1).any(1) if self.going.dim() > 1 else self.going
        return on.nonzero().squeeze(1) if bool((~on).any()) else None

    def take(self, rows: Tensor) -> Entries:
        """Those of some examples."""
        states, final = ([take_rows(each, rows) for each in group] for group in (self.states, self.final))
        return Entries(states, None if self.going is None else self.going[rows], final)

    def put(self, rows: Tensor, some: Entries) -> Entries:
        """All entries, where those of some examples have changed and the others have ended."""
        groups = (self.states, some.states), (self.final, some.final)
        states, final = ([old.index_copy(0, rows, new) for old, new in zip(*pair, strict=True)] for pair in groups)
        assert self.going is not None and some.going is not None
        return Entries(states, torch.zeros_like(self.going).index_copy(0, rows, some.going), final)


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Some examples of x [B, ...], without a copy if all are one."""
    return x[: len(rows)] if x.stride(0) == 0 else x.index_select(0, rows)


def run_round(
    step: Round, slices: Tensors, entries: Entries, shared: Sequence[int], there: Tensor | None
) -> tuple[Entries, Tensors]:
    """Run one step for the entries that go on, of the examples that are `there` [B]; None is all.

    Returns the entries after it, and the stacked results of this step.
    """
    following, goes_on, results = step(slices, entries.states)
    goes_on, active = goes_on != 0, entries.going
    if there is not None:
        there = _fit(there, goes_on)
        active = there.expand_as(goes_on) if active is None else active & there
    first = len(results) - len(shared)
    now, stacked = results[:first], results[first:]
    if active is None:
        return Entries(following, goes_on, now), stacked
    final = entries.final or [torch.zeros_like(each) for each in now]
    kept, last = (
        [torch.where(_fit(active, new), new, old) for new, old in zip(*pair, strict=True)]
        for pair in ((following, entries.states), (now, final))
    )
    zeroed = [x.masked_fill(~_fit(active, x, axes), 0) for x, axes in zip(stacked, shared, strict=True)]
    return Entries(kept, active & goes_on, last), zeroed


def _find_reached(time: int | Tensor, length: Tensor | None) -> Tensor | None:
    """The examples that have a step."""
    return None if length is None else time < length


def _fit(mask: Tensor, x: Tensor, shared: int | None = None) -> Tensor:
    """Fit a mask [B, C] to x [B, ...], which has the first `shared` axes of C, or all."""
    if shared is not None and shared < mask.dim() - 1:
        mask = mask.flatten(1 + shared).any(-1)
    return mask[(..., *[None] * (x.dim() - mask.dim()))]


def _export(
    step: Round, sequences: Tensors, states: Tensors, shared: Sequence[int], length: Tensor | None
) -> list[Tensor]:
    """Trace the loop as one node, since a traced loop would keep the number of rounds of its example.

    That node needs every captured tensor as an operand, and operands and results that share no memory.
    """
    steps = sequences[0].shape[1]
    given = [*sequences, *states, *([] if length is None else [length])]
    fake: Any = detect_fake_mode(given)
    with (
        disable_proxy_modes_tracing(),
        fake.shape_env.ignore_fresh_unbacked_symbols(),
        Outside(given) as outside,
    ):
        _, example, results = step([each[:, 0] for each in sequences], states)
    first = len(results) - len(shared)
    like = sequences[0]
    going = _zeros(like, example, torch.bool).logical_not()
    final = [_zeros(like, each, each.dtype) for each in results[:first]]
    stacked = [_zeros(like, each, each.dtype, steps) for each in results[first:]]
    time = torch.zeros((), dtype=torch.int64, device=like.device)
    carried = [time, going, *(each.clone(memory_format=torch.contiguous_format) for each in states), *final, *stacked]
    own = len(carried)

    def goes_on(*given: Tensor) -> Tensor:
        return (given[0] < given[own].shape[1]) & given[1].any()

    def run(*given: Tensor) -> tuple[Tensor, ...]:
        time, going, *rest = given[:own]
        along, taken = given[own : own + len(sequences)], given[own + len(sequences) :]
        there = None if length is None else taken[0]
        with Replaced(outside.tensors, taken[length is not None :]):
            slices = [each.index_select(1, time.reshape(1)).squeeze(1) for each in along]
            entries = Entries(rest[: len(states)], going, rest[len(states) : len(states) + first])
            after, new_columns = run_round(step, slices, entries, shared, _find_reached(time, there))
            places = torch.arange(given[own].shape[1], device=time.device) == time
            filled = [
                torch.where(places.reshape(1, -1, *[1] * (new.dim() - 1)), new.unsqueeze(1), old)
                for new, old in zip(new_columns, rest[len(states) + first :], strict=True)
            ]
            assert after.going is not None
            return tuple(each.clone() for each in (time + 1, after.going, *after.states, *after.final, *filled))

    further = (*sequences, *([] if length is None else [length]), *outside.tensors)
    found: Any = while_loop_op(goes_on, run, tuple(carried), further)  # type: ignore[arg-type]
    return list(found[2 + len(states) :])


def _zeros(like: Tensor, of: Tensor, dtype: torch.dtype, *steps: int) -> Tensor:
    """Zeros in the shape of a result of a step, with an axis of steps behind the batch axis."""
    return torch.zeros(like.shape[0], *steps, *of.shape[1:], dtype=dtype, device=like.device)
