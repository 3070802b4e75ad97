"""Losses and statistics, one number per example unless `over="batch"`.

A model's loss is the sum of its `loss` statements; losses per example are averaged over the batch.
"""

from __future__ import annotations

from modgraph.declare import Operand, Role, Signature, TorchModule, own_module, setting
from modgraph.ops.measures import ABSOLUTE_ERROR, ACCURACY, PERPLEXITY, SQUARED_ERROR
from modgraph.ops.op import Comparison, Op
from modgraph.types import Axes, Axis, Misfit, TensorType, may_meet, shapes_meet

MISSING_LABELS = "whether labels may be missing; a missing label is negative"
MISSING_NUMBERS = "whether numbers may be missing; a missing number is NaN"


class _Objective(Op):
    """Base of ops that a training minimises."""

    results = ("",)
    objective = True

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (result,) = super().infer(axes, found)
        if result.per == "batch":
            raise Misfit(f"it is a number for each example, and this is one over the batch: {found[0]}", "", 0)
        return (result,)


class _Likelihood(_Objective):
    """Base of negative log-likelihoods. Algorithms judge decisions by such a loss, if it is the loss itself."""

    masks = "..."
    likelihood = True


class CrossEntropy(
    _Likelihood,
    name="cross_entropy",
    synonyms="softmax_cross_entropy categorical_cross_entropy cross_entropy_loss nll nll_loss ce",
):
    """Cross-entropy, −w[label] log softmax(logits)[label], averaged over an example's positions without padding.

    `class_weights` w has a weight for each class, 1 by default. A label equal to `ignore` does not count. Classes
    before `since` are left out, as if their logits were −∞; a counted label must not be one of them. With `missing`, a
    negative label does not count, and an example without labels does not count in the loss's mean.
    """

    takes_logits = "logits"
    example = "input x: float[5, 6] y = x -> relu target label: class[5, 6] loss cross_entropy(y, label) output y"
    operands = (Operand("logits", "... C"), Operand("label", "...", dtype="class"))
    one_kind = True
    compares = Comparison("logits", "label", (ACCURACY, PERPLEXITY))
    module = own_module(weights="class_weights", **{each: each for each in ("ignore", "reduce", "since", "missing")})

    class_weights: tuple[float, ...] = setting((), min=0, doc="a weight for each class")
    ignore: int | None = setting(None, doc="the label that does not count; it need not be a class")
    reduce: str = setting("mean", choices=("mean", "sum"), doc="reduction over an example's positions")
    since: int = setting(0, min=0, doc="the first class that counts; a continual training masks old classes by it")
    missing: bool = setting(False, doc=MISSING_LABELS)

    def check(self, axes: Axes) -> None:
        classes, logits = axes["classes"], axes.resolve("C")
        if self.since >= logits:
            raise Misfit(f"none of {logits} classes would have a share", f"the last one is since={logits - 1}")
        if self.class_weights and len(self.class_weights) != logits:
            raise Misfit(f"{len(self.class_weights)} weights for {logits} classes", "give one weight for each class")
        if classes.size != logits:
            raise Misfit(f"{logits} logits for a label of {classes.size} classes", "make the two numbers equal")
        if not may_meet(classes, axes["C"]):
            raise Misfit(f"logits along {axes['C']} for a label of {classes}", f"make them: linear({classes.name})")


class BinaryCrossEntropy(
    _Likelihood,
    name="binary_cross_entropy",
    synonyms="bce bce_loss bce_with_logits bce_with_logits_loss binary_cross_entropy_with_logits sigmoid_cross_entropy",
):
    """Cross-entropy of yes or no, −label log σ(logit) − (1 − label) log σ(−logit), averaged over an example's labels
    without padding.

    A label is a class of two, or a number from 0 to 1; several labels along an axis are independent of each other.
    `class_weights` [n, p] multiplies the second term by n and the first by p, 1 by default. A class equal to `ignore`
    does not count. With `missing`, a negative class or a NaN does not count, and an example without labels does not
    count in the loss's mean.
    """

    takes_logits = "logits"
    example = "input x: float[6] y = x -> linear(3) target t: float[3] loss binary_cross_entropy(y, t) output y"
    operands = (Operand("logits", "..."), Operand("label", "..."))
    one_kind = True
    compares = Comparison("logits", "label", (ACCURACY,), binary=True)
    module = own_module(weights="class_weights", **{each: each for each in ("ignore", "reduce", "missing")})

    class_weights: tuple[float, ...] = setting((), min=0, doc="the weights of no and yes")
    ignore: int | None = setting(None, doc="the class that does not count; it may be other than 0 and 1")
    reduce: str = setting("mean", choices=("mean", "sum"), doc="reduction over an example's labels")
    missing: bool = setting(False, doc=f"{MISSING_LABELS}, or NaN")

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if len(found) == 2 and found[0].dtype == "float":
            self._check_label(*found)
            found = (found[0], TensorType("float", found[1].shape, per=found[1].per))
        return super().resolve(axes, found)

    def _check_label(self, logits: TensorType, label: TensorType) -> None:
        """Raise `Misfit` where a label has other classes than no and yes, or other axes than its logit."""
        if label.dtype == "class" and label.size != 2:
            advice = "compare a logit of each class: cross_entropy(logits, label)"
            raise Misfit(f"a label has 2 classes, no and yes, and this one has {label.size}", advice, 1)
        if label.dtype not in ("class", "float"):
            raise Misfit(f"a label is a class of two or a number, not {label}", "declare it: target label: class[2]", 1)
        if label.dtype == "float" and self.ignore is not None:
            raise Misfit("a label that is a number has no class to ignore", "mark it by NaN, with missing=true")
        further = logits.shape[len(label.shape) :]
        if len(further) == 1 and shapes_meet(logits.shape[:-1], label.shape):
            many = further[0].size != 1
            advice = "compare a logit of each class: cross_entropy(logits, label)"
            advice = advice if many else "take it without its axis: logits -> select(0, axis=-1)"
            raise Misfit(f"a label has one logit, and here it has an axis of {further[0]}", advice, 0)

    def check(self, axes: Axes) -> None:
        if len(self.class_weights) not in (0, 2):
            raise Misfit(f"{len(self.class_weights)} weights for no and yes", "give two: class_weights=[1, 5]")


class Gaussian(_Likelihood, name="gaussian", synonyms="gaussian_nll normal_nll"):
    """Negative log-likelihood, −log N(target; prediction, variance · identity), averaged over an example's positions
    without padding.

    A position is a vector, whose numbers are summed. The variance belongs to the model and is required. It weighs this
    loss against others, and algorithms that sample decisions compare them by it. With `missing`, a number that is NaN
    does not count, and an example without numbers does not count in the loss's mean.
    """

    example = "input x: float[6] y = x -> relu target t: float[6] loss gaussian(y, t, variance=0.1) output y"
    operands = (Operand("prediction", "... D"), Operand("target", "... D"))
    compares = Comparison("prediction", "target", (SQUARED_ERROR,))
    module = own_module("variance", reduce="reduce", missing="missing")

    variance: float = setting(min=1e-12, doc="variance of each number of the target")
    reduce: str = setting("mean", choices=("mean", "sum"), doc="reduction over an example's positions")
    missing: bool = setting(False, doc=MISSING_NUMBERS)


class _Error(_Objective):
    """Base of losses that average a function of prediction − target over all numbers of an example without padding."""

    operands = (Operand("prediction", "..."), Operand("target", "..."))
    compares = Comparison("prediction", "target", (SQUARED_ERROR, ABSOLUTE_ERROR))
    module = own_module(missing="missing")
    masks = "..."

    missing: bool = setting(False, doc=MISSING_NUMBERS)


class MSE(_Error, name="mse", synonyms="l2 squared_error mean_squared_error mse_loss"):
    """Squared error, averaged over all numbers of an example without padding.

    With `missing`, a number that is NaN does not count, and an example without numbers does not count in the loss's
    mean.
    """

    example = "input x: float[5, 6] y = x -> relu target t: float[5, 6] loss mse(y, t) output y"
    compares = Comparison("prediction", "target", (SQUARED_ERROR,))


class L1(_Error, name="l1", synonyms="mae mae_loss l1_loss absolute_error mean_absolute_error"):
    """Absolute error, averaged over all numbers of an example without padding; `missing` as in `mse`."""

    example = "input x: float[5, 6] y = x -> relu target t: float[5, 6] loss l1(y, t) output y"


class Huber(_Error, name="huber", synonyms="huber_loss smooth_l1 smooth_l1_loss"):
    """Half the squared error up to `delta`, beyond that delta · (|error| − delta / 2), averaged over all numbers of an
    example without padding; `missing` as in `mse`.

    Divided by `delta` it is the smooth L1 loss.
    """

    example = "input x: float[5, 6] y = x -> relu target t: float[5, 6] loss huber(y, t, delta=0.5) output y"
    module = own_module(missing="missing", delta="delta")

    delta: float = setting(1.0, min=1e-12, doc="the error from which the loss is linear")


class Entropy(_Objective, name="entropy"):
    """Entropy of softmax(logits) over the last axis, −Σ p log p, averaged over an example's positions."""

    takes_logits = "logits"
    example = "input x: float[5, 6] y = x -> relu loss entropy(x) output y"
    operands = (Operand("logits", "... C"),)
    masks = "..."


class _Balance(_Objective):
    """Base of balance losses: CV² over modules, summed over routes. Routes may have different numbers of tokens."""

    variadic = True
    results = ("...",)
    masks_each = True
    module = TorchModule("modgraph.nn.Importance", over="over")

    over: str = setting("batch", choices=("batch", "example"), doc="over which the amounts are summed before CV²")

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        return tuple(axis for gates in signature.operands for axis in gates.shape)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        for type_ in found[1:]:
            super().resolve(Axes(self), (type_,))
        return super().resolve(axes, found[:1])

    def infer(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        if axes["M"].is_padded:
            reason = f'examples differ in their length along "{axes["M"]}", so it is no axis of modules'
            raise Misfit(reason, "give the axis a number in the input's type", 0)
        if self.over == "example" and found[0].per == "batch":
            raise Misfit(f"it is a number for each example, and this is one over the batch: {found[0]}", "", 0)
        return (TensorType("float", (), per="batch" if self.over == "batch" else "example"),)


class Load(_Balance, name="load"):
    """Balance of expected load: CV² = variance / mean² over modules of Σ over tokens of the router's load.

    A router's load is the probability that a token chooses a module, smooth in the logits, so that it has a gradient
    (Shazeer et al., 2017, appendix A).
    """

    example = (
        "input x: float[5, 6] pool p[3] = linear(4) router r = noisy_top_k(k=2) y = x -> p by r output y loss load(r)"
    )
    reads = (Role.LOAD,)
    operands = (Operand("load", "... N M"),)


class Importance(_Balance, name="importance", synonyms="balance load_balancing load_balance aux_loss"):
    """Balance of use: CV² = variance / mean² over modules of Σ over tokens of gates, with unbiased variance.

    `importance(agree)` takes a router and sums over the routes that use it. If the router records `probabilities`, from
    before noise and choice, they replace the gates. `over="batch"` sums the gates of all examples first;
    `over="example"` gives a value for each example. A single module gives 0.
    """

    example = (
        "input x: float[5, 6] pool p[3] = linear(4) router r = agreement(2) y = x -> p by r loss importance(r) output y"
    )
    reads = (Role.PROBABILITIES, Role.GATES)
    operands = (Operand("gates", "... N M"),)
