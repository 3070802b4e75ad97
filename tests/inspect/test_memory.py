"""The memory of a training step, against what torch keeps and holds when the step is done."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import modgraph
from modgraph.backends.report import random_batch
from modgraph.backends.torch import Model, build
from modgraph.backends.torch.step_memory import SHORTER, Rehearsal, memory_of
from modgraph.diagnostics import ModgraphError
from modgraph.inspect.cost import TrainingStep, last_below, list_axes_of_any_length
from modgraph.ir import Graph, Part, RouteNode
from modgraph.training.engine import Engine
from modgraph.training.run import start_run
from tests.examples import GRU, OP_EXAMPLES, ROUTER_EXAMPLES, ROUTERS_IN_SCAN, SEQUENCE, TRANSFORMER, TWO_SCANS
from tests.measured_memory import LiveBytes, MeasuredStep, kept
from tests.nested_pools import SPECS as NESTED
from tests.small_runs import take_step

FIFTH = 0.2
FEW = 64  # bytes that are no matter: numbers of one example, such as how many were counted
TIME = 8  # of random batches, for axes of any length


def near(predicted: float, measured: float) -> bool:
    return abs(predicted - measured) <= max(FIFTH * measured, FEW)


class LearningInputs(Rehearsal):
    """What is given learns too, so that an op that stands alone shows what it keeps of its operands."""

    def _examples(self, batch: int, lengths: Mapping[str, int]) -> dict[str, Tensor]:
        return learning(super()._examples(batch, lengths))


def learning(examples: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: each.requires_grad_(each.is_floating_point()) for name, each in examples.items()}


def predict_memory(graph: Graph, batch: int, lowering: str | None = None) -> int:
    lengths = dict.fromkeys(list_axes_of_any_length(graph), TIME)
    return LearningInputs(graph, "float32", lowering).measure(batch, lengths).kept


def measured_of(model: Model, batch: int) -> int:
    given_ = learning(random_batch(model, batch))
    with warnings.catch_warnings(), kept([*model.parameters(), *model.buffers(), *given_.values()]) as found:
        warnings.simplefilter("ignore")
        computed = model.train().results(given_, tuple((model.graph.losses or model.graph.outputs).values()))
    assert computed
    return sum(found.values())


DEEP = "model example() { input x: float[3, 50, 16] y = x -> attention(2) output y }"


@pytest.mark.some(30)
@pytest.mark.parametrize("name", [*OP_EXAMPLES, "attention over outer axes"])
def test_an_op_keeps_what_it_says(name: str) -> None:
    graph = modgraph.loads(OP_EXAMPLES.get(name, DEEP)).ir
    predicted, measured = predict_memory(graph, 3), measured_of(build(graph), 3)
    assert near(predicted, measured), (predicted, measured)


def lowerings() -> Iterator[Any]:
    for name, text in {
        **ROUTER_EXAMPLES,
        **{f"{name} in a scan": text for name, text in ROUTERS_IN_SCAN.items()},
    }.items():
        graph = modgraph.loads(text).ir
        for part in graph.parts():
            for route in part.graph.nodes_of(RouteNode):
                for lowering in _lowerings(part, route):
                    yield pytest.param(text, lowering, id=f"{name}: {lowering}")


def _lowerings(part: Part, route: RouteNode) -> list[str]:
    """But for the definition, which is for comparison alone."""
    router = part.graph.router_of(route).router
    offered = [lowering.name for lowering in router.lowerings(part.facts_of(route))]
    return [lowering for lowering in offered if lowering != "message_passing"]


@pytest.mark.some(5)
@pytest.mark.parametrize(("text", "lowering"), [*lowerings()])
def test_a_route_keeps_what_it_says_in_every_lowering(text: str, lowering: str) -> None:
    graph = modgraph.loads(text).ir
    predicted, measured = predict_memory(graph, 16, lowering), measured_of(build(graph, lowering=lowering), 16)
    assert near(predicted, measured), (predicted, measured)


@pytest.mark.some(1)
@pytest.mark.parametrize("lowering", [None, "masked"])
@pytest.mark.parametrize("name", NESTED)
def test_pools_inside_pools_keep_forced_choices(name: str, lowering: str | None) -> None:
    graph = modgraph.loads(NESTED[name]).ir
    predicted, measured = predict_memory(graph, 16, lowering), measured_of(build(graph, lowering=lowering), 16)
    assert near(predicted, measured), (predicted, measured)


# ---------------------------------------------------------------- whole models, one step of training


OFFICIAL = {"bias": True, "update": "normalised", "residual": True, "over": "batch", "uncertainty": 1.0}
SMALL_GMOE = {"dim": 48, "depth": 3, "heads": 4, "sparse": [1, 2], "size": 64, "patch": 16, "classes": 10}
CODE = {"gating": "linear", "k": 2, "capacity": 1.5, "load": "code"}
SMALL_SEMA = {
    "dim": 48, "depth": 3, "heads": 4, "adapters": [1, 2, 1], "expands": [1, 2], "hidden": 16, "size": 64,
}  # fmt: skip
SPECS: list[tuple[str, dict[str, Any]]] = [
    ("smn", {}),
    ("smn", {"modules": 8, **OFFICIAL}),
    ("smn_parity", {}),
    ("gmoe_digits", {}),
    ("gmoe", {**SMALL_GMOE, "width": 32}),
    ("gmoe", {**SMALL_GMOE, **CODE}),
    ("modular_networks", {}),
    ("modular_networks", {"layers": 3, "modules": 4, "slots": 2}),
    ("modular_networks_images", {"size": 16}),
    ("modular_networks_lm", {}),
    ("modular_networks_lm", {"vocabulary": 50, "slots": 2, "modules": 15}),
    ("mt_rmn", {}),
    ("sema", SMALL_SEMA),
    ("sema", {**SMALL_SEMA, "variant": "convpass", "gating": "top_1", "normed": True}),
    ("sema_backbone", {}),
    ("story", {"vocabulary": 30, "width": 16, "hidden": 12, "depth": 1, "heads": 2, "experts": 3}),
]


@pytest.fixture(scope="module", params=SPECS, ids=lambda spec: f"{spec[0]}{sorted(spec[1])}")
def training(request: pytest.FixtureRequest) -> MeasuredStep:
    name, parameters = request.param
    return MeasuredStep.of(modgraph.load(f"specs/{name}.mod", **parameters).ir)


@pytest.mark.some(2)
@pytest.mark.parametrize("batch", [1, 32])
def test_a_step_of_a_spec_takes_the_reported_memory_within_a_fifth(training: MeasuredStep, batch: int) -> None:
    predicted = memory_of(training.graph, TrainingStep(batch), {"time": TIME})
    examples = random_batch(training.model, batch)
    measured = training.kept(examples)
    assert near(predicted.activations, measured), (predicted, measured)
    most = training.peak(examples, torch.optim.Adam, fused=True)
    assert near(predicted.peak, most), (predicted, most)


def test_every_spec_is_compared_with_torch() -> None:
    assert {path.stem for path in Path("specs").glob("*.mod")} == {name for name, _ in SPECS}


@pytest.mark.some(1)
@pytest.mark.parametrize("text", [TRANSFORMER, SEQUENCE], ids=["transformer", "sequence"])
@pytest.mark.parametrize(
    ("optimizer", "settings", "step"),
    [
        (torch.optim.SGD, {"lr": 0.1}, TrainingStep(24, 0, 0)),
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}, TrainingStep(24, 1, 0)),
        (torch.optim.AdamW, {"weight_decay": 0.1, "fused": True}, TrainingStep(24, 2, 0)),
    ],
    ids=["sgd", "momentum", "adamw"],
)
def test_an_optimizer_adds_its_state(text: str, optimizer: Any, settings: Any, step: TrainingStep) -> None:
    training = MeasuredStep.of(modgraph.loads(text).ir)
    most = training.peak(random_batch(training.model, step.batch), optimizer, **settings)
    assert near(memory_of(training.graph, step, {"time": TIME}).peak, most)


@pytest.mark.some(1)
@pytest.mark.parametrize("precision", ["float64", "bfloat16"])
def test_a_precision_changes_what_is_kept(precision: str) -> None:
    training = MeasuredStep.of(modgraph.loads(TRANSFORMER).ir)
    batch = random_batch(training.model, 24)
    if precision == "float64":
        training.model.double()
        batch = {name: each.double() if each.is_floating_point() else each for name, each in batch.items()}
    half = torch.autocast("cpu", dtype=torch.bfloat16) if precision == "bfloat16" else nullcontext()
    with half:
        measured = training.kept(batch)
    predicted = memory_of(training.graph, TrainingStep(24, precision=precision)).activations
    assert near(predicted, measured), (predicted, measured)


@pytest.mark.some(1)
@pytest.mark.parametrize("text", [SEQUENCE, GRU])
def test_the_memory_of_a_long_loop_follows_from_shorter_ones(text: str) -> None:
    """Beyond a length no step is taken; here one is, to compare."""
    rehearsal = Rehearsal(modgraph.loads(text).ir, "float32")
    lengths = dict.fromkeys(list_axes_of_any_length(rehearsal.graph), 2 * SHORTER[-1])
    continued, rehearsal.loops = rehearsal.measure(3, lengths), set()
    taken = rehearsal.measure(3, lengths)
    assert all(near(*pair) for pair in zip(continued, taken, strict=True)), (continued, taken)


@pytest.mark.slow
@pytest.mark.parametrize("text", [TRANSFORMER, SEQUENCE, GRU, TWO_SCANS])
def test_lengths_that_are_not_given_are_one(text: str) -> None:
    program = modgraph.loads(text)
    ones = dict.fromkeys(list_axes_of_any_length(program.ir), 1)
    assert program.memory(batch=3) == program.memory(batch=3, **ones)


def test_what_only_an_output_needs_is_no_part_of_training() -> None:
    text = "model m() { input x: float[8] target t: float[3] y = x -> linear(3) z = y -> linear(2000) "
    text += "OUTPUT loss mse(y, t) }"
    with_output, without = (modgraph.loads(text.replace("OUTPUT", each)).memory(8) for each in ("output z", "output y"))
    assert with_output.activations == without.activations


def test_what_no_gradient_reaches_is_not_kept() -> None:
    body = "input x: float[9, 8] target t: float[3] frozen {{ module a = linear(64) -> relu }} h = x -> {} "
    end = "y = h -> mean -> linear(3) output y loss mse(y, t) }"
    frozen, direct = (modgraph.loads(f"model m() {{ {body.format(path)} {end}") for path in ("a", "linear(64) -> relu"))
    assert 3 * frozen.memory(8).activations < direct.memory(8).activations


# ---------------------------------------------------------------- steps of the engine


def largest_of(engine: Engine) -> int:
    """The most that tensors hold in the second step, assignments of decisions left out."""
    indices = torch.arange(engine.train.batch)
    take_step(engine, indices)
    state, table = engine.state, list(engine.state.learner.tensors().values())
    adam_tensors = [each for facts in state.gather_optimizer_state().values() for each in facts.values()]
    with LiveBytes([*state.model.parameters(), *state.model.buffers(), *adam_tensors, *table]) as live:
        gradients = [weight.grad for weight in state.named.values() if weight.grad is not None]
        for each in gradients:
            live.note(each)
        del each, gradients
        take_step(engine, indices)
    return live.most - sum(each.nbytes for each in table)


def test_a_step_of_the_engine_takes_what_is_reported(spec: Path, tmp_path: Path) -> None:
    with start_run(str(spec), None, {}, str(tmp_path / "run")) as engine:
        most = largest_of(engine)
    assert near(modgraph.load(str(spec)).memory(50).peak, most)


@pytest.mark.parametrize(("samples", "width"), [(1, 400), (40, 100)])
def test_em_tries_decisions_between_its_steps(samples: int, width: int, tmp_path: Path) -> None:
    (tmp_path / "m.mod").write_text(
        f"model m() {{ input x: float[2] target y: float[2] pool p[3] = linear({width}) -> tanh -> linear(2) "
        "router r = categorical() z = x -> p by r output z loss gaussian(z, y, variance=0.1) }"
    )
    (tmp_path / "m.yaml").write_text(
        f"data: two_gaussians\ntrain: {{algorithm: {{name: em, m_steps: 1, samples: {samples}}}, batch: 100}}"
    )
    with start_run(str(tmp_path / "m.mod"), None, {}, str(tmp_path / "run")) as engine:
        most = largest_of(engine)
    step = TrainingStep(100, tried_at_once=100 * (1 + samples))
    predicted = memory_of(modgraph.load(tmp_path / "m.mod").ir, step).peak
    assert near(predicted, most), (predicted, most)


# ---------------------------------------------------------------- what fits


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**4)), min_size=1, max_size=4),
    st.integers(0, 10**9),
)
def test_the_largest_batch_fits_and_the_next_does_not(lines: list[tuple[int, int]], size: int) -> None:
    calls = []

    def peak(batch: int) -> int:
        calls.append(batch)
        return max(start + slope * batch for start, slope in lines)

    found = last_below(peak, size)
    assert found == 0 or peak(found) <= size
    assert peak(found + 1) > size or found >= 10**9
    assert len(set(calls)) < 40


def test_a_program_says_how_much_memory_it_needs() -> None:
    program = modgraph.load("specs/smn.mod")
    memory = program.memory(batch=64)
    assert memory.weights == memory.gradients == 4 * 130_826
    assert memory.optimizer == 2 * memory.weights
    assert program.memory(batch=64, optimizer="sgd").optimizer == 0
    assert memory.peak > memory.weights + memory.optimizer + memory.examples + memory.activations
    with pytest.raises(ModgraphError, match='did you mean "adam"'):
        program.memory(optimizer="adma")
