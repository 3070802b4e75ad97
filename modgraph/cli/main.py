"""The command line: finds the command, runs it, and turns mistakes into messages and exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from modgraph_runtime.streams import keep_streams_open

from modgraph.cli.surroundings import check_folder, imports_frozen, message_of, warnings_that_only_warn
from modgraph.diagnostics import Diagnostic, ModgraphError, render_all

USER_FAULT, OUR_FAULT, INTERRUPTED = 1, 3, 130
OURS = "This is a fault of modgraph, not yours. Please report it with the text above."

COMMANDS = {path.stem.removesuffix("_command"): path for path in sorted(Path(__file__).parent.glob("*_command.py"))}


class _Parser(argparse.ArgumentParser):
    """Wrong usage is the user's fault: exit code 1."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"error: {message}", file=sys.stderr)
        sys.exit(USER_FAULT)


def parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """All commands, and the arguments of the one that a command line asks for: each is a module that begins with its
    summary, and imports what it needs."""
    from modgraph.version import VERSION

    top = _Parser(prog="modgraph", description="A declarative compiler for modular neural networks.")
    top.add_argument("--version", action="version", version=f"modgraph {VERSION}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    asked_for = next((word for word in words if word in COMMANDS), None)
    for name, path in COMMANDS.items():
        with path.open(encoding="utf-8") as text:
            summary = text.readline().strip().strip('"')
        command = commands.add_parser(name, help=summary, description=summary)
        if name == asked_for:
            module = import_module(f"modgraph.cli.{name}_command")
            module.arguments(command)
            command.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code: 0 done, 1 the user's fault, 2 different (`diff` alone), 3 ours."""
    diagnostics: Sequence[Diagnostic]
    with keep_streams_open(), warnings_that_only_warn():
        try:
            check_folder()
            words = sys.argv[1:] if argv is None else argv
            with imports_frozen():
                options = parser(words).parse_args(words)
            code: int = options.run(options)
            sys.stdout.flush()
            return code
        except ModgraphError as error:
            diagnostics = error.diagnostics
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return INTERRUPTED
        except Exception as error:
            message = message_of(error)
            if message is None:
                import traceback

                traceback.print_exc()
                print(f"\n{OURS}", file=sys.stderr)
                return OUR_FAULT
            diagnostics = [message]
        print(render_all(diagnostics), file=sys.stderr)
        return OUR_FAULT if any(each.ours for each in diagnostics) else USER_FAULT
