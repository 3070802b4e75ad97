"""What differs between learning and use: gradients that stop, values of training alone."""

from __future__ import annotations

from modgraph.declare import Operand
from modgraph.ops.op import Op
from modgraph.ops.zeros import join_bounds
from modgraph.types import Axes, Misfit, TensorType


class StopGradient(Op, name="stop_gradient", synonyms="detach no_grad stopgrad"):
    """The value itself, through which no gradient flows."""

    example = "input x: float[5, 6] y = x * (x -> stop_gradient) output y"
    keeps_zeros = True
    narrows = "x"


class TrainingOrInference(Op, name="training_or_inference", synonyms="train_or_eval in_train_phase is_training"):
    """The first value in training, the second in inference: `(a, b) -> training_or_inference`.

    An export takes the second, and leaves out what only the first needs.
    """

    nondifferentiable = ("inference",)
    example = "input x: float[5, 6] y = (x -> relu, x) -> training_or_inference output y"
    operands = (Operand("training", "..."), Operand("inference", "..."))
    outside_training = "inference"
    propagate = join_bounds

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        training, inference = found
        if not training.meets(inference):
            raise Misfit(f"in training it would be {training}, in inference {inference}", "give both one type")
        return (inference,)
