"""Messages about export (MG7xx)."""

from __future__ import annotations

from modgraph.diagnostics import Caution, Diagnostic


class WrongSuffix(Diagnostic):
    """A bundle is an ONNX file, and its name says so."""

    code = "MG701"
    message = '"{path}" does not end in .onnx'
    help = "for example: -o model.onnx"
    path: str


class Disagrees(Diagnostic):
    """ONNX Runtime computes something else than torch, so the export is not kept."""

    code = "MG702"
    message = "{output} differs by {error:.1e} of its largest magnitude at batch {batch}, more than {tolerance:.0e}"
    help = "nothing was written; please report this with the spec"
    output: str
    error: float
    batch: int
    tolerance: float


class DependsOnBatch(Diagnostic):
    """An example's result depends on what else is in its batch, which inference must not."""

    code = "MG703"
    message = "{output} of an example changes by {error:.1e} with the batch it is in"
    help = "nothing was written; please report this with the spec"
    output: str
    error: float


class CannotExport(Diagnostic):
    """torch cannot turn a part of the model into ONNX."""

    code = "MG704"
    message = "the model cannot be exported: {reason}"
    help = "please report this with the spec"
    reason: str


class Unreached(Caution):
    """No input of the verification reached a module, so nothing is known of how it was exported."""

    code = "MG705"
    message = 'no input reached {modules} of pool "{pool}"'
    help = "export from a run, or give examples that use every module"
    modules: str
    pool: str


class BadBundle(Diagnostic):
    """A bundle cannot be loaded, or arrays do not fit it."""

    code = "MG706"
    message = "{reason}"
    help = "say modgraph run model.onnx --info for what the model takes"
    reason: str
