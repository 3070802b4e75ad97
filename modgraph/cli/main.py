"""The command line: finds the command, runs it, and turns mistakes into messages and exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from modgraph_runtime.streams import keep_streams_open

from modgraph.cli.surroundings import INTERRUPTED, check_folder, imports_frozen, message_of, warnings_that_only_warn
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean, render_all

USER_FAULT, OUR_FAULT = 1, 3
SIMILAR = 0.74  # how like a command a word must be to mean it
OURS = "This is a fault of modgraph, not yours. Please report it with the text above."

COMMANDS = {path.stem.removesuffix("_command"): path for path in sorted(Path(__file__).parent.glob("*_command.py"))}


GROUPS = {
    "write a spec": "new play check fmt explain",
    "inspect an architecture": "show cost visualize compile",
    "train": "train sweep eval trace",
    "use and ship a model": "predict generate export run",
    "compare and change": "runs diff migrate",
    "editors and shells": "lsp completion",
}


class _Parser(argparse.ArgumentParser):
    """Wrong usage is the user's fault: exit code 1."""

    def error(self, message: str, way_out: str = "") -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"error: {message}\n  help: {way_out or f'{self.prog} --help'}", file=sys.stderr)
        sys.exit(USER_FAULT)


def parser(words: Sequence[str]) -> _Parser:
    """All commands, and the arguments of the one that a command line names.

    Each command is a module: its docstring begins with its summary, `USAGE` has examples, `arguments` adds its
    options, and `run` does the work.
    """
    from modgraph.version import VERSION

    raw = argparse.RawDescriptionHelpFormatter
    top = _Parser(prog="modgraph", usage="modgraph [-h] [--version] COMMAND …", formatter_class=raw)
    name = next((word for word in words if word in COMMANDS), None)
    if name is None:
        top.description = f"A declarative compiler for modular neural networks.\n\n{list_commands()}"
    top.epilog = "modgraph COMMAND --help describes a command, modgraph explain WORD a word, a key or a message."
    top.add_argument("--version", action="version", version=f"modgraph {VERSION}")
    commands = top.add_subparsers(
        dest="command", metavar="COMMAND", prog="modgraph", required=True, help=argparse.SUPPRESS
    )
    for each in COMMANDS:
        command = commands.add_parser(each, formatter_class=raw)
        if each == name:
            module = import_module(f"modgraph.cli.{each}_command")
            module.arguments(command)
            _add_volume(command)
            own = {action.dest: str(action.metavar) for action in command._actions}
            command.set_defaults(run=module.run, parser=command, arguments=own)
            command.description = summary_of(each)
            command.epilog = "\n".join(["for example:", *(f"  {line}" for line in module.USAGE)])
    return top


def find_parser(name: str) -> argparse.ArgumentParser:
    """The parser of a command."""
    commands = next(each.choices for each in parser([name])._actions if isinstance(each.choices, dict))
    found: argparse.ArgumentParser = commands[name]
    return found


def list_commands() -> str:
    """The commands by group, one a line."""
    lines = []
    for group, names in GROUPS.items():
        lines += [f"{group}:", *(f"  {name:11} {summary_of(name)}" for name in names.split()), ""]
    return "\n".join(lines).rstrip()


def summary_of(name: str) -> str:
    """The first line of a command's module, which is read and not imported."""
    with COMMANDS[name].open(encoding="utf-8") as text:
        return text.readline().strip().strip('"')


def _add_volume(command: argparse.ArgumentParser) -> None:
    volume = command.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="only results and errors")
    volume.add_argument("-v", "--verbose", action="store_true", help="also files read and written")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The options of a command line. Exits with 1 where it is no command line of ours."""
    whole = parser(words)
    first = next(iter(words), "-")
    if first not in COMMANDS and not first.startswith("-"):
        whole.error(
            f'unknown command "{first}"', did_you_mean(first, COMMANDS, "list the commands: modgraph --help", SIMILAR)
        )
    options, rest = whole.parse_known_args(words)
    if rest:
        known = [flag for action in options.parser._actions for flag in action.option_strings]
        unknown = rest[0].partition("=")[0]
        what = f'unknown option "{unknown}" of {options.command}'
        if not unknown.startswith("-"):
            what = f'unexpected argument "{unknown}" of {options.command}'
        options.parser.error(what, did_you_mean(unknown, known) if unknown.startswith("-") else "")
    return options


def _refuse_other_kinds(options: argparse.Namespace) -> None:
    """Raises `ModgraphError` for files of another kind than the command takes: help calls arguments by their kinds."""
    from modgraph.cli.kinds import kinds_of_arguments, refuse_other_kinds

    called = {**options.arguments, "recipe": "RECIPE", "resume": "RUN"}
    for name, wanted in kinds_of_arguments(called).items():
        given = getattr(options, name, None) or []
        for path in [given] if isinstance(given, str) else given:
            refuse_other_kinds(path, wanted, options.command)


def _check_outputs(options: argparse.Namespace) -> None:
    """Raises `ModgraphError` where a file cannot be written that a command works long for. Pages make their folders."""
    from modgraph.files import check_folder_of

    given = (getattr(options, name, None) for name in ("output", "csv", "html"))
    for path in () if getattr(options, "web", False) else (each for each in given if each not in (None, "", "-")):
        check_folder_of(path)


def _run(options: argparse.Namespace) -> int:
    import logging

    from modgraph.log import printing

    if options.command != "migrate":  # which says itself what goes where
        _refuse_other_kinds(options)
    _check_outputs(options)

    with printing(logging.ERROR if options.quiet else logging.DEBUG if options.verbose else logging.INFO):
        code: int = options.run(options)
        sys.stdout.flush()
        return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code: 0 done, 1 the user's fault, 2 different (`diff` alone), 3 ours."""
    diagnostics: Sequence[Diagnostic]
    with keep_streams_open(), warnings_that_only_warn():
        try:
            check_folder()
            words = sys.argv[1:] if argv is None else argv
            with imports_frozen():
                options = parse(words)
            return _run(options)
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
