"""Models that read what they should predict: `check` warns where the data say that a target is the next token."""

from __future__ import annotations

from pathlib import Path

import pytest

import modgraph
from modgraph.data.npz import Npz
from modgraph.data.text import Text
from modgraph.training.fit import diagnose_training, find_next_token_leaks

SPEC = """model m() {{
  input words: token[time, 20]
  target next: class[time, 20]
  x = words -> embedding(8) -> {layer}
  logits = x -> linear(20)
  output logits
  loss cross_entropy(logits{after}, next)
}}
"""


def find_codes(path: Path, layer: str, after: str, recipe: str) -> list[str]:
    (path / "m.mod").write_text(SPEC.format(layer=layer, after=after))
    (path / "m.yaml").write_text(recipe)
    found = diagnose_training(path / "m.mod", path / "m.yaml", {})
    assert all(each.severity == "warning" for each in found), found
    return [each.code for each in found if each.code == "MG417"]


@pytest.mark.parametrize(
    ("layer", "after", "copies"),
    [
        ("attention(2)", "", True),
        ("attention(2, causal=true)", "", False),
        ("gru(8)", "", False),
        ("gru(8)", " -> shift(-1)", True),  # compares logits of the next place: a shifted target
        ("gru(8)", " -> shift(1)", False),
    ],
)
def test_check_warns_of_a_prediction_that_reads_the_next_word(
    tmp_path: Path, layer: str, after: str, copies: bool
) -> None:
    (tmp_path / "words.txt").write_text("a b c\n" * 9)
    text = f"data: {{name: text, train: {tmp_path / 'words.txt'}}}\ntrain: {{epochs: 1}}\n"
    assert find_codes(tmp_path, layer, after, text) == ["MG417"] * copies, "what the text says"
    arrays = "data: {name: npz, train: a.npz}\ntrain: {epochs: 1}\n"
    assert not find_codes(tmp_path, layer, after, arrays), "arrays alone do not say what the target is"
    arrays = arrays.replace("a.npz", "a.npz, next: {next: words}")
    assert find_codes(tmp_path, layer, after, arrays) == ["MG417"] * copies, "what the recipe says of arrays"


def test_a_training_warns_before_it_begins(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "words.txt").write_text("a b c\n" * 40)
    recipe = {"data": {"name": "text", "train": str(tmp_path / "words.txt"), "window": 6}, "train": {"epochs": 1}}
    program = modgraph.loads(SPEC.format(layer="attention(2)", after="").replace("20", "5"))
    modgraph.train(program, recipe, out=tmp_path / "run")
    assert "MG417" in caplog.text, "nobody wonders at the perplexity"


@pytest.mark.parametrize("spec", ["modular_networks_lm", "zoo/switch", "zoo/mixtral"])
def test_the_language_models_are_causal(spec: str) -> None:
    graph = modgraph.load(f"specs/{spec}.mod").ir
    assert not [*find_next_token_leaks(graph, Text())], f"{spec} is causal, and check warns of it"
    assert Npz(train="a.npz").follows() == {}, "arrays follow nothing unless the recipe says so"
