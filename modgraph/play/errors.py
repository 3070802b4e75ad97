"""Messages of `play` (MG94x)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NoPlayground(Diagnostic, code="MG940"):
    """The playground runs modgraph in the browser, by a Python for WebAssembly and an editor. They are a separate
    package because of their size."""

    message = "play needs the package modgraph-web: {reason}"
    help = "install it from a checkout of modgraph: pip install ./export/web"


class NotAFolder(Diagnostic, code="MG941"):
    """`play` writes a folder of files for a static server."""

    message = 'play writes a folder, but "{path}" names a {suffix} file'
    help = "for example: modgraph play mine.mod -o playground"


class NoPackage(Diagnostic, code="MG942"):
    """The playground contains the Python packages that checks of specs need, as files of the installed ones."""

    message = "cannot read the package {package}: {reason}"
    help = "install modgraph again: pip install --force-reinstall modgraph-compiler"


class BrokenStep(Diagnostic, code="MG945"):
    """A page of the tutorial marks a step of the tour by a comment, which names the text to begin with, the answer and
    the facts that the answer meets."""

    message = "the tour cannot read a step of {page}: {reason}"
    help = "write a comment like those of docs/contributing.md: <!-- tour …"


class NotAPage(Diagnostic, code="MG948"):
    """The playground runs models of pages that `modgraph export --web` wrote, of runs, and of bundles."""

    message = '"{path}" is neither a page of a run, nor a run or a bundle: {reason}'
    help = "give a page of export --web, a run's folder, or a bundle of export --routing"


class BadPage(Diagnostic, code="MG949"):
    """A page is used only whole: its bundle as it was exported, the examples that this bundle computes, and the spec
    that it was trained from."""

    message = 'the page "{path}" cannot be used: {reason}'
    help = "export the run again: modgraph export RUN -o PAGE --web --force"


class GrownOtherwise(Diagnostic, code="MG952"):
    """The playground shows a grown model with the parameters by which its spec gives it. No parameters give a model in
    which a pool grew whose number of modules is a constant of the spec."""

    message = '"{path}" has grown, and no parameters of its spec give the grown model'
    help = "set the modules of each pool that grows by a parameter, or write only its page: export --web"


class BundleOfAnother(Diagnostic, code="MG953"):
    """A bundle holds a graph and no text of a spec, so `play` takes the spec as well. With the parameters of the
    bundle, the spec must give the graph of the bundle."""

    message = '"{path}" is no bundle of the spec: {reason}'
    help = "give the spec that it was trained from, modgraph play SPEC -o playground --with {path}, or the run"


class BundleWithoutRouting(Diagnostic, code="MG954"):
    """The playground shows what the routers of a model do, which a bundle outputs only on request."""

    message = '"{path}" does not output its routing'
    help = "export it with its routing: modgraph export RUN -o model.onnx --routing"
