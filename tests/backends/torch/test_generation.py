"""Generation: what a model writes on is what it would write if it read everything anew for each token."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import modgraph
from modgraph.backends.torch import Model
from modgraph.backends.torch.generation import Generator
from modgraph.backends.torch.sampling import Sampler
from modgraph.backends.torch.stepwise import Stepwise
from modgraph.diagnostics import ModgraphError

ROOT = Path(__file__).parents[3]
PROMPTS = [[5], [1, 2, 3, 4, 5, 6, 7], [9, 8, 9]]


@pytest.fixture(scope="module")
def model() -> Model:
    torch.manual_seed(0)
    model = modgraph.load(ROOT / "specs/zoo/mixtral.mod", vocab_size=30).build(seed=1).eval()
    with torch.no_grad():
        model.lookup("embed_tokens.weight").mul_(100)  # what follows depends on the words
    return model


def write_on(model: Model, prompt: list[int], count: int) -> list[int]:
    """The most likely tokens, by reading everything anew."""
    ids = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    return ids[len(prompt) :]


def test_the_likeliest_tokens_are_those_of_reading_everything_anew(model: Model) -> None:
    found = model.generate(PROMPTS, tokens=20)
    assert found == [write_on(model, prompt, 20) for prompt in PROMPTS]
    assert len({*found[1]}) > 2, "the model repeats one token"


def test_it_follows_weights_that_change_between_two_calls() -> None:
    model = modgraph.load(ROOT / "specs/zoo/mixtral.mod", vocab_size=30).build(seed=2).eval()
    for seed in (3, 4):
        other = modgraph.load(ROOT / "specs/zoo/mixtral.mod", vocab_size=30).build(seed=seed)
        model.load_state_dict(other.state_dict(), assign=seed == 4)
        assert model.generate([[5, 6]], tokens=6) == [write_on(model, [5, 6], 6)]
    assert model.double().generate([[5, 6]], tokens=6) == [write_on(model, [5, 6], 6)]


def test_a_cache_stays_what_it_was_however_often_it_is_continued(model: Model) -> None:
    step = Stepwise(model)
    first = step(torch.tensor([[5, 6]])).cache
    kept = {name: each.clone() for name, each in first.values.items()}
    ways = [[7, 8, 9, 1], [9, 8, 7], [7, 8, 9, 1]]
    caches, found = [first] * len(ways), [list[torch.Tensor]() for _ in ways]
    for at in range(4):  # they take turns
        for way, tokens in enumerate(ways):
            if at < len(tokens):
                after = step(torch.tensor([[tokens[at]]]), caches[way])
                caches[way] = after.cache
                found[way].append(after.outputs["logits"])
    assert all(torch.equal(each, kept[name]) for name, each in first.values.items())
    for tokens, each in zip(ways, found, strict=True):
        with torch.no_grad():
            expected = model(torch.tensor([[5, 6, *tokens]]))[:, 2:]
        torch.testing.assert_close(torch.cat(each, 1), expected, rtol=1e-4, atol=1e-5)


def test_a_step_for_one_token_says_which_input_is_missing() -> None:
    text = """model m() { input words: token[time, 9] input s: float[4] y = (words -> embedding(4)) * s
    z = y -> linear(9) output z }"""
    step = Stepwise(modgraph.loads(text).build(seed=0).eval())
    cache = step(torch.tensor([[1]]), others={"s": torch.ones(1, 4)}).cache
    with pytest.raises(TypeError, match='needs the input "s"'):
        step(torch.tensor([[1]]), cache)


def test_it_follows_the_precision_of_autocast(model: Model) -> None:
    step = Stepwise(model)
    cache = step(torch.tensor([[5, 6]])).cache
    with torch.autocast("cpu", torch.bfloat16):
        assert step(torch.tensor([[7]]), cache).outputs["logits"].dtype is torch.bfloat16
    assert step(torch.tensor([[7]]), cache).outputs["logits"].dtype is torch.float32


def test_a_sequence_ends_before_a_stop_token_and_the_others_go_on(model: Model) -> None:
    whole = model.generate(PROMPTS, tokens=12)
    stop = whole[0][3]
    for cut, each in zip(model.generate(PROMPTS, tokens=12, stop=[stop]), whole, strict=True):
        assert cut == (each[: each.index(stop)] if stop in each else each)


def test_a_sample_depends_on_seed_and_place_not_on_the_batch(model: Model) -> None:
    settings = {"tokens": 10, "temperature": 1.5, "seed": 3}
    together = model.generate([*PROMPTS[:1], *PROMPTS], **settings)
    assert together[0] == model.generate(PROMPTS[:1], **settings)[0]
    assert together[0] != together[1], "two samples of one prompt differ"
    assert together == model.generate([*PROMPTS[:1], *PROMPTS], **settings)
    assert together != model.generate([*PROMPTS[:1], *PROMPTS], **{**settings, "seed": 4})


def test_samples_follow_the_probabilities_that_are_left() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
    for settings in ({}, {"top_k": 2}, {"top_p": 0.7}, {"top_k": 3, "top_p": 0.9}):
        sampler = Sampler(temperature=2.0, **settings)
        expected = np.exp(logits[0].numpy() / 2.0)
        expected[settings.get("top_k", 4) :] = 0
        shares = expected / expected.sum()
        expected[np.cumsum(shares) - shares >= settings.get("top_p", 1.1)] = 0
        sampled = sampler.sample(logits.expand(4000, 4), range(4000), 0)
        found = np.bincount(sampled.numpy(), minlength=4) / 4000
        np.testing.assert_allclose(found, expected / expected.sum(), atol=0.03, err_msg=str(settings))


def test_words_come_with_the_modules_that_they_chose(model: Model) -> None:
    generator = Generator(model)
    steps = [*generator.run(PROMPTS[1:2], 4, Sampler(), routing=True)]
    ids = [*PROMPTS[1], *(each.tokens[0] for each in steps if each.tokens[0] is not None)]
    with torch.no_grad():
        routing = model.compute({"words": torch.tensor([ids])}, losses=False, routing=True).routing
    choice = routing["layers.1.expert.selected"][0].nonzero().tolist()
    for at, step in enumerate(steps, start=len(PROMPTS[1]) - 1):
        assert step.modules[0]["layers.1.expert"] == tuple(module for token, module in choice if token == at)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"temperature": -1.0}, "temperature must be 0 or more, not -1.0"),
        ({"top_k": 0}, "top_k must be at least 1, not 0"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1, not 1.5"),
    ],
)
def test_settings_out_of_range_are_refused(model: Model, settings: dict[str, float], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        model.generate(PROMPTS, **settings)  # type: ignore[arg-type]


REFUSED = {
    "no text": ("model m() { input x: float[time, 4] output x }", "MG717"),
    "no logits": ("model m() { input x: token[time, 4] output y = x -> embedding(3) }", "MG717"),
    "two outputs": (
        "model m() { input x: token[time, 4] output y = x -> embedding(4) output z = x -> embedding(4) }",
        "MG717",
    ),
    "few positions": (
        "model m() { input x: token[time, 4] output y = x -> embedding(4) -> position(length=5) -> linear(4) }",
        "MG718",
    ),
    "not causal": (
        "model m() { input x: token[time, 4] output y = x -> embedding(4) -> attention(2) -> linear(4) }",
        "MG730",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_continued_is_refused(case: str) -> None:
    text, code = REFUSED[case]
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(text).build().generate([[1, 2, 3]], tokens=8)
    assert [each.code for each in caught.value.diagnostics] == [code], str(caught.value)


@pytest.mark.parametrize(("prompts", "reason"), [([[]], "no words"), ([[30]], "id 30"), ([[-1]], "id -1")])
def test_prompts_that_do_not_fit_are_refused(model: Model, prompts: list[list[int]], reason: str) -> None:
    with pytest.raises(ModgraphError, match=reason):
        model.generate(prompts)


def test_an_output_is_named() -> None:
    text = "model m() { input x: token[time, 4] output y = x -> embedding(4) output z = x -> embedding(4) }"
    model = modgraph.loads(text).build()
    assert len(model.generate([[1]], tokens=2, output="z")[0]) == 2
    with pytest.raises(ModgraphError, match='no output "w"'):
        model.generate([[1]], output="w")
