"""Build a model, run one batch, and report nodes, parameters, MACs and lowerings; or write it to a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from modgraph_runtime.integrity import GRAPH_KEYS, MANIFEST_KEYS, seal

from modgraph.cli.common import add_options, read_overrides, warn
from modgraph.diagnostics import Diagnostic, ModgraphError, Note, did_you_mean, list_names
from modgraph.files import files_of_bundle, refuse_foreign, write_output
from modgraph.ir import to_verified_json
from modgraph.passes import NoSuchLowering
from modgraph.program import load
from modgraph.routers import MASKED


class UnknownSuffix(Diagnostic, code="MG111"):
    """`compile -o` writes what the suffix says: `.onnx` a bundle, `.json` the graph, `.py` PyTorch source."""

    message = '"{path}" has no suffix that compile can write'
    help = "end it in .onnx (a bundle for ONNX Runtime), .json (the graph) or .py (PyTorch source)"


class UnknownLowering(Diagnostic, code="MG112"):
    """The lowering that `--lowering` names can compute no route of this model. The notes list those that can, by
    route."""

    message = 'no route of this model has the lowering "{lowering}"'
    help = "{suggestion}"


USAGE = ("modgraph compile mine.mod", "modgraph compile mine.mod -o mine.onnx")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC")
    add_options(parser, "set")
    what = "write a bundle (.onnx), the graph (.json) or PyTorch source (.py)"
    parser.add_argument("-o", "--output", metavar="FILE", help=what)
    what = "compute every route that has this lowering by it, instead of by its best"
    parser.add_argument("--lowering", metavar="LOWERING", help=what)
    parser.add_argument("--seed", type=int, default=0, help="seed of the fresh weights (0)")
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    suffix = Path(options.output).suffix if options.output else None
    if suffix not in (None, ".onnx", ".json", ".py"):
        raise ModgraphError([UnknownSuffix(path=options.output)])
    if suffix == ".onnx":
        refuse_foreign(*files_of_bundle(options.output), force=options.force, keys=MANIFEST_KEYS)
    elif suffix is not None:
        refuse_foreign(options.output, force=options.force, keys=GRAPH_KEYS)
    program = load(options.spec, **read_overrides(options.set))
    warn(program)
    graph = to_verified_json(program.ir) if suffix == ".json" else None
    from modgraph.backends.report import compile_report

    try:
        model = program.build(options.seed, options.lowering)
    except NoSuchLowering as error:
        offered = error.offered.items()
        routes = [(", ".join(lowerings), "s" * (len(names) > 1), list_names(names)) for lowerings, names in offered]
        notes = tuple(Note(text=f"{lowerings}: route{plural} {names}") for lowerings, plural, names in routes)
        known = [MASKED, *(each for lowerings in error.offered for each in lowerings)]
        suggestion = did_you_mean(error.lowering, known, "leave --lowering out, and each route has its best")
        raise ModgraphError([UnknownLowering(lowering=error.lowering, suggestion=suggestion, notes=notes)]) from error
    print(compile_report(program.ir, model))
    if suffix == ".json":
        write_output(options.output, json.dumps(graph, indent=2).encode(), options.force, GRAPH_KEYS)
    elif suffix == ".py":
        from modgraph.backends.report import random_batch
        from modgraph.backends.torch.source import verify_source

        source = verify_source(model, random_batch(model))
        write_output(options.output, seal(source).encode(), options.force)
    elif suffix == ".onnx":
        from modgraph.backends.onnx import export

        report = export(model, options.output, force=options.force)
        warn(report)
        print(report)
    return 0
