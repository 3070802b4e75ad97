"""Papers that compute until they have enough: rounds, gradients, padding, steps of training, source, bundles."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.backends.torch.source import write_source
from tests.papers.papers_of_loops import PAPERS
from tests.papers.test_papers import HOME, built, random_value

each_paper = pytest.mark.parametrize("paper", PAPERS, ids=lambda each: each.__name__)
HALTING = {"adaptive_computation": "states.state.p.linear", "universal_transformer": "z.p.linear"}
LENGTHS = 9, 4


def built_to_vary(name: str) -> tuple[Model, dict[str, Tensor]]:
    """A model whose words take unlike numbers of rounds, and its weights."""
    model, weights = built(name)
    weights[f"{HALTING[name]}.weight"].mul_(3)
    weights[f"{HALTING[name]}.bias"].fill_(-3.0)
    return model, dict(weights)


def input_of(model: Model, examples: int = 2, length: int = LENGTHS[0]) -> tuple[str, Tensor]:
    name = next(iter(model.graph.input_types))
    torch.manual_seed(0)
    return name, random_value(model.graph.input_types[name], examples, length)


def count_examples(model: Model, name: str, batch: dict[str, Tensor]) -> list[int]:
    """For how many examples the halting unit is computed, in each round."""
    calls: list[int] = []
    hook = model.get_submodule(HALTING[name]).register_forward_hook(lambda _, given, __: calls.append(len(given[0])))
    model.compute(batch, losses=False)
    hook.remove()
    return calls


@each_paper
def test_gradients_are_those_of_the_equations_and_padding_is_not_read(paper: Any) -> None:
    model, _ = built_to_vary(paper.__name__)
    weights, (name, x) = dict(model.named_parameters()), input_of(model)
    x = x.masked_fill(
        torch.arange(LENGTHS[0]).reshape(1, -1, *[1] * (x.dim() - 2))
        >= torch.tensor(LENGTHS).reshape(-1, *[1] * (x.dim() - 1)),
        torch.nan if x.is_floating_point() else 0,
    )
    found = model.train().compute({name: x, "time_length": torch.tensor(LENGTHS)}, losses=False).outputs
    ours, theirs = [], []
    for at, length in enumerate(LENGTHS):
        for label, expected in paper(weights, x[at, :length]).items():
            torch.testing.assert_close(found[label][at, :length], expected, rtol=1e-10, atol=1e-10)
            ours.append(found[label][at, :length].sum())
            theirs.append(expected.sum())
    leaves = [*weights.values()]
    pairs = zip(torch.autograd.grad(sum(ours), leaves), torch.autograd.grad(sum(theirs), leaves), strict=True)  # type: ignore[arg-type]
    for weight, (one, other) in zip(weights, pairs, strict=True):
        torch.testing.assert_close(
            one, other, rtol=1e-9, atol=1e-9, msg=lambda text, weight=weight: f"{weight}: {text}"
        )


@each_paper
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_no_example_is_computed_in_a_round_that_it_does_not_need(paper: Any, training: bool) -> None:
    model, weights = built_to_vary(paper.__name__)
    name, x = input_of(model, 3)
    model.train(training)
    for bias, expected in ((None, None), (20.0, 1), (-20.0, 5 if "adaptive" in paper.__name__ else 6)):
        if bias is not None:
            weights[f"{HALTING[paper.__name__]}.bias"].fill_(bias)
        counts = torch.stack([(paper(weights, each).get("ponders", paper(weights, each).get("ponder"))) for each in x])
        rounds = counts.sub(1e-9).floor() if expected is None else counts * 0 + expected
        assert expected is not None or rounds.unique().numel() > 2, "all words take as many rounds"
        of_examples = rounds.T if "adaptive" in paper.__name__ else rounds.amax(1)[None]  # at each word, or for all
        needed = [int((each >= n).sum()) for each in of_examples for n in range(1, int(each.max()) + 1)]
        assert count_examples(model, paper.__name__, {name: x}) == needed, f"bias {bias}: {rounds}"


@pytest.mark.some(1)
@each_paper
def test_some_steps_learn_and_pondering_less_is_learnt_too(paper: Any) -> None:
    def train(cost: float) -> tuple[list[float], float]:
        model = modgraph.load(HOME / f"{paper.__name__}.mod", cost=cost).build(seed=0).train()
        name, x = input_of(model, 4)
        target = next(iter(model.graph.target_types))
        y = random_value(model.graph.target_types[target], 4, LENGTHS[0])
        batch = {name: x if x.dtype == torch.int64 else x.float(), target: y if y.dtype == torch.int64 else y.float()}
        optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.02), []
        for _ in range(12):
            optimizer.zero_grad()
            computed = model.compute(batch)
            computed.loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(float(next(iter(computed.losses.values())).detach()))
        label = "ponders" if "ponders" in computed.outputs else "ponder"
        return losses, float(computed.outputs[label].detach().mean())

    losses, freely = train(0.0)
    assert losses[-1] < 0.95 * losses[0], f"nothing is learnt: {losses[0]} to {losses[-1]}"
    assert train(1.0)[1] < freely - 0.1, "its price changes no pondering"


def load_source(text: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("written")
    monkeypatch.setitem(sys.modules, "written", module)  # `dataclass` needs it
    exec(compile(text, "written", "exec"), vars(module))
    return module


@each_paper
def test_its_source_agrees_at_other_lengths(paper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = built_to_vary(paper.__name__)
    name = "".join(map(str.capitalize, paper.__name__.split("_")))
    copy = getattr(load_source(write_source(model), monkeypatch), name)().double()
    copy.load_state_dict(model.state_dict())
    for length in (1, 7, 12):
        _, x = input_of(model, 3, length)
        lengths = torch.tensor([length, 1, max(1, length // 2)])
        expected, found = model.eval()(x, lengths), copy.eval()(x, lengths)
        there = torch.arange(length) < lengths[:, None]
        for label, value in expected.items():
            torch.testing.assert_close(found[label][there], value[there], rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("paper", [PAPERS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in PAPERS[1:])])
def test_its_bundle_agrees_at_lengths_and_batches_that_nobody_traced(paper: Any, tmp_path: Path) -> None:
    model, _ = built_to_vary(paper.__name__)
    modgraph.export(model.float(), tmp_path / "model.onnx")
    bundle = Bundle(tmp_path / "model.onnx")
    for examples, length in ((1, 1), (2, 31), (5, 7)):
        name, x = input_of(model, examples, length)
        x = x if x.dtype == torch.int64 else x.float()
        lengths = torch.tensor([length, length // 2, 0, 1, 2][:examples])
        with torch.no_grad():
            expected = model.eval()(x, lengths)
        found = bundle.run({name: x.numpy(), "time_length": lengths.numpy()})
        there = torch.arange(length) < lengths[:, None]
        for label, value in expected.items():
            torch.testing.assert_close(torch.from_numpy(found[label])[there], value[there], rtol=1e-4, atol=1e-5)
