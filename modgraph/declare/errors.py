"""Messages about declarations (MG13x)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class BrokenExtension(Diagnostic):
    """A name is unknown, and an installed package that may declare it cannot be imported.

    A package adds ops, routers, data sets, optimizers and algorithms with an entry point of the group `modgraph` that
    names a module. One that fails while it is imported adds nothing. It is told only where a name is not known.
    """

    code = "MG133"
    message = 'the package "{package}" adds nothing: its entry point "{entry}" ends in {problem}'
    help = "update or mend the package, or remove it: pip uninstall {package}"
    package: str
    entry: str
    problem: str
