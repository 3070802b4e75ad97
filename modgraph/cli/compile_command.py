"""Build a model, run one batch, and report nodes, parameters, MACs and lowerings; or write it to a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from modgraph_runtime.integrity import GRAPH_KEYS, MANIFEST_KEYS, seal

from modgraph.cli.common import add_options, read_overrides, warn
from modgraph.diagnostics import Diagnostic, ModgraphError, Note, did_you_mean, list_names
from modgraph.files import files_of_bundle, refuse_foreign, write_output
from modgraph.ir import to_verified_json
from modgraph.log import log
from modgraph.passes import AUTO, NoSuchLowering, Store
from modgraph.passes.store import WAYS
from modgraph.program import load
from modgraph.routers import MASKED
from modgraph.store.architecture import Kind, find_kind
from modgraph.store.errors import SetOfStored
from modgraph.version import VERSION

if TYPE_CHECKING:
    from modgraph.backends.torch import Model


class UnknownSuffix(Diagnostic, code="MG111"):
    """The suffix of `compile -o` chooses: `.onnx` a bundle, `.json` the graph, `.py` PyTorch source."""

    message = 'cannot compile to "{path}": unknown suffix'
    help = "use .onnx (a bundle for ONNX Runtime), .json (the graph) or .py (PyTorch source)"


class UnknownLowering(Diagnostic, code="MG112"):
    """The lowering of `--lowering` can compute no route of this model. The notes list those that can, by route."""

    message = 'no route of this model has the lowering "{lowering}"'
    help = "{suggestion}"


USAGE = ("modgraph compile mine.mod", "modgraph compile mine.mod -o mine.py", "modgraph compile runs/mine -o model.py")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC|RUN", help="a spec, or a run with its weights")
    add_options(parser, "set")
    what = "write a bundle (.onnx), the graph (.json) or PyTorch source (.py; of a run, with its weights next to it)"
    parser.add_argument("-o", "--output", metavar="FILE", help=what)
    what = "compute every route by this lowering, if it has it, not by its best"
    parser.add_argument("--lowering", metavar="LOWERING", help=what)
    what = "keep one tensor for each weight of a pool (stored), one for each module (modules), or the faster (auto)"
    parser.add_argument("--pools", choices=WAYS, default=AUTO, help=what)
    parser.add_argument("--seed", type=int, metavar="N", default=0, help="seed of the initial weights (0)")
    add_options(parser, "force")


def run(options: argparse.Namespace) -> int:
    suffix, path = Path(options.output or "").suffix, options.output
    if path is not None and suffix not in (".onnx", ".json", ".py"):
        raise ModgraphError([UnknownSuffix(path=path)])
    from_run = find_kind(options.spec) is Kind.RUN
    if suffix == ".onnx":
        refuse_foreign(*files_of_bundle(path), force=options.force, keys=MANIFEST_KEYS)
    elif path is not None:
        weights = [weights_of_source(path)] if from_run and suffix == ".py" else []
        refuse_foreign(path, *weights, force=options.force, keys=GRAPH_KEYS)
    model = _load_run(options) if from_run else _load_spec(options)
    from modgraph.backends.report import compile_report

    graph = to_verified_json(model.graph) if suffix == ".json" else None
    print(compile_report(model.graph, model))
    if suffix == ".json":
        write_output(path, json.dumps(graph, indent=2).encode(), options.force, GRAPH_KEYS)
    elif suffix == ".py":
        _write_source(model, path, from_run, options.force)
    elif suffix == ".onnx":
        from modgraph.api.run import load_run
        from modgraph.backends.onnx import export

        bundle = load_run(options.spec).export if from_run else partial(export, model)
        report = bundle(path, force=options.force)
        warn(report)
        print(report)
    return 0


def weights_of_source(path: str) -> Path:
    """The file next to a source that has its weights."""
    return Path(path).with_suffix(".safetensors")


def _load_spec(options: argparse.Namespace) -> Model:
    """The model of a spec, with fresh weights. Raises `ModgraphError`."""
    program = load(options.spec, **read_overrides(options.set, options.spec))
    warn(program)
    with _reporting_lowerings():
        return program.build(options.seed, options.lowering, options.pools)


def _load_run(options: argparse.Namespace) -> Model:
    """The model of a run, with its weights. Raises `ModgraphError`."""
    for name in read_overrides(options.set):
        raise ModgraphError([SetOfStored(path=options.spec, kind=Kind.RUN, name=name)])
    from modgraph.backends.torch import build
    from modgraph.training.stored_run import load_run

    model = load_run(options.spec).model()
    if options.lowering is None and options.pools == AUTO:
        return model
    with _reporting_lowerings():
        lowered = build(model.graph, lowering=options.lowering, store=Store(options.pools))
    lowered.load_state_dict(model.state_dict())
    return lowered.eval()


def _write_source(model: Model, path: str, with_weights: bool, force: bool) -> None:
    """Write a model as PyTorch source, and the weights of a run next to it. Raises `ModgraphError`."""
    from modgraph.backends.report import random_batch
    from modgraph.backends.torch.source import verify_source

    source = verify_source(model, random_batch(model), Path(path) if with_weights else None)
    write_output(path, seal(source).encode(), force)
    if with_weights:
        from safetensors.torch import save

        weights = {name: value.clone().contiguous() for name, value in model.state_dict().items()}
        write_output(weights_of_source(path), save(weights, {"modgraph": VERSION}), force)
        log.info(f"{path}, with weights in {weights_of_source(path)}")


@contextmanager
def _reporting_lowerings() -> Iterator[None]:
    """Within it, a lowering that no route has is reported with those that there are. Raises `ModgraphError`."""
    try:
        yield
    except NoSuchLowering as error:
        offered = error.offered.items()
        routes = [(", ".join(lowerings), "s" * (len(names) > 1), list_names(names)) for lowerings, names in offered]
        notes = tuple(Note(text=f"{lowerings}: route{plural} {names}") for lowerings, plural, names in routes)
        known = [MASKED, *(each for lowerings in error.offered for each in lowerings)]
        suggestion = did_you_mean(error.lowering, known, "leave out --lowering, so that each route has its best")
        raise ModgraphError([UnknownLowering(lowering=error.lowering, suggestion=suggestion, notes=notes)]) from error
