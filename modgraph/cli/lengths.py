"""`--length AXIS=N`: how long axes of any length are taken to be."""

from __future__ import annotations

import argparse

from modgraph.diagnostics import Diagnostic, ModgraphError


class BadLength(Diagnostic):
    """`--length` takes AXIS=N: an axis without a number in the spec, and how long it is taken to be."""

    code = "MG126"
    message = '--length takes AXIS=N with a whole number from 1 to 999999999, not "{given}"'
    help = "for example: --length time=100"


class LengthGivenTwice(Diagnostic):
    """An axis has one length in a count."""

    code = "MG127"
    message = '--length gives the axis "{name}" twice'
    help = "keep one of them"


def add_lengths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--length",
        action="append",
        default=[],
        metavar="AXIS=N",
        help="the length of an axis of any length (1 where none is given)",
    )


def read_lengths(given: list[str]) -> dict[str, int]:
    """The lengths of all `--length`, by axis. Raises `ModgraphError`."""
    lengths = {}
    for text in given:
        name, _, number = text.partition("=")
        if not is_count(number):
            raise ModgraphError([BadLength(given=text)])
        if name in lengths:
            raise ModgraphError([LengthGivenTwice(name=name)])
        lengths[name] = int(number)
    return lengths


def is_count(text: str) -> bool:
    """Whether a text is a whole number from 1 to 999999999."""
    return text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0
