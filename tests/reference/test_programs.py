"""Programs that show what the vocabulary's examples do not: torch computes what the interpreter says of each."""

from __future__ import annotations

import ast
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import modgraph
from modgraph.diagnostics import ModgraphError
from tests.assault.sound import sound
from tests.reference import Unsupported
from tests.reference.against_torch import LONGEST, Array, compare, random_batch, random_model

MOST_MACS = 300_000

HEAD = """input x: float[time, 8] input m: float[place, 8] input e: float[place, 6] input k: float[place]
  input xo: float[3, time, 8] input mo: float[3, place, 8] pool p[3] = linear(8) -> gelu"""
ATTENTION = [
    "(x, m) -> attention(2)",
    "(x, m, k) -> attention(2)",
    "(x, m, k > 0) -> attention(2, causal=true)",
    "(x, e) -> attention(4, kv_heads=2)",
    "(x, e) -> attention(4, kv_heads=2, head_width=6, rotary=100.0, bias=false, out_bias=false)",
    "x -> attention(4, kv_heads=1, qk_norm=true, rotary=10.0, causal=true)",
    "x -> attention(2, relative=8)",
    "(x, m) -> attention(2, relative=6, causal=true, head_width=3)",
    "(x, m, ((x, m) -> contract) > 0) -> attention(2)",
    "(xo, mo) -> attention(2)",
]
ROUTES = [
    "x -> p by (x -> linear(p) -> softmax) over time",
    "x by (x -> linear(3)) over time",
    "x -> linear(8) by (x -> linear(5)) over time",
    "xo -> p by (xo -> linear(p)) over time",
    "xo by (xo -> linear(1)) over -3",
    "(x -> p) -> p by (x -> linear(p))",
    "(x -> p) -> p by (x -> linear(p)) over time",
    "x -> p by ((x -> linear(p)) -> above(0.0))",
    'xo -> p by ((xo -> linear(p)) -> top_k(2, axis="time"))',
    "x -> p by ((x -> linear(p) -> softmax, x -> linear(p) -> top_k(2)) -> straight_through)",
    "x -> p by ((x -> linear(p) -> softmax, x -> linear(p) -> draw) -> straight_through)",
    "x -> p by ((x -> linear(p), (x -> linear(p)) -> above) -> masked_softmax)",
    'x -> p by (x -> linear(6) -> unmerge([2, 3], into=["slot", "p"]))',
    'x by (x -> linear(1) -> top_k(2, axis="time") -> dispatch(2, axis="time", into="slot")) over time',
    "m by ((x, m) -> contract) over place",
    "(x -> new_axis(p, at=-2)) -> p by (x -> linear(p))",
]
AXES = [
    '(x -> mean, x) -> expand("time")',
    "where((x -> sum(axis=-1)) > 0, x, 0.1)",
    '(x, xo -> mean(axis=-1)) -> contract(axis="time")',
    'x -> sort_order(axis="time", descending=true)',
    '(x -> linear(p)) -> kth_largest(2, axis="time")',
    "xo -> lstm(3, reverse=true, bias=false) -> last",
    "(x -> unmerge([2, 4]), 3.0 * x -> unmerge([2, 4])) -> concat -> transpose -> flatten(2)",
    'x -> gru(3, bias=false) -> cumulative_sum(axis="time")',
]
IN_SCANS = [
    "h = h + (v -> p) yield h -> mean(axis=p)",
    "m = v -> batch_mean([]) h = tanh(h + (v -> p) - m) yield h -> mean(axis=p)",
    "s = v -> linear(p) c = (s, s -> top_k(1)) -> within_capacity(0.5) h = h + (v -> p by (c * s)) yield h -> last",
    "g = (h -> other, v) -> contract -> softmax h = 0.5 * h + (h -> p by g over p) yield g",
    'h = h + (x -> p -> mean(axis="time")) * v yield h -> max(axis=p)',
    "h = (h -> attention(2)) -> rms_norm yield (h, v) -> contract",
]
SCAN = """model m() {{ input x: float[time, 8] pool p[3] = linear(8) pool other[p] = linear(8)
  scan x as v with h: float[p, 8] {{ {} }} as a output a output b = a -> last }}"""
ROUTERS = [
    'agreement(2, bias=true, update="normalised", residual=true)',
    "agreement(0)",
    'categorical(slots=2, combine="concat")',
    "categorical(slots=2, dedupe=true)",
    'fixed(slots=2, combine="concat")',
    'noisy_top_k(2, softmax="before_top_k", noise=false)',
    'linear(k=2, load="kth_of_others", noise=0.5, capacity=0.5, priority="first_choice")',
    'linear(k=1, load="code", noise=0.5, capacity=1.0)',
    "cosine(k=2, width=3)",
    "truncated_kernel(1.0)",
]
LOSSES = [
    "mse(x, t, missing=true)",
    'gaussian(x, t, variance=0.3, reduce="sum")',
    "gaussian(x, t, variance=0.3, missing=true)",
    "0.5 * cross_entropy(x, c, missing=true, class_weights=[1, 2, 3, 4])",
    "cross_entropy(x, c, ignore=2, missing=true)",
    'cross_entropy(x, c, since=2, reduce="sum")',
    "entropy(x) ** 2",
]
ROUTED = """model m() {{ input x: float[time, 2, 8] pool p[3] = linear(8) -> tanh router r = {}
  y = x -> p by r output y output z = r.gates loss importance(r) loss importance(r, over="example") }}"""
LOST = "model m() {{ input x: float[time, 4] target t: float[time, 4] target c: class[time, 4] output x loss {} }}"
PROGRAMS = [
    *(f"model m() {{ {HEAD} y = {use} output y }}" for use in (*ATTENTION, *ROUTES, *AXES)),
    *map(SCAN.format, IN_SCANS),
    *map(ROUTED.format, ROUTERS),
    *map(LOST.format, LOSSES),
    "model m() { input x: float[time, 3, 4, 4] module b = batch_norm y = x -> b z = 2 * x -> b output y output z }",
    'model m() { input x: float[5, 3, 4, 4] pool p[2] = conv(3, padding="same") -> batch_norm y = x -> p output y }',
    "model m() { input x: float[5, 3, 4, 4] pool p[2] = conv(3, kernel=2) -> batch_norm "
    "y = x -> p by (x -> flatten(3) -> linear(p) -> top_k(1)) output y }",
]


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("text", PROGRAMS)
def test_a_program_computes_what_it_means_though_an_example_is_empty(text: str, training: bool) -> None:
    program = modgraph.loads(text)
    compare(program, _with_an_empty_example(program), random_model(program), training)


def _with_an_empty_example(program: modgraph.Program) -> dict[str, Array]:
    """A batch whose last example has nothing along any axis of any length."""
    batch = random_batch(program)
    for name, type_ in program.ir.input_types.items():
        if type_.dtype == "length":
            batch[name][-1] = 0
    return batch


@pytest.mark.parametrize("part", [*range(2), *(pytest.param(part, marks=pytest.mark.slow) for part in range(2, 200))])
def test_sound_specs_compute_what_they_mean(part: int) -> None:
    """Fifty written at random; numbers that are none are compared with nothing."""
    for n in range(50 * part, 50 * part + 50):
        try:
            program = modgraph.loads(sound(Random(n)))
            if program.cost(**{axis: LONGEST for axis in _any_length(program)}).macs > MOST_MACS:
                continue
        except ModgraphError:  # a mistake, or more positions than there are
            continue
        for training in (False, True):
            with suppress(Unsupported):
                compare(program, random_batch(program, n), random_model(program, n), training)


def _any_length(program: modgraph.Program) -> set[str]:
    return {axis for type_ in program.ir.input_types.values() for axis in type_.padded}


def test_the_interpreter_is_independent() -> None:
    """It imports nothing but itself, numpy and Python's own library."""
    for path in Path(__file__).parent.glob("*.py"):
        if path.name.startswith("test_") or path.name == "against_torch.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            roots = {name.partition(".")[0] for name in names if not name.startswith("tests.reference")}
            assert roots <= {"numpy", *sys.stdlib_module_names}, f"{path.name} imports {roots}"
