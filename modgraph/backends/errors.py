"""Messages about export (MG7xx, MG840, MG841)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modgraph.diagnostics import Caution, Diagnostic

if TYPE_CHECKING:
    from modgraph_runtime import BundleError


class WrongSuffix(Diagnostic, code="MG701"):
    """A bundle is an ONNX file, and its name says so."""

    message = '"{path}" does not end in .onnx'
    help = "for example: -o model.onnx"


class Disagrees(Diagnostic, code="MG702"):
    """ONNX Runtime computes something else than torch, so the export is not kept."""

    message = "{output} differs by {error:.1e} of its largest magnitude at batch {batch}, more than {tolerance:.0e}"
    help = "nothing was written; please report this with the spec"


class DependsOnBatch(Diagnostic, code="MG703"):
    """An example's result depends on what else is in its batch, which inference must not."""

    message = "{output} of an example changes by {error:.1e} with the batch it is in"
    help = "nothing was written; please report this with the spec"


class CannotExport(Diagnostic, code="MG704"):
    """torch cannot turn a part of the model into ONNX, or ONNX Runtime cannot run what it made."""

    message = "the model cannot be exported: {reason}"
    help = "nothing was written; please report this with the spec"


class Unreached(Caution, code="MG705"):
    """No input of the verification reached a module, so nothing is known of how it was exported."""

    message = 'no input reached {modules} of pool "{pool}"'
    help = "export from a run, or give examples that use every module"


class BadBundle(Diagnostic, code="MG706"):
    """A bundle cannot be loaded, or arrays do not fit it."""

    message = "{reason}"
    way_out = "modgraph run model.onnx --info prints what a model takes"

    @classmethod
    def from_error(cls, error: BundleError) -> BadBundle:
        return cls(reason=error.reason, way_out=error.way_out or cls.way_out)


class OfWholeBatch(Diagnostic, code="MG707"):
    """An output depends on a statistic of the whole batch. An exported model treats each example alone."""

    message = 'the output "{output}" depends on {node}, which is taken over the whole batch'
    help = 'take it per example (over="example"), or leave the output out'


class SelectsOtherwise(Diagnostic, code="MG708"):
    """A router chooses other modules in ONNX Runtime than in torch, so the export is not kept."""

    message = "{route} chooses other modules for {count} of {batch} examples"
    help = "nothing was written; please report this with the spec"


class NothingFinite(Diagnostic, code="MG709"):
    """A weight or output of the model is not a number, so that there is nothing to hold an export against.

    Training that diverged leaves such weights. An output may also be undefined for the random inputs that an export
    is verified on when it is given no examples: the square root of a negative number, say.
    """

    message = "{what} is infinite or not a number"
    help = "train with a lower learning rate; or give examples that the model is defined for"


class BadExamples(Diagnostic, code="MG710"):
    """The examples or the description given to an export do not fit the model."""

    message = "{reason}"
    help = (
        "give arrays by the names of the model's inputs, and names of classes and words by those of targets and inputs"
    )


class TooLarge(Diagnostic, code="MG711"):
    """An ONNX file holds less than two gigabytes."""

    message = "the weights take {size:.1f} GB, and an ONNX file holds less than 2"
    help = "make the model smaller"


class WeightsBeyondMemory(Diagnostic, code="MG715"):
    """All weights of a model must fit in memory at once, in float32; training takes several times as much."""

    message = "the weights take {needed}, and {free} of memory are free; the largest is {name}, {shape}"
    help = "make the model smaller, or use a machine with more memory: modgraph cost counts the weights of each part"


class StepIsUnmeasured(Diagnostic, code="MG716"):
    """The memory of a training step is measured on tensors that have shapes and no numbers. An op of a package may need
    numbers: what it calls is not of torch, or sizes depend on values."""

    message = "the memory of a training step of {batch} examples cannot be measured: {reason}"
    help = "leave --memory out: modgraph cost then counts only weights and multiply-accumulates"


class NothingToRound(Diagnostic, code="MG712"):
    """`--int8` rounds the weights of linear maps to eight bits. Those of routers and convolutions stay as they are."""

    message = 'the model "{model}" has no weights that int8 could round'
    help = "export it without --int8"


class NoSource(Diagnostic, code="MG865"):
    """A standalone PyTorch file contains a copy of each layer that torch lacks. A layer of an installed package can be
    copied if the package has it as Python source that imports only torch and the standard library."""

    message = "{path} cannot be part of a standalone file: {reason}"
    help = "choose another lowering of the routes (--lowering), leave it out, or write a bundle (-o model.onnx)"


class WrongSource(Diagnostic, code="MG866"):
    """`compile` runs the PyTorch source and the model before it writes the file: outputs and losses must match."""

    message = "the PyTorch source of this model {problem}"
    help = "nothing was written; please report this with the spec; a bundle is another way: -o model.onnx"
    ours = True


class NoNovelty(Diagnostic, code="MG840"):
    """What a model is to tell of novelty is what its routers record of it."""

    message = 'no router of "{model}" records a novelty'
    help = "record one where the router is defined, such as: record gates, novelty = z; or leave out --novelty"


class UnknownOutput(Diagnostic, code="MG841"):
    """An export of some outputs names them by their labels; a `*` in a name stands for anything."""

    message = 'the model "{model}" has no output "{name}"'
    help = "{suggestion}"
