"""Messages about export (MG7xx, MG840, MG841)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modgraph.diagnostics import Caution, Diagnostic

if TYPE_CHECKING:
    from modgraph_runtime import BundleError


class WrongSuffix(Diagnostic, code="MG701"):
    """A bundle is an ONNX file, so its name ends in .onnx."""

    message = '"{path}" does not end in .onnx'
    help = "for example: -o model.onnx"


class Disagrees(Diagnostic, code="MG702"):
    """ONNX Runtime computes another result than torch, so the export is not kept."""

    message = "{output} differs by {error:.1e} of its largest magnitude at batch {batch}, more than {tolerance:.0e}"
    help = "report this with the spec; nothing was written"


class DependsOnBatch(Diagnostic, code="MG703"):
    """The result of an example depends on the rest of its batch. In inference it must not."""

    message = "{output} of an example changes by {error:.1e} with the rest of its batch"
    help = "report this with the spec; nothing was written"


class CannotExport(Diagnostic, code="MG704"):
    """torch cannot turn a part of the model into ONNX, or ONNX Runtime cannot run the result."""

    message = "cannot export the model: {reason}"
    help = "report this with the spec; nothing was written"


class Unreached(Caution, code="MG705"):
    """No input of the verification reached a module, so its export is not verified."""

    message = 'no input reached {modules} of pool "{pool}"'
    help = "export from a run, or give examples that use every module"


class BadBundle(Diagnostic, code="MG706"):
    """A bundle cannot be loaded, or arrays do not fit it."""

    message = "{reason}"
    way_out = "print what a model takes: modgraph run model.onnx --info"

    @classmethod
    def from_error(cls, error: BundleError) -> BadBundle:
        return cls(reason=error.reason, way_out=error.way_out or cls.way_out)


class OfWholeBatch(Diagnostic, code="MG707"):
    """An output depends on a statistic of the whole batch. An exported model treats each example by itself."""

    message = 'output "{output}" depends on {node}, a statistic of the whole batch'
    help = 'compute it per example (over="example"), or leave the output out'


class SelectsOtherwise(Diagnostic, code="MG708"):
    """A router chooses other modules in ONNX Runtime than in torch, so the export is not kept."""

    message = "{route} chooses other modules for {count} of {batch} examples"
    help = "report this with the spec; nothing was written"


class NothingFinite(Diagnostic, code="MG709"):
    """A weight or output of the model is not a number, so an export cannot be verified.

    Training that diverged leaves such weights. An output may also be undefined for the random inputs of the
    verification, for example the square root of a negative number.
    """

    message = "{what} is infinite or NaN"
    help = "train with a lower learning rate, or give examples that the model is defined for"


class BadExamples(Diagnostic, code="MG710"):
    """The examples or the description of an export do not fit the model."""

    message = "{reason}"
    help = "name arrays as the model's inputs, and lists of classes and words as its targets and inputs"


class TooLarge(Diagnostic, code="MG711"):
    """An ONNX file contains less than two gigabytes."""

    message = "an ONNX file must be under 2 GB, and the weights take {size:.1f} GB"
    help = "make the model smaller"


class WeightsBeyondMemory(Diagnostic, code="MG715"):
    """All weights of a model must fit in memory at once, in float32. Training takes several times as much."""

    message = "the weights need {needed}, but {free} of memory is free; the largest is {name}, {shape}"
    help = "make the model smaller, or use more memory: modgraph cost counts the weights of each part"


class StepIsUnmeasured(Diagnostic, code="MG716"):
    """The memory of a training step is measured on tensors that have shapes and no numbers. An op of a package may need
    numbers: it calls code outside torch, or its sizes depend on values."""

    message = "cannot measure the memory of a training step of {batch} examples: {reason}"
    help = "leave out --memory: modgraph cost then counts only weights and multiply-accumulates"


class NothingToRound(Diagnostic, code="MG712"):
    """`--int8` rounds the weights of linear maps to eight bits. Routers and convolutions keep theirs."""

    message = 'model "{model}" has no weights to round to int8'
    help = "export it without --int8"


class Uncalibrated(Caution, code="MG732"):
    """No calibration data reached a module, so the largest weights give its scales, and the measured change of outputs
    says nothing about it. Of a run, the calibration data are training data."""

    message = 'no calibration data reached {modules} of pool "{pool}": its int8 scales follow the weights'
    help = "train or export with data that use every module, or export without --int8"


class NoNextToken(Diagnostic, code="MG717"):
    """A model continues a text if it takes words, token[time, vocabulary], and one output has the logits of the next
    word for each of them, float[time, vocabulary]."""

    message = "model {model} cannot continue a text: {reason}"
    help = "see specs/zoo/mixtral.mod: input words: token[time, 1000], output logits: float[time, 1000]"


class BadPrompt(Diagnostic, code="MG718"):
    """A prompt has at least one word, words of the model's vocabulary, and no more than the model has positions."""

    message = "cannot continue prompt {number}: {reason}"
    help = "{way_out}"


class StepsDisagree(Diagnostic, code="MG719"):
    """ONNX Runtime reads tokens one after another, torch a whole sequence, and both must compute the same."""

    message = "step by step, {output} differs by {error:.1e} of its largest magnitude, more than {tolerance:.0e}"
    help = "report this with the spec; nothing was written"
    ours = True


class StepsSelectOtherwise(Diagnostic, code="MG726"):
    """A router chooses other modules for a token where ONNX Runtime reads tokens one after another than where torch
    reads the whole sequence."""

    message = "step by step, {route} chooses other modules for {count} tokens"
    help = "report this with the spec; nothing was written"
    ours = True


class NotStepwise(Diagnostic, code="MG727"):
    """A bundle continues texts if it takes one word after another, with caches of what it keeps of earlier ones."""

    message = 'the bundle "{path}" cannot continue texts: {reason}'
    help = "{way_out}"


class NoSource(Diagnostic, code="MG865"):
    """A standalone PyTorch file contains a copy of each layer that torch lacks. A layer of an installed package can be
    copied if it is Python source that imports only torch and the standard library."""

    message = "cannot copy {path} into a standalone file: {reason}"
    help = "choose another lowering of the routes (--lowering), leave it out, or write a bundle (-o model.onnx)"


class WrongSource(Diagnostic, code="MG866"):
    """`compile` runs the PyTorch source next to the model before it writes the file. Outputs and losses must match."""

    message = "the PyTorch source of this model {problem}"
    help = "report this with the spec, or write a bundle: -o model.onnx; nothing was written"
    ours = True


class NoNovelty(Diagnostic, code="MG840"):
    """A model reports the novelty that its routers record."""

    message = 'no router of "{model}" records a novelty'
    help = "record one in the router, record gates, novelty = z, or leave out --novelty"


class UnknownOutput(Diagnostic, code="MG841"):
    """An export of some outputs names them by their labels; a `*` in a name matches anything."""

    message = 'unknown output "{name}" of model "{model}"'
    help = "{suggestion}"
