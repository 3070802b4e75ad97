"""Ids as values: arithmetic with known bounds, one-hot vectors, rows looked up, the places of the largest values."""

from __future__ import annotations

import pytest
import torch

import modgraph
from modgraph import ModgraphError
from modgraph.backends.torch import Model

WORDS = "input words: token[time, 12] input x: float[time, 6]"


def model_of(body: str) -> Model:
    return modgraph.loads(f"model m() {{ {WORDS} {body} }}").build().eval()


def batch() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(12, (3, 5), generator=generator)
    return {"words": words, "x": torch.randn(3, 5, 6, generator=generator)}


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("words % 5", 5),
        ("words // 5", 3),
        ("words + 3", 15),
        ("words * 3", 34),
        ("31 * words + (words -> shift(1, axis=-1))", 353),
        ("where((x -> sum(axis=-1)) > 0, words, 20)", 21),
        ("8 * x -> to_ids(9)", 9),
        ("(words, words % 3) -> stack -> select(1, axis=-2)", 12),
    ],
)
def test_the_type_of_ids_says_how_many_there_are(expression: str, count: int) -> None:
    model = model_of(f"output y = {expression}")
    (result,) = model.graph.outputs.values()
    assert model.graph.type_of(result).size == count, "the type gives another number of ids"
    found = model.compute(batch()).outputs["y"]
    assert found.dtype == torch.int64 and found.min() >= 0 and found.max() < count, "ids beyond those of the type"


def test_large_ids_compare_exactly() -> None:
    text = f"model m() {{ input a: token[{2**30}] output y = a == {2**24 + 1} output z = a < {2**24 + 1} }}"
    computed = modgraph.loads(text).build().eval()(torch.tensor([2**24, 2**24 + 1]))
    assert computed["y"].tolist() == [0, 1] and computed["z"].tolist() == [1, 0], "ids were compared in 32 bits"


@pytest.mark.parametrize("route", ["words % 4 -> one_hot(expert)", "(table, words) -> lookup -> one_hot(expert)"])
def test_a_route_by_ids_runs_the_module_of_each_id(route: str) -> None:
    numbers = [3, 0, 1, 1, 2, 3, 0, 2, 1, 3, 0, 2]
    model = model_of(f"""constant table: token[12, 4] = {numbers} pool expert[4] = linear(6)
      output y = x -> expert by ({route})""")
    given = batch()
    module = given["words"] % 4 if "%" in route else torch.tensor(numbers)[given["words"]]
    expected = torch.stack([expert(given["x"]) for expert in model.expert])  # type: ignore[union-attr]
    expected = expected.gather(0, module[None, :, :, None].expand(1, 3, 5, 6))[0]
    torch.testing.assert_close(model.compute(given).outputs["y"], expected)
    cost = modgraph.Program(model.graph).cost()
    assert cost.active_macs * 4 == cost.macs, "every module runs"


def test_a_weight_is_an_embedding_and_the_output_map() -> None:
    model = model_of("""weight w: float[12, 6] = normal(1.0)
      h = (w, words) -> lookup output tied = (h, w) -> contract""")
    given, (weight,) = batch(), model.parameters()
    expected = weight[given["words"]] @ weight.T
    found = model.compute(given).outputs["tied"]
    torch.testing.assert_close(found, expected)
    (gradient,) = torch.autograd.grad(found.square().sum(), weight)
    (wanted,) = torch.autograd.grad(expected.square().sum(), weight)
    torch.testing.assert_close(gradient, wanted, rtol=1e-4, atol=1e-4)


LOOKUPS = {
    'weight w: float[h=2, 12, 3] = normal(1.0)  ids = (words, words % 5) -> stack(axis="h")': "(w, ids) -> lookup",
    'ids = x -> top_k_indices(2, into="slot")': "(x, ids) -> lookup",
    "input m: float[time, 12, 2, 3]": "(m, words) -> lookup",
    "input k: float[2, 5, 6]  ids = k -> top_k_indices(3)": "(k, ids) -> lookup(axis=-1)",
    "input n: float[12, 4]": "(n, words) -> lookup",
    "weight w: float[6] = normal(1.0)": "(w, x -> top_k_indices(2)) -> lookup",
}


@pytest.mark.parametrize("declared", LOOKUPS)
def test_rows_of_any_table_get_the_gradient_of_their_reads(declared: str) -> None:
    """By numbers: a small change of each number of the table changes the result by its gradient."""
    model = model_of(f"{declared} output y = {LOOKUPS[declared]}").double()
    given = {
        name: torch.randn(2, *(axis.size or 5 for axis in type_.shape), dtype=torch.float64)
        for name, type_ in model.graph.input_types.items()
        if type_.dtype == "float"
    }
    given["words"] = batch()["words"][:2]
    tables = [*model.parameters()] or [given[next(name for name in ("m", "k", "n", "x") if name in given)]]
    assert torch.autograd.gradcheck(lambda table: model.compute(given).outputs["y"], tables[0].requires_grad_())


def test_of_equal_values_the_first_is_larger() -> None:
    model = model_of("output y = x -> top_k_indices(4)")
    x = torch.randint(3, (3, 5, 6), generator=torch.Generator().manual_seed(0)).float()
    expected = x.argsort(dim=-1, descending=True, stable=True)[..., :4]
    assert torch.equal(model.compute({**batch(), "x": x}).outputs["y"], expected), "another choice among equal values"


WRONG = {
    "weight w: float[8, 3] = zeros output y = (w, words) -> lookup": "give the array 12 rows, or divide the ids: % 8",
    "pool p[3] = linear(6) output y = x -> p by words": "words % len(p) -> one_hot(p)",
    "output y = words - 1": '"-" is for floats, not for ids',
    "output y = words == 12": "ids are 0 to 11",
    "output y = words == x": "turn ids into ones and zeros: -> one_hot",
    "output y = x % 2": '"%" is for ids, and this is float[time, 6]',
    "output y = words % 0": "a positive whole number",
    "output y = 7 % words": '"%" divides ids, not',
    "output y = words % words": "a positive whole number",
    "pool p[4] = linear(6) output y = x -> p by (words -> one_hot(p))": "ids below 12 have no place along an axis of 4",
    "output y = x -> one_hot": "must be ids (token or class), not float[time, 6]",
    "constant t: token[3, 4] = [1, 2, 4] output y = (t, words % 3) -> lookup": "4 is no id below 4",
    "constant t: token[3, 4] = [1, 2, 0.5] output y = (t, words % 3) -> lookup": "0.5 is no id below 4",
    "output y = x -> top_k_indices(2, axis=\"time\")": "choose by ones and zeros: top_k",
    "output y = (x, words -> new_axis(6, at=-1)) -> concat": "its operands must all be floats, or all ids",
    "output y = words -> relu": "turn tokens into vectors: -> embedding(width), or -> one_hot",
    "output y = (x, x) -> lookup": "it looks up by ids, not by float[time, 6]",
    "input k: float[2, 5] output y = (k, x -> top_k_indices(2)) -> lookup(axis=-1)": "ids below 6 look up 5 rows",
    "input k: float[2, 6] output y = (k, words % 6) -> lookup(axis=-1)": "[time] lacks 2, which stands before the axis",
    "output y = words * 100000000000 * 100000000000": "which 64 bits do not hold",
    "output y = words + 0.5": "ids are whole numbers from 0",
}  # fmt: skip


@pytest.mark.parametrize("body", WRONG)
def test_a_wrong_use_of_ids_is_found_by_types(body: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(f"model m() {{ {WORDS} {body} }}")
    assert WRONG[body] in str(caught.value)
