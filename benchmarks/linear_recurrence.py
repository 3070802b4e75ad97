"""Compares linear recurrences that are computed at all steps at once with the scan that runs step by step.

    python benchmarks/linear_recurrence.py [--quick] [--rounds 5] [--steps 1024] [--onnx]

Four examples of 1,024 steps, one thread, medians over rounds of the ratio within a round. `floor` is torch's arithmetic
of the same sizes without gates: a cumulative sum of the states, or two products of matrices for each chunk of 64 steps.
Goal: at most 0.1 of the scan, forward and backward.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
from options import parse_options
from torch import Tensor

import modgraph
from modgraph.backends.onnx.examples import Examples
from modgraph.backends.onnx.trace import trace
from modgraph.backends.torch import Model
from modgraph.passes import INFERENCE, LowerScans, Moved, apply_passes

BATCH, WIDTH, STATES, HEADS, CHUNK = 4, 64, 16, 4, 64
HEAD = """k = v -> linear(width) -> unmerge([4, 16], into=["head", "key"]) -> unit
  q = v -> linear(width) -> unmerge([4, 16], into=["head", "key"])
  u = v -> linear(width) -> unmerge([4, 16], into=["head", "value"])
  gate = v -> linear(4) -> sigmoid -> unmerge([4], into=["head"])"""
MATRIX = "with s: float[head=4, value=16, key=16]"
READ = 'yield (s, q) -> contract(axis="key")'
BODIES = {
    "sum": "with h: float[width] { h = h + v yield h }",
    "gates": "with h: float[width] { z = v -> linear(width) -> sigmoid h = z * h + (1 - z) * v yield h }",
    "state space": """with h: float[width, 16] { step = v -> linear(width) -> softplus -> new_axis(at=-1)
      write, read = v -> linear(32) -> split(2)
      h = exp(0 - step * exp(rate)) * h + step * (v -> new_axis(at=-1)) * write
      yield (h, read) -> contract }""",
    "one gate": f"""{MATRIX} {{ {HEAD}
      s = gate * s + (u -> new_axis(16, axis="key", at=-1)) * k {READ} }}""",
    "gates of keys": f"""{MATRIX} {{ {HEAD}
      s = sigmoid(k) * s + (u -> new_axis(16, axis="key", at=-1)) * k {READ} }}""",
    "delta rule": f"""{MATRIX} {{ {HEAD} s = gate * s error = u - ((s, k) -> contract(axis="key"))
      s = s + (error -> new_axis(16, axis="key", at=-1)) * k {READ} }}""",
}


def make_program(name: str) -> modgraph.Program:
    rate = f"weight rate: float[{WIDTH}, {STATES}] = normal(1)" if name == "state space" else ""
    return modgraph.loads(
        f"model m(width={WIDTH}) {{ input x: float[time, width] {rate} scan x as v {BODIES[name]} as y output y }}"
    )


def make_floor(name: str, steps: int) -> tuple[Callable[[], Tensor], list[Tensor]]:
    """The arithmetic without gates and projections, and its leaves."""
    if name in ("sum", "gates", "state space"):
        shape = (BATCH, steps, WIDTH, STATES) if name == "state space" else (BATCH, steps, WIDTH)
        leaf = torch.randn(shape, requires_grad=True)
        return lambda: leaf.cumsum(1), [leaf]
    shape = (BATCH, HEADS, max(1, steps // CHUNK), min(steps, CHUNK), WIDTH // HEADS)
    q, k, u = (torch.randn(shape, requires_grad=True) for _ in range(3))
    return lambda: (q @ k.mT).tril() @ u, [q, k, u]


def measure(function: Callable[[], Tensor], leaves: list[Tensor], backward: bool) -> float:
    for leaf in leaves:
        leaf.grad = None
    start = time.perf_counter()
    if backward:
        function().square().sum().backward()  # type: ignore[no-untyped-call]
    else:
        with torch.no_grad():
            function()
    return time.perf_counter() - start


def make_session(program: modgraph.Program, steps: bool, folder: Path) -> ort.InferenceSession:
    """A session of the model, traced step by step or at all steps at once."""
    lowering = LowerScans("steps" if steps else None)
    passes = [lowering if isinstance(each, LowerScans) else each for each in INFERENCE]
    model = program.build(seed=0)
    graph = apply_passes(model.graph, passes)
    inference = Model(graph, Moved(graph)).requires_grad_(False)
    weights = model.state_dict()
    inference.load_state_dict({name: weights[name] for name in inference.state_dict()})
    path = folder / f"{steps}.onnx"
    path.write_bytes(trace(inference.eval(), Examples(inference.graph)).proto.SerializeToString())
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run(session: ort.InferenceSession, x: np.ndarray) -> float:
    feed = {"x": x, "time_length": np.full(len(x), x.shape[1])}
    given = {each.name: feed[each.name] for each in session.get_inputs()}
    start = time.perf_counter()
    session.run(None, given)
    return time.perf_counter() - start


def compare(times: dict[str, Callable[[], float]], rounds: int) -> dict[str, tuple[float, float]]:
    """Median milliseconds, and median ratios to the scan, of rounds in turn."""
    found: dict[str, list[float]] = {name: [] for name in times}
    for round_ in range(rounds + 1):
        for name, once in times.items():
            seconds = once()
            found[name] += [seconds] if round_ else []
    scan = found["scan"]
    return {
        name: (1000 * statistics.median(each), statistics.median(a / b for a, b in zip(each, scan, strict=True)))
        for name, each in found.items()
    }


def report(name: str, kind: str, found: dict[str, tuple[float, float]]) -> None:
    cells = "".join(
        f"{found[each][0]:9.2f} {found[each][1]:6.3f}" if each in found else f"{'–':>16}" for each in COLUMNS
    )
    print(f"{name:14} {kind:8} {found['scan'][0]:9.1f} {cells}", flush=True)


COLUMNS = ("at once", "floor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1024)
    parser.add_argument("--only", nargs="+", default=[*BODIES], choices=BODIES)
    parser.add_argument("--onnx", action="store_true", help="measure ONNX Runtime too")
    options = parse_options(parser, rounds=1, steps=64, only=["state space", "delta rule"])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{'':14} {'pass':8} {'scan ms':>9} {'at once ms':>10} {'ratio':>5} {'floor ms':>9} {'ratio':>5}")
    for name in options.only:
        program, x = make_program(name), torch.randn(BATCH, options.steps, WIDTH)
        models = {"scan": program.build(seed=0, lowering="steps"), "at once": program.build(seed=0)}
        torch.testing.assert_close(models["scan"](x), models["at once"](x), rtol=1e-3, atol=1e-3)
        floor, leaves = make_floor(name, options.steps)
        for backward in (False, True):
            times = {
                each: lambda model=model: measure(lambda: model(x), [*model.parameters()], backward)  # noqa: B023
                for each, model in models.items()
                if not backward or any(True for _ in model.parameters())
            }
            if times:
                times["floor"] = lambda: measure(floor, leaves, backward)  # noqa: B023
                report(name, "both" if backward else "forward", compare(times, options.rounds))
        if options.onnx:
            with tempfile.TemporaryDirectory() as folder:
                sessions = {each: make_session(program, each == "scan", Path(folder)) for each in models}
            runs = {each: lambda session=session: run(session, x.numpy()) for each, session in sessions.items()}  # noqa: B023
            report(name, "onnx", compare(runs, options.rounds))


if __name__ == "__main__":
    main()
