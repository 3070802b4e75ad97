"""`modgraph-runtime model.onnx --input x.npz [--output y.npz]`: run a bundle on arrays of a file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from modgraph_runtime.arrays import read_arrays, write_arrays
from modgraph_runtime.bundle import Bundle, BundleError

SHOWN = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command, for any parser that wants it."""
    parser.add_argument("model", metavar="model.onnx")
    parser.add_argument("--input", metavar="x.npz", help="arrays named as the model's inputs, examples first")
    parser.add_argument("--output", metavar="y.npz", help="where to write the outputs; otherwise they are summarised")
    parser.add_argument("--routing", action="store_true", help="the routers' records too, if the bundle has them")
    parser.add_argument("--info", action="store_true", help="say what the model takes and gives")


def execute(options: argparse.Namespace) -> str:
    """What the command prints. Raises `BundleError`."""
    bundle = Bundle(options.model)
    if options.info or options.input is None:
        if not options.info:
            raise BundleError("--input x.npz is missing: the arrays to run on (or --info)")
        return describe(bundle)
    arrays = read_arrays(options.input)
    targets = set(bundle.manifest.get("targets", ()))
    ignored = sorted(targets & set(arrays))
    results = bundle.run({k: v for k, v in arrays.items() if k not in targets}, routing=options.routing)
    lines = [f"{name} is a target of the model: not needed, ignored" for name in ignored]
    if options.output is None:
        return "\n".join([*lines, *(summary(bundle, name, array) for name, array in results.items())])
    write_arrays(options.output, results)
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in results.items())
    return "\n".join([*lines, f"{options.output}: {shapes}"])


def describe(bundle: Bundle) -> str:
    """Inputs, outputs, and how well the export was found to agree."""
    lines = [f"model {bundle.manifest.get('model', '')}"]
    for title, ports in (("input", bundle.inputs), ("output", bundle.outputs), ("routing", bundle.routing)):
        lines += [f"{title:8} {name}: {port}" for name, port in ports.items()]
    for name, how in bundle.manifest.get("preprocessing", {}).items():
        lines.append(f"{name} is {how}")
    verified = bundle.manifest.get("verified", {})
    if verified:
        lines.append(f"verified against torch at batch {verified.get('batches')}: within {verified.get('worst'):.1e}")
    return "\n".join(lines)


def summary(bundle: Bundle, name: str, array: NDArray[Any]) -> str:
    """An output in a line: its shape, and the classes or values of the first examples."""
    port = bundle.outputs.get(name)
    first = array[:SHOWN]
    if port is not None and port.classes and len(port.classes) == array.shape[-1]:
        shown = ", ".join(port.classes[int(best)] for best in first.argmax(-1).reshape(-1)[:SHOWN])
    else:
        shown = ", ".join(f"{value:.4g}" for value in first.reshape(-1)[:SHOWN])
    return f"{name} {list(array.shape)}: {shown}{', …' if array.size > SHOWN else ''}"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0, or 1 with a message on stderr."""
    parser = argparse.ArgumentParser(prog="modgraph-runtime", description="Run a model that modgraph has exported.")
    parser.error = _usage(parser)  # type: ignore[method-assign]
    add_arguments(parser)
    options = parser.parse_args(argv)
    try:
        print(execute(options))
    except BundleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _usage(parser: argparse.ArgumentParser) -> Any:
    """Wrong usage exits with 1, as every mistake of the user's."""

    def error(message: str) -> None:
        parser.print_usage(sys.stderr)
        print(f"error: {message}", file=sys.stderr)
        sys.exit(1)

    return error


if __name__ == "__main__":
    sys.exit(main())
