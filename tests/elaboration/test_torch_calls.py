"""Calls with the arguments of torch's layers: what is inferred or called otherwise is said, with the call to write."""

from __future__ import annotations

import pytest

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.elaboration.expressions import find_op
from modgraph.ops import Op
from modgraph.program import loads

VECTORS, IMAGE, TOKENS = "float[4, 6]", "float[3, 28, 28]", "token[5, 100]"


def diagnose(call: str, x: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ModgraphError) as error:
        loads(f"model m(width=8) {{ input x: {x} y = x -> {call} output y }}")
    return error.value.diagnostics


@pytest.mark.parametrize(
    ("call", "x", "written", "inferred"),
    [
        ("linear(6, width)", VECTORS, "linear(width)", "in_features"),
        ("linear(6, 8, false)", VECTORS, "linear(8, false)", "in_features"),
        ("linear(6, width, bias=false)", VECTORS, "linear(width, bias=false)", "in_features"),
        ("linear(in_features=6, out_features=8)", VECTORS, "linear(8)", "in_features"),
        ("linear(6, out_features=8)", VECTORS, "linear(8)", "in_features"),
        ("gru(6, 8)", VECTORS, "gru(8)", "input_size"),
        ("lstm(6, hidden_size=8)", VECTORS, "lstm(8)", "input_size"),
        ("layer_norm(6)", VECTORS, "layer_norm", "normalized_shape"),
        ("rms_norm(width)", VECTORS, "rms_norm", "normalized_shape"),
        ("attention(64, 2)", VECTORS, "attention(2)", "embed_dim"),
        ("embedding(100, 8)", TOKENS, "embedding(8)", "num_embeddings"),
        ("batch_norm(3)", IMAGE, "batch_norm", "num_features"),
        ("group_norm(3, 3)", IMAGE, "group_norm(3)", "num_channels"),
        ("conv(3, 16, kernel_size=3)", IMAGE, "conv(16, kernel=3)", "in_channels"),
        ("conv(3, 64, 7, 2, 3, bias=false)", IMAGE, "conv(64, 7, 2, 3)", ""),
        ("conv(3, 32, 3)", IMAGE, "conv(32, 3)", ""),
        ("dropout(p=0.1)", VECTORS, "dropout(0.1)", ""),
        ("softmax(dim=-1)", VECTORS, "softmax(-1)", ""),
        ("mean(dim=-2)", VECTORS, "mean(-2)", ""),
        ("max_pool(kernel_size=2)", IMAGE, "max_pool(2)", ""),
        ("leaky_relu(negative_slope=0.2)", VECTORS, "leaky_relu(0.2)", ""),
    ],
)
def test_a_call_with_the_arguments_of_torch_is_written_for_modgraph(
    call: str, x: str, written: str, inferred: str
) -> None:
    (only,) = diagnose(call, x)
    assert inferred in only.text()
    assert only.advice().endswith(written), only.advice()
    loads(f"model m(width=8) {{ input x: {x} y = x -> {written} output y }}")


@pytest.mark.parametrize(
    "call", ["linear(6, 8, 9)", "linear(0)", "linear(4, bias=2)", "dropout(1.5)", "linear(4, bias=true, bias=true)"]
)
def test_a_call_that_is_wrong_for_torch_too_keeps_its_message(call: str) -> None:
    assert not any("infers" in each.text() or "is called" in each.text() for each in diagnose(call, VECTORS))


@pytest.mark.parametrize("op", [op for op in Op.registry.values() if op.torch_arguments], ids=lambda op: op.name)
def test_the_arguments_of_torch_are_settings_here_or_inferred(op: type[Op]) -> None:
    assert find_op(op.name) is op
    pairs = [each.split("=") for each in op.torch_arguments.split()]
    assert {own for _, own in pairs} <= {"", *op.settings()}
