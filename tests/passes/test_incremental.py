"""The incremental form: tokens one after another give what the whole sequence gives, with equal choices."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from modgraph.backends.torch.stepwise import Stepwise
from modgraph.declare import Role
from modgraph.diagnostics import ModgraphError
from modgraph.ir import OpNode, verify
from modgraph.ir.stored.program import to_verified_json
from modgraph.ops.compared import Comparison
from modgraph.ops.dot_product import DotProductAttention
from modgraph.passes import BUNDLE, STEPWISE, apply_passes
from modgraph.passes.incremental import Incremental

ROOT = Path(__file__).parents[2]
ZOO = ("zoo/deepseek_v3", "zoo/mixtral", "zoo/olmoe", "zoo/switch", "modular_networks_lm")
SPECS = [f"specs/{name}" for name in ZOO]
NAMES = """adaptive_computation attention_sinks deepseek_moe deepseek_v3 gated_delta gated_linear_attention gpt_oss
hash_layer linear_biases mechanisms selective_state_space soft_caps switch_head tied_embedding universal_transformer"""
SPECS += [f"tests/papers/{name}" for name in NAMES.split()]
ROUNDS = (
    "scan 0..2 as i with h: float[time, 4] = x { k = h -> rename(time='key') w = (h, k) -> contract "
    "ok = (h -> positions(axis=time)) >= (k -> positions(axis=key)) "
    "h = i + k by ((w, ok) -> masked_softmax(axis=key)) over key yield h } as s y = s -> last(axis=-3)"
)
TEXTS = {
    "shift": "y = x + (x -> shift(2)) * 3",
    "convolution": 'y = x -> conv1d(4, kernel=3, padding="causal", dilation=2) -> gelu -> conv1d(3, padding="causal")',
    "sums": "y = x -> cumulative_sum(axis=time) -> linear(3) -> relu -> cumulative_sum(axis=time)",
    "gru": "y = x -> gru(5) -> gru(3)",
    "lstm": "y = x -> lstm(5) -> lstm(3, bias=false)",
    "lstm with a start": "input s: float[5] y = (x, s, 2 * s) -> lstm(5)",
    "gru with a start": "input s: float[5] y = (x, s) -> gru(5)",
    "scan with a start": "input s: float[4] scan x as v with h: float[4] = s { h = 0.5 * h + v yield h * v } as y",
    "positions": "y = (x -> position(length=40)) * (x -> positions(axis=time) -> new_axis(4)) ",
    "mask without positions": "k = x -> rename(time='key') w = (x, k) -> contract "
    "ok = (x -> positions(axis=time)) >= (k -> positions(axis=key)) "
    "y = k by ((w, ok) -> masked_softmax(axis=key)) over key",
    "numbers without axes": "weight a: float = uniform(2) weight b: float = uniform(2) y = x * (a * b + exp(a))",
    "one round": ROUNDS.replace("0..2", "0..1"),
    "rounds from zero": f"u = x {ROUNDS.replace('= x {', '{ h = h + u')}",
    "rounds": ROUNDS,
}
CUTS = 5, 1, 3, 1, 2


def text_of(body: str) -> str:
    return f"model m() {{ input x: float[time, 4] {body.replace(chr(39), chr(34))} output y }}"


def random_tokens(model: Model, examples: int, length: int) -> dict[str, Tensor]:
    """Random values of all inputs but lengths; the axis of any length has this one."""
    torch.manual_seed(0)
    types = {name: type_ for name, type_ in model.graph.input_types.items() if type_.dtype != "length"}
    shapes = {name: (examples, *(axis.size or length for axis in type_.shape)) for name, type_ in types.items()}
    return {
        name: torch.randint(type_.size, shapes[name]) if type_.size else torch.randn(shapes[name])
        for name, type_ in types.items()
    }


def choices_of(model: Model, routing: dict[str, Tensor]) -> dict[str, Tensor]:
    """The choices of routes whose tokens follow each other."""
    found = {each.label: each.record_as(Role.CHOICE) for each in model.graph.decisions() if each.part.scan is None}
    return {label: routing[f"{label}.{name}"] != 0 for label, name in found.items() if name is not None}


def agree(model: Model) -> None:
    """Chunks of tokens, also of prompts that differ in length, give what the whole sequence gives."""
    step = Stepwise(model)
    verify(step.model.graph)
    given = random_tokens(model, 3, sum(CUTS))
    tokens = given.pop(step.tokens)
    whole = model.compute({step.tokens: tokens, **given}, losses=False, routing=True)
    choices = choices_of(model, whole.routing)
    at, cache, found = 0, None, []
    for size in CUTS:
        found.append(step(tokens[:, at : at + size], cache, routing=True, others=given))
        at, cache = at + size, found[-1].cache
    for name, expected in whole.outputs.items():
        torch.testing.assert_close(torch.cat([each.outputs[name] for each in found], 1), expected, rtol=1e-4, atol=1e-5)
    parts = [choices_of(step.model, dict(each.routing)) for each in found]
    for label in parts[0]:  # what only training decides is gone
        together = torch.cat([each[label] for each in parts], 1)
        assert torch.equal(together, choices[label]), f"{label} chooses otherwise"
    agree_token_by_token(step, tokens[:1], {name: each[:1] for name, each in given.items()})
    lengths = 7, 1, 4
    first = step(tokens[:, :7], lengths=lengths, others=given)
    rest = torch.stack([tokens[row, length : length + 5] for row, length in enumerate(lengths)])
    second = step(rest[:, :4], first.cache, others=given)
    kept = (2, 0) if not given else (0, 1, 2)
    third = step(rest[list(kept), 4:], second.cache.take(kept), others=given)
    for name, expected in whole.outputs.items():
        for row, length in enumerate(lengths):
            got = torch.cat((first.outputs[name][row, :length], second.outputs[name][row]))
            torch.testing.assert_close(got, expected[row, : length + 4], rtol=1e-4, atol=1e-5)
        for at, row in enumerate(kept):
            place = lengths[row] + 4
            torch.testing.assert_close(third.outputs[name][at, 0], expected[row, place], rtol=1e-4, atol=1e-5)


def agree_token_by_token(step: Stepwise, tokens: Tensor, given: dict[str, Tensor]) -> None:
    """One token of one example, on arrays, gives what the plan for any number of them gives."""
    cache = step(tokens[:, :5], others=given).cache
    for at in range(5, tokens.shape[1]):
        token = tokens[:, at : at + 1]
        found = step(token, cache, routing=True, others=given)
        batch = {step.tokens: token, **given, **cache.values}
        for got, expected in zip(
            (found.outputs, found.cache.values, found.routing), step.plans[True].run(batch), strict=True
        ):
            assert got.keys() == expected.keys()
            for name in got:
                torch.testing.assert_close(got[name], expected[name], rtol=1e-4, atol=1e-5)
        cache = found.cache


@pytest.mark.some(6)
@pytest.mark.parametrize("path", SPECS)
def test_steps_of_a_causal_spec_give_what_the_whole_sequence_gives(path: str) -> None:
    with torch.no_grad():
        agree(modgraph.load(ROOT / f"{path}.mod").build(seed=0).eval())


@pytest.mark.parametrize("name", TEXTS)
def test_each_way_to_read_earlier_tokens_has_a_cache(name: str) -> None:
    with torch.no_grad():
        agree(modgraph.loads(text_of(TEXTS[name])).build(seed=0).eval())


def test_it_prints_reads_back_and_changes_nothing_twice() -> None:
    graph = apply_passes(modgraph.load(ROOT / "specs/zoo/mixtral.mod").ir, (*BUNDLE, Incremental()))
    to_verified_json(graph)
    assert Incremental()(graph) is graph
    caches = [name for name in graph.input_types if name.startswith("cache.")]
    assert [name for name in graph.outputs if name.startswith("cache.")] == caches
    assert len(caches) == 2 * 2 + 2, "keys and values of two layers, a number and positions"


def test_steps_share_the_weights_of_the_model_stored_ones_too() -> None:
    text = text_of("pool p[3] = linear(4) s = x -> linear(p) y = x -> p by ((s, s -> top_k(1)) -> masked_softmax)")
    for pools in ("modules", "stored"):
        model = modgraph.loads(text).build(seed=0, pools=pools).eval()
        step, tokens = Stepwise(model), torch.ones(1, 2, 4)
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(2)
            torch.testing.assert_close(step(tokens).outputs["y"], model(tokens))


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["specs/story", "specs/zoo/mixtral", "tests/papers/linear_biases"])
def test_the_last_token_needs_no_mask_of_keys(name: str) -> None:
    computed = Stepwise(modgraph.load(ROOT / f"{name}.mod").build(seed=0).eval()).model.computed
    attention = [node.op for node in computed.nodes_of(OpNode) if isinstance(node.op, DotProductAttention)]
    assert attention and all(op.last and "mask" not in op.terms for op in attention)
    assert not any(isinstance(node.op, Comparison) for node in computed.nodes_of(OpNode))


def test_places_that_are_compared_with_numbers_stay_a_mask() -> None:
    text = TEXTS["mask without positions"].replace("(k -> positions(axis=key))", "(k -> positions(axis=key)) * 1.0")
    text = text.replace("ok =", "late = (x -> positions(axis=time)) >= 3 ok =").replace(
        "(w, ok)", "(w, maximum(ok, late))"
    )
    with pytest.raises(ModgraphError, match="later"):  # from the fourth on, each reads all
        Stepwise(modgraph.loads(text_of(text)).build(seed=0).eval())
    early = text.replace("maximum(ok, late)", "ok * (1 - late)")
    with torch.no_grad():
        agree(modgraph.loads(text_of(early)).build(seed=0).eval())


SMALL = """model small() {
  input words: token[time, 9]
  x = words -> embedding(4)
  x = x + (x -> attention(2, rotary=100.0, causal=true, name="attention")) + (x -> conv1d(4, padding="causal"))
  scan x as v with h: float[4] { h = 0.5 * h + v yield h } as states
  logits = states -> linear(9)
  output logits
}"""


def test_a_small_model_gives_this_program(request: pytest.FixtureRequest) -> None:
    path = Path(__file__).parent / "golden/incremental.txt"
    found = f"{apply_passes(modgraph.loads(SMALL).ir, STEPWISE)}\n"
    if request.config.getoption("--refresh"):
        path.write_text(found)
    assert path.read_text() == found


WRONG = {
    "y = x -> mean": ("later tokens", "op mean"),
    "y = x + (x -> shift(-1))": ("later tokens", "op shift"),
    "k = x -> rename(time='key') w = (x, k) -> contract y = k by (w -> softmax(axis=key)) over key": (
        "later tokens",
        "op contract",
    ),
    f"pool p[2] = linear(4) {ROUNDS.replace('yield h', 'h = h -> p by (h -> linear(p) -> softmax) yield h')}": (
        'its rounds read several tokens, and its rounds have a pool ("p")',
        "scan",
    ),
    "z = x -> gru(4, reverse=true) y = z": ("later tokens", "op gru"),
    "y = x -> flip": ("later tokens", "op flip"),
}


@pytest.mark.parametrize("body", WRONG)
def test_what_is_impossible_names_the_op_and_why(body: str) -> None:
    program = modgraph.loads(text_of(body))
    with pytest.raises(ModgraphError) as caught:
        Incremental()(apply_passes(program.ir, BUNDLE))
    (found,) = caught.value.diagnostics
    reason, op = WRONG[body]
    assert found.code == "MG730" and reason in found.reason and found.what.startswith(op), str(caught.value)


def test_a_model_without_tokens_of_any_length_is_refused() -> None:
    for text in (
        "model m() { input x: float[5, 4] output x }",
        "model m() { input a: float[s, 4] input b: float[t, 4] output y = a -> mean }",
    ):
        with pytest.raises(ModgraphError) as caught:
            Incremental()(modgraph.loads(text).ir)
        assert caught.value.diagnostics[0].code == "MG731"
