"""Messages of `export --web` (MG86x)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NoWebModule(Diagnostic, code="MG860"):
    """What runs a model in browsers, a module of JavaScript and the WebAssembly of ONNX Runtime, is a package of its
    own, since it weighs more than all of modgraph."""

    message = "--web needs the package modgraph-web: {reason}"
    help = "pip install ./export/web, in a checkout of modgraph"


class NoFolder(Diagnostic, code="MG861"):
    """`export --web` writes a folder with a page, its model among other files, where `export` alone writes a bundle."""

    message = '--web writes a folder, and "{path}" is the name of a bundle'
    help = "for example: -o page/ --web"


class NoPage(Diagnostic, code="MG862"):
    """A bundle holds no examples of the data; the folder that `export --web` writes does, unless told otherwise."""

    message = "--no-examples is of a page, and without --web none is written"
    help = "leave it out, or: -o page/ --web --no-examples"
