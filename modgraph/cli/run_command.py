"""Run a bundle on arrays in ONNX Runtime, without torch."""

from __future__ import annotations

import argparse

from modgraph.cli.common import add_options
from modgraph.diagnostics import ModgraphError
from modgraph.files import refuse_foreign

USAGE = ("modgraph run mine.onnx --info", "modgraph run mine.onnx --input x.npz --output y.npz")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="model.onnx", help="a bundle")
    parser.add_argument("--input", metavar="x.npz", help="arrays named as the model's inputs, examples first")
    parser.add_argument("--output", metavar="y.npz", help="the file for the outputs (prints a summary)")
    parser.add_argument("--routing", action="store_true", help="the routers' records too, if the bundle has them")
    parser.add_argument("--info", action="store_true", help="print the model's inputs and outputs")
    add_options(parser, "unchecked", "force")


def run(options: argparse.Namespace) -> int:
    from modgraph_runtime import BundleError
    from modgraph_runtime.command import execute

    from modgraph.backends.errors import BadBundle

    if options.output is not None:
        refuse_foreign(options.output, force=options.force)
    try:
        print(execute(options))
    except BundleError as error:
        raise ModgraphError([BadBundle.from_error(error)]) from error
    return 0
