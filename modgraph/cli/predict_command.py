"""Predict from images, arrays, tables and texts: names of classes and probabilities, by a run or a bundle."""

from __future__ import annotations

import argparse

from modgraph.cli.common import add_options, warn
from modgraph.files import refuse_foreign, write_output
from modgraph.log import log

STDOUT = "-"
USAGE = ("modgraph predict runs/mine digit.png", "modgraph predict mine.onnx digit.png --csv predictions.csv")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN|BUNDLE", help="a run's folder, or a bundle (without torch)")
    what = "images (.png .jpg), folders of them, arrays (.npz .npy), tables (.csv), texts (.txt, - for stdin)"
    parser.add_argument("files", metavar="FILE", nargs="+", help=what)
    parser.add_argument(
        "--csv", metavar="FILE", help="write a table with the probability of every class (- for stdout)"
    )
    add_options(parser, "unchecked", "force")


def run(options: argparse.Namespace) -> int:
    if options.csv not in (None, STDOUT):
        refuse_foreign(options.csv, force=options.force)
    from modgraph.prediction.predictions import predict

    found = predict(options.path, options.files, check=not options.unchecked)
    warn(found)
    if options.csv is None:
        print(found)
    elif options.csv == STDOUT:
        print(found.to_csv().replace("\r\n", "\n"), end="")
    else:
        write_output(options.csv, found.to_csv().encode(), options.force)
        log.info(f"{options.csv}: {len(found)} predictions")
    return 0
