"""Stepwise bundles: tokens one after another in ONNX Runtime give what torch gives for the whole sequence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle, BundleError
from modgraph_runtime.command import describe
from modgraph_runtime.generation import Sampler

import modgraph
from modgraph.backends.onnx import verify
from modgraph.backends.onnx.steps import StepPorts
from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError
from tests.passes.test_incremental import SPECS, TEXTS, text_of
from tests.runtime.test_runtime import tampered
from tests.traces import shared_traces

ROOT = Path(__file__).parents[3]
WRITER = """
block near(window) {
  input x: float[time, width]
  keys = x -> rename(time="key")
  back = (x -> positions(axis=time)) - (keys -> positions(axis=key))
  gates = ((x -> linear(width), keys -> linear(width)) -> contract, (back >= 0) * (back < window))
      -> masked_softmax(axis=key)
  output keys by gates over key
}

model writer() {
  input words: token[time, 12]
  pool expert[4] = linear(8)
  x = words -> embedding(8) -> position(length=40)
  scores = x -> linear(expert)
  x = x + (x -> expert by ((scores, scores -> top_k(2)) -> masked_softmax))
  x = x + (x -> attention(2, causal=true)) + (x -> near(window=3)) -> gru(8) -> shift(1)
  logits = x -> linear(12)
  output logits
}
"""
PROMPTS = [[5], [1, 2, 3, 4, 5, 6, 7], [9, 8, 9]]


OTHER = "model m() { input x: token[time, 12] output y = x -> embedding(4) -> gru(12) }"
PLAIN = "model m() { input x: token[time, 4] output y = x -> embedding(4) }"


def build_writer() -> Model:
    """A model whose next words depend on the words before."""
    model = modgraph.loads(WRITER).build(seed=1).eval()
    with torch.no_grad():
        model.lookup("x.embedding.weight").mul_(5)
        model.lookup("logits.linear.weight").mul_(3)
    return model


@pytest.fixture(scope="module")
def model() -> Model:
    return build_writer()


@pytest.fixture(scope="module")
def folder(model: Model, tmp_path_factory: pytest.TempPathFactory, traces: Path) -> Path:
    """A folder with the stepwise bundle of a model, that of another, and a bundle that is not stepwise."""
    folder = tmp_path_factory.mktemp("steps")
    with shared_traces(traces):
        modgraph.export(model, folder / "m.onnx", stepwise=True, routing=True)
        modgraph.export(modgraph.loads(OTHER).build(seed=2), folder / "other.onnx", stepwise=True)
        modgraph.export(modgraph.loads(PLAIN).build(), folder / "plain.onnx")
    return folder


@pytest.fixture(scope="module")
def bundle(folder: Path) -> Bundle:
    return Bundle(folder / "m.onnx", threads=1)


def test_the_likeliest_tokens_are_those_of_torch(model: Model, bundle: Bundle) -> None:
    found = bundle.generate(PROMPTS, tokens=30)
    assert found == model.generate(PROMPTS, tokens=30)
    assert len({*found[1]}) > 2, "the model repeats one token"
    stop = found[0][3]
    assert bundle.generate(PROMPTS, tokens=30, stop=[stop]) == model.generate(PROMPTS, tokens=30, stop=[stop])


def test_a_sample_depends_on_seed_and_place_not_on_the_batch(bundle: Bundle) -> None:
    settings: dict[str, Any] = {"tokens": 10, "temperature": 1.5, "seed": 3}
    together = bundle.generate([*PROMPTS[:1], *PROMPTS], **settings)
    assert together[0] == bundle.generate(PROMPTS[:1], **settings)[0] != together[1]
    assert together != bundle.generate([*PROMPTS[:1], *PROMPTS], **{**settings, "seed": 4})


def test_samples_follow_the_probabilities_that_are_left() -> None:
    logits = np.array([[2.0, 1.0, 0.0, -1.0]])
    for settings in ({}, {"top_k": 2}, {"top_p": 0.7}, {"top_k": 3, "top_p": 0.9}):
        sampler = Sampler(temperature=2.0, **settings)  # type: ignore[arg-type]
        expected = np.exp(logits[0] / 2.0)
        expected[int(settings.get("top_k", 4)) :] = 0
        shares = expected / expected.sum()
        expected[np.cumsum(shares) - shares >= settings.get("top_p", 1.1)] = 0
        sampled = sampler.sample(np.repeat(logits, 4000, 0), range(4000), 0)
        found = np.bincount(sampled, minlength=4) / 4000
        np.testing.assert_allclose(found, expected / expected.sum(), atol=0.03, err_msg=str(settings))


def test_steps_give_what_the_whole_sequence_gives(model: Model, bundle: Bundle) -> None:
    words = np.random.default_rng(0).integers(0, 12, (3, 12))
    whole = bundle.run({"words": words}, routing=True)
    computed = model.compute({"words": torch.from_numpy(words)}, losses=False, routing=True)
    np.testing.assert_allclose(whole["logits"], computed.outputs["logits"].detach().numpy(), atol=1e-5)
    lengths = 7, 1, 4
    first = bundle.step(words[:, :7], lengths=lengths, routing=True)
    rest = np.stack([words[row, length : length + 5] for row, length in enumerate(lengths)])
    second = bundle.step(rest[:, :4], first.cache)
    kept = 2, 0
    third = bundle.step(rest[list(kept), 4:], second.cache.take(kept))
    assert third.cache.counts == (9, 12)
    record = bundle.stepwise.choices["expert"] if bundle.stepwise else ""
    for row, length in enumerate(lengths):
        got = np.concatenate((first.outputs["logits"][row, :length], second.outputs["logits"][row]))
        np.testing.assert_allclose(got, whole["logits"][row, : length + 4], atol=1e-5)
        np.testing.assert_array_equal(first.routing[record][row, :length] != 0, whole[record][row, :length] != 0)
    for at, row in enumerate(kept):
        np.testing.assert_allclose(third.outputs["logits"][at, 0], whole["logits"][row, lengths[row] + 4], atol=1e-5)


@pytest.mark.usefixtures("trace_once")
def test_an_int8_bundle_continues_too(model: Model, tmp_path: Path) -> None:
    report = modgraph.export(model, tmp_path / "m.onnx", stepwise=True, int8=True)
    assert report.change is not None and [*report.change.outputs] == ["logits"]
    assert len(Bundle(tmp_path / "m.onnx").generate(PROMPTS, tokens=5)[2]) == 5


WRONG = {
    "not stepwise": (lambda b, o, p: p.step([[1]]), "takes no token after another"),
    "not stepwise, generate": (lambda b, o, p: p.generate([[1]]), "export RUN -o model.onnx --stepwise"),
    "no prompt": (lambda b, o, p: b.generate([]), "there is no prompt"),
    "empty prompt": (lambda b, o, p: b.generate([[1], []], tokens=2), "cannot continue prompt 2: it has no words"),
    "unknown id": (lambda b, o, p: b.generate([[12]], tokens=2), "its id 12 is not one of 12 words"),
    "too long": (lambda b, o, p: b.generate([[1] * 20], tokens=22), "exceed the model's 40 positions"),
    "cache of another": (lambda b, o, p: b.step([[1]], o.step([[1]]).cache), "of another bundle"),
    "no cache": (lambda b, o, p: b.step([[1]], {"cache.count": 1}), "not dict; give step"),
    "two examples": (lambda b, o, p: b.step([[1]], b.step([[1], [2]]).cache), "has 2 examples, and the tokens have 1"),
    "changed cache": (lambda b, o, p: b.step([[1]], change(b.step([[1]]).cache)), "not those that a step left"),
    "beyond positions": (lambda b, o, p: b.step([[1]], b.step([[1] * 40]).cache), "41 tokens are more than the 40"),
    "no new token": (lambda b, o, p: b.step([[1], [2]], lengths=[1, 0]), "at least one new token"),
    "unlike shapes": (lambda b, o, p: b.step([1, 2]), "needs 2 axes, examples first"),
}


def change(cache: Any) -> Any:
    return type(cache)({name: each[..., :0] for name, each in cache.values.items()}, cache.counts, cache.weights)


@pytest.mark.parametrize("mistake", WRONG)
def test_what_does_not_fit_is_refused(folder: Path, bundle: Bundle, mistake: str) -> None:
    call, problem = WRONG[mistake]
    with pytest.raises(BundleError, match=problem):
        call(bundle, Bundle(folder / "other.onnx"), Bundle(folder / "plain.onnx"))


def test_a_bundle_describes_its_steps(bundle: Bundle) -> None:
    lines = describe(bundle).splitlines()
    assert "stepwise words, one after another along time: 9 caches" in lines, lines
    assert not [line for line in lines if "cache." in line]


LIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no facts": lambda manifest: manifest.update(stepwise=3),
    "other tokens": lambda manifest: manifest["stepwise"].update(tokens="image"),
    "no such axis": lambda manifest: manifest["stepwise"].update(axis="row"),
    "a cache missing": lambda manifest: manifest["stepwise"]["caches"].pop(),
    "a cache of another shape": lambda manifest: manifest["stepwise"]["caches"][-1].update(shape=[7]),
    "a window of no tokens": lambda manifest: manifest["stepwise"]["windows"].update(last2=0),
    "an axis of no known length": lambda manifest: manifest["stepwise"].pop("windows"),
    "no place": lambda manifest: manifest["stepwise"].update(place="last"),
    "no facts any more": lambda manifest: manifest.pop("stepwise"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_manifest_that_is_wrong_is_damage(folder: Path, tmp_path: Path, lie: str) -> None:
    path = tampered(folder / "m.onnx", tmp_path / "lie.onnx", LIES[lie])
    with pytest.raises(BundleError, match=r"the manifest of .* is damaged"):
        Bundle(path)


def test_settings_out_of_range_are_refused(bundle: Bundle) -> None:
    with pytest.raises(ValueError, match="top_k must be at least 1, not 0"):
        bundle.generate(PROMPTS, top_k=0)


def test_a_model_that_is_not_causal_is_not_exported(tmp_path: Path) -> None:
    model = modgraph.loads(text_of("y = x -> flip")).build()
    with pytest.raises(ModgraphError) as caught:
        modgraph.export(model, tmp_path / "m.onnx", stepwise=True)
    assert caught.value.diagnostics[0].code == "MG730" and not [*tmp_path.iterdir()]


def test_caches_that_are_mixed_up_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single steps agree where torch and ONNX Runtime are wrong alike; whole sequences do not."""
    model = modgraph.loads(text_of("y = x -> cumulative_sum(axis=time)")).build()
    begin = StepPorts.begin
    monkeypatch.setattr(StepPorts, "begin", lambda self, count: {k: v + 1 for k, v in begin(self, count).items()})
    with pytest.raises(ModgraphError) as caught:
        modgraph.export(model, tmp_path / "m.onnx", stepwise=True)
    assert {each.code for each in caught.value.diagnostics} == {"MG719"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SPECS, *TEXTS])
def test_every_causal_model_is_exported_stepwise(name: str, tmp_path: Path) -> None:
    program = modgraph.loads(text_of(TEXTS[name])) if name in TEXTS else modgraph.load(ROOT / f"{name}.mod")
    report = modgraph.export(program.build(seed=0).eval(), tmp_path / "m.onnx", stepwise=True, routing=True)
    assert report.verified.worst <= verify.TOLERANCE
