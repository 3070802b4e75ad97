"""What caches keep: windows, latents, rounds. Chunks of unequal sequences give what whole sequences give."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import modgraph
from modgraph.backends.torch import Model
from modgraph.backends.torch.stepwise import Stepwise
from modgraph.inspect.caches import count_caches
from modgraph.passes import STEPWISE, apply_passes

BAND = """block attend(window, first) {
  input x: float[time, dim]
  keys = x -> rename(time="key")
  back = (x -> positions(axis=time)) - (keys -> positions(axis=key))
  seen = (back >= 0) * maximum(back < window, (keys -> positions(axis=key)) < first)
  q = x -> linear(dim) -> rotary(axis=time)
  gates = ((q, keys -> linear(dim) -> rotary(axis=key)) -> contract, seen) -> masked_softmax(axis=key)
  output (keys -> linear(dim)) by gates over key
}
model m(window=3, first=0) {
  input x: float[time, 4]
  h = x -> attend(window, first) -> linear(4)
  output y = h + (h -> attend(window + 1, 0)) -> linear(2)
}"""


@cache
def build(text: str, **parameters: int) -> tuple[Model, Stepwise]:
    model = modgraph.loads(text, **parameters).build(seed=0).eval()
    return model, Stepwise(model)


@torch.no_grad()
def read_on(model: Model, step: Stepwise, chunks: Sequence[Sequence[int]], keep: Sequence[int]) -> None:
    """Read chunks of so many tokens of each example; then one more token of those in `keep`. Compare with the whole."""
    ends = [sum(each) for each in zip(*chunks, strict=True)]
    torch.manual_seed(len(chunks))
    type_ = model.graph.input_types[step.tokens]
    shape = len(ends), max(ends) + 1, *(axis.size for axis in type_.shape[1:])
    tokens = torch.randint(type_.size, shape) if type_.size else torch.randn(*map(int, shape))  # type: ignore[arg-type]
    (whole,) = model.compute({step.tokens: tokens}, losses=False).outputs.values()
    found, at = None, [0] * len(ends)
    for new in chunks:
        rows = [tokens[row, torch.arange(first, first + max(new)).clamp(max=max(ends))] for row, first in enumerate(at)]
        lengths = None if len({*new}) == 1 else new
        found = step(torch.stack(rows), None if found is None else found.cache, lengths=lengths)
        (outputs,) = found.outputs.values()
        for row, (first, count) in enumerate(zip(at, new, strict=True)):
            torch.testing.assert_close(outputs[row, :count], whole[row, first : first + count], rtol=1e-4, atol=1e-5)
        at = [sum(each) for each in zip(at, new, strict=True)]
    assert found is not None
    last = step(torch.stack([tokens[row, at[row]][None] for row in keep]), found.cache.take(keep))
    (outputs,) = last.outputs.values()
    for place, row in enumerate(keep):
        torch.testing.assert_close(outputs[place, 0], whole[row, at[row]], rtol=1e-4, atol=1e-5)


def list_chunks(most: int) -> st.SearchStrategy[list[list[int]]]:
    """Chunks of one to three examples, equally long or not."""

    def of_examples(count: int) -> st.SearchStrategy[list[list[int]]]:
        unequal = st.lists(st.integers(1, most), min_size=count, max_size=count)
        return st.lists(unequal | st.integers(1, most).map(lambda new: [new] * count), min_size=1, max_size=4)

    return st.integers(1, 3).flatmap(of_examples)


@given(st.sampled_from([(1, 0), (3, 0), (3, 2), (2, 1), (9, 0)]), list_chunks(7), st.data())
def test_a_window_keeps_what_later_tokens_read(
    extent: tuple[int, int], chunks: list[list[int]], data: st.DataObject
) -> None:
    window, first = extent
    model, step = build(BAND, window=window, first=first)
    keep = data.draw(st.lists(st.sampled_from(range(len(chunks[0]))), min_size=1, max_size=3))
    read_on(model, step, chunks, keep)
    last = step(torch.zeros(1, 40, 4)).cache.values
    rows = {each.shape[1] for name, each in last.items() if each.dim() > 1}
    assert rows == {first + max(1, window - 1), window}, "of 40 tokens, those in the windows of two layers are kept"


def test_the_cost_of_a_window_is_bounded() -> None:
    found = count_caches(modgraph.loads(BAND, window=5, first=2).ir)
    assert found is not None and (found.per_token, found.windows) == (0, {6: 4 * (4 + 4 + 1), 5: 4 * (4 + 4 + 1)})
    assert str(found) == (
        "to generate, it keeps 36 bytes of each of 5 tokens at most (180 bytes), 36 bytes of each of 6 tokens at most "
        "(216 bytes), and 4 bytes of an example, whatever its length"
    )


LATENT = """block attend(heads, width, latent) {
  input x: float[time, dim]
  q = x -> linear(heads * width) -> unmerge([heads, width], into=["head", ""])
  c, turned = x -> rename(time="key") -> linear(latent + 2, bias=false) -> split([latent, 2])
  k, v = c -> rms_norm -> linear(2 * heads * width, bias=false) -> unmerge([heads, 2 * width], into=["head", ""])
      -> split(2)
  far = (x -> linear(2) -> rotary(axis=time), turned -> rotary(axis=key)) -> contract
  seen = (x -> positions(axis=time)) >= (c -> positions(axis=key))
  gates = (((q, k) -> contract) + far, seen) -> masked_softmax(axis=key)
  output (v by gates over key) -> merge("head", -1) -> linear(dim)
}
model m(heads=3, width=4, latent=5) {
  input x: float[time, 6]
  output y = x + (x -> attend(heads, width, latent))
}"""


@given(st.sampled_from([(3, 4, 5), (1, 7, 3), (2, 2, 9)]), list_chunks(4))
def test_latents_are_kept_where_they_are_smaller(sizes: tuple[int, int, int], chunks: list[list[int]]) -> None:
    heads, width, latent = sizes
    model, step = build(LATENT, heads=heads, width=width, latent=latent)
    read_on(model, step, chunks, keep=[0])
    numbers = min(latent, 2 * heads * width) + 2
    found = count_caches(model.graph)
    assert found is not None and found.per_token == 4 * (numbers + 1)
    assert {*step.model.state_dict()} == {*model.state_dict()}


def test_keys_and_values_are_kept_where_their_map_cannot_join_products() -> None:
    """A bias, a reader that is no product, or a width that costs more time than it saves."""
    for text, numbers in (
        (LATENT.replace("width, bias=false", "width"), 24),
        (
            LATENT.replace("c -> rms_norm ->", "c -> rms_norm -> tanh ->").replace(
                'into=["head", ""])\n      -> split(2)', 'into=["head", ""]) -> tanh -> split(2)'
            ),
            24,
        ),
        (LATENT.replace("heads=3, width=4, latent=5", "heads=32, width=1, latent=31"), 64),
    ):
        found = count_caches(modgraph.loads(text).ir)
        assert found is not None and found.per_token == 4 * (numbers + 2 + 1), text


WHOLE = {
    "all": "gates = ((x, keys) -> contract, back >= 0) -> masked_softmax(axis=key) y = keys by gates over key",
    "the number of keys": "near = (back >= 0) * (back < 3) y = (near -> mean(axis=key) -> new_axis(4)) * x",
}


@pytest.mark.parametrize(("name", "text"), [("windows", BAND), ("latents", LATENT)])
def test_the_program_of_a_step_keeps_the_smallest_values(name: str, text: str, request: pytest.FixtureRequest) -> None:
    path = Path(__file__).parent / f"golden/incremental_{name}.txt"
    found = f"{apply_passes(modgraph.loads(text).ir, STEPWISE)}\n"
    if request.config.getoption("--refresh"):
        path.write_text(found)
    assert path.read_text() == found


@pytest.mark.parametrize("name", ["all", "the number of keys"])
def test_what_reads_further_than_a_window_keeps_all(name: str) -> None:
    text = f"""model m() {{ input x: float[time, 4] keys = x -> rename(time="key")
      back = (x -> positions(axis=time)) - (keys -> positions(axis=key)) {WHOLE[name]} output y }}"""
    found = count_caches(modgraph.loads(text).ir)
    assert found is not None and found.per_token and not found.windows, found


def test_examples_of_one_length_are_taken_from_longer_caches() -> None:
    """An example that stays alone has fewer tokens than its cache has places."""
    for text in (BAND, BAND.replace("back < window", "back < 99")):
        read_on(*build(text), chunks=[[7, 2], [1, 1]], keep=[1])
