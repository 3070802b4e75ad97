"""Every declaration against its torch module, over the registries: no op or router is named here."""

from __future__ import annotations

import pytest
import torch

import modgraph
from modgraph.backends.report import SYMBOLIC_LENGTH, random_batch
from modgraph.backends.torch.construct import resolve
from modgraph.declare import Declaration, sizes
from modgraph.ir import OpNode, RouteNode, weights_of
from modgraph.ops import Op
from modgraph.routers import Router
from tests.examples import OP_EXAMPLES, ROUTER_EXAMPLES, ROUTERS_IN_SCAN

EXAMPLES = OP_EXAMPLES | {f"router {name}": text for name, text in ROUTER_EXAMPLES.items()}
DECLARATIONS: dict[str, type[Declaration]] = {
    **Op.registry,
    **{f"router {name}": router for name, router in Router.registry.items()},
}


def test_every_op_and_router_has_an_example_that_uses_it_once() -> None:
    for name, text in EXAMPLES.items():
        graph = modgraph.loads(text).ir
        used = [node.op.name for node in graph.nodes_of(OpNode)]
        used += [f"router {graph.declaration_of(route).name}" for route in graph.nodes_of(RouteNode)]
        assert used.count(name) == 1, name


@pytest.mark.parametrize("name", DECLARATIONS)
def test_every_declaration_says_what_it_is(name: str) -> None:
    declaration = DECLARATIONS[name]
    assert declaration.__doc__
    for setting in declaration.settings().values():
        assert setting.bounds["doc"], setting.name


@pytest.mark.parametrize("name", EXAMPLES)
def test_declared_weights_are_those_of_the_torch_module(name: str) -> None:
    program = modgraph.loads(EXAMPLES[name])
    declared = {weight.name: weight.shape for weight in weights_of(program.ir)}
    model = program.build()
    assert declared == {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()}
    assert sum(p.numel() for p in model.parameters()) == program.cost().parameters
    assert all(torch.isfinite(tensor).all() for tensor in model.state_dict().values())


@pytest.mark.some(100)
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("training", [True, False])
def test_inferred_types_are_those_of_the_values(name: str, training: bool) -> None:
    graph = modgraph.loads(EXAMPLES[name]).ir
    model = modgraph.loads(EXAMPLES[name]).build().train(training)
    computed = model.compute(random_batch(model, size=3), routing=True)
    values = {**computed.outputs, **computed.routing}
    results = {**graph.outputs, **model.routing_results()}
    for key, value in values.items():
        sizes = (each if isinstance(each, int) else SYMBOLIC_LENGTH for each in graph.type_of(results[key]).dimensions)
        assert tuple(value.shape) == (3, *sizes)
    assert all(loss.shape == () for loss in computed.losses.values())


@pytest.mark.parametrize("name", ROUTERS_IN_SCAN)
def test_every_router_routes_inside_a_scan_in_all_its_lowerings(name: str) -> None:
    program = modgraph.loads(ROUTERS_IN_SCAN[name])
    part = program.ir.parts()[-1]
    (route,) = part.graph.nodes_of(RouteNode)
    x = torch.randn(3, 4, 5, 6, dtype=torch.float64)
    found = []
    for lowering in part.graph.declaration_of(route).lowerings(part.facts_of(route)):
        model = program.build(lowering=lowering.name).double().eval()
        found.append(model.compute({"xs": x, "time_length": torch.tensor([4, 0, 2])}, routing=True))
    results = {**program.ir.outputs, **program.ir.records()}
    for computed in found:
        for name_, value in {**computed.outputs, **computed.routing}.items():
            inferred = program.ir.type_of(results[name_]).dimensions
            assert value.shape == (3, *(4 if axis == "time" else axis for axis in inferred))
            torch.testing.assert_close(value, {**found[0].outputs, **found[0].routing}[name_], atol=1e-10, rtol=0)
            assert not value[1].any() and not value[2, 2:].any()


@pytest.mark.parametrize("name", Op.registry)
def test_an_op_that_says_so_can_be_taken_by_index(name: str) -> None:
    op = Op.registry[name]
    module = resolve(op.module.path)
    module = getattr(module, "Own", module)
    assert op.gathers == (hasattr(module, "run_rows") or module in (torch.nn.LayerNorm, torch.nn.RMSNorm))


@pytest.mark.parametrize("name", OP_EXAMPLES)
def test_an_op_treats_examples_apart_in_inference(name: str) -> None:
    model = modgraph.loads(OP_EXAMPLES[name]).build().eval()
    batch = random_batch(model, size=3)
    together = model.compute(batch, losses=False).outputs
    for at in range(3):
        single = model.compute({key: value[at : at + 1] for key, value in batch.items()}, losses=False).outputs
        for key, value in single.items():
            torch.testing.assert_close(value[0], together[key][at], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name, op in Op.registry.items() if op.affine])
def test_what_calls_itself_affine_is(name: str) -> None:
    model = modgraph.loads(OP_EXAMPLES[name]).build().double().eval()
    (key, type_), *_ = model.graph.input_types.items()
    a, b = (torch.randn(2, *sizes(type_.shape), dtype=torch.float64) for _ in range(2))
    f_a, f_b, mixed = (model.compute({key: x}, losses=False).outputs for x in (a, b, 0.3 * a + 0.7 * b))
    for output, value in mixed.items():
        torch.testing.assert_close(value, 0.3 * f_a[output] + 0.7 * f_b[output])
