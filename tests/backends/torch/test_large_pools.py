"""Pools of more than 65,536 modules: each weight is listed once, and modules are found by number all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle

import modgraph
from modgraph.backends.torch import Model
from modgraph.backends.torch.source import write_source
from modgraph.diagnostics import ModgraphError
from modgraph.ir import RouteNode, find_module_axes, grow, weights_of
from modgraph.routers import NAMED_MODULES
from modgraph.store.checkpoint import read_newest_checkpoint
from modgraph.training.run import start_run
from modgraph.types import Misfit
from tests.papers.test_papers import HOME
from tests.papers.training import train

SIZE = NAMED_MODULES + 64
SPEC = """model m(size) {
  input x: float[time, 3] input id: token[time, slot=2, 65537] input gate: float[time, slot=2]
  target y: float[time, 2]
  pool expert[size] = linear(1, bias=false) -> gelu -> linear(2)
  z = x -> expert by (gate * (id -> one_hot(expert)) -> sum(axis="slot"))
  output z loss mse(z, y) }"""
NAMES = ["expert.*.linear.weight", "expert.*.linear2.weight", "expert.*.linear2.bias"]


def batch_of(size: int, length: int = 4) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    shape = (2, length, 2)
    found = {"x": torch.randn(2, length, 3, generator=random), "gate": torch.randn(shape, generator=random)}
    ids = torch.randint(NAMED_MODULES + 1, shape, generator=random)
    return {**found, "id": ids, "y": torch.zeros(shape)}


@pytest.fixture(scope="module")
def model() -> Model:
    return modgraph.loads(SPEC, size=SIZE).build(seed=0)


def test_each_weight_has_one_name(model: Model) -> None:
    weights = weights_of(model.graph)
    assert [weight.name for weight in weights] == NAMES == [*model.state_dict()] == [*dict(model.named_parameters())]
    assert [weight.shape for weight in weights] == [(SIZE, 1, 3), (SIZE, 2, 1), (SIZE, 2)]
    assert find_module_axes(model.graph).keys() == {*NAMES}, "they grow along the modules"
    assert modgraph.loads(SPEC, size=SIZE).cost().parameters == 7 * SIZE


def test_a_module_is_found_by_its_number(model: Model) -> None:
    row = model.lookup("expert.17.linear.weight")
    assert row.data_ptr() == model.get_parameter("expert.*.linear.weight")[17].data_ptr(), "not a view of the row"


def test_the_route_computes_the_modules_that_ids_name(model: Model) -> None:
    batch = batch_of(SIZE)
    model.train().zero_grad()
    found = model.compute(batch)
    found.loss.backward()  # type: ignore[no-untyped-call]
    for at in np.ndindex(2, 4):
        rows = [(batch["gate"][at][s], model.expert.expert(int(batch["id"][at][s]))) for s in range(2)]
        expected = sum(gate * module(batch["x"][at]) for gate, module in rows)
        torch.testing.assert_close(found.outputs["z"][at], expected)
    assert not found.routing, "records would have an axis of modules"
    for name, each in model.named_parameters():
        assert each.grad is not None
        reached = each.grad.flatten(1).abs().sum(1).nonzero().flatten()
        assert {*reached.tolist()} == {*batch["id"].flatten().tolist()}, f"other rows of {name} learn"


def test_modules_start_from_seed_and_number_whatever_the_size() -> None:
    small, large = (modgraph.loads(SPEC, size=size).build(seed=3).state_dict() for size in (SIZE, SIZE + 5000))
    other = modgraph.loads(SPEC, size=SIZE).build(seed=4).state_dict()
    for name in NAMES[:2]:
        torch.testing.assert_close(large[name][:SIZE], small[name], rtol=0, atol=0)
        assert not torch.equal(other[name], small[name])
        assert abs(small[name].mean()) < 0.01 and len(small[name].flatten().unique()) > 0.9 * small[name].numel()


def test_a_run_goes_on_with_more_and_with_fewer_modules(tmp_path: Path) -> None:
    batch = {name: each.numpy() for name, each in batch_of(SIZE).items()}
    np.savez(tmp_path / "data.npz", **{name: np.concatenate([each] * 4) for name, each in batch.items()})
    specs = {size: tmp_path / f"m{size}.mod" for size in (SIZE, SIZE + 10, SIZE - 10)}
    for size, path in specs.items():
        path.write_text(SPEC.replace("(size)", f"(size={size})"))
        recipe = f"data: {{name: npz, train: {tmp_path}/data.npz}}\ntrain: {{epochs: 1, batch: 4}}"
        path.with_suffix(".yaml").write_text(recipe)
    modgraph.train(modgraph.load(specs[SIZE]), str(specs[SIZE].with_suffix(".yaml")), out=tmp_path / "run")
    first = read_newest_checkpoint(tmp_path / "run" / "checkpoints")
    assert first is not None and first.weights.keys() == {*NAMES} == first.optimizer.keys()
    assert first.weights["expert.17.linear.weight"].shape == (1, 3), "a module has no name"
    for size in (SIZE + 10, SIZE - 10):
        modgraph.migrate(tmp_path / "run", specs[size], out=tmp_path / str(size))
        moved = read_newest_checkpoint(tmp_path / str(size) / "checkpoints")
        assert moved is not None
        kept = min(size, SIZE)
        for name in NAMES:
            assert len(moved.weights[name]) == size
            torch.testing.assert_close(moved.weights[name][:kept], first.weights[name][:kept], rtol=0, atol=0)
            averages = (each.optimizer[name]["exp_avg"][:kept] for each in (moved, first))
            torch.testing.assert_close(*averages, rtol=0, atol=0)


def test_a_sparse_gradient_has_the_rows_that_were_read(model: Model) -> None:
    batch, found = batch_of(SIZE), []
    for sparse in (False, True):
        model.zero_grad()
        model.expert.sparse = sparse
        model.compute(batch).loss.backward()  # type: ignore[no-untyped-call]
        found.append([each.grad for each in model.parameters() if each.grad is not None])
    model.expert.sparse = False
    for dense, each in zip(*found, strict=True):
        assert each.is_sparse and not dense.is_sparse
        torch.testing.assert_close(each.to_dense(), dense)


@pytest.mark.parametrize(
    ("more", "sparse"), [("", True), (", momentum: 0.9", False), ("}, clip: 1.0, states: {", False)]
)
def test_a_training_moves_only_rows_that_were_read_where_that_is_exact(more: str, sparse: bool, tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", **{name: each.numpy() for name, each in batch_of(SIZE).items()})
    (tmp_path / "m.mod").write_text(SPEC.replace("(size)", f"(size={SIZE})"))
    recipe = f"data: {{name: npz, train: {tmp_path}/data.npz, test_fraction: 0.5}}\n"
    (tmp_path / "m.yaml").write_text(
        recipe + f"train: {{epochs: 1, batch: 1, optimizer: {{name: sgd, lr: 0.1{more}}}}}"
    )
    with start_run(str(tmp_path / "m.mod"), None, {}, str(tmp_path / "run")) as engine:
        assert engine.state.model.lookup("expert").sparse == sparse
        engine.run()


def test_a_large_pool_grows_as_weights_along_it_do() -> None:
    graph = modgraph.loads(SPEC, size=SIZE).ir
    assert [weight.shape[0] for weight in weights_of(grow(graph, "expert", 5))] == [SIZE + 5] * 3
    graph = modgraph.loads(SPEC.replace("65537", "64"), size=SIZE).ir
    with pytest.raises(Misfit, match="the weights of expert have other names from 65,537 modules on"):
        grow(graph, "expert", -64)


def test_frozen_modules_stay_while_others_join_and_learn(tmp_path: Path) -> None:
    data = {"train": {name: each.numpy() for name, each in batch_of(SIZE, 8).items()}}
    recipe = {"train": {"epochs": 1, "batch": 2, "optimizer": {"name": "adam", "lr": 0.1}}}
    old = modgraph.train(modgraph.loads(SPEC, size=SIZE), recipe, data=data, out=tmp_path / "old")
    frozen = "frozen { pool expert[size] = linear(1, bias=false) -> gelu -> linear(2) } grow expert[9]"
    text = SPEC.replace("pool expert[size] = linear(1, bias=false) -> gelu -> linear(2)", frozen)
    data["train"]["id"][..., 0] = NAMED_MODULES
    new = modgraph.train(
        modgraph.loads(text.replace("65537", str(SIZE + 9)), size=SIZE),
        {**recipe, "start": {"run": str(tmp_path / "old")}},
        data={"train": {**data["train"], "id": data["train"]["id"] + 66}},
        out=tmp_path / "new",
    )
    before, after = old.model().state_dict(), new.model().state_dict()
    fresh = modgraph.loads(text.replace("65537", str(SIZE + 9)), size=SIZE).build(seed=0).state_dict()
    for name in NAMES:
        assert torch.equal(after[name][:SIZE], before[name]), "frozen modules have moved"
        assert not torch.equal(after[name][SIZE:], fresh[name][SIZE:]), "new modules have not learnt"


def test_a_standalone_file_of_so_many_modules_is_refused(model: Model) -> None:
    with pytest.raises(ModgraphError, match="each of its 65,600 modules would be one of the file's"):
        write_source(model)


BAD = {
    "x -> expert by (other -> one_hot(expert))": "ids below 80000 have no place along an axis of 65600",
    "x -> expert by pick(other, gate)": '"expert" is a pool of 65600, and it is chosen by token[time, slot=2, 80000]',
    "x -> expert by pick(gate, gate)": "it takes float tokens, the ids of their modules, and a gate for each id",
    "x -> expert by pick(id)": "it takes float tokens, the ids of their modules, and a gate for each id",
    "x -> expert by pick(id, gate -> mean(axis=slot))": "have no ids token[time, slot=2, 65537] with gates [time]",
    "x -> expert by id": "it takes two float values, tokens and their weights",
    "x -> expert[3]": 'pool "expert" of 65,600 modules cannot be stored: a route names one of its modules',
    "x -> noisy by (id -> one_hot(noisy) -> sum(axis=slot))": "cannot be stored: dropout is random in training",
    "x -> nested by (id -> one_hot(nested) -> sum(axis=slot))": "cannot be stored: its modules have pools of their own",
    "x -> outer -> mean(axis=outer)": "cannot be stored: it stands in a module of another pool",
    "x -> unlike -> mean(axis=unlike)": "the pool cannot have this size",
    "x -> many -> mean(axis=many)": "the pool cannot have this size: at most 16777216",
}


@pytest.mark.parametrize("route", BAD)
def test_what_no_large_pool_can_is_refused(route: str) -> None:
    text = f"""block inner() {{ input x: float[d] pool q[2] = linear(2) output y = x -> q -> mean(axis=q) }}
    block large() {{ input x: float[d] pool q[{SIZE}] = linear(2) output y = x -> q -> mean(axis=q) }}
    model m() {{ input x: float[time, 3] input id: token[time, slot=2, 65537] input gate: float[time, slot=2]
      input other: token[time, slot=2, 80000]
      router pick = chosen_ids(slots=1)
      pool expert[{SIZE}] = linear(2)
      pool noisy[{SIZE}] = linear(2) -> dropout(0.5)
      pool nested[{SIZE}] = inner
      pool outer[2] = large
      pool unlike[{SIZE}] = [linear(2), relu -> linear(2)]
      pool many[2**30] = linear(2)
      output y = {route} }}"""
    own = route.split()[2].partition("[")[0]
    lines = text.splitlines()
    kept = [line for line in lines if not line.strip().startswith("pool ") or f"pool {own}[" in line]
    with pytest.raises(ModgraphError) as error:
        modgraph.loads("\n".join(kept))
    assert BAD[route] in str(error.value)
    assert "help:" in str(error.value) or "note:" in str(error.value), "nothing says what to do"


WIDE = ["x -> linear(expert) -> softmax", "x -> linear(expert) -> top_k(2)", "(x -> linear(expert)) > 0"]


@pytest.mark.parametrize("weights", WIDE)
def test_weights_for_each_of_so_many_modules_are_cautioned(weights: str) -> None:
    pool = f"pool expert[{SIZE}] = linear(2)"
    text = f"model m() {{ input x: float[time, 3] {pool} output y = x -> expert by ({weights}) }}"
    (caution,) = (each for each in modgraph.loads(text).warnings if each.code == "MG420")
    assert caution.text() == f'each token has a weight for each of the {SIZE:,} modules of "expert"'


ADAPTERS = """model m(width=32) { input x: float[time, width] target y: float[time, width]
  pool adapter[4096] = linear(4) -> relu -> linear(width)
  router choose = cosine(k=2)
  z = x + (x -> adapter by choose)
  output z loss mse(z, y) loss 0.01 * importance(choose) }"""


@pytest.mark.slow
def test_many_adapters_learn_and_are_exported(tmp_path: Path) -> None:
    model = modgraph.loads(ADAPTERS).build(seed=0).train()
    random = torch.Generator().manual_seed(0)
    batch = {name: torch.randn(8, 5, 32, generator=random) for name in ("x", "y")}
    losses = train(model, batch, torch.optim.Adam(model.parameters(), lr=0.01), steps=10)
    assert losses[-1] < 0.9 * losses[0], f"nothing is learnt: {losses}"
    report = modgraph.export(model.eval(), tmp_path / "m.onnx")
    assert not report.verified.unreached["adapter"] and not report.verified.permuted["adapter"]
    x = torch.randn(3, 23, 32, generator=random)
    with torch.no_grad():
        expected = model.compute({"x": x}, losses=False).outputs["z"]
    found = torch.from_numpy(Bundle(tmp_path / "m.onnx").run({"x": x.numpy()})["z"])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_million_neurons_learn_and_are_exported(tmp_path: Path) -> None:
    model = modgraph.load(HOME / "peer.mod", keys=1000).build(seed=0).train()
    (route,) = model.computed.nodes_of(RouteNode)
    assert route.lowering == "gathered"
    random = torch.Generator().manual_seed(0)
    batch = {name: torch.randn(8, 5, 16, generator=random) for name in ("x", "y")}
    losses = train(model, batch, torch.optim.Adam(model.parameters(), lr=0.01), steps=5)
    assert losses[-1] < 0.9 * losses[0], f"nothing is learnt: {losses}"
    modgraph.export(model.eval(), tmp_path / "m.onnx")
    bundle = Bundle(tmp_path / "m.onnx")
    for length in (3, 23):
        x = torch.randn(3, length, 16, generator=random)
        with torch.no_grad():
            expected = model.compute({"x": x}, losses=False).outputs["z"]
        torch.testing.assert_close(torch.from_numpy(bundle.run({"x": x.numpy()})["z"]), expected, rtol=1e-4, atol=1e-5)
