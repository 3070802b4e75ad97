"""ONNX lowerings of torch operators that the exporter's own library lacks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from string import ascii_letters
from typing import Any

import numpy as np
import onnxscript
import torch
from onnxscript import OnnxFunction, TracedOnnxFunction
from onnxscript.function_libs.torch_lib.registration import default_registry
from torch.onnx._internal.exporter._registration import OnnxDecompMeta, ONNXRegistry, _get_overload
from torch.onnx._internal.exporter._torchlib._torchlib_registry import get_torchlib_ops

OPSET = 20
op: Any = onnxscript.opset20
aten = torch.ops.aten
ELSEWHERE = ("internal::", "torchvision::")  # namespaces of functions that implement no operator of torch itself


class Operators(ONNXRegistry):
    """torch's registry of ONNX lowerings, which parses functions of onnxscript's library lazily.

    `ONNXRegistry.from_torchlib` parses five hundred of them, which takes as long as importing torch.
    """

    def __init__(self) -> None:
        super().__init__()
        import_module("onnxscript.function_libs.torch_lib.ops")  # fills the registry
        self._opset_version = OPSET
        for known in get_torchlib_ops():
            self._register(known.fx_target, known)
        for name, known_functions in default_registry.items():
            target: Any = None if name.startswith(ELSEWHERE) else _get_overload(name)
            for function in (*known_functions.overloads, *known_functions.complex) if target is not None else ():
                is_complex = function in known_functions.complex
                meta = OnnxDecompMeta(function, target, None, is_complex=is_complex, skip_signature_inference=True)
                self._register(target, meta)
        self._cleanup_registry_based_on_opset_version()

    def get_decomps(self, target: Any) -> list[Any]:
        found = super().get_decomps(target)
        for each in found:
            if each.signature is None and isinstance(each.onnx_function, OnnxFunction | TracedOnnxFunction):
                each.skip_signature_inference = False
                each.__post_init__()
        return found


@functools.cache
def operators() -> Operators:
    """The registry with torch's table and `SAID`, built once; `torch.onnx.export` would build one for every export."""
    registry = Operators()
    for operation, said in SAID.items():
        registry.register_op(operation, said)
    return registry


def _einsum(equation: str, operands: Sequence[Any], path: Any = None) -> Any:
    """An einsum with a letter for every axis.

    ONNX infers the sizes of "..." from the first operand, which is wrong if an axis has size 1 there and more in
    another operand: squeeze such axes.
    """
    inputs, result = equation.split("->")
    terms = [term.removeprefix("...") for term in inputs.split(",")]
    outer = [[*x.shape[: len(x.shape) - len(term)]] for x, term in zip(operands, terms, strict=True)]
    letters = [each for each in ascii_letters if each not in equation][: max(map(len, outer))]
    sizes = [dict(zip(reversed(letters), reversed(each), strict=False)) for each in outer]
    wide = {letter for own in sizes for letter, size in own.items() if size != 1}
    squeezed = []
    for x, own in zip(operands, sizes, strict=True):
        places = [place for place, letter in enumerate(reversed(own)) if letter in wide and own[letter] == 1]
        squeezed.append(op.Squeeze(x, op.Constant(value_ints=places)) if places else x)
    kept = ["".join(each for each in letters if each in own and (own[each] != 1 or each not in wide)) for own in sizes]
    subscripts = ",".join(lead + term for lead, term in zip(kept, terms, strict=True))
    return op.Einsum(*squeezed, equation=f"{subscripts}->{result.replace('...', ''.join(letters))}")


def _rms_norm(x: Any, shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    axes = op.Constant(value_ints=list(range(-len(shape), 0)))
    square = op.ReduceMean(op.Mul(x, x), axes)
    small = float(np.finfo(np.float32).eps) if eps is None else eps
    found = op.Mul(x, op.Reciprocal(op.Sqrt(op.Add(square, op.CastLike(op.Constant(value_float=small), x)))))
    return found if weight is None else op.Mul(found, weight)


def _pad_convolution(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Sequence[int] = (1, 1),
    padding: str = "valid",
    dilation: Sequence[int] = (1, 1),
    groups: int = 1,
) -> Any:
    """A convolution with `padding` "same" or "valid"; an odd zero of "same" goes to the end."""
    stretch = zip(weight.shape[2:], dilation, strict=True)
    zeros = [by * (size - 1) if padding == "same" else 0 for size, by in stretch]
    pads = [*(each // 2 for each in zeros), *(each - each // 2 for each in zeros)]
    return op.Conv(x, weight, bias, pads=pads, strides=[*stride], dilations=[*dilation], group=groups)


def _states(
    layer: Any, gates: Sequence[int], x: Any, weights: Sequence[Any], initial: Sequence[Any], **settings: Any
) -> Any:
    """All states [B, N, H] of a recurrent layer from initial states [B, H]; zeros are ONNX's default.

    `gates` permutes the blocks of rows of the weights, one for each gate, to ONNX's order.
    """
    hidden = weights[1].shape[1]
    rows = [[op.Constant(value_ints=[row]) for row in (gate * hidden, (gate + 1) * hidden, 0)] for gate in gates]
    weights = [op.Concat(*(op.Slice(each, *block) for block in rows), axis=0) for each in weights]
    axis = op.Constant(value_ints=[0])
    maps = [op.Unsqueeze(each, axis) for each in weights[:2]]
    bias = op.Unsqueeze(op.Concat(*weights[2:], axis=0), axis) if len(weights) > 2 else None
    states = [op.Unsqueeze(each, axis) for each in initial]
    found, *_ = layer(op.Transpose(x, perm=[1, 0, 2]), *maps, bias, None, *states, hidden_size=hidden, **settings)
    return op.Transpose(op.Squeeze(found, op.Constant(value_ints=[1])), perm=[1, 0, 2])


SAID: Mapping[Any, Callable[..., Any]] = {
    # optimisation turns this into one `Split`
    torch.ops.modgraph.slices.default: lambda x, counts, parts: op.SplitToSequence(x, counts, axis=0),
    aten.einsum.default: _einsum,
    aten.rsub.Scalar: lambda x, other, alpha=1.0: op.Sub(op.CastLike(op.Constant(value_float=other), x), x),
    aten.one_hot.default: lambda x, classes: op.OneHot(
        x, op.Constant(value_int=classes), op.Constant(value_ints=[0, 1])
    ),
    aten.rms_norm.default: _rms_norm,
    aten.batch_norm.default: lambda x, weight, bias, mean, variance, training, momentum, eps, fast: (
        op.BatchNormalization(x, weight, bias, mean, variance, epsilon=eps)
    ),
    aten.conv2d.padding: _pad_convolution,
    torch.ops.modgraph.lstm.default: lambda x, weights, states: _states(op.LSTM, (0, 3, 1, 2), x, weights, states),
    torch.ops.modgraph.gru.default: lambda x, weights, states: _states(
        op.GRU, (1, 0, 2), x, weights, states, linear_before_reset=1
    ),
}
