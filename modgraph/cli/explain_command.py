"""Explain a word of the language, an op, a recipe key, a command or the code of a message."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import modgraph
from modgraph.declare import load_extensions
from modgraph.diagnostics import Diagnostic, ModgraphError


class NothingToExplain(Diagnostic, code="MG116"):
    """`explain` knows ops, routers, data sets, algorithms, optimizers, schedules, the words of the language and the
    codes of messages."""

    message = 'nothing is called "{name}"'
    help = "{suggestion}"


VOCABULARY = ("modgraph.ops", "modgraph.routers", "modgraph.training.algorithms", "modgraph.recipes.optimizers")


USAGE = ("modgraph explain linear", "modgraph explain MG202")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME|CODE", nargs="?", help="a word; without one, all that there are")
    parser.add_argument("--all", action="store_true", help="everything, as the Markdown of docs/reference.md")


def run(options: argparse.Namespace) -> int:
    from modgraph.inspect.reference import explain, overview, reference, suggestion

    for room in VOCABULARY:
        import_module(room)
    if options.all or options.name is None:
        load_all()
        print(reference() if options.all else overview())
        if faults := load_extensions():
            raise ModgraphError(faults)
        return 0
    if (page := explain(options.name)) is None:
        load_all()
        if (page := explain(options.name)) is None:
            unknown = NothingToExplain(name=options.name, suggestion=suggestion(options.name))
            raise ModgraphError([unknown, *load_extensions()])
    print(page)
    return 0


def load_all() -> None:
    """Import all that declares something to explain, of installed packages too: the vocabulary, commands, and all that
    is called `errors`. None of ours needs torch."""
    home = Path(modgraph.__file__).parent
    messages = [*home.rglob("errors.py"), *home.rglob("errors/[a-z]*.py"), *(home / "cli").glob("[a-z]*.py")]
    for path in sorted(messages):
        import_module(".".join(("modgraph", *path.relative_to(home).with_suffix("").parts)))
    for room in (*VOCABULARY, "modgraph.data"):
        import_module(room)
    load_extensions()
