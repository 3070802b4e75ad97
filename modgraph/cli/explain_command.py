"""Say what an op, a router or a message's code means."""

from __future__ import annotations

import argparse

from modgraph.diagnostics import Diagnostic, ModgraphError


class NothingToExplain(Diagnostic):
    """`explain` knows ops, routers and the codes of messages."""

    code = "MG116"
    message = 'there is no op, router or message called "{name}"'
    help = "{suggestion}"
    name: str
    suggestion: str


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="CODE|OP", nargs="?")
    parser.add_argument("--all", action="store_true", help="everything, as the Markdown of docs/reference.md")


def run(options: argparse.Namespace) -> int:
    from modgraph.tools.reference import explain, reference, suggestion

    load_messages()
    if options.all or options.name is None:
        print(reference())
        return 0
    page = explain(options.name)
    if page is None:
        raise ModgraphError([NothingToExplain(name=options.name, suggestion=suggestion(options.name))])
    print(page)
    return 0


def load_messages() -> None:
    """Import every module that declares messages. None of them needs torch."""
    import modgraph.backends.errors
    import modgraph.cli.common
    import modgraph.cli.compile_command
    import modgraph.cli.cost_command
    import modgraph.cli.fmt_command
    import modgraph.cli.lsp_command
    import modgraph.cli.new_command
    import modgraph.cli.surroundings
    import modgraph.cli.train_command
    import modgraph.elaboration.errors
    import modgraph.syntax.errors
    import modgraph.tools.trace.errors
    import modgraph.training.errors  # noqa: F401
