"""Compares lowerings of a choice in a scan, in ONNX Runtime, with the scan of one dense module.

    python benchmarks/scans.py [--quick]

A scan of 32 steps, h = tanh(x + f(h)), chooses f from some modules at each step: one linear map, or two with four times
the width between. Each lowering takes turns with the dense scan, one thread, medians over rounds. `direct` is
hand-written ONNX, as a floor: it sorts tokens by module and slices each module's tokens, without lengths and gates.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import product

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnx import TensorProto, helper, numpy_helper
from options import parse_options

import modgraph
from modgraph.backends.onnx.examples import Examples
from modgraph.backends.onnx.trace import trace
from modgraph.backends.torch import Model
from modgraph.passes import Determinize, InferenceOnly, Lower, Moved, apply_passes, choices

STEPS = 32
LOWERINGS = ("gathered", "grouped", "masked")
BODIES = {1: "linear(width)", 2: "linear(4 * width) -> relu -> linear(width)"}
SCAN = """model layer(width={width}, modules={modules}) {{ input xs: float[time, width] {declared}
  scan xs as x with h: float[width] {{ h = tanh(x + (h -> {term})) yield h }} as y output y }}"""
ROUTED = "pool p[modules] = {body} router r = categorical(1)"

Weights = dict[str, np.ndarray]


def program(width: int, modules: int, layers: int, routed: bool) -> modgraph.Program:
    declared = ROUTED.format(body=BODIES[layers]) if routed else ""
    return modgraph.loads(
        SCAN.format(width=width, modules=modules, declared=declared, term="p by r" if routed else BODIES[layers])
    )


def traced(program: modgraph.Program, lowering: str | None) -> onnx.ModelProto:
    """Trace a program to ONNX with a lowering for its routes."""
    weights = program.build(seed=0).state_dict()
    graph = apply_passes(program.ir, (InferenceOnly(), Determinize(), Lower(lowering, exportable=lowering is None)))
    model = Model(graph, Moved(graph)).eval().requires_grad_(False)
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    only = trace(model, Examples(graph)).only(graph.outputs)
    return only.proto


def direct(weights: Weights, width: int, modules: int, layers: int) -> onnx.ModelProto:
    """Write the same scan in ONNX."""
    nodes, initial = [], []

    def node(kind: str, *inputs: str, outputs: int = 1, **attributes: object) -> list[str]:
        names = [f"v{len(nodes)}.{at}" for at in range(outputs)]
        nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names

    def constant(array: np.ndarray) -> str:
        initial.append(numpy_helper.from_array(np.ascontiguousarray(array), f"c{len(initial)}"))
        return initial[-1].name

    ones = np.array([0, 1])
    (scores,) = node("Gemm", "h", constant(weights["r.weight"][0]), constant(weights["r.bias"][0]), transB=1)
    (module,) = node("ArgMax", scores, axis=-1, keepdims=0)
    (size,) = node("Shape", "h", start=0, end=1)
    _, order = node("TopK", module, size, outputs=2, largest=0, axis=0)
    (hot,) = node("OneHot", module, constant(np.array(modules)), constant(ones))
    (counts,) = node("ReduceSum", hot, constant(np.array([0])), keepdims=0)
    (tokens,) = node("Gather", "h", order)
    parts = node("Split", tokens, counts, outputs=modules, axis=0)
    for at in range(modules):
        for layer in range(layers):
            owner = f"p.{at}.linear{layer + 1 if layer else ''}"
            of = [constant(weights[f"{owner}.{name}"]) for name in ("weight", "bias")]
            (parts[at],) = node("Gemm", parts[at], *of, transB=1)
            if layer + 1 < layers:
                (parts[at],) = node("Relu", parts[at])
    (values,) = node("Concat", *parts, axis=0)
    _, back = node("TopK", order, size, outputs=2, largest=0, axis=0)
    (ordered,) = node("Gather", values, back)
    (total,) = node("Add", "x", ordered)
    nodes.append(helper.make_node("Tanh", [total], ["next"]))
    nodes.append(helper.make_node("Identity", ["next"], ["stacked"]))

    def port(name: str, *shape: str | int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    body = helper.make_graph(
        nodes,
        "body",
        [port("h", "B", width), port("x", "B", width)],
        [port("next", "B", width), port("stacked", "B", width)],
    )
    outer = [
        helper.make_node("Transpose", ["xs"], ["steps"], perm=[1, 0, 2]),
        helper.make_node("Shape", ["xs"], ["batch"], start=0, end=1),
        helper.make_node("Concat", ["batch", constant(np.array([width]))], ["of_state"], axis=0),
        helper.make_node("ConstantOfShape", ["of_state"], ["zeros"]),
        helper.make_node("Scan", ["zeros", "steps"], ["last", "states"], body=body, num_scan_inputs=1),
        helper.make_node("Transpose", ["states"], ["y"], perm=[1, 0, 2]),
    ]
    graph = helper.make_graph(outer, "direct", [port("xs", "B", "T", width)], [port("y", "B", "T", width)], initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def session(model: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def row(sessions: dict[str, ort.InferenceSession], batch: int, width: int, rounds: int) -> dict[str, float]:
    """Measure medians in ms, in turn; all but the dense one must agree."""
    xs = np.random.default_rng(0).standard_normal((batch, STEPS, width)).astype(np.float32)
    given = {"xs": xs, "time_length": np.full(batch, STEPS)}
    feeds = {name: {each.name: given[each.name] for each in one.get_inputs()} for name, one in sessions.items()}
    found = {name: one.run(None, feeds[name])[0] for name, one in sessions.items()}
    for name in found:
        assert name == "dense" or np.allclose(found[name], found["direct"], atol=1e-4), name
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(rounds):
        for name, one in sessions.items():
            start = time.perf_counter()
            one.run(None, feeds[name])
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--layers", type=int, nargs="+", default=[*BODIES], choices=BODIES)
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 128, 256])
    parser.add_argument("--modules", type=int, nargs="+", default=[4, 16])
    options = parse_options(parser, rounds=1, layers=[1], widths=[32], modules=[4])
    torch.set_num_threads(1)
    columns = ("layers", "width", "modules", "examples", "dense ms", *LOWERINGS, "direct", "picked", "to the best")
    print(f"| {' | '.join(columns)} |")
    print("|" + "---|" * (len(LOWERINGS) + 8))
    for layers, width, modules in product(options.layers, options.widths, options.modules):
        routed = program(width, modules, layers, routed=True)
        lowerings = choices(apply_passes(routed.ir, (InferenceOnly(), Determinize(), Lower(exportable=True)))).values()
        (picked,) = (
            each for each in lowerings if each.name in LOWERINGS
        )  # the router's text has a lowering of its own
        weights = {name: value.numpy() for name, value in routed.build(seed=0).state_dict().items()}
        sessions = {"dense": session(traced(program(width, modules, layers, routed=False), None))}
        sessions |= {name: session(traced(routed, name)) for name in LOWERINGS}
        sessions["direct"] = session(direct(weights, width, modules, layers))
        for batch in (1, 8, 64):
            ms = row(sessions, batch, width, options.rounds)
            ratios = [f"{ms[name] / ms['dense']:.1f}" for name in (*LOWERINGS, "direct")]
            best = ms[picked.name] / min(ms[name] for name in LOWERINGS)
            cells = (layers, width, modules, batch, f"{ms['dense']:.2f}", *ratios, picked.name, f"{best:.2f}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
