"""LSTM and GRU: against numpy step by step, against torch's own layers, blind to padding, in pools, exported."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from modgraph_runtime import Bundle
from numpy.typing import NDArray
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import modgraph
from modgraph import ModgraphError
from modgraph.backends.torch import Model, build
from modgraph.ir import Result, grow
from modgraph.nn.recurrent import GRU, LSTM, gru_op, lstm_op
from modgraph.passes import Lower
from tests.inspect.test_memory import measured_of, near, predict_memory
from tests.ordinary_run import some_examples

Array = NDArray[np.float64]
KINDS = ("lstm", "gru")
WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
LENGTHS = [4, 1, 6, 0]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def in_numpy(kind: str, x: Array, weights: dict[str, Array]) -> Array:
    """All states of one sequence [N, D], by the equations of torch's documentation."""
    hidden = weights["weight_hh"].shape[1]
    h, c = np.zeros(hidden), np.zeros(hidden)
    found = []
    for step in x:
        ours = weights["weight_ih"] @ step + weights.get("bias_ih", 0)
        before = weights["weight_hh"] @ h + weights.get("bias_hh", 0)
        if kind == "lstm":
            i, f, g, o = np.split(ours + before, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            (r, z, n), (r_h, z_h, n_h) = np.split(ours, 3), np.split(before, 3)
            r, z = sigmoid(r + r_h), sigmoid(z + z_h)
            h = (1 - z) * np.tanh(n + r * n_h) + z * h
        found.append(h)
    return np.array(found).reshape(len(x), hidden)


def model_of(body: str) -> Model:
    return modgraph.loads(f"model m() {{ {body} }}").build().double()


def under(model: Model, name: str) -> dict[str, Array]:
    """The weights below a name."""
    return {
        key.removeprefix(f"{name}."): value.detach().numpy()
        for key, value in model.named_parameters()
        if key.startswith(f"{name}.")
    }


def padded(width: int, lengths: list[int] = LENGTHS, fill: float = float("nan")) -> torch.Tensor:
    """Sequences whose padding is no number."""
    x = torch.randn(len(lengths), max(lengths), width, dtype=torch.float64)
    for at, length in enumerate(lengths):
        x[at, length:] = fill
    return x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given_", ["", "bias=false", "reverse=true", "bias=false, reverse=true"])
def test_a_layer_computes_its_equations_up_to_the_last_unpadded_step(kind: str, given_: str) -> None:
    model = model_of(f"input x: float[time, 3] y = x -> {kind}(4, {given_}) output y").eval()
    x = padded(3, fill=float("inf"))
    y = model.compute({"x": x, "time_length": torch.tensor(LENGTHS)}).outputs["y"].detach().numpy()
    weights, direction = under(model, f"y.{kind}"), -1 if "reverse" in given_ else 1
    assert set(weights) == set(WEIGHTS[: 2 if "bias" in given_ else 4])
    for at, length in enumerate(LENGTHS):
        expected = in_numpy(kind, x[at, :length].numpy()[::direction], weights)[::direction]
        np.testing.assert_allclose(y[at, :length], expected, atol=1e-12)


@pytest.mark.parametrize(("kind", "layer"), [("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)])
def test_values_and_gradients_are_those_of_torch_in_both_directions(kind: str, layer: Any) -> None:
    """torch packs sequences of unequal lengths, so that it sees no padding at all."""
    model = model_of(
        f"input x: float[time, 3] target t: float[time, 8] y = (x -> {kind}(4), x -> {kind}(4, reverse=true)) "
        "-> concat output y loss mse(y, t)"
    )
    lengths = [4, 1, 6]
    theirs = layer(3, 4, batch_first=True, bidirectional=True).double()
    ours = dict(model.named_parameters())
    names = {
        f"y.{kind}{two}.{each}": f"{each}_l0{end}" for each in WEIGHTS for two, end in (("", ""), ("2", "_reverse"))
    }
    theirs.load_state_dict({names[name]: weight for name, weight in ours.items()})
    x = padded(3, lengths)
    target = torch.randn(3, 6, 8, dtype=torch.float64)
    computed = model.compute({"x": x, "t": target, "time_length": torch.tensor(lengths)})
    packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(theirs(packed)[0], batch_first=True)
    losses = [(expected[at, :length] - target[at, :length]).square().mean() for at, length in enumerate(lengths)]
    torch.stack(losses).mean().backward()
    computed.loss.backward()
    for at, length in enumerate(lengths):
        torch.testing.assert_close(computed.outputs["y"][at, :length], expected[at, :length])
    for name, weight in theirs.named_parameters():
        torch.testing.assert_close(next(ours[key].grad for key in ours if names[key] == name), weight.grad)


@pytest.mark.parametrize(("kind", "layer"), [("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)])
@pytest.mark.parametrize("reverse", [False, True])
def test_values_and_gradients_from_initial_states_are_those_of_torch(kind: str, layer: Any, reverse: bool) -> None:
    """The state comes from an input, the cell of an LSTM is learned and shared by all examples."""
    lstm = kind == "lstm"
    text = f"{'(x, s, c)' if lstm else '(x, s)'} -> {kind}(4, reverse={str(reverse).lower()})"
    learned = "weight c: float[4] = normal(1.0) " if lstm else ""
    model = model_of(f"input x: float[time, 3] input s: float[4] {learned}y = {text} output y")
    theirs = layer(3, 4, batch_first=True).double()
    ours = dict(model.named_parameters())
    theirs.load_state_dict({f"{each}_l0": ours[f"y.{kind}.{each}"].detach().clone() for each in WEIGHTS})
    x, s, lengths = padded(3, [4, 1, 6], fill=9.0), torch.randn(3, 4, dtype=torch.float64), torch.tensor([4, 1, 6])
    found = model.compute({"x": x, "s": s, "time_length": lengths}).outputs["y"]
    cell = ours["c"].detach().clone().requires_grad_() if lstm else None
    losses = []
    for at, length in enumerate(lengths.tolist()):
        own, start = x[at : at + 1, :length], s[None, at : at + 1]
        own = own.flip(1) if reverse else own
        expected = theirs(own, start if cell is None else (start, cell.reshape(1, 1, 4)))[0]
        expected = expected.flip(1) if reverse else expected
        torch.testing.assert_close(found[at, :length], expected[0])
        losses.append((found[at, :length].square().sum(), expected.square().sum()))
    for loss in map(sum, zip(*losses, strict=True)):
        loss.backward()
    for name, weight in theirs.named_parameters():
        torch.testing.assert_close(ours[f"y.{kind}.{name.removesuffix('_l0')}"].grad, weight.grad)
    if cell is not None:
        torch.testing.assert_close(ours["c"].grad, cell.grad)


def test_an_initial_state_has_the_width_of_the_layer() -> None:
    with pytest.raises(ModgraphError, match=r"width of 5, and the layer one of 4(.|\n)*gru\(hidden=5\)"):
        modgraph.loads("model m() { input x: float[time, 3] input s: float[5] y = (x, s) -> gru(4) output y }")
    with pytest.raises(ModgraphError, match=r"it takes 1 to 3 operands \(x, h0, c0\), not 4"):
        modgraph.loads("model m() { input x: float[time, 3] input s: float[4] y = (x, s, s, s) -> lstm(4) output y }")


@pytest.mark.parametrize(("layer", "traced"), [(LSTM, lstm_op), (GRU, gru_op)])
@pytest.mark.parametrize("bias", [True, False])
def test_what_a_trace_holds_for_a_layer_is_the_layer_bit_for_bit(layer: Any, traced: Any, bias: bool) -> None:
    found = layer(3, 4, bias)
    for weight in found.parameters():
        torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(0)).requires_grad_(False)
    for dtype in (torch.float32, torch.float64):
        found, x = found.to(dtype), torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(1)).to(dtype)
        states = [torch.ones(2, 4, dtype=dtype)] if bias else []
        assert torch.equal(traced(x, found.weights, states), found(x, *states))
        torch.library.opcheck(traced, (x, found.weights, states), test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_fixed_number_of_steps_has_no_padding(kind: str) -> None:
    text = "input x: float[{}, 3] y = x -> KIND(4, reverse=true) output y".replace("KIND", kind)
    fixed, free = model_of(text.format(6)).eval(), model_of(text.format("time")).eval()
    free.load_state_dict(fixed.state_dict())
    x = torch.randn(2, 6, 3, dtype=torch.float64)
    torch.testing.assert_close(fixed(x), free(x))


def test_no_steps_give_no_states() -> None:
    assert model_of("input x: float[time, 3] y = x -> lstm(4) output y")(torch.ones(2, 0, 3).double()).shape == (
        2,
        0,
        4,
    )


def test_axes_further_out_are_sequences_apart() -> None:
    model = model_of("input x: float[2, time, 3] y = x -> lstm(4, reverse=true) output y").eval()
    x, lengths = torch.randn(3, 2, 5, 3, dtype=torch.float64), torch.tensor([5, 2, 4])
    together = model.compute({"x": x, "time_length": lengths}).outputs["y"]
    for row in range(2):
        single = model.compute({"x": x[:, [row, row]], "time_length": lengths}).outputs["y"]
        torch.testing.assert_close(single[:, 0], together[:, row])


@pytest.mark.parametrize("kind", KINDS)
def test_weights_start_as_those_of_torch(kind: str) -> None:
    model = modgraph.loads(f"model m() {{ input x: float[time, 30] y = x -> {kind}(25) output y }}").build()
    for weight in model.parameters():
        assert 0.17 < weight.abs().max() <= 0.2


def test_the_layer_of_the_paper_has_its_parameters() -> None:
    cost = modgraph.loads("model m() { input x: float[28, 10] pool c[4] = lstm(5) y = x -> c output y }").cost()
    assert cost.nodes["c"].parameters == 1360
    assert cost.macs == 4 * 28 * 20 * (10 + 5)


# ---------------------------------------------------------------- memory


def test_a_pool_keeps_what_it_says_of_each_module() -> None:
    graph = modgraph.loads("model m() { input x: float[28, 10] pool c[4] = lstm(5) y = x -> c output y }").ir
    graph = Lower()(graph)
    counts, measured = predict_memory(graph, 32), measured_of(build(graph), 32)
    assert near(counts, measured), (counts, measured)


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given_", ["5", "64, bias=false", "16, reverse=true"])
@pytest.mark.parametrize("batch", [1, 40])
def test_a_layer_keeps_what_it_says(kind: str, given_: str, batch: int) -> None:
    graph = modgraph.loads(f"model m() {{ input x: float[time, 10] y = x -> {kind}({given_}) output y }}").ir
    counts, measured = predict_memory(graph, batch), measured_of(build(graph), batch)
    assert near(counts, measured), (counts, measured)


# ---------------------------------------------------------------- pools


POOL = """
  input x: float[time, 6]
  target t: float[time, 2, 5]
  pool cell[2] = KIND(5)
  u = x -> cell -> transpose("time", "cell")
  output u
  loss mse(u, t)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_the_modules_of_a_pool_are_layers_of_their_own(kind: str) -> None:
    model = model_of(POOL.replace("KIND", kind)).train()
    x, lengths = padded(6), torch.tensor(LENGTHS)
    computed = model.compute({"x": x, "t": torch.randn(4, 6, 2, 5, dtype=torch.float64), "time_length": lengths})
    for j in range(2):
        weights = under(model, f"cell.{j}.{kind}")
        for at, length in enumerate(LENGTHS):
            expected = in_numpy(kind, x[at, :length].numpy(), weights)
            np.testing.assert_allclose(computed.outputs["u"][at, :length, j].detach().numpy(), expected, atol=1e-12)
    computed.loss.backward()
    assert all(weight.grad.isfinite().all() and weight.grad.any() for weight in model.parameters())  # type: ignore[union-attr]


def test_what_reads_in_reverse_must_know_the_padding_and_no_pool_does() -> None:
    text = "model m() {{ input x: float[{}, 6] pool cell[2] = lstm(5, reverse=true) y = x -> cell output y }}"
    modgraph.loads(text.format(7))
    with pytest.raises(ModgraphError, match='padding of "time"'):
        modgraph.loads(text.format("time"))


@pytest.mark.parametrize(
    "module",
    ["lstm(5)", "layer_norm -> relu -> lstm(5)", "of(lstm(5))", "of(layer_norm -> lstm(5))", "normed(5)", "fixed(5)"],
)
def test_a_message_has_the_axes_that_the_first_op_needs(module: str) -> None:
    blocks = """
      block of(inner) { input x: float[time, width] output y = x -> inner }
      block normed(h, norm=layer_norm) { input x: float[time, width] output y = x -> norm -> lstm(h) -> linear(h) }
      block fixed(h) { input x: float[7, width] output y = x -> relu -> lstm(h) }
    """
    length = 7 if "fixed" in module else "time"
    body = f"input x: float[{length}, 6] pool cell[2] = {module} y = x -> cell output y"
    type_ = modgraph.loads(f"{blocks} model m() {{ {body} }}").ir.type_of(Result("y.cell"))
    assert type_.dimensions == (2, length, 5)


@pytest.mark.parametrize("module", ["linear(5)", "of(linear(5))", "of(layer_norm -> linear(5))"])
def test_other_axes_are_those_of_tokens(module: str) -> None:
    block = "block of(inner) { input x: float[tokens, width] output y = x -> inner }"
    program = modgraph.loads(
        f"{block} model m() {{ input x: float[time, 6] pool p[2] = {module} y = x -> p output y }}"
    )
    assert program.ir.type_of(Result("y.p")).dimensions == ("time", 2, 5)


def test_a_pool_of_layers_may_get_another() -> None:
    text = 'input x: float[time, 6] pool cell[2] = lstm(5) y = x -> cell -> transpose("time", "cell") output y'
    grown = grow(modgraph.loads(f"model m() {{ {text} }}").ir, "cell", 1)
    assert grown.type_of(Result("y.transpose")).dimensions == ("time", 3, 5)
    assert build(grown)(torch.ones(2, 4, 6)).shape == (2, 4, 3, 5)


# ---------------------------------------------------------------- alone and together, in torch and in ONNX Runtime


EVERY = """
  input x: float[time, 3]
  input s: float[3]
  pool cell[3] = lstm(4)
  pool unit[2] = gru(3) -> layer_norm
  a = x -> cell
  b = x -> unit -> transpose("time", "unit")
  c = (x -> gru(3), x -> gru(3, reverse=true), x -> lstm(3, bias=false, reverse=true)) -> concat
  d = ((x, s) -> gru(3, reverse=true), (x, s, 2 * s) -> lstm(3, bias=false)) -> concat
  output a
  output b
  output c
  output d
"""
TIME_AT = {"a": 2, "b": 1, "c": 1, "d": 1}
ROUNDED = {
    "a": 1e-6,
    "b": 1e-6 / 1e-5**0.5,
    "c": 1e-6,
    "d": 1e-6,
}  # layer_norm divides what float32 rounds by √ε at least


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Bundle]:
    model = modgraph.loads(f"model m() {{ {EVERY} }}").build().eval()
    path = tmp_path_factory.mktemp("recurrent") / "m.onnx"
    modgraph.export(model, path)
    return model.double(), Bundle(path)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(0, 10**6))
@some_examples(15)
def test_each_sequence_gives_what_it_gives_by_itself(
    every: tuple[Model, Bundle], lengths: list[int], seed: int
) -> None:
    model, bundle = every
    torch.manual_seed(seed)
    x, counts = padded(3, lengths, fill=1e30).float(), torch.tensor(lengths)
    state = torch.randn(len(lengths), 3)
    together = model.compute({"x": x.double(), "s": state.double(), "time_length": counts}).outputs
    exported = bundle.run({"x": x.numpy(), "s": state.numpy(), "time_length": counts.numpy()})
    for at, length in enumerate(lengths):
        own_state = state[at : at + 1].double()
        single = model.compute({"x": x[at : at + 1, :length].double(), "s": own_state}).outputs
        for name, value in single.items():
            for found, close in ((together[name], 1e-12), (torch.as_tensor(exported[name]).double(), ROUNDED[name])):
                own = found[at].narrow(TIME_AT[name] - 1, 0, length)
                torch.testing.assert_close(own, value[0], atol=close, rtol=0)


def test_a_layer_is_one_node_of_a_bundle(every: tuple[Model, Bundle]) -> None:
    kinds = [node.op_type for node in onnx.load(every[1].path).graph.node]
    assert (kinds.count("LSTM"), kinds.count("GRU")) == (5, 5)
    assert kinds.count("Transpose") < 30
