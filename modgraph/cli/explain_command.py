"""Explain a word of the language, an op, a recipe key, a command or the code of a message."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import modgraph
from modgraph.declare import load_extensions
from modgraph.diagnostics import Diagnostic, ModgraphError


class NothingToExplain(Diagnostic, code="MG116"):
    """`explain` knows ops, routers, data sets, algorithms, optimizers, schedules, metrics, the words of the language
    and the codes of messages."""

    message = 'unknown name "{name}"'
    help = "{suggestion}"


VOCABULARY = ("modgraph.ops", "modgraph.routers", "modgraph.training.algorithms", "modgraph.recipes.optimizers")


USAGE = ("modgraph explain", "modgraph explain linear", "modgraph explain train.early_stop", "modgraph explain MG202")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="WORD|KEY|CODE", nargs="?", help="a word or code; without one, an index by subject"
    )
    parser.add_argument(
        "--all", action="store_true", help="the vocabulary and messages, as Markdown: docs/reference.md"
    )
    parser.add_argument("--commands", action="store_true", help="the commands, as Markdown: docs/commands.md")


def run(options: argparse.Namespace) -> int:
    from modgraph.inspect.reference import reference

    for room in VOCABULARY:
        import_module(room)
    if options.commands:
        from modgraph.cli.reference import write_commands

        print(write_commands())
        return 0
    if options.all or options.name is None:
        load_all()
        from modgraph.cli.reference import overview

        print(reference() if options.all else overview())
        if faults := load_extensions():
            raise ModgraphError(faults)
        return 0
    print(explain(options.name))
    return 0


def explain(name: str) -> str:
    """The pages of all that has a name. Raises `ModgraphError` if there is none."""
    for room in VOCABULARY:
        import_module(room)
    if (page := _explain(name)) is None:
        load_all()
        if (page := _explain(name)) is None:
            raise ModgraphError([_unknown(name), *load_extensions()])
    return page


def _explain(name: str) -> str | None:
    """The pages of all that has a name: words of the language first."""
    from modgraph.cli.metric_pages import explain_metric, explain_mixture
    from modgraph.cli.reference import explain_command, explain_data_key, explain_key
    from modgraph.inspect.reference import explain

    rooms = (explain, explain_key, explain_data_key, explain_command, explain_metric, explain_mixture)
    pages = [each(name) for each in rooms]
    return "\n\n".join(page for page in pages if page is not None) or None


def _unknown(name: str) -> NothingToExplain:
    from modgraph.cli.main import COMMANDS
    from modgraph.cli.reference import recipe_keys
    from modgraph.inspect.reference import suggestion

    keys = [path if "." in name else path.rpartition(".")[2] for path in recipe_keys()]
    return NothingToExplain(name=name, suggestion=suggestion(name, [*COMMANDS, *keys]))


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
