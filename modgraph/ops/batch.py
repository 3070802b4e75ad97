"""Statistics over the examples of a batch, and records of them, for losses and for rules of states. All processes count
as one batch."""

from __future__ import annotations

from dataclasses import replace

from modgraph.declare import Operand, own_module, positions_of, setting
from modgraph.declare.indexing import Indexing, Reading, Use, everywhere, move_axes
from modgraph.ops.op import Op
from modgraph.types import Axes, Misfit, TensorType

AXES = "further axes, by name or counted from the last; by default the axis of tokens, N of [..., N, D]"


class _OverBatch(Op):
    """Base of ops over all examples of a batch, and along some axes."""

    module = own_module("positions")
    masks = "..."
    over_batch = True

    axes: tuple[str | int, ...] | None = setting(None, max=-1, axis=True, doc=AXES)

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (x,) = found
        if x.per == "batch":
            raise Misfit("it takes a value of each example, and this is one over the batch already", "")
        given = (-2,) * (len(x.shape) > 1) if self.axes is None else self.axes
        positions = positions_of(given, x, self.name)
        kept = tuple(axis for at, axis in enumerate(x.shape, start=-len(x.shape)) if at not in positions)
        padded = next((axis.name for axis in kept if axis.is_padded), None)
        if padded is not None:
            reason = f'examples differ in their length along "{padded}"'
            raise Misfit(reason, f'go over it too: {self.name}("{padded}")')
        axes.bound["positions"] = tuple(positions)
        return (replace(x.with_shape(kept), per="batch"),)

    def indexing(self, use: Use) -> Indexing:
        (shape,), over = use.shapes, use.signature.axes["positions"]
        kept = [axis for axis in range(-len(shape), 0) if axis not in over]
        summed = {axis: everywhere(shape[axis]) for axis in over}
        return ((Reading(0, move_axes(shape, lambda axis: kept.index(axis) - len(kept), summed)),),)


class BatchMean(_OverBatch, name="batch_mean", synonyms="mean_over_batch batch_average expectation"):
    """The mean over all examples of a batch and along axes, without padding; by default along the axis of tokens.

    The result is one value for the batch. Losses and rules of states may use it, outputs may not. `batch_mean([])`
    averages over examples only. The balance loss of Switch (Fedus et al., 2022, equation 4) is `experts *
    sum(batch_mean(chosen) * batch_mean(probabilities), axis=-1)`.
    """

    example = "input x: float[5, 6] y = x -> batch_mean loss mean(y ** 2, axis=-1) output x"


class BatchVariance(_OverBatch, name="batch_variance", synonyms="variance_over_batch batch_var"):
    """The mean squared distance from the mean, over examples and axes as in `batch_mean`."""

    example = "input x: float[5, 6] y = x -> batch_variance(-2) loss mean(y, axis=-1) output x"


class KeepRecent(Op, name="keep_recent", synonyms="ring_buffer fifo memory_bank enqueue history"):
    """The most recent values of a record: appends those of a batch in its order, and drops the oldest.

    `next errors = (errors, error) -> keep_recent` with `state errors: float[500] = zeros` keeps the last 500 errors. A
    second record, which starts at zeros and receives ones, marks the places that are filled. A batch longer than the
    record leaves its last values (SEMA's authors keep the first).
    """

    example = """input x: float[6] state recent: float[6, 4] = zeros next recent = (recent, x) -> keep_recent
      y = x + (recent -> mean(axis=-1)) output y"""
    operands = (Operand("record", "... L", help="its last axis says how many values it keeps"), Operand("x", "..."))

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        record, x = found
        if record.per != "batch":
            advice = "declare one: state recent: float[500] = zeros"
            raise Misfit(f"a record is a state, and this is {record}", advice, 0)
        if x.per == "batch":
            raise Misfit("it appends a value of each example, and this is one over the batch", "", 1)
        return (record,)
