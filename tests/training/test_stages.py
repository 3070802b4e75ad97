"""Weights that grow with a pool: in parts for each stage of growth, whole for everybody else."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import modgraph
from modgraph.backends.torch import build
from modgraph.cli import main
from modgraph.ir import find_module_axes, grow
from modgraph.prelude import routers
from modgraph.store.checkpoint import Checkpoint
from modgraph.training.run import start_run
from modgraph.training.stages import cut_weights, find_trained_weights, take_weights, whole_weights
from modgraph.training.stored_run import load_run
from tests.ordinary_run import some_examples
from tests.small_runs import begin, change_graph, final_weights
from tests.training.test_state import copy_state, equal, stop_before, written

BY_WEIGHTS = """
model small(modules=3) {{
  input  x: float[4, 4]
  target y: class[3]
  pool   p[modules] = linear(5)
  h = x -> linear(6)
  scores = h -> linear(p)
  z = h -> p by ({gates}) -> mean -> linear(3)
  output z
  loss cross_entropy(z, y)
}}
"""
SPEC = """
model small(modules=3) {{
  input  x: float[4, 4]
  target y: class[3]
  pool   p[modules] = linear(5)
  {router}
  z = x -> linear(6) -> p by r -> mean -> linear(3)
  output z
  loss cross_entropy(z, y)
}}
"""
OF_SCORES = {"scores.linear.weight": 0, "scores.linear.bias": 0}
ROUTERS = {
    SPEC.format(router="router r = noisy_top_k(k=2)"): {"r.weight": 0, "r.noise_weight": 0},
    SPEC.format(router="router r = cosine(2, width=4, noise=0.1)"): {"r.keys": 1},
    BY_WEIGHTS.format(gates="scores -> softmax"): OF_SCORES,
    BY_WEIGHTS.format(gates="(scores, scores -> top_k(2)) -> masked_softmax"): OF_SCORES,
}


def spec_of(folder: Path, text: str) -> Path:
    spec = written(folder, text)
    data = dict(np.load(folder / "data.npz"))
    np.savez(folder / "data.npz", x=np.random.default_rng(1).standard_normal((50, 4, 4)), y=data["y"])
    return spec


@pytest.mark.some(1)
@pytest.mark.parametrize("text", ROUTERS, ids=["noisy", "cosine", "softmax", "choice"])
def test_a_router_grows_by_rows_whose_optimizer_begins_while_that_of_the_old_goes_on(tmp_path: Path, text: str) -> None:
    axes = ROUTERS[text]
    with start_run(str(spec_of(tmp_path, text)), None, {}, str(tmp_path / "run")) as engine:
        stop_before(engine, 5)
        for size, by in ((3, 1), (4, 2)):
            weights, optimizer = copy_state(engine.checkpoint())
            grown = grow(engine.state.graph, "p", by)
            change_graph(engine, grown)
            now, fresh = engine.checkpoint(), build(grown, seed=0).state_dict()
            for name, axis in axes.items():
                old, new = now.weights[name].split([size, by], axis)
                assert old.equal(weights[name])
                assert new.equal(fresh[name].narrow(axis, size, by))
            kept = {name.replace("[0:3]", "") if size == 3 else name: each for name, each in now.optimizer.items()}
            assert kept.keys() == optimizer.keys()
            assert all(equal(kept[name], optimizer[name]) for name in optimizer)
            stop_before(engine, engine.progress.step + 3)
        steps = {name: each["step"].item() for name, each in engine.checkpoint().optimizer.items()}
        for name in axes:
            assert [steps[f"{name}{part}"] for part in ("[0:3]", "[3:4]", "[4:6]")] == [11, 6, 3]
        engine.run()
    run = load_run(tmp_path / "run")
    assert run.model().state_dict().keys() == run.checkpoint().weights.keys()
    assert main(["eval", str(tmp_path / "run")]) == 0


def test_a_run_with_staged_weights_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SPEC.format(router="router r = noisy_top_k(k=2)"))
    for name, cut in (("whole", None), ("cut", 12)):
        with start_run(str(spec), None, {}, str(tmp_path / name)) as engine:
            stop_before(engine, 5)
            change_graph(engine, grow(engine.state.graph, "p", 1))
            stop_before(engine, 9)
            change_graph(engine, grow(engine.state.graph, "p", 1))
            if cut is None:
                engine.run()
            else:
                stop_before(engine, cut)
    assert main(["train", "--resume", str(tmp_path / "cut")]) == 0
    assert final_weights(tmp_path / "cut") == final_weights(tmp_path / "whole")


def test_of_a_frozen_router_only_what_is_new_learns(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SPEC.format(router="frozen { router r = cosine(2, width=4) }"))
    with start_run(str(spec), None, {}, str(tmp_path / "run")) as engine:
        stop_before(engine, 5)
        before = engine.checkpoint().weights["r.keys"].clone()
        change_graph(engine, grow(engine.state.graph, "p", 1))
        new = engine.checkpoint().weights["r.keys"][:, 3:].clone()
        stop_before(engine, 9)
        after = engine.checkpoint().weights["r.keys"]
        assert after[:, :3].equal(before)
        assert not after[:, 3:].equal(new)
        assert "r.keys[3:4]" in engine.checkpoint().optimizer


def test_a_fresh_run_whose_spec_grows_a_frozen_router_learns_only_the_new_places(tmp_path: Path) -> None:
    router = "router r = cosine(2, width=4)"
    spec = spec_of(tmp_path, SPEC.format(router=router))
    begin(spec, tmp_path / "old")
    (tmp_path / "grown.mod").write_text(SPEC.format(router=f"grow p[1] frozen {{ {router} }}"))
    (tmp_path / "grown.yaml").write_text(spec.with_suffix(".yaml").read_text())
    options = {"start__run": str(tmp_path / "old"), "train__optimizer__weight_decay": 0.1}
    begin(tmp_path / "grown.mod", tmp_path / "run", **options)
    old, new = (load_run(tmp_path / name).checkpoint() for name in ("old", "run"))
    assert new.weights["r.keys"][:, :3].equal(old.weights["r.keys"])
    assert [name for name in new.optimizer if name.startswith("r.")] == ["r.keys[3:4]"]
    assert new.weights["p.3.linear.weight"].shape == old.weights["p.2.linear.weight"].shape


def test_stages_that_cannot_be_are_reported(tmp_path: Path) -> None:
    graph = modgraph.loads(SPEC.format(router="router r = noisy_top_k(k=2)")).ir
    model = build(graph)
    for stages in ([2, 2], [4, -1], ["a"]):
        checkpoint = Checkpoint(
            0, 0, dict(model.state_dict()), {}, {"stages": {"r.weight": stages}}, graph=graph, origin=graph.hash()
        )
        with pytest.raises(ValueError, match=r"stages|invalid"):
            cut_weights(build(graph), graph, checkpoint)


BY = "model m() {{ input x: float[5, 6] pool p[3] = linear(4) router r = {} y = x -> p by r output y }}"
OF_VOCABULARY = {name: modgraph.loads(BY.format(name)).ir for name in routers()}
EXAMPLES = {name: graph for name, graph in OF_VOCABULARY.items() if find_module_axes(graph)}


@some_examples(10)
@given(st.sampled_from(sorted(EXAMPLES)), st.integers(1, 3), st.integers(0, 5))
def test_a_model_with_staged_weights_is_the_whole_one(name: str, by: int, seed: int) -> None:
    """Of every router: the same results, and the gradients of the parts are those of the whole."""
    graph = EXAMPLES[name]
    (pool,) = graph.pools()
    grown = grow(graph, pool, by)
    plain, parts = (build(grown, seed) for _ in range(2))
    old = Checkpoint(0, 0, dict(build(graph, seed).state_dict()), {}, graph=graph, origin=graph.hash())
    cut = cut_weights(parts, grown, old)
    assert cut.keys() == find_module_axes(grown).keys() != set()
    generator = torch.Generator().manual_seed(seed)
    weights = {n: torch.randn(w.shape, generator=generator) for n, w in plain.state_dict().items()}
    plain.load_state_dict(weights)
    take_weights(parts, cut, weights)
    assert equal(whole_weights(parts, cut), weights)
    x = torch.randn(
        4, *(a if isinstance(a, int) else 3 for a in grown.input_types["x"].dimensions), generator=generator
    )
    results = []
    for model in (plain, parts):
        torch.manual_seed(seed)
        results.append(model.train()(x))
        results[-1].square().sum().backward()
    assert results[0].equal(results[1])
    found = find_trained_weights(parts, cut)
    for weight, each in cut.items():
        expected = plain.get_parameter(weight).grad
        gradients = [found[part].grad for part, _ in each.iter_parts(weight)]
        if expected is None:
            assert gradients == [None] * len(gradients)
        else:
            assert torch.cat(gradients, each.axis).equal(expected)


def test_a_weight_in_parts_leaves_the_class_of_its_module_and_is_compiled() -> None:
    text = """model m() { input x: float[time, 4] pool p[3] = linear(5) grow p[1]
      frozen { module e = linear(p) } y = x -> p by (x -> e -> softmax) output y }"""
    program = modgraph.loads(text)
    model, whole = program.build(seed=1), program.build(seed=1)
    cut = cut_weights(model, program.ir)
    assert cut, "nothing has grown"
    kinds = [{type(each).__name__ for each in of.modules()} - {"ParameterList"} for of in (model, whole)]
    assert kinds[0] == kinds[1] and type(model.e.linear) is type(whole.e.linear)
    x = torch.randn(2, 3, 4)
    assert torch.equal(model(x), whole(x))
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x), whole(x))
    assert "bias=True" in repr(model), "a model with weights in parts is shown"
    assert copy.deepcopy(model)(x).requires_grad, "no value of a call stays in the model"
