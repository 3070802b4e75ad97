"""Diagnostics about declarations (MG13x)."""

from __future__ import annotations

import traceback

from modgraph.diagnostics import Diagnostic


class BrokenExtension(Diagnostic, code="MG133"):
    """A name is unknown, and an installed package that may declare it cannot be imported.

    A package adds ops, routers, data sets, optimizers and algorithms with an entry point of the group `modgraph` that
    names a module. If the module cannot be imported, the package adds nothing; only an unknown name reports it.
    """

    message = 'the package "{package}" adds nothing: its entry point "{entry}" fails with {problem}'
    help = "update or repair the package, or remove it: pip uninstall {package}"


class BrokenModule(Diagnostic, code="MG134"):
    """A declaration of an installed package names a torch module that cannot be imported.

    `TorchModule("my_package.nn.Bend", …)` and the `torch` of an optimizer are import paths.
    """

    message = 'cannot import the torch module "{path}": {problem}'
    help = "update or repair the package that declares it, or remove it: pip uninstall {package}"


def describe_failure(error: BaseException) -> str:
    """Describe an exception of foreign code and the line that raised it."""
    words = (str(error).splitlines() or [""])[0].rstrip(". ")
    what = f"{type(error).__name__}: {words}" if words else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)[1:]  # skip our own frame
    inner = [
        frame for frame in frames if not frame.filename.startswith("<frozen") and "importlib" not in frame.filename
    ]
    return what + "".join(f" ({frame.filename}, line {frame.lineno})" for frame in inner[-1:])
