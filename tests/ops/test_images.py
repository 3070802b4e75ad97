"""Convolution, pooling and upsampling of images: against torch's own functions, in ONNX Runtime, and their messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph import ModgraphError
from tests.backends.torch.test_source import check

CASES: dict[str, Callable[[Tensor, dict[str, Tensor]], Any]] = {
    "conv(6, dilation=2)": lambda x, w: F.conv2d(x, **w, dilation=2),
    'conv(6, 3, padding="same", dilation=3)': lambda x, w: F.conv2d(x, **w, dilation=3, padding="same"),
    "conv_transpose(6, 2, stride=2)": lambda x, w: F.conv_transpose2d(x, **w, stride=2),
    "conv_transpose(6, 4, 2, 1, 1, groups=2, dilation=3)": lambda x, w: F.conv_transpose2d(x, **w, stride=2, padding=1,
        output_padding=1, groups=2, dilation=3),
    "conv_transpose(6, bias=false)": lambda x, w: F.conv_transpose2d(x, **w),
    "max_pool(3, stride=2, padding=1)": lambda x, w: F.max_pool2d(x, 3, 2, 1),
    "max_pool(2, padding=1)": lambda x, w: F.max_pool2d(x, 2, padding=1),
    "avg_pool(4, padding=2)": lambda x, w: F.avg_pool2d(x, 4, padding=2),
    "upsample(3)": lambda x, w: F.interpolate(x, scale_factor=3),
    "upsample(size=[13, 11])": lambda x, w: F.interpolate(x, size=(13, 11)),
    'upsample(2, mode="bilinear")': lambda x, w: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),
    'upsample(size=[10, 17], mode="bilinear")': lambda x, w: F.interpolate(x, size=(10, 17), mode="bilinear"),
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_each_is_the_function_of_torch_over_any_outer_axes(text: str) -> None:
    model = modgraph.loads(f"model m() {{ input x: float[2, 4, 9, 7] y = x -> {text} output y }}").build(seed=0).train()
    x = torch.randn(3, 2, 4, 9, 7, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weights = {name.rsplit(".", 1)[-1]: each for name, each in model.named_parameters()}
    found = model(x)
    expected = CASES[text](x.flatten(0, 1), weights).unflatten(0, (3, 2))
    assert isinstance(found, Tensor)
    torch.testing.assert_close(found, expected, msg=text)
    given = [x, *weights.values()]
    gradients = torch.autograd.grad(found.square().sum(), given), torch.autograd.grad(expected.square().sum(), given)
    torch.testing.assert_close(*gradients, msg=f"gradients of {text}", rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_runtime_and_source_compute_the_same(tmp_path: Path) -> None:
    lines = " ".join(f"y{at} = x -> {text} output y{at}" for at, text in enumerate(CASES))
    model = modgraph.loads(f"model m() {{ input x: float[4, 9, 7] {lines} }}").build(seed=0)
    modgraph.export(model, tmp_path / "m.onnx")
    x = torch.randn(5, 4, 9, 7, generator=torch.Generator().manual_seed(0))
    found = Bundle(tmp_path / "m.onnx").run({"x": x.numpy()})
    for name, expected in model.eval().compute({"x": x}).outputs.items():
        np.testing.assert_allclose(found[name], expected.detach().numpy(), rtol=1e-4, atol=1e-5, err_msg=name)
    check(model)


@pytest.mark.parametrize(
    ("text", "words", "advice"),
    [
        ("conv(6, dilation=5)", "a window of 11 is larger", "lower kernel"),
        ("conv_transpose(5, groups=2)", "2 groups divide neither", "divide both"),
        ("conv_transpose(4, stride=2, output_padding=2)", "not below stride and dilation", "output_padding=1"),
        ("conv_transpose(4, padding=9)", "cuts off the whole image", "lower padding"),
        ("max_pool(3, padding=2)", "more than half of a window of 3", "padding=1"),
        ("upsample", "a scale or a size", "upsample(2)"),
        ("upsample(2, size=[9, 9])", "a scale or a size", "upsample(2)"),
        ("upsample(size=[9])", "height and width", "size=[9, 7]"),
        ("upsample(size=[9, 6])", "would become smaller", "avg_pool(2)"),
        ('upsample(2, mode="bicubic")', 'one of "nearest", "bilinear"', ""),
        ("conv_transpose(4, 8, kernel_size=2, stride=2)", "", "conv_transpose(8, kernel=2, stride=2)"),
    ],
)
def test_what_does_not_fit_is_reported(text: str, words: str, advice: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(f"model m() {{ input x: float[4, 9, 7] y = x -> {text} output y }}")
    (only,) = caught.value.diagnostics
    assert words in only.text() and advice in only.advice(), f"{only.text()}; {only.advice()}"


def test_a_transposed_convolution_undoes_the_shape_of_one_and_counts_as_many_products() -> None:
    body = (
        "input x: float[3, 16, 12] y = x -> conv(8, 4, 2, 1) z = y -> conv_transpose(3, 4, 2, 1, bias=false) output z"
    )
    program = modgraph.loads(f"model m() {{ {body} }}")
    assert str(program.ir.type_of(program.ir.outputs["z"])) == "float[3, 16, 12]"
    both = program.cost().macs
    assert both == 2 * modgraph.loads(f"model m() {{ {body.split(' z =')[0]} output y }}").cost().macs
