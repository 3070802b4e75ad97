"""Scans of linear recurrences: which are found, with a reason, and that all steps at once equal one after another."""

from __future__ import annotations

import pytest
import torch

import modgraph
from modgraph.backends.report import compile_report
from modgraph.backends.torch import recurrences
from modgraph.ir import ScanNode
from modgraph.passes import INFERENCE, apply_passes, list_scans
from modgraph.passes.scans import explain_scan

WIDTH = 6
HEADS = """gate, beta = v -> linear(4) -> sigmoid -> split(2)
  gate = gate -> rename(["-1", "head"])  beta = beta -> rename(["-1", "head"])
  q, k, u = v -> linear(18) -> unmerge([2, 9], into=["head", ""]) -> split(3)  k = k -> unit
"""
OUTER = "(u -> new_axis(at=-1)) * (k -> new_axis(at=-2))"
ELEMENTWISE = {
    "gates": "h: float[6] { h = (v -> sigmoid) * h + v yield h }",
    "convex": "h: float[6] { z = v -> linear(6) -> sigmoid h = (1 - z) * h + z * v yield h }",
    "difference": "h: float[6] { h = h + (v -> sigmoid) * (v - h) / 2 yield h }",
    "start": "h: float[6] = c { h = h / (1 + v ** 2) + v yield h }",
    "sum": "h: float[6] { h = h + v yield h }",
    "average": "h: float[6], n: float[1] { h = h + v n = n + 1 yield h / n }",
    "last": "h: float[6] { yield h h = v }",
    "two": "h: float[6], g: float[6] = c { g = g * (h -> sigmoid) + v h = 0.9 * h + v yield g yield h }",
    "chain": "g: float[6], h: float[6] = c { g = 0.5 * g + h * v h = v - 0.1 * h yield g }",
    "captured": "h: float[6] { h = (c -> sigmoid) * h + v yield (h, c) -> concat }",
    "per head": "h: float[head=2, 3] { u = v -> unmerge([2, 3], into=['head', '']) "
    "h = (u -> mean(axis=-1) -> sigmoid -> rename(['-1', 'head'])) * h + u yield h }",
    "no state": "h: float[6] { h = h + v yield v -> linear(3) -> tanh }",
    "mixed": f"s: float[head=2, 3, 3] {{ {HEADS} s = (OUTER -> sigmoid) * s + OUTER yield (s, q) -> contract }}",
    "row gates": f"s: float[head=2, 3, 3] {{ {HEADS} s = (u -> sigmoid -> new_axis(at=-1)) * s + OUTER "
    "yield (s, q) -> contract }",
    "read": f"s: float[head=2, 3, 3] {{ {HEADS} s = gate * s + OUTER yield s -> mean(axis='head') }}",
}
MATRICES = {
    "decay": f"s: float[head=2, 3, 3] {{ {HEADS} s = gate * s + OUTER yield (s, q) -> contract }}",
    "no decay": f"s: float[head=2, 3, 3] {{ {HEADS} s = s + OUTER yield (s, q) -> contract }}",
    "constant": f"s: float[head=2, 3, 3] {{ {HEADS} s = 0.9 * s + OUTER yield (s, q) -> contract }}",
    "gates of keys": f"s: float[head=2, 3, 3] {{ {HEADS} s = (k -> sigmoid -> new_axis(at=-2)) * s + OUTER "
    "yield (s, q) -> contract }",
    "before": f"s: float[head=2, 3, 3] {{ {HEADS} yield (s, q) -> contract s = gate * s + OUTER }}",
    "keys first": f"s: float[head=2, 3, 3] {{ {HEADS} s = gate * s + (u -> new_axis(at=-2)) * (k -> new_axis(at=-1)) "
    "yield ((s -> transpose), q) -> contract }",
    "normalised": f"s: float[head=2, 3, 3], n: float[head=2, 3] {{ {HEADS} s = gate * s + OUTER n = gate * n + k ** 2 "
    "yield ((s, q) -> contract) / (1 + ((n, q ** 2) -> contract)) }",
    "two rows": "s: float[2, 3, 3] { q, k = v -> split(2) s = 0.9 * s + (v -> unmerge([2, 3]) -> new_axis(at=-1)) * k "
    "yield (s, q) -> contract }",
    "start of a matrix": f"s: float[head=2, 3, 3] = start {{ {HEADS} s = gate * s + OUTER yield (s, q) -> contract }}",
    "named": """s: float[head=2, value=3, key=3] {
      q, k = v -> linear(12) -> unmerge([2, 6], into=["head", ""]) -> split(2)
      u = v -> unmerge([2, 3], into=["head", "value"])
      s = 0.5 * s + (u -> new_axis(3, axis="key", at=-1)) * (k -> rename(["-1", "key"]))
      yield (s, q -> rename(["-1", "key"])) -> contract(axis="key") }""",
}
ERROR = "(beta * (u - ((s, k) -> contract)) -> new_axis(at=-1)) * (k -> new_axis(at=-2))"
DELTA = {
    "delta": f"s: float[head=2, 3, 3] {{ {HEADS} s = s + {ERROR} yield (s, q) -> contract }}",
    "gated": f"s: float[head=2, 3, 3] {{ {HEADS} s = gate * s s = s + {ERROR} yield (s, q) -> contract }}",
    "gated after": f"s: float[head=2, 3, 3] {{ {HEADS} s = gate * (s + {ERROR}) yield (s, q) -> contract }}",
    "by sums": f"s: float[head=2, 3, 3] {{ {HEADS} r = s * (k -> new_axis(at=-2)) -> sum(axis=-1) "
    "s = s - (beta * r -> new_axis(at=-1)) * (k -> new_axis(at=-2)) + OUTER yield (s, q) -> contract }",
    "gates of keys": f"s: float[head=2, 3, 3] {{ {HEADS} s = (q -> sigmoid -> new_axis(at=-2)) * s s = s + {ERROR} "
    "yield (s, q) -> contract }",
    "error": f"s: float[head=2, 3, 3] {{ {HEADS} e = u - ((s, k) -> contract) "
    "s = s + (e -> new_axis(at=-1)) * (k -> new_axis(at=-2)) yield e yield (s, q) -> contract }",
    "states": f"s: float[head=2, 3, 3] = start {{ {HEADS} s = gate * s s = s + {ERROR} yield s }}",
}
STEPS = {
    "h: float[6] { h = 0.9 * h + v -> tanh yield h }": '"tanh"',
    "h: float[6] { h = h * h + v yield h }": "multiplies values of the state",
    "h: float[6] { h = v / (1 + h ** 2) yield h }": '"power"',
    "h: float[6] { h = (h -> linear(6)) + v yield h }": '"linear"',
    "h: float[6] { h = (h, v -> dropout(0.5)) -> concat -> linear(6) yield h }": "samples at each step",
    "h: float[6], g: float[6] { h = h + g g = g + h * v yield g }": "depend on each other",
    "s: float[3, 3] { s = (s -> transpose) * 0.5 + 1 yield s }": "change places",
    "h: float[6] { h = h + (v -> p by r) yield h }": "runs at each step",
}


def make_program(body: str) -> modgraph.Program:
    yields = " ".join(f"output y{at}" for at in range(body.count("yield")))
    names = ", ".join(f"y{at}" for at in range(body.count("yield")))
    body = body.replace("OUTER", OUTER).replace("'", '"')
    pool = "pool p[2] = linear(6) router r = noisy_top_k(1)" if "p by r" in body else ""
    start = 'input m: float[2, 3, 3] start = m -> rename(["-3", "head"])' if "start" in body else ""
    return modgraph.loads(f"""model m() {{ input x: float[time, {WIDTH}] input c: float[{WIDTH}] {start} {pool}
      scan x as v with {body} as {names} {yields} }}""")


def compare(body: str, time: int = 67, keeps: bool = False) -> str:
    """Hold all steps at once against one after another, with padding: values and gradients; return the reason."""
    program = make_program(body)
    models = [program.build(seed=0, lowering=lowering).double() for lowering in (None, "steps")]
    (found,) = list_scans(models[0].computed)
    generator = torch.Generator().manual_seed(0)
    shapes = {"x": (3, time, WIDTH), "c": (3, WIDTH), "m": (3, 2, 3, 3)}
    given = {
        name: torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for name, shape in shapes.items()
    }
    given = {name: value for name, value in given.items() if name in program.ir.input_types}
    leaves = [*given.values()]
    batch = {**given, "time_length": torch.tensor([time, time // 2, 0])}
    for training in (True, False):
        results = []
        for model in models:
            outputs = model.train(training).compute(batch, losses=False).outputs
            weighted = [
                value * torch.randn(value.shape, generator=torch.Generator().manual_seed(1))
                for value in outputs.values()
            ]
            of = [*leaves, *model.parameters()]
            grads = torch.autograd.grad(sum(each.sum() for each in weighted), of, allow_unused=True)
            results.append([*outputs.values(), *(each for each in grads if each is not None)])
        for at_once, step_by_step in zip(*results, strict=True):
            torch.testing.assert_close(at_once, step_by_step, rtol=1e-9, atol=1e-10)
    return found[1]


@pytest.mark.some(7)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_states_of_independent_numbers_are_computed_at_once(name: str) -> None:
    reason = compare(ELEMENTWISE[name])
    assert "number by number" in reason and "matrix" not in reason, reason


@pytest.mark.some(4)
@pytest.mark.parametrize("name", MATRICES)
def test_matrices_changed_by_outer_products_are_computed_in_chunks(name: str) -> None:
    reason = compare(MATRICES[name])
    assert "a matrix that outer products change" in reason, reason


@pytest.mark.some(3)
@pytest.mark.parametrize("name", DELTA)
def test_the_delta_rule_is_computed_in_chunks(name: str) -> None:
    reason = compare(DELTA[name])
    assert "delta rule" in reason, reason


@pytest.mark.parametrize("body", STEPS)
def test_other_scans_run_step_by_step_and_say_why(body: str) -> None:
    (scan,) = make_program(body).ir.nodes_of(ScanNode)
    lowering, reason = explain_scan(scan)
    assert lowering == "" and STEPS[body] in reason, reason


@pytest.mark.parametrize(
    "body",
    [ELEMENTWISE["two"], MATRICES["normalised"], DELTA["gated"]],
    ids=["numbers", "outer products", "delta rule"],
)
def test_long_sequences_are_computed_in_segments(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrences, "SEGMENT", 1)
    monkeypatch.setattr(recurrences, "SHORTEST", 8)
    compare(body, time=19)


def test_sequences_without_steps_give_empty_results() -> None:
    model = make_program(DELTA["gated"]).build(seed=0)
    assert model(torch.zeros(2, 0, WIDTH), torch.zeros(2, WIDTH)).shape == (2, 0, 2, 3)


@pytest.mark.parametrize(
    "body", [ELEMENTWISE["start"], MATRICES["gates of keys"], DELTA["gated"], ELEMENTWISE["mixed"]]
)
def test_steps_in_half_precision_compute_and_learn_about_the_same(body: str) -> None:
    program, found = make_program(body), []
    model = program.build(seed=0)
    shapes = {name: [3, *(axis.size or 40 for axis in type_.shape)] for name, type_ in program.ir.input_types.items()}
    given = [
        torch.randn(shape, generator=torch.Generator().manual_seed(0)) for shape in shapes.values() if shape != [3]
    ]
    for half in (False, True):
        leaves = [each.clone().requires_grad_() for each in given]
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            y = model(*leaves)
        found.append([y.float(), *torch.autograd.grad(y.float().square().sum(), leaves[:1])])
    for half, whole in zip(*found, strict=True):
        assert (half - whole).norm() < 0.1 * whole.norm()


def test_a_bundle_keeps_scans_of_wide_states_and_says_so() -> None:
    program = modgraph.loads("""model m() { input x: float[time, 129]
      scan x as v with h: float[129], s: float[129] { h = (v -> sigmoid) * h + v s = s + h yield h } as y output y }""")
    model = program.build()
    lines = compile_report(program.ir, model).splitlines()
    assert any(line.startswith("scan y: recurrence") for line in lines)
    assert any("scan y when exported: steps" in line and "state h has 129 numbers" in line for line in lines)
    narrow = make_program(ELEMENTWISE["gates"])
    assert "when exported" not in compile_report(narrow.ir, narrow.build())
    assert "lowering recurrence" in str(apply_passes(narrow.ir, INFERENCE))
    assert "lowering recurrence" not in str(apply_passes(program.ir, INFERENCE))


def test_a_requested_lowering_runs_scans_step_by_step() -> None:
    program = make_program(ELEMENTWISE["gates"])
    ((_, reason),) = list_scans(program.build(lowering="steps").computed)
    assert reason == "steps, one after another; as requested"
    assert "lowering recurrence" in str(program.build().computed), "the graph does not say how the scan runs"
