"""What stands in the padding of a route, inf and NaN too, changes no value and no gradient."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import modgraph
from modgraph.backends.torch import CompiledRoute
from modgraph.ir import RouteNode
from modgraph.prelude import routers
from modgraph.routers import Router
from tests.examples import ROUTER_EXAMPLES

LENGTHS = torch.tensor([4, 0, 2])
ELSEWHERE = {
    "every_module",
    "one_module",
    "weighted",
    "chosen",
    "chosen_ids",
    "chosen_senders",
}  # nothing is summed; see test_weighted and test_ids
PADDED = {
    name: text.replace("x: float[5, 6]", "x: float[time, 6]").replace("p[3] = scale", "p[3] = linear(6)")
    for name, text in ROUTER_EXAMPLES.items()
    if "x: float[5, 6]" in text and name not in ELSEWHERE
}


def lowerings_of(name: str, modules: str) -> list[tuple[str, str]]:
    """The text of a router's example over such modules, and each form that its route may have."""
    text = PADDED[name].replace("linear(4)", modules).replace("linear(6)", modules)
    part = modgraph.loads(text).ir.parts()[0]
    (route,) = part.graph.nodes_of(RouteNode)
    router = part.graph.router_of(route).router
    known = (*router.lowerings(part.facts_of(route)), router.reference_lowering)
    return [(text, lowering) for lowering in dict.fromkeys(each.name for each in known)]


def results_of(text: str, lowering: str, filling: float) -> list[Tensor]:
    """Values, records and gradients of a route whose padding is filled so."""
    model = modgraph.loads(text).build(seed=0, lowering=lowering).double().train()
    (compute,) = (step.compute for step in model.steps if isinstance(step.compute, CompiledRoute))
    padding = torch.arange(5) >= LENGTHS.unsqueeze(-1)
    x = torch.randn(3, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = x.masked_fill(padding.unsqueeze(-1), filling).requires_grad_()
    torch.manual_seed(0)
    results = compute(x, mask=~padding.unsqueeze(-1))
    sum((each * each).sum() for each in results).backward()
    gradients = [p.grad for p in (x, *model.parameters()) if p.grad is not None]
    assert x.grad is not None and not x.grad[padding].any()
    return [*results, *gradients]


@pytest.mark.parametrize("modules", ["linear(6)", "linear(6) -> tanh"])
@pytest.mark.parametrize("name", PADDED)
def test_padding_of_a_route_reaches_nothing(name: str, modules: str) -> None:
    for text, lowering in lowerings_of(name, modules):
        expected = results_of(text, lowering, 0.0)
        for filling in (torch.nan, torch.inf):
            for found, with_zeros in zip(results_of(text, lowering, filling), expected, strict=True):
                assert torch.equal(found, with_zeros), lowering


def test_every_router_that_reads_a_mask_respects_it() -> None:
    assert PADDED.keys() == Router.registry.keys() - ELSEWHERE


DEFINED = {
    "noisy_top_k": "noisy_top_k(2)",
    "noisy_top_k_before": 'noisy_top_k(softmax="before_top_k")',
    "linear": "linear(2, noise=0.5, capacity=0.5)",
    "cosine": 'cosine(2, noise=0.5, load="kth_of_others", capacity=0.5, priority="first_choice", width=4)',
    "truncated_kernel": "truncated_kernel(0.8, bias=true)",
    "agreement": 'agreement(2, bias=true, update="normalised", residual=true)',
    "categorical": "categorical(2)",
    "fixed": 'fixed(2, "concat")',
}


@pytest.mark.some(6)
@pytest.mark.parametrize("router", DEFINED)
@pytest.mark.parametrize("training", [True, False])
def test_padding_of_a_router_that_is_text_reaches_nothing(router: str, training: bool) -> None:
    """Records and losses too; gradients in training, when what stands in padding is replaced."""
    text = f"""model m() {{ input x: float[time, 3] pool p[3] = linear(2) router r = {DEFINED[router]}
      y = x -> p by r output y loss i = importance(r) }}"""
    model = modgraph.loads(text).build().double().train(training)
    x, found = torch.randn(3, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), []
    padding = torch.arange(5) >= LENGTHS.unsqueeze(-1)
    for filling in (0.0, torch.nan, torch.inf):
        torch.manual_seed(0)
        filled = x.masked_fill(padding.unsqueeze(-1), filling).requires_grad_()
        computed = model.compute({"x": filled, "time_length": LENGTHS}, routing=True)
        results = [*computed.outputs.values(), *computed.losses.values(), *computed.routing.values()]
        total = sum(((each * each).sum() for each in results), torch.zeros(()))
        given = torch.autograd.grad(total, [filled, *model.parameters()], materialize_grads=True) if training else ()
        found.append([*results, *given])
    for with_zeros, *others in zip(*found, strict=True):
        assert with_zeros.isfinite().all() and all(torch.equal(each, with_zeros) for each in others)


def test_every_router_that_is_text_respects_it() -> None:
    assert routers().keys() <= DEFINED.keys()
