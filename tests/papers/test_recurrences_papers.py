"""Papers of linear recurrences: all steps at once equal the equations, gradients, padding, bundles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from modgraph_runtime import Bundle

import modgraph
from modgraph.passes import list_scans
from tests.papers.papers_of_recurrences import PAPERS
from tests.papers.test_papers import HOME, built
from tests.papers.training import train

each_paper = pytest.mark.parametrize("paper", PAPERS, ids=lambda each: each.__name__)


@each_paper
def test_all_steps_at_once_have_the_gradients_of_the_equations_and_read_no_padding(paper: Any) -> None:
    model, _ = built(paper.__name__)
    assert all("all steps at once" in reason for _, reason in list_scans(model.computed)), "a scan runs step by step"
    weights = dict(model.named_parameters())
    x, lengths = torch.randn(2, 70, model.graph.input_types["x"].shape[-1].size or 1, dtype=torch.float64), (70, 33)
    x[1, 33:] = torch.nan
    leaf = x.requires_grad_()
    found = model.train().compute({"x": leaf, "time_length": torch.tensor(lengths)}, losses=False).outputs["z"]
    values = [(found[at, :length], paper(weights, leaf[at, :length])["z"]) for at, length in enumerate(lengths)]
    for ours, theirs in values:
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    leaves = [leaf, *weights.values()]
    ours, theirs = (torch.autograd.grad(sum(pair[at].sum() for pair in values), leaves) for at in range(2))  # type: ignore[arg-type]
    for name, one, other in zip(("x", *weights), ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}")


@each_paper
def test_some_steps_learn(paper: Any) -> None:
    model, torch_rng = modgraph.load(HOME / f"{paper.__name__}.mod").build(seed=0).train(), torch.manual_seed(0)
    width = model.graph.input_types["x"].shape[-1].size or 1
    batch = {name: torch.randn(4, 20, width, generator=torch_rng) for name in ("x", "y")}
    losses = train(model, batch, torch.optim.Adam(model.parameters(), lr=0.01), steps=15)
    assert losses[-1] < 0.95 * losses[0], f"nothing is learnt: {losses[0]} to {losses[-1]}"


@pytest.mark.slow
@each_paper
def test_its_bundle_agrees_at_lengths_that_nobody_traced(paper: Any, tmp_path: Path) -> None:
    model, _ = built(paper.__name__)
    modgraph.export(model.float(), tmp_path / "model.onnx")
    bundle = Bundle(tmp_path / "model.onnx")
    width = model.graph.input_types["x"].shape[-1].size or 1
    for length in (1, 31, 32, 33, 130):
        x, lengths = torch.randn(3, length, width), torch.tensor([length, length // 2, 0])
        with torch.no_grad():
            expected = model.eval()(x, lengths)
        found = bundle.run({"x": x.numpy(), "time_length": lengths.numpy()})
        there = torch.arange(length) < lengths[:, None]
        torch.testing.assert_close(torch.from_numpy(found["z"])[there], expected[there], rtol=1e-4, atol=1e-5)
