"""What several commands share: `-s name=value`, loading a spec, printing warnings."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from modgraph.diagnostics import Diagnostic, ModgraphError, render_all

if TYPE_CHECKING:
    from modgraph.program import Program
    from modgraph.store.opened import Opened


class BadOverride(Diagnostic):
    """`-s` takes NAME=VALUE: a model parameter (`-s k=2`) or a dotted recipe key (`-s train.seed=1`)."""

    code = "MG110"
    message = '-s takes NAME=VALUE, not "{given}"'
    help = "for example: -s k=2, or for a recipe: -s train.seed=1"


def add_overrides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-s",
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter of the model, or a dotted key of the recipe",
    )


def add_force(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="overwrite a file that modgraph did not write")


def add_unchecked(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--unchecked", action="store_true", help="whether or not the bundle is as it was exported")


def overrides(options: argparse.Namespace) -> dict[str, Any]:
    """The values of all `-s`, by name. Raises `ModgraphError`."""
    return read_overrides(options.set)


def read_overrides(texts: list[str]) -> dict[str, Any]:
    """The values of texts NAME=VALUE, by name. Raises `ModgraphError`."""
    from modgraph.elaboration import read_value

    values, faults = dict[str, Any](), []
    for given in texts:
        name, sign, text = given.partition("=")
        if not sign or not all(part.isidentifier() for part in name.split(".")):
            faults.append(BadOverride(given=given))
            continue
        unset = text == "null" and "." in name  # as a recipe says it
        values[name] = None if unset else read_value(text)
    if faults:
        raise ModgraphError(faults)
    return values


def load_spec(path: str, options: argparse.Namespace) -> Program:
    """The program of a spec under the command's `-s`, its warnings printed. Raises `ModgraphError`."""
    from modgraph.program import load

    program = load(path, **overrides(options))
    warn(program)
    return program


def warn(program: Program | Opened) -> None:
    if program.warnings:
        print(render_all(program.warnings), file=sys.stderr)
