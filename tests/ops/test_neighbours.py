"""Shift, conv1d and rotary: against torch's layers and equations, blind to padding, and in ONNX Runtime."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle

import modgraph
from modgraph import ModgraphError
from modgraph.backends.torch import Model

LENGTHS = [4, 1, 7]


def model_of(body: str) -> Model:
    return modgraph.loads(f"model m() {{ {body} }}").build().double().eval()


def padded(width: int, fill: float = float("nan")) -> torch.Tensor:
    """Sequences whose padding is no number."""
    x = torch.randn(len(LENGTHS), max(LENGTHS), width, dtype=torch.float64)
    for at, length in enumerate(LENGTHS):
        x[at, length:] = fill
    return x


@pytest.mark.parametrize(
    ("given", "settings", "zeros"),
    [
        ("8, kernel=2", {"kernel_size": 2}, (0, 0)),
        ("8, kernel=3, stride=2, padding=1", {"kernel_size": 3, "stride": 2, "padding": 1}, (0, 0)),
        ('8, kernel=3, padding="same", dilation=2', {"kernel_size": 3, "padding": "same", "dilation": 2}, (0, 0)),
        ('8, kernel=4, padding="same", bias=false', {"kernel_size": 4, "padding": "same", "bias": False}, (0, 0)),
        ('8, kernel=3, padding="causal", dilation=3', {"kernel_size": 3, "dilation": 3}, (6, 0)),
        ('6, kernel=4, padding="causal", groups=6', {"kernel_size": 4, "groups": 6}, (3, 0)),
    ],
)
def test_conv1d_is_torchs_convolution_with_its_weights(given: str, settings: Any, zeros: tuple[int, int]) -> None:
    model = model_of(f"input x: float[9, 6] y = x -> conv1d({given}) output y")
    theirs = torch.nn.Conv1d(6, 6 if "groups" in settings else 8, **settings).double()
    theirs.load_state_dict({name.removeprefix("y.conv1d."): each for name, each in model.state_dict().items()})
    x = torch.randn(3, 9, 6, dtype=torch.float64)
    expected = theirs(torch.nn.functional.pad(x.mT, zeros)).mT
    torch.testing.assert_close(model(x), expected)


def test_conv1d_runs_along_an_axis_by_name_and_keeps_the_others_apart() -> None:
    model = model_of('input x: float[time, 2, 6] y = x -> conv1d(4, padding="same", axis="time") output y')
    x = torch.randn(3, 5, 2, 6, dtype=torch.float64)
    weights = {name.removeprefix("y.conv1d."): each for name, each in model.state_dict().items()}
    expected = torch.nn.functional.conv1d(x[:, :, 1].mT, weights["weight"], weights["bias"], padding="same").mT
    torch.testing.assert_close(model.compute({"x": x}).outputs["y"][:, :, 1], expected)


EACH = """
  input x: float[time, 6]
  output back = x -> shift(-2)
  output later = x -> shift(3)
  output same = x -> conv1d(4, padding="same")
  output causal = x -> conv1d(6, kernel=4, padding="causal", groups=6, dilation=2)
  output turned = x -> unmerge([1, 6]) -> rotary(100.0, axis="time", partial=0.7, scaled=4, trained=16)
  output placed = (x, minimum(x -> positions(axis="time"), 5) + (x -> mean(axis=-1))) -> rotary(partial=0.7)
"""


@pytest.fixture(scope="module")
def each(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Bundle]:
    model = modgraph.loads(f"model m() {{ {EACH} }}").build().eval()
    path = tmp_path_factory.mktemp("neighbours") / "m.onnx"
    modgraph.export(model, path)
    return model.double(), Bundle(path)


def test_padding_is_never_read(each: tuple[Model, Bundle]) -> None:
    x = padded(6)
    together = each[0].compute({"x": x, "time_length": torch.tensor(LENGTHS)}).outputs
    for at, length in enumerate(LENGTHS):
        single = each[0].compute({"x": x[at : at + 1, :length]}).outputs
        for name, value in single.items():
            torch.testing.assert_close(together[name][at, :length], value[0], msg=f"{name} of length {length}")


@pytest.mark.parametrize("steps", [1, 2, 33])
def test_bundles_agree_at_lengths_that_nobody_traced(each: tuple[Model, Bundle], steps: int) -> None:
    x, lengths = torch.randn(3, steps, 6, dtype=torch.float64), torch.tensor([steps, 1, (steps + 1) // 2])
    expected = each[0].compute({"x": x, "time_length": lengths}).outputs
    found = each[1].run({"x": x.float().numpy(), "time_length": lengths.numpy()})
    for name, value in expected.items():
        for at, length in enumerate(lengths.tolist()):
            np.testing.assert_allclose(found[name][at, :length], value[at, :length].detach(), atol=2e-5, err_msg=name)


def test_rotated_queries_and_keys_score_as_in_attention() -> None:
    """Attention with the identity for all projections, by hand from the op."""
    model = model_of(
        "input x: float[5, 4] output y = x -> attention(1, kv_heads=1, rotary=50.0, bias=false, out_bias=false)"
        " q = x -> rotary(50.0) s = (q, q) -> contract output z = (s / 2 -> softmax, x -> transpose) -> contract"
    )
    model.load_state_dict({name: torch.eye(4) for name in model.state_dict()})
    found = model.compute({"x": torch.randn(2, 5, 4, dtype=torch.float64)}).outputs
    torch.testing.assert_close(found["y"], found["z"])


def test_slow_waves_are_scaled_as_llama_3_scales_them() -> None:
    """Wavelengths above trained / 1 are scaled fully, those below trained / 4 not at all."""
    model = model_of("input x: float[2, 64] output y = x -> rotary(500000.0, scaled=8, trained=64)")
    x = torch.zeros(1, 2, 64, dtype=torch.float64)
    x[..., :32] = 1
    angles = torch.atan2(model(x)[0, 1, 32:], model(x)[0, 1, :32])
    for at, angle in enumerate(angles.tolist()):
        speed = 500000.0 ** (-at / 32)
        wave = 2 * math.pi / speed
        smooth = (64 / wave - 1) / 3
        expected = speed if wave < 16 else speed / 8 if wave > 64 else (1 - smooth) * speed / 8 + smooth * speed
        assert angle == pytest.approx(expected, rel=1e-12), f"pair {at}"


MISTAKES = {
    "input x: float[time, 6] y = x -> conv1d(4)": r'keep it: conv1d\(width=4, padding="causal"\)',
    "input x: float[4, 6] y = x -> conv1d(4, kernel=5)": "longer than the axis of 4",
    "input x: float[4, 6] y = x -> conv1d(4, axis=-1)": "transpose",
    'input x: float[4, 6] y = x -> conv1d(4, padding="same", stride=2)': "stride of 1",
    "input x: float[4, 6] y = x -> conv1d(4, groups=4)": "4 groups",
    "input x: float[4, 6] y = x -> rotary(partial=0.5)": "of which 3 rotate",
    "input x: float[4, 6] y = x -> rotary(trained=8)": "scaled=8",
    "input x: float[4, 6] y = x -> rotary(axis=-1)": "counts? along another",
    "input x: float[4, 6] y = x -> rotary(cycles=[4, 1], scaled=2, trained=8)": r"cycles=\[1, 4\]",
    'input x: float[4, 6] y = x -> rotary(cycles=[0, 1], scaled=2, trained=8, fade="logarithmic")': "logarithm of 0",
    "input x: float[4, 6] input p: float[3, 4] y = (x, p) -> rotary": r"positions \[3, 4\] has other axes than \[4\]",
    "input x: float[4, 6] y = (x, x, x) -> rotary": "1 to 2 operands",
}


@pytest.mark.parametrize("body", MISTAKES)
def test_a_mistake_is_explained(body: str) -> None:
    with pytest.raises(ModgraphError, match=MISTAKES[body]):
        modgraph.loads(f"model m() {{ {body} output y }}")


def test_a_depthwise_filter_costs_its_products() -> None:
    cost = modgraph.loads(
        'model m() { input x: float[time, 6] output y = x -> conv1d(6, 4, padding="causal", groups=6) }'
    )
    assert cost.cost(time=10).macs == 10 * 6 * 4
    assert (
        modgraph.loads("model m() { input x: float[9, 6] output y = x -> conv1d(4, 3, 2) }").cost().macs
        == 4 * 4 * 6 * 3
    )
