"""A second reading of an axis: an axis of its own that has the lengths and the padding of the first."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph.backends.report import random_batch
from modgraph.backends.torch import Model
from modgraph.backends.torch.source import verify_source
from modgraph.diagnostics import ModgraphError
from modgraph.ir import from_json, to_json
from modgraph.ir.text.parse import parse_text
from modgraph.program import loads
from modgraph.types import Axis, TensorType, floats
from tests.traces import shared_traces

ATTENTION = """
model attends(width=4) {
  input x: float[time, width]
  input allowed: float[time, key=time]
  keys = x -> rename(time="key")
  past = (x -> positions(axis="time")) >= (keys -> positions(axis="key"))
  mutual = (allowed + (allowed -> rename(time="key", key="time"))) > 0
  scores = (x -> linear(3), keys -> linear(3)) -> contract
  gates = (0.5 * scores, past * mutual) -> masked_softmax(axis="key")
  y = (keys -> linear(width)) by gates over key
  output y
}
"""
LENGTHS = (6, 4, 1)
AXES = [Axis(1), Axis(3), Axis(3, "p"), Axis(None, "time"), Axis(None, "key", "time"), Axis(None, "q", "time")]
ROOTS = (Axis(None, "time"), Axis(None, "key", "time"))


def attend(x: Tensor, allowed: Tensor, weights: dict[str, Tensor]) -> Tensor:
    """Attention written out, for one example [T, D] without padding."""

    def linear(name: str) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    scores = 0.5 * linear("scores.linear") @ linear("scores.linear2").T
    hidden = (allowed + allowed.T <= 0) | torch.ones_like(scores).triu(1).bool()
    gates = torch.softmax(scores.masked_fill(hidden, -torch.inf), -1).nan_to_num()
    return gates @ linear("y.linear")


@pytest.fixture(scope="module")
def model() -> Model:
    return loads(ATTENTION).build(seed=3).double()


def batch(behind: float = 0.0) -> dict[str, Tensor]:
    """Three examples whose padding holds one number."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 6, 4, generator=generator, dtype=torch.float64)
    allowed = torch.randn(3, 6, 6, generator=generator, dtype=torch.float64)
    mask = torch.arange(6) < torch.tensor(LENGTHS)[:, None]
    allowed = torch.where(mask[:, :, None] & mask[:, None], allowed, behind)
    return {"x": torch.where(mask[..., None], x, behind), "allowed": allowed, "time_length": torch.tensor(LENGTHS)}


def gradients(model: Model, values: dict[str, Tensor], written_out: bool) -> list[Tensor]:
    """Gradients of Σ y² with respect to `x` and the weights."""
    x, weights = values["x"].clone().requires_grad_(), dict(model.named_parameters())
    found = torch.zeros((), dtype=torch.float64)
    if written_out:
        for each, allowed, end in zip(x, values["allowed"], LENGTHS, strict=True):
            found = found + attend(each[:end], allowed[:end, :end], weights).square().sum()
    else:
        y = model.compute(values | {"x": x}).outputs["y"]
        found = sum((each[:end].square().sum() for each, end in zip(y, LENGTHS, strict=True)), found)
    return [*torch.autograd.grad(found, [x, *weights.values()])]


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_attention_between_the_readings_of_an_axis_equals_its_formula(model: Model, training: bool) -> None:
    values, weights = batch(), dict(model.named_parameters())
    found = model.train(training).compute(values).outputs["y"]
    for at, end in enumerate(LENGTHS):
        expected = attend(values["x"][at, :end], values["allowed"][at, :end, :end], weights)
        torch.testing.assert_close(found[at, :end], expected, msg=f"example {at} of {end} tokens")
    pairs = zip(gradients(model, values, False), gradients(model, values, True), strict=True)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs)


def test_padding_is_read_along_neither_reading(model: Model) -> None:
    clean, soiled = (model.eval().compute(batch(behind)).outputs["y"] for behind in (0.0, 7e3))
    for at, end in enumerate(LENGTHS):
        torch.testing.assert_close(clean[at, :end], soiled[at, :end], rtol=0, atol=0)


@pytest.mark.slow
def test_an_export_traces_no_length_and_has_one_dimension_for_both(tmp_path: Path, traces: Path) -> None:
    model = loads(ATTENTION).build(seed=3)
    with shared_traces(traces):
        modgraph.export(model, tmp_path / "attends.onnx")
    bundle = Bundle(tmp_path / "attends.onnx", threads=1)
    assert bundle.inputs["allowed"].shape == ("time", "time")
    rng = np.random.default_rng(0)
    for length in (1, 3, 11):
        given = {"x": rng.normal(size=(2, length, 4)), "allowed": rng.normal(size=(2, length, length))}
        given |= {"time_length": np.array([length, max(1, length - 1)])}
        tensors = {name: torch.from_numpy(np.asarray(each)) for name, each in given.items()}
        expected = model.eval().double().compute(tensors).outputs["y"].detach().numpy()
        np.testing.assert_allclose(bundle.run(given)["y"], expected, atol=1e-5, err_msg=f"{length} tokens")


def test_pytorch_source_computes_the_same() -> None:
    model = loads(ATTENTION).build(seed=3)
    verify_source(model, {**random_batch(model), "time_length": torch.tensor([7, 2])})


@given(st.lists(st.sampled_from(AXES), unique_by=lambda axis: axis.name or id(axis), max_size=4))
def test_types_read_back_from_text_and_json(axes: list[Axis]) -> None:
    type_ = floats(Axis(None, "time"), *(axis for axis in axes if axis.name != "time"))
    graph = parse_text(f"model m() {{\n  x: {type_} = input\n  output.y = output y (x)\n}}\n")
    assert graph.input_types == {"x": type_}
    assert parse_text(str(graph)) == from_json(to_json(graph)) == graph
    assert from_json(json.loads(json.dumps(to_json(graph)))).hash() == graph.hash()


def test_a_reading_is_another_axis_and_has_another_hash() -> None:
    texts = [
        f"model m() {{ input x: float[time] input y: float[{axis}] output y output x }}" for axis in ("key", "time")
    ]
    texts.append(texts[0].replace("[key]", "[key=time]"))
    assert len({loads(text).ir.hash() for text in texts}) == 3


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ('x -> rename(time="key")', "[key=time, 4]"),
        ('x -> rename(time="key") -> rename(key="time")', "[time, 4]"),
        ('x -> rename(time="key") -> rename(key="sender")', "[sender=time, 4]"),
        ('m -> rename(time="key", key="time")', "[key=time, time]"),
        ('m -> rename(time="a", key="b")', "[a=time, b=time]"),
        ("(x, m) -> expand(-1)", "[key=time, time, 4]"),
    ],
)
def test_renaming_reads_an_axis_again(use: str, expected: str) -> None:
    graph = loads(f"model m() {{ input x: float[time, 4] input m: float[time, key=time] y = {use} output y }}").ir
    assert str(graph.type_of(graph.outputs["y"])) == f"float{expected}"


def test_a_name_of_an_axis_needs_no_quotation_marks() -> None:
    body = 'key = x -> rename(time="key") y = (x, key) -> contract -> softmax(axis=key) -> sum(axis=time)'
    graph = loads(f"model m() {{ input x: float[time, 4] {body} output y }}").ir
    assert str(graph.type_of(graph.outputs["y"])) == "float[key=time]"
    block = 'block b() { input x: float[one, d] y = (x -> unmerge([2, 2], into=["h", ""])) -> mean(axis=h) output y }'
    graph = loads(f"{block} model m() {{ input x: float[time, 4] y = x -> b output y }}").ir
    assert str(graph.type_of(graph.outputs["y"])) == "float[time, 2]"


def test_a_later_input_names_a_reading_without_its_axis() -> None:
    text = (
        "model m() { input a: float[time, key=time] input b: float[key, 3] y = (a, b) -> contract(axis=KEY) output y }"
    )
    graph = loads(text.replace("KEY", '"key"')).ir
    assert graph.input_types["b"] == TensorType("float", (Axis(None, "key", "time"), Axis(3)))


HEAD = "input x: float[time, 4] input z: float[other, 4] input m: float[time, key=time] pool p[3] = linear(4)"
WRONG = {
    'y = m -> rename(time="key") -> mean': 'the axis "key" would occur twice',
    'y = x -> rename(time="") -> mean': 'rename(time="key")',
    'y = x -> rename(tim="key") -> mean': "axes are: time",
    "y = x input n: float[time, again=tme]": 'did you mean "time"',
    "y = x input n: float[time, key=other]": "a reading of time elsewhere",
    "y = x input n: float[time, other=time]": "of any length elsewhere",
    "y = x input n: float[time=time]": 'axis "time"',
    "y = x input n: float[time, p=time]": "but 3 elsewhere",
    "y = x input n: float[time, key=3]": "of any length elsewhere",
    "y = x input n: float[time, key=p]": 'a constant, not the pool "p"',
    'y = (x -> rename(time="other")) + z': "[other=time, 4] and [other, 4]",
    'y = (x, m) -> contract(axis="key")': 'unknown axis "key"',
    'scan x as v { yield m -> mean(axis="key") } as y': 'already has the axis "time"',
}


@pytest.mark.parametrize("body", WRONG)
def test_a_wrong_reading_is_explained(body: str) -> None:
    with pytest.raises(ModgraphError) as raised:
        loads(f"model m() {{ {HEAD} {body} output y }}")
    assert WRONG[body] in str(raised.value), str(raised.value)
