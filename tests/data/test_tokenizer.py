"""Pieces of words as data: a tokenizer that a recipe trains or a file gives, in runs, bundles and predictions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle

import modgraph
from modgraph.cli import main
from modgraph.data import Text
from modgraph.diagnostics import ModgraphError
from modgraph.training.stored_run import load_run
from tests.small_runs import begin

pytest.importorskip("tokenizers")

from modgraph.data.tokenizer import Tokenizer

SPEC = """model pieces(vocabulary=280, hidden=8) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  logits = words -> embedding(hidden) -> linear(vocabulary)
  output logits
  loss cross_entropy(logits, next)
}"""
LETTERS = "The naïve café — the café, 日本!\n\n  the end of the\tcafé\r\n" * 20
PLAIN = LETTERS.replace("\r\n", "\n")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(LETTERS, newline="")
    return tmp_path / "text.txt"


def graph(vocabulary: int = 280) -> Any:
    return modgraph.loads(SPEC, vocabulary=vocabulary).ir


def decode(arrays: Any, tokenizer: Tokenizer, name: str = "words") -> str:
    rows = zip(arrays[name], arrays["time_length"], strict=True)
    return tokenizer.decode([int(id_) for row, length in rows for id_ in row[:length]])


def test_windows_of_a_trained_tokenizer_hold_the_whole_text(text: Path) -> None:
    data = Text(train=str(text), units="bpe", window=7, validation_fraction=0.2, test_fraction=0.2)
    kept = data.keeps(graph())
    assert [*kept] == ["tokenizer.json"]
    tokenizer = Tokenizer(kept["tokenizer.json"].decode())
    assert len(tokenizer) == 280
    first, last = (round(share * len(PLAIN)) for share in (0.6, 0.8))
    parts = {"train": PLAIN[:first], "validation": PLAIN[first:last], "test": PLAIN[last:]}
    for split, arrays in data.splits(graph()).items():
        ids = tokenizer.ids_of(parts[split])
        assert decode(arrays.values, tokenizer) + tokenizer.decode(ids[-1:]) == parts[split], split
        following = np.concatenate(
            [row[:n] for row, n in zip(*map(arrays.values.get, ("next", "time_length")), strict=True)]
        )
        assert following.tolist() == ids[1:].tolist()
    assert len(tokenizer.ids_of(PLAIN)) < 0.75 * len(PLAIN.encode()), "merges shorten it"


def test_training_again_gives_the_same_tokenizer(text: Path) -> None:
    from modgraph.data.tokenizer import _train

    assert _train.__wrapped__(PLAIN, 300) == _train.__wrapped__(PLAIN, 300)
    assert set(json.loads(_train(PLAIN, 300))["model"]["vocab"]) >= {"a", "Ġ", "the", "Ġthe"}


def test_characters_of_pieces_sum_to_those_of_the_text() -> None:
    tokenizer = Tokenizer.train(PLAIN, 300).fill(302)
    assert tokenizer.characters is not None
    for text in (PLAIN, "no piece of 한국어 or 👩‍🚀 is whole", "\x00 \u2028"):
        assert sum(tokenizer.characters[id_] for id_ in tokenizer.ids_of(text)) == len(text)
    assert tokenizer.characters[301] == len("<unused301>")
    words = json.dumps(
        {"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}
    )
    assert Tokenizer(words).characters is None, "ids that stand for no bytes"


def test_a_given_tokenizer_is_filled_up_to_the_rows_of_the_model(text: Path, tmp_path: Path) -> None:
    given = Tokenizer.train(PLAIN, 270)
    (tmp_path / "tokenizer.json").write_text(given.text)
    data = Text(train=str(text), tokenizer=str(tmp_path / "tokenizer.json"))
    kept = Tokenizer(data.keeps(graph(300))["tokenizer.json"].decode())
    assert len(kept) == len(kept.pieces) == 300
    assert kept.ids_of(PLAIN).tolist() == given.ids_of(PLAIN).tolist()
    assert kept.pieces[:270] == given.pieces
    assert kept.pieces[299] == "<unused299>"


@pytest.mark.slow
def test_a_language_model_of_pieces_is_trained_measured_exported_and_predicts(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pieces.mod").write_text(SPEC)
    (tmp_path / "pieces.yaml").write_text(
        f"data: {{name: text, train: {text}, units: bpe, window: 9, validation_fraction: 0.2, test_fraction: 0.2}}\n"
        "train: {epochs: 20, batch: 4, optimizer: {name: adam, lr: 0.1}}\n"
    )
    run, bundle = tmp_path / "run", tmp_path / "m.onnx"
    metrics = begin(tmp_path / "pieces.mod", run)
    tokenizer = Tokenizer.read(str(run / "tokenizer.json"))
    text.write_text("quite another text, of other words\n" * 9)
    assert load_run(run).description()["words"]["words"] == list(tokenizer.pieces), "the run keeps its tokenizer"
    text.write_text(LETTERS, newline="")
    assert main(["export", str(run), "-o", str(bundle)]) == 0
    capsys.readouterr()
    assert main(["eval", str(run), "--bundle", str(bundle), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["test.perplexity"] == pytest.approx(metrics["test.perplexity"], rel=1e-4)
    ids = tokenizer.ids_of(PLAIN[round(0.8 * len(PLAIN)) :])
    bits = (len(ids) - 1) * np.log2(metrics["test.perplexity"])
    expected = bits / len(tokenizer.decode(ids)[len(tokenizer.decode(ids[:1])) :])
    assert metrics["test.bits_per_character"] == pytest.approx(expected, rel=1e-5)
    assert measured["test.bits_per_character"] == pytest.approx(expected, rel=1e-4)
    epochs = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert any("bits_per_character" in each for each in epochs if each["split"] == "validation")
    manifest = Bundle(str(bundle)).manifest
    assert manifest["words"]["words"] == manifest["classes"]["logits"] == list(tokenizer.pieces)
    assert Tokenizer.from_record(manifest["preprocessing"]["words"]["tokenizer"]).ids_of(PLAIN).tolist() == (
        tokenizer.ids_of(PLAIN).tolist()
    )
    (tmp_path / "lines.txt").write_text("the café\n日 end\n")
    expected = load_run(run).model()(torch.tensor(tokenizer.ids_of("the café")[None])).argmax(-1)[0]
    printed = []
    for origin in (run, bundle):
        assert main(["predict", str(origin), str(tmp_path / "lines.txt")]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert f"lines.txt:1  {' '.join(tokenizer.pieces[id_] for id_ in expected)}\n" in printed[0]
    assert len({*expected.tolist()}) > 1


def gaps(vocab: dict[str, int]) -> str:
    return json.dumps({"version": "1.0", "model": {"type": "BPE", "vocab": vocab, "merges": []}})


MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {
    "too small a text": ({"units": "bpe", "size": 5000}, "MG520", "the training text has"),
    "too few for bytes": ({"units": "bpe", "size": 100}, "MG520", "has 256 pieces, but the spec has 100"),
    "too many": ({"tokenizer": "good.json", "size": 260}, "MG520", "has 270 pieces, but the spec has 260"),
    "no file": ({"tokenizer": "nowhere.json"}, "MG510", "no such file"),
    "no tokenizer": ({"tokenizer": "text.txt"}, "MG510", "it is no tokenizer"),
    "empty": ({"tokenizer": "empty.json"}, "MG510", "it is no tokenizer"),
    "gaps": ({"tokenizer": "gaps.json"}, "MG510", "its 1 ids are not those from 0 to 0"),
    "an empty text": ({"units": "bpe", "train": "empty.json"}, "MG510", "it is empty"),
    "a short text": ({"tokenizer": "good.json", "train": "short.txt", "test": "text.txt"}, "MG510", "are too few"),
    "both": ({"units": "bpe", "vocabulary": "good.json"}, "MG504", "cannot combine vocabulary"),
    "other units": ({"units": "letters"}, "MG504", 'one of "words", "bpe"'),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_what_is_no_tokenizer_for_the_spec_is_reported(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    options, code, words = MISTAKES[kind]
    monkeypatch.chdir(tmp_path)
    Path("good.json").write_text(Tokenizer.train(PLAIN, 270).text)
    Path("gaps.json").write_text(gaps({"a": 5}))
    Path("empty.json").write_text("")
    Path("short.txt").write_text("The")
    Path("pieces.mod").write_text(SPEC)
    Path("pieces.yaml").write_text("data: {name: text, train: text.txt, validation_fraction: 0}\ntrain: {epochs: 1}\n")
    given = {f"data__{key}": value for key, value in options.items() if key != "size"}
    with pytest.raises(ModgraphError) as caught:
        begin(Path("pieces.mod"), tmp_path / "run", vocabulary=options.get("size", 280), **given)
    (reported,) = caught.value.diagnostics
    assert reported.code == code
    assert words in reported.text() + reported.advice()
    assert not os.path.lexists(tmp_path / "run")
