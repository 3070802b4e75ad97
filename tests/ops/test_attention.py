"""Attention in all its settings: against numpy head by head, blind to padding, counted, kept, exported."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import modgraph
from modgraph import ModgraphError
from modgraph.backends.torch import Model, build
from modgraph.ir import from_json, to_json
from modgraph.passes import Lower
from tests.backends.onnx.test_export import agree
from tests.inspect.test_memory import measured_of, near, predict_memory

Array = NDArray[np.float64]
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "without biases": {"bias": False, "out_bias": False},
    "causal": {"causal": True},
    "grouped": {"kv_heads": 2},
    "grouped, queries alone have biases": {"kv_heads": 1, "out_bias": False, "causal": True},
    "wide heads": {"head_width": 5},
    "rotary": {"rotary": 100.0, "head_width": 6},
    "normed": {"qk_norm": True},
    "relative": {"relative": 8},
    "relative and causal": {"relative": 5, "causal": True, "kv_heads": 2},
    "Llama": {"kv_heads": 2, "rotary": 10000.0, "causal": True, "bias": False, "out_bias": False},
    "Qwen": {"kv_heads": 1, "head_width": 4, "rotary": 50.0, "qk_norm": True, "causal": True, "bias": False},
}
TAKES = {  # what it attends to
    "itself": "input x: float[time, 8] y = x -> attention({}) output y",
    "a memory": "input x: float[time, 8] input m: float[place, 8] y = (x, m) -> attention({}) output y",
    "a memory among which some are seen": "input x: float[time, 8] input m: float[place, 8] input s: float[place] "
    "y = (x, m, s > 0) -> attention({}) output y",
    "a memory of which each sees some": "input x: float[time, 8] input m: float[place, 8] input s: float[time, place] "
    "y = (x, m, s > 0) -> attention({}) output y",
}
LENGTHS = {"time": [4, 1, 6], "place": [7, 3, 0]}


def called(given: dict[str, Any]) -> str:
    return ", ".join(["4", *(f"{name}={str(value).lower()}" for name, value in given.items())])


def model_of(body: str) -> Model:
    """In inference, with every weight drawn."""
    model = modgraph.loads(f"model m() {{ {body} }}").build().double().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0.3, 0.5, generator=generator)
    return model


def batch_of(model: Model, padding: float) -> dict[str, torch.Tensor]:
    generator, found = np.random.default_rng(2), dict[str, torch.Tensor]()
    for name, type_ in model.graph.input_types.items():
        if type_.dtype == "length":
            found[name] = torch.tensor(LENGTHS[type_.of])
            continue
        axes = [axis.name or axis.size for axis in type_.shape]
        value = generator.normal(size=(3, *(max(LENGTHS[axis]) if axis in LENGTHS else axis for axis in axes)))
        for at, axis in enumerate(axes, 1):
            for example in range(3) if axis in LENGTHS else ():
                np.moveaxis(value[example], at - 1, 0)[LENGTHS[axis][example] :] = padding
        found[name] = torch.from_numpy(value)
    return found


def attention(w: dict[str, Array], x: Array, m: Array, seen: Array, given: dict[str, Any]) -> Array:
    """One example, head by head: x [N, D] attends to m [M, D] where seen [N, M]."""
    heads, kv_heads = 4, given.get("kv_heads") or 4
    W = given.get("head_width") or x.shape[1] // heads
    if "qkv.weight" in w:
        parts = {
            kind: w[f"qkv.{kind}"].reshape(3, heads * W, *w[f"qkv.{kind}"].shape[1:]) for kind in ("weight", "bias")
        }
        w = w | {f"{name}.{kind}": each[at] for kind, each in parts.items() for at, name in enumerate("qkv")}
    q, k, v = (z @ w[f"{name}.weight"].T + w[f"{name}.bias"] for name, z in zip("qkv", (x, m, m), strict=True))
    results = []
    for head in range(heads):
        shared = head * kv_heads // heads
        qh, kh, vh = q[:, head * W :][:, :W], k[:, shared * W :][:, :W], v[:, shared * W :][:, :W]
        if given.get("qk_norm"):
            qh, kh = (z / np.sqrt((z**2).mean(-1, keepdims=True) + 1e-6) for z in (qh, kh))
            qh, kh = qh * w["q_norm.weight"], kh * w["k_norm.weight"]
        if given.get("rotary"):
            qh, kh = rotated(qh, given["rotary"]), rotated(kh, given["rotary"])
        scores = qh @ kh.T / np.sqrt(W)
        for i in range(len(x)):
            for j in range(len(m)):
                if given.get("relative"):
                    scores[i, j] += w["relative.weight"][
                        bucket(j - i, given["relative"], not given.get("causal")), head
                    ]
                if not seen[i, j] or (given.get("causal") and j > i):
                    scores[i, j] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e9))
        results.append(weights @ vh / np.maximum(weights.sum(-1, keepdims=True), 1e-300))
    return np.concatenate(results, -1) @ w["out.weight"].T + w["out.bias"]


def rotated(z: Array, base: float) -> Array:
    """Pairs as complex numbers, times e^(i · place · speed)."""
    half = z.shape[1] // 2
    angles = np.outer(np.arange(len(z)), 1 / base ** (np.arange(half) / half))
    turned = (z[:, :half] + 1j * z[:, half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], -1)


def bucket(offset: int, buckets: int, both_ways: bool, farthest: int = 128) -> int:
    """T5's: the offset is the place that is seen less that which sees."""
    first = 0
    if both_ways:
        buckets //= 2
        first = buckets if offset > 0 else 0
    distance = abs(offset) if both_ways else max(-offset, 0)
    if distance < buckets // 2:
        return first + distance
    share = np.log(distance / (buckets // 2)) / np.log(farthest / (buckets // 2))
    return first + min(buckets // 2 + int(share * (buckets - buckets // 2)), buckets - 1)


@pytest.mark.some(16)
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("takes", TAKES)
def test_each_head_is_a_mean_of_the_values_that_are_seen_whatever_stands_in_padding(settings: str, takes: str) -> None:
    given = SETTINGS[settings]
    model = model_of(TAKES[takes].format(called(given)))
    zeros = dict.fromkeys(("out.bias", "qkv.bias", "q.bias", "k.bias", "v.bias"), np.zeros(()))
    weights = {name.removeprefix("y.attention."): each.numpy() for name, each in model.state_dict().items()}
    weights = zeros | weights
    if "qkv.weight" in weights and not weights["qkv.bias"].shape:
        weights["qkv.bias"] = np.zeros(len(weights["qkv.weight"]))
    for padding in (0.0, float("nan")):
        batch = batch_of(model, padding)
        found = model(**batch)
        for at in range(3):
            x = batch["x"][at, : LENGTHS["time"][at]].numpy()
            m = batch["m"][at, : LENGTHS["place"][at]].numpy() if "m" in batch else x
            seen = np.ones((len(x), len(m)))
            if "s" in batch:
                allowed = batch["s"][at].numpy()[..., : len(m)]
                seen = np.broadcast_to((allowed[: len(x)] if allowed.ndim == 2 else allowed) > 0, seen.shape)
            expected = attention(weights, x, m, seen, given)
            np.testing.assert_allclose(found[at, : len(x)].detach().numpy(), expected, atol=1e-10)  # type: ignore[index]


def test_padding_moves_no_gradient_not_even_of_an_example_that_sees_nothing() -> None:
    grads = []
    for padding in (0.0, float("inf"), float("nan")):
        text = TAKES["a memory of which each sees some"].format(called(SETTINGS["relative"]))
        model = model_of(text.replace("output y", "output z = y ** 2 -> sum(axis=time)")).train()
        model(**batch_of(model, padding)).sum().backward()  # type: ignore[union-attr]
        grads.append([weight.grad for weight in model.parameters()])
    torch.testing.assert_close(grads[1:], grads[:1] * 2, atol=1e-12, rtol=1e-12)
    assert all(torch.isfinite(each).all() for each in grads[0] if each is not None)


@pytest.mark.some(6)
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("takes", TAKES)
def test_what_is_kept_for_the_way_back_is_what_torch_keeps(settings: str, takes: str) -> None:
    text = TAKES[takes].format(called(SETTINGS[settings]))
    if settings != "plain":
        text = text.replace("time", "5").replace("place", "7")
    graph = Lower()(modgraph.loads(f"model m() {{ {text} }}").ir)
    allowed, measured = predict_memory(graph, 9), measured_of(build(graph), 9)
    assert near(allowed, measured), (allowed, measured)


def test_macs_are_those_of_the_maps_and_of_queries_with_keys_and_shares_with_values() -> None:
    text = """model m() { input x: float[5, 8] input m: float[7, 6]
      y = (x, m) -> attention(4, kv_heads=2, head_width=3) output y }"""
    maps = 5 * 8 * 12 + 2 * 7 * 6 * 6 + 5 * 12 * 8
    assert modgraph.loads(text).cost().macs == maps + 2 * 4 * 5 * 7 * 3
    assert modgraph.loads(text).cost().parameters == 12 * 8 + 12 + 2 * (6 * 6 + 6) + 8 * 12 + 8


@pytest.mark.slow
@pytest.mark.usefixtures("trace_once")
def test_two_outer_axes_agree_in_onnx_runtime(tmp_path: Path) -> None:
    inputs = "input x: float[time, 2, 5, 8] input k: float[time, 2, 7, 8] input s: float[time, 2, 5, 7] "
    settings = ("2", "4, kv_heads=2, rotary=100, causal=true", "2, relative=8")
    uses = [f"output y{at} = x -> attention({each})" for at, each in enumerate(settings)]
    uses += [f"output z = (x, k, s > 0) -> attention({settings[1]})"]
    model = modgraph.loads(f"model m() {{ {inputs} {' '.join(uses)} }}").build()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modgraph.export(model, tmp_path / "m.onnx")
    agree(model, tmp_path / "m.onnx", (1, 3))


def test_outer_axes_stand_apart() -> None:
    """Each sequence of a value with outer axes attends as it does alone."""
    inputs = "input x: float[3, 2, 5, 8] input m: float[3, 2, 7, 8] input s: float[3, 2, 5, 7]"
    use = "y = (x, m, s > 0) -> attention(2, relative=8) output y"
    deep = modgraph.loads(f"model m() {{ {inputs} {use} }}").build().double()
    flat = modgraph.loads(f"model m() {{ {inputs.replace('3, 2, ', '')} {use} }}").build().double()
    flat.load_state_dict(deep.state_dict())
    given = [torch.randn(4, 3, 2, *sizes, dtype=torch.float64) for sizes in ((5, 8), (7, 8), (5, 7))]
    expected = flat(*(each.flatten(0, 2) for each in given))
    torch.testing.assert_close(deep(*given), expected.unflatten(0, (4, 3, 2)), msg="outer axes are mixed")


@pytest.mark.usefixtures("trace_once")
def test_all_settings_agree_in_onnx_runtime_at_any_length(tmp_path: Path) -> None:
    kinds = {"x": "Qwen", "(x, m, k > 0)": "rotary", "(x, m, s > 0)": "relative and causal"}
    inputs = "input x: float[time, 8] input m: float[place, 8] input k: float[place] input s: float[time, place] "
    body = [
        f"output y{at} = {of} -> attention({called(SETTINGS[kind])})" for at, (of, kind) in enumerate(kinds.items())
    ]
    model = modgraph.loads(f"model m() {{ {inputs} {' '.join(body)} }}").build()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modgraph.export(model, tmp_path / "m.onnx")
    agree(model, tmp_path / "m.onnx", (1, 3))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("y = x -> attention(3)", "heads of attention must satisfy dim % heads == 0, not dim=8, heads=3"),
        ("y = x -> attention(0)", "write heads=1"),
        ('y = x -> attention("two")', 'heads of attention must be a whole number from 1 to 4096, not "two"'),
        ("y = x -> attention(2, causal=1)", "write it like its default: causal=false"),
        ("y = x -> attention(4, kv_heads=3)", "must satisfy heads % kv_heads == 0, not heads=4, kv_heads=3"),
        ("y = x -> attention(2, head_width=3, rotary=10000)", "must satisfy rotary == 0 or size % 2 == 0"),
        ("y = x -> attention(2, relative=5)", "must satisfy causal or relative % 2 == 0"),
        ("y = (x, x, x -> mean(axis=-1), m) -> attention(2)", 'block "attention" takes 1 to 3 inputs, not 4'),
        ("y = (x, m, x) -> attention(2)", 'its input "mask" must be float[tokens=5, key=7], not float[tokens=5, 8]'),
        ("y = x -> mean -> attention(2)", 'its input "x" must be float[tokens, dim], not float[8]'),
    ],
)
def test_what_does_not_go_together_is_reported(body: str, says: str) -> None:
    with pytest.raises(ModgraphError) as allowed:
        modgraph.loads(f"model m() {{ input x: float[5, 8] input m: float[7, 6] {body} output y }}")
    assert says in str(allowed.value) and str(allowed.value).endswith("1 error"), str(allowed.value)


def test_a_stored_graph_with_a_memory_reads_back() -> None:
    program = modgraph.loads(f"model m() {{ {TAKES['a memory among which some are seen'].format('2')} }}")
    assert from_json(to_json(program.ir)) == program.ir
