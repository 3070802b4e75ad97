"""Models on a device that is not the processor: nothing is made elsewhere, and nothing asked but by sparse forms.

The device is a made-up one: torch's fake tensors have shapes, types and a device, and refuse operations on two devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import modgraph
from modgraph.backends.torch import Model, build
from modgraph.ir import Graph
from modgraph.metrics.accumulators import Accumulators
from modgraph.metrics.metrics import Metrics, results_of
from modgraph.program import load
from tests.examples import OP_EXAMPLES, ROUTER_EXAMPLES

SPECS = Path(__file__).parents[3] / "specs"
DEVICE = torch.device("meta")
SLOW = pytest.mark.slow
# Forms that compute only what is chosen ask how much that is; all others ask nothing.
ASK = {
    "graph_moe",
    "gmoe",
    "gmoe_digits",
    "modular_networks",
    "modular_networks_images",
    "expert_choice",
    "olmoe",
    "mixtral",
    "gpt_oss",
    "qwen3_next",
    "deepseek_v3",
    "story",
    "switch",
}
LONG = {"gmoe", "gmoe_digits", "modular_networks_images", "mt_rmn", "sema", "switch", "expert_choice", "mixtral"}
LONG |= {"gpt_oss", "qwen3_next", "deepseek_v3", "story"}
NAMES = sorted(path.stem for path in [*SPECS.glob("*.mod"), *SPECS.glob("zoo/*.mod")])


@contextmanager
def on_device(may_ask: bool) -> Iterator[None]:
    """Within it tensors have no values, but a device; sizes and numbers may be asked for, or are refused."""
    shapes = ShapeEnv(allow_scalar_outputs=may_ask, allow_dynamic_output_shape_ops=may_ask)
    with FakeTensorMode(allow_non_fake_inputs=True, shape_env=shapes):
        yield


def batch_of(graph: Graph, examples: int = 3, length: int = 5) -> dict[str, Tensor]:
    types = {**graph.input_types, **graph.target_types}
    kinds = {name: torch.float32 if type_.dtype == "float" else torch.int64 for name, type_ in types.items()}
    sizes = {name: [axis.size or length for axis in type_.shape] for name, type_ in types.items()}
    return {name: torch.zeros(examples, *sizes[name], dtype=kinds[name], device=DEVICE) for name in types}


def moved(model: Model) -> Model:
    """The model with its weights on the device."""
    weights = {name: torch.empty_like(each, device=DEVICE) for name, each in model.state_dict().items()}
    model.load_state_dict(weights, assign=True)
    return model


def learn(graph: Graph, lowering: str | None, may_ask: bool, training: bool = True) -> None:
    """A step on the device, and its metrics."""
    model = build(graph, lowering=lowering).train(training)
    with on_device(may_ask):
        metrics, batch, accumulators = Metrics(graph), batch_of(graph), Accumulators()
        wanted = [*metrics.wanted, *graph.outputs.values()]
        values, losses = results_of(moved(model), batch, wanted, graph.losses)
        objectives = [each.sum() for each in (*losses.values(), *values) if each.requires_grad]
        if objectives:
            torch.stack(objectives).sum().backward()
        metrics.gather(accumulators, batch, values, losses)
        gradients = [each.grad for each in model.parameters() if each.grad is not None]
        assert {each.device for each in (*values, *losses.values(), *gradients, *accumulators.pending.values())} == {
            DEVICE
        }


@pytest.mark.some(5)
@pytest.mark.parametrize("name", [pytest.param(name, marks=[SLOW] * (name in LONG)) for name in NAMES])
def test_a_spec_stays_on_its_device_and_asks_only_for_its_choice(name: str) -> None:
    path = min(SPECS.rglob(f"{name}.mod"), key=lambda each: len(each.parts))  # parts have such names too
    graph = load(str(path)).ir
    if name in ASK:
        with pytest.raises((DynamicOutputShapeException, DataDependentOutputException)):
            learn(graph, None, may_ask=False)
    learn(graph, None, may_ask=name in ASK)


@pytest.mark.parametrize(
    "name", ["modular_networks", *(pytest.param(each, marks=SLOW) for each in ("smn", "soft_moe"))]
)
def test_a_definition_as_message_passing_stays_on_its_device(name: str) -> None:
    path = min(SPECS.rglob(f"{name}.mod"), key=lambda each: len(each.parts))  # parts have such names too
    learn(load(str(path)).ir, "message_passing", may_ask=True)


@pytest.mark.parametrize(
    ("training", "share"), [(True, 3), *[pytest.param(each, 1, marks=SLOW) for each in (True, False)]]
)
def test_every_op_and_router_stays_on_its_device(training: bool, share: int) -> None:
    for name, text in islice({**OP_EXAMPLES, **ROUTER_EXAMPLES}.items(), 0, None, share):
        try:
            learn(modgraph.loads(text).ir, None, may_ask=True, training=training)
        except Exception as error:
            raise AssertionError(name) from error


def test_what_is_made_elsewhere_is_refused() -> None:
    """As it is on an accelerator: what these tests rely on."""
    graph = load(str(SPECS / "smn_parity.mod")).ir
    model = build(graph)
    with on_device(may_ask=True), pytest.raises(RuntimeError, match="at least two devices"):
        model.results(batch_of(graph), tuple(graph.losses.values()))
