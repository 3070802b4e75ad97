"""Messages of `export --web` (MG86x)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NoWebModule(Diagnostic, code="MG860"):
    """A JavaScript module and the WebAssembly of ONNX Runtime run models in browsers. They are a separate package
    because of their size."""

    message = "--web needs the package modgraph-web: {reason}"
    help = "install it from a checkout of modgraph: pip install ./export/web"


class NoFolder(Diagnostic, code="MG861"):
    """`export --web` writes a folder with a page and its model. `export` without it writes one bundle."""

    message = '--web writes a folder, but "{path}" names a bundle'
    help = "for example: -o page/ --web"


class NoPage(Diagnostic, code="MG862"):
    """Only the folder of `export --web` contains examples of the data; a bundle never does."""

    message = "--no-examples needs --web"
    help = "leave it out, or write a page: -o page/ --web --no-examples"
