"""`require causal(y, x)`: the ways in which a language model reads the words that it should predict, named with their
path, and models that read none of them."""

from __future__ import annotations

import pytest

import modgraph
from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source
from modgraph.elaboration import elaborate
from modgraph.syntax import parse

MODEL = """model m() {{
  input words: token[time, 20]
  x = words -> embedding(8)
  {body}
  logits = y -> linear(20)
  output logits
  require causal(logits, words)
}}"""
POOL = "pool p[3] = linear(8) s = x -> linear(p) -> softmax "
LEAKS = {
    "attention": ("y = x + (x -> attention(2))", "attention", ""),
    "a mean over time": ("m = x -> mean y = x + m", "mean", ""),
    "a shift": ("y = x -> shift(-1)", "shift", ""),
    "a reversed lstm": ("y = x -> lstm(8, reverse=true)", "lstm", ""),
    "a softmax over time": ("y = x -> softmax(axis=-2)", "softmax", ""),
    "statistics of the batch": (
        "m = x -> batch_mean y = (x - m, x) -> training_or_inference",
        "batch_mean",
        "training",
    ),
    "capacity by tokens": (
        POOL + "c = (s, s -> top_k) -> within_capacity(1.0) y = x -> p by (s * c)",
        "within_capacity",
        "training",
    ),
    "expert choice": (POOL + "y = x -> p by (s * (s -> top_k(2, axis=-2)))", "top_k", ""),
    "a router that groups tokens": (
        "pool p[3] = linear(8) router r = agreement v = x -> p by r y = x + (v -> mean)",
        'route to "p"',
        "",
    ),
    "a mean within a scan": (
        "scan x as v with h: float[8] { g = x -> mean h = h + v + g yield h } as y",
        "mean",
        "",
    ),
    "a wide convolution": ('y = x -> shift(2) -> conv1d(8, kernel=7, padding="same")', "conv1d", ""),
    "inference alone": ("y = (x, x + (x -> mean)) -> training_or_inference", "mean", "inference"),
    "every later word": (
        't = x -> rename(time="later") a = (x, t) -> contract -> softmax(axis="later") '
        'y = (a, t) -> contract(axis="later")',
        'contract over "later"',
        "",
    ),
}
WINDOW = (
    't = x -> rename(time="key") s = (x, t) -> contract at = (x -> positions(axis="time"), s) -> expand("key", at=-1) '
    'd = at - (t -> positions(axis="key")) near = maximum(d < 4, (t -> positions(axis="key")) < 2) * (d >= 0) '
    'y = ((s, near) -> masked_softmax, t) -> contract(axis="key")'
)
CAUSAL = {
    "layers": 'y = x -> attention(2, causal=true) -> lstm(8) -> conv1d(8, padding="causal") -> shift(1)',
    "sums": 'y = x -> cumulative_sum(axis="time")',
    "token choice": POOL + "c = s -> top_k c = (c, c) -> within_capacity(1.0) y = x -> p by (s * c)",
    "a delayed window": 'y = x -> shift(3) -> conv1d(8, kernel=7, padding="same")',
    "a scan": "scan x as v with h: float[8] { h = (h + v) -> linear(8) -> tanh yield h } as y",
    "the first word": 'f = x -> select(0) y = x + ((f, x) -> expand("time"))',
    "windows with sinks": WINDOW,
}


def diagnose(body: str) -> list[Diagnostic]:
    text, report = MODEL.format(body=body), Report()
    file = parse(Source("<string>", text), report)
    assert file is not None, report.diagnostics
    elaborate(file, {}, report)
    return report.errors


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_named_with_its_path(leak: str) -> None:
    body, culprit, when = LEAKS[leak]
    found = [each for each in diagnose(body) if each.code == "MG307"]
    assert len(found) == 1, f"{leak} is not reported: {diagnose(body)}"
    text, when = found[0].text(), f" in {when}" if when else ""
    culprit += "" if " over " in culprit else ' over "time"'
    assert text.startswith(f'"logits" reads later tokens of "words"{when}: {culprit}'), text
    assert "line 4" in text and text.endswith("linear, line 5"), f"the path lacks its lines: {text}"
    assert found[0].advice(), "there is no way out"


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_model_is_proved(name: str) -> None:
    found = diagnose(CAUSAL[name])
    assert not found, f"{name}: {found}"


def test_gates_of_earlier_keys_are_causal() -> None:
    text = 'model m() { input x: float[time, 8] key = x -> rename(time="key") s = (x, key) -> contract '
    text += "near = (x -> positions(axis=time)) {} (key -> positions(axis=key)) gates = (s, near) -> masked_softmax "
    text += "output gates require causal(gates, x) }"
    modgraph.loads(text.replace("{}", ">="))
    with pytest.raises(ModgraphError, match="masked_softmax over"):
        modgraph.loads(text.replace("{}", "<="))


def test_the_path_crosses_blocks_and_begins_near_the_value() -> None:
    text = """block layer() {
  input x: float[n, d]
  y = x + (x -> attention(2))
  output y
  require causal(y, x)
}
model m() {
  input x: float[5, 8]
  repeat rounds[i] in 0..3 { x = x -> layer }
  output x
  require causal(x, x)
}"""
    with pytest.raises(ModgraphError) as raised:
        modgraph.loads(text)
    (found,) = raised.value.diagnostics
    assert found.text() == '"y" reads later tokens of "x": attention over the tokens, line 3', "a block checks itself"
    assert found.notes[-1].text == 'block "layer" is used here', "the use is not noted"


def test_the_path_begins_in_the_modules_of_a_pool() -> None:
    text = """block expert() {
  input x: float[n, d]
  y = x -> attention(2)
  output y
}
model m() {
  input x: float[5, 8]
  pool p[2] = expert
  y = x -> p by (x -> select(0) -> linear(p) -> softmax)
  output y
  require causal(y, x)
}"""
    with pytest.raises(ModgraphError, match='attention over the tokens, line 3 -> route to "p", line 9'):
        modgraph.loads(text)
    modgraph.loads(text.replace("attention(2)", "attention(2, causal=true)"))


@pytest.mark.parametrize(
    ("demand", "text"),
    [
        ("causal(y)", "a value and the tokens that it reads"),
        ("causal(y, n)", "has no axis of tokens"),
        ('causal(y, x, axis="places")', "unknown axis"),
        ("causal(y, 3)", "an argument of causal"),
        ("causal(y, x, axis=1)", "1 is no axis"),
        ("causal(y, x, axis=true)", "true is no axis"),
        ("causal(y, x, axis=-3)", "unknown axis -3"),
        ("casual(y, x)", 'did you mean "causal"'),
        ("not causal(y, x)", "a requirement of its own"),
        ("causal(y -> relu, x)", "bind it to a name first"),
        ("causal(y, x, last=1)", "found 3 arguments"),
    ],
)
def test_a_wrong_demand_is_explained(demand: str, text: str) -> None:
    with pytest.raises(ModgraphError, match=text):
        modgraph.loads(f"model m() {{ input x: float[time, 4] input n: float[4] y = x + n output y require {demand} }}")


def test_a_demand_names_its_axis() -> None:
    text = "model m() { input x: float[3, time, 4] y = x -> {} output y require causal(y, x, axis=-3) }"
    modgraph.loads(text.replace("{}", "attention(2)"))
    with pytest.raises(ModgraphError, match="mean over"):
        modgraph.loads(text.replace("{}", "mean(axis=-3) -> new_axis(3)"))


def test_a_demand_of_independent_values_is_doubted() -> None:
    program = modgraph.loads("model m() { input x: float[time, 4] y = x -> relu output y require causal(x, y) }")
    assert [each.code for each in program.warnings] == ["MG418"], "the two values are swapped"


def test_a_step_of_a_scan_can_be_demanded_of_its_own_values() -> None:
    text = "model m() { input x: float[time, 3, 8] scan x as v with h: float[3, 8] { "
    text += "h = h + {} yield h require causal(h, {}) } as y output y require causal(y, x, axis=time) }"
    modgraph.loads(text.replace("{}", "v"))
    with pytest.raises(ModgraphError, match="mean over the tokens"):
        modgraph.loads(text.replace("{}", "(v -> mean)", 1).replace("{}", "v"))
    with pytest.raises(ModgraphError, match="values of a step of the scan"):
        modgraph.loads(text.replace("{}", "v", 1).replace("{}", "x"))
