"""Measures exports phase by phase, each spec with fresh weights in a process of its own.

    python benchmarks/exports.py [--quick] [--before REV] [--rounds 1] [SPEC[:SETTING=VALUE,…] …]

By default it measures all of `specs` and `specs/zoo` in their default sizes. Each phase has seconds of processor time
(`cpu`) and of the clock. `permute` is the comparison with permuted modules, `verify` the rest of the verification.
`start` is the overhead of every process, imports and the table of operators; `all` does not include it. With
`--before`, another revision of this repository takes turns with the current one, in a temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from options import parse_options
from trees import HERE, every_spec, revision, run_in

PHASES = ("passes", "capture", "translate", "optimise", "verify", "permute", "rest")
PLACES = (  # the function of a phase in any revision: a module, a name in it, and the phase
    ("modgraph.backends.onnx.bundle", "deterministic", "passes"),
    ("modgraph.backends.onnx.trace", "program_of", "capture"),
    ("modgraph.backends.onnx.trace", "exporter._exported_program_to_onnx_program", "translate"),
    ("modgraph.backends.onnx.trace", "convert_version", "optimise"),
    ("modgraph.backends.onnx.trace", "optimize", "optimise"),
    ("modgraph.backends.onnx.bundle", "verify", "verify"),
    ("modgraph.backends.onnx.verify", "_Comparison.permute", "permute"),
)
Times = dict[str, tuple[float, float]]  # seconds of the processor and of the clock, by phase


class Clock:
    """Measures time of the processor and of the clock by phase. Time of a nested phase counts only for that phase."""

    def __init__(self) -> None:
        self.times: Times = {}
        self.inside: list[list[float]] = []

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.inside.append([0.0, 0.0])
        before = time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            took = time.process_time() - before[0], time.perf_counter() - before[1]
            own = [each - within for each, within in zip(took, self.inside.pop(), strict=True)]
            if self.inside:
                self.inside[-1] = [a + b for a, b in zip(self.inside[-1], took, strict=True)]
            so_far = self.times.get(name, (0.0, 0.0))
            self.times[name] = so_far[0] + own[0], so_far[1] + own[1]

    def timed(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            with self.phase(name):
                return function(*given, **named)

        return wrapped


def export(spec: str) -> dict[str, Any]:
    """Measure the export of a spec in this process, which does nothing else, and describe its result."""
    begun = time.perf_counter()
    import onnx

    import modgraph
    from modgraph.backends.onnx import bundle, operators

    operators.operators()
    importlib.import_module("torch.export._trace")
    clock = Clock()
    clock.times["start"] = time.process_time(), time.perf_counter() - begun
    for module, names, phase in PLACES:
        place: Any = sys.modules[module]
        *path, name = names.split(".")
        for each in path:
            place = getattr(place, each)
        setattr(place, name, clock.timed(getattr(place, name), phase))
    path_, _, settings = spec.partition(":")
    given = {key: json.loads(value) for key, _, value in (each.partition("=") for each in settings.split(",") if each)}
    model = modgraph.load(path_, **given).build()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        with clock.phase("rest"):
            report = bundle.export(model, path)
        proto = onnx.load(path)
    return {
        "times": clock.times,
        "nodes": sum(1 for _ in _nodes(proto.graph)),
        "size": report.size,
        "worst": report.verified.worst,
        "unreached": sum(map(len, report.verified.unreached.values())),
    }


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def measured(spec: str, tree: Path) -> dict[str, Any]:
    """Measure an export by the modgraph in a folder."""
    found: dict[str, Any] = run_in(tree, __file__, str(tree / spec))
    return found


def print_row(spec: str, tree: str, rounds: list[dict[str, Any]]) -> float:
    """Print medians over rounds, processor time over clock time; return the processor time of the export."""
    last = rounds[-1]

    def median(phase: str, at: int) -> float:
        return statistics.median(each["times"].get(phase, (0.0, 0.0))[at] for each in rounds)

    alls = [sum(median(phase, at) for phase in PHASES) for at in (0, 1)]
    for at, of in enumerate(("cpu", "wall")):
        numbers = [median("start", at), *(median(phase, at) for phase in PHASES), alls[at]]
        about = f"{last['nodes']:7} {last['size'] / 1e6:8.2f} {last['unreached']:4}" if at == 0 else ""
        title = f"{spec[-34:]:34} {tree:6}" if at == 0 else " " * 41
        print(title, f"{of:4}", *(f"{number:9.2f}" for number in numbers), about, flush=True)
    return alls[0]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("specs", nargs="*", metavar="SPEC")
    parser.add_argument("--before", metavar="REV", help="a revision to compare with")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parse_options(parser, specs=["specs/modular_networks.mod"])
    if options.child:
        print(json.dumps(export(options.specs[0])))
        return
    print(" " * 46, *(title.rjust(9) for title in ("start", *PHASES, "all")), "  nodes       MB  unreached")
    with contextlib.ExitStack() as stack:
        trees = {"now": HERE}
        if options.before:
            trees = {"before": stack.enter_context(revision(options.before)), **trees}
        for spec in options.specs or every_spec():
            found: dict[str, list[dict[str, Any]]] = {name: [] for name in trees}
            for _ in range(options.rounds):
                for name, tree in trees.items():
                    found[name].append(measured(spec, tree))
            took = [print_row(spec, name, rounds) for name, rounds in found.items()]
            if len(took) == 2:
                print(" " * 41, f"now / before {took[1] / took[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
