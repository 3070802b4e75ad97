"""`modgraph-runtime model.onnx --input x.npz [--output y.npz]`: run a bundle on arrays of a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from modgraph_runtime.arrays import read_arrays, refuse_foreign, write_arrays
from modgraph_runtime.bundle import Bundle
from modgraph_runtime.ports import Array, BundleError
from modgraph_runtime.streams import keep_streams_open

MOST_LISTED = 8


def execute(options: argparse.Namespace) -> str:
    """Execute the command, and return the text to print. Raises `BundleError`."""
    bundle = Bundle(options.model, check=not options.unchecked)
    if options.info:
        return describe(bundle)
    if options.input is None:
        raise BundleError("--input x.npz is missing: the arrays to run on (or --info)")
    if options.routing and not bundle.routing:
        raise BundleError(f'"{options.model}" does not report what its routers decide: export it with --routing')
    if options.output is not None:
        refuse_foreign(options.output, options.force)
    arrays = read_arrays(options.input)
    lines = [f"{name} is a target of the model: ignored" for name in arrays if name in bundle.targets]
    ignored = [name for name in arrays if name in bundle.left_out]
    lines += [f"{name} goes with outputs that this bundle leaves out: ignored" for name in ignored]
    inputs = {name: array for name, array in arrays.items() if name not in bundle.targets | bundle.left_out}
    results = bundle.run(inputs, routing=options.routing)
    if any(len(array) == 0 for array in results.values()):
        raise BundleError(f'"{options.input}" has no examples')
    if options.output is None:
        return "\n".join([*lines, *(summary(bundle, name, array) for name, array in results.items())])
    write_arrays(options.output, results, options.force)
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in results.items())
    return "\n".join([*lines, f"{options.output}: {shapes}"])


def describe(bundle: Bundle) -> str:
    """Describe inputs and outputs, the preprocessing of inputs, and the agreement of ONNX Runtime with torch."""
    manifest = bundle.manifest
    lines = [f"model    {manifest.get('model')}, exported by modgraph {manifest.get('modgraph')}"]
    for title, ports in (("input", bundle.inputs), ("output", bundle.outputs), ("routing", bundle.routing)):
        for name, port in ports.items():
            names = f" ({_first(port.classes)})" if port.classes else ""
            meaning = "" if port.target is None else f", the classes of {port.target}{names}"
            lines.append(f"{title:8} {name}: {port}{meaning}")
    if bundle.stepwise is not None:
        caches = sum(1 for _ in bundle.stepwise.caches)
        lines.append(
            f"{'stepwise':8} {bundle.stepwise.tokens}, one after another along {bundle.stepwise.axis}: {caches} caches"
        )
    if bundle.outputs_left_out:
        lines.append(f"{'left out':8} {', '.join(bundle.outputs_left_out)}")
    known = {key: value for key, value in manifest.items() if isinstance(value, dict)}
    for name, how in known.get("preprocessing", {}).items():
        how = how["words"] if isinstance(how, dict) and "words" in how else how  # other facts are for programs
        lines.append(f"{'made':8} {name}: {how}")
    for name, words in known.get("words", {}).items():
        if isinstance(words, list):
            lines.append(f"{'words':8} {name}: {len(words)}, {_first([*map(str, words)])}")
    if "verified" in known:
        worst, batches = known["verified"].get("worst"), known["verified"].get("batches")
        lines.append(f"verified against torch at batch {batches}, largest relative difference {worst}")
    if "int8" in known:
        metrics = known["int8"].get("metrics")
        pairs = [pair for pair in metrics.items() if isinstance(pair[1], dict)] if isinstance(metrics, dict) else []
        changed = [f"{name} {each.get('int8')} instead of {each.get('float')}" for name, each in pairs]
        lines.append("; ".join(["weights were then rounded to eight bits", *changed]))
    return "\n".join(lines)


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_LISTED]) + (", …" if len(names) > MOST_LISTED else "")


def summary(bundle: Bundle, name: str, array: Array) -> str:
    """Summarise an output in a line: its shape, and the first classes or values."""
    port = bundle.outputs.get(name)
    values = array if port is None else bundle.classify(name, array)
    texts = [value if isinstance(value, str) else f"{value:.4g}" for value in values.ravel()[:MOST_LISTED].tolist()]
    return f"{name} {list(array.shape)}: {', '.join(texts)}{', …' if values.size > MOST_LISTED else ''}"


class _Parser(argparse.ArgumentParser):
    """A parser that exits with 1 for wrong usage, as for every mistake of the user."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"error: {message}", file=sys.stderr)
        sys.exit(1)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns exit code 0, or 1 with a message on stderr."""
    parser = _Parser(prog="modgraph-runtime", description="Run a model that modgraph has exported.")
    parser.add_argument("model", metavar="model.onnx")
    parser.add_argument("--input", metavar="x.npz", help="arrays named as the model's inputs, examples first")
    parser.add_argument("--output", metavar="y.npz", help="the file for the outputs (prints a summary)")
    parser.add_argument("--routing", action="store_true", help="routers' records too, if the bundle has them")
    parser.add_argument("--info", action="store_true", help="print the model's inputs and outputs")
    parser.add_argument("--unchecked", action="store_true", help="even if the file has changed since its export")
    parser.add_argument("--force", action="store_true", help="overwrite a file that modgraph did not write")
    options: Any = parser.parse_args(argv)
    with keep_streams_open():
        try:
            print(execute(options), flush=True)
        except (BundleError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
