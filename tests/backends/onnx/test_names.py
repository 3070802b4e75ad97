"""Names and types at the border of a bundle: whatever a spec may call things."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle, BundleError

import modgraph
from modgraph.backends.onnx.manifest import find_ranked_targets
from modgraph.backends.report import random_batch

CALLED = {
    "an output as an input": "input x: float[4] x = x -> linear(3) output x",
    "an input that is an output": "input x: float[4] output x",
    "one value twice": "input x: float[4] y = x z = x -> relu w = z output x output y output z output w",
    "as the exporter calls values": """
        input relu: float[4] input linear: float[4] input val_0: float[4]
        a = relu -> relu -> linear(4)  add = (linear -> linear(4) -> relu) + val_0  linear_1 = a -> linear(4)
        output a output add output linear_1""",
    "as the exporter calls weights": """
        input weight: float[4] linear = weight -> linear(4) bias = linear -> linear(3) output bias output linear""",
    "an axis as the exporter's": "input x: float[batch, 4] y = x -> linear(3) z = x -> mean output y output z",
    "axes as numbers of sympy": """
        input x: float[E, 4] input w: float[pi, 3] y = x -> linear(3) z = (x -> mean -> linear(3)) + (w -> mean)
        output y output z""",
    "an input without use": "input x: float[4] input unused: float[3] y = x -> relu output y",
    "numbers and tokens": "input x: float input t: token[10] y = (t -> embedding(3)) * x output y",
}


@pytest.mark.some(3)
@pytest.mark.parametrize("case", CALLED)
def test_inputs_and_outputs_have_the_names_of_the_spec(case: str, tmp_path: Path) -> None:
    model = modgraph.loads(f"model m() {{ {CALLED[case]} }}").build().eval()
    modgraph.export(model, tmp_path / "m.onnx")
    bundle = Bundle(tmp_path / "m.onnx")
    assert list(bundle.inputs) == list(model.graph.input_types)
    assert list(bundle.outputs) == list(model.graph.outputs)
    batch = random_batch(model, 4)
    with torch.no_grad():
        expected = model.compute(batch, losses=False).outputs
    found = bundle.run({name: value.numpy() for name, value in batch.items()})
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        ("output logits", "label"),
        ("p = logits -> softmax output p", "label"),
        ("p = logits -> log_softmax -> identity output p", "label"),
        ("p = logits -> tanh output p", None),
    ],
)
def test_an_output_names_the_target_whose_classes_it_distinguishes(
    spec: str, target: str | None, tmp_path: Path
) -> None:
    head = "input x: float[4] target label: class[3] logits = x -> linear(3) loss cross_entropy(logits, label)"
    model = modgraph.loads(f"model m() {{ {head} {spec} }}").build()
    names = {"classes": {"label": ["a", "b", "c"], "of another task": ["d"]}}
    modgraph.export(model, tmp_path / "m.onnx", description=names)
    bundle = Bundle(tmp_path / "m.onnx")
    (port,) = bundle.outputs.values()
    assert port.target == target
    assert port.classes == (("a", "b", "c") if target else ())
    predicted = bundle.predict({"x": np.ones((2, 4))})[port.name]
    assert predicted.shape == ((2,) if target else (2, 3))


def test_a_softmax_over_positions_distinguishes_no_classes() -> None:
    head = "input x: float[5, 4] target y: class[5, 3] z = x -> linear(3) loss cross_entropy(z, y)"
    over = [modgraph.loads(f"model m() {{ {head} p = z -> softmax(axis={axis}) output p }}").ir for axis in (-1, -2)]
    assert [*map(find_ranked_targets, over)] == [{"p": "y"}, {}]


def test_what_a_weight_stands_along_bounds_the_axis(tmp_path: Path) -> None:
    text = "model m() { input w: token[time, 9] y = w -> embedding(4) -> position(length=6) -> mean output y }"
    modgraph.export(modgraph.loads(text).build(), tmp_path / "m.onnx")
    bundle = Bundle(tmp_path / "m.onnx")
    assert bundle.run({"w": np.zeros((2, 6), int)})["y"].shape == (2, 4)
    with pytest.raises(BundleError, match='has 7 along "time"; the model takes 1 to 6'):
        bundle.run({"w": np.zeros((2, 7), int)})
