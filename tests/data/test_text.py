"""Text as data: words, vocabulary, windows; and a language model that is trained, resumed, measured and exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle

import modgraph
from modgraph.cli import main
from modgraph.data import Text
from modgraph.data.text import read_king_james
from modgraph.diagnostics import ModgraphError
from modgraph.training.stored_run import load_run
from tests.small_runs import begin, final_weights, go_on

SPEC = """
model words(vocabulary=9, hidden=8, modules=3) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  pool   transition[modules] = linear(hidden)
  router controller = noisy_top_k(1)
  scan words -> embedding(8) as x with h: float[hidden] {
    z, r = (x, h) -> concat -> linear(2 * hidden) -> sigmoid -> split(2)
    n = (x, r * h) -> concat -> transition by controller -> tanh
    h = (1 - z) * h + z * n
    yield h
  } as states
  logits = states -> linear(vocabulary)
  output logits
  loss cross_entropy(logits, next)
  loss 0.1 * importance(controller)
}
"""
LINES = [" the cat sat on the mat \n", " the <unk> sat \n", " a cat <unk> the mat \n", " on the mat sat the cat \n"]
OTHER = [" the dog sat \n", " a cat on a mat \n"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Texts in the format of the Penn Treebank's files."""
    for name, lines in {"train": LINES, "valid": OTHER, "test": OTHER[::-1]}.items():
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    return {"train": f"{tmp_path}/train.txt", "validation": f"{tmp_path}/valid.txt", "test": f"{tmp_path}/test.txt"}


def graph(vocabulary: int = 9, **parameters: Any) -> Any:
    return modgraph.loads(SPEC, vocabulary=vocabulary, **parameters).ir


def vocabulary(data: Text, size: int) -> list[str]:
    found: list[str] = json.loads(data.keeps(graph(size))["vocabulary.json"])
    return found


def read_back(arrays: Any, words: list[str], name: str = "words") -> list[str]:
    """The text that windows hold, by a loop over them."""
    return [words[row[t]] for row, n in zip(arrays[name], arrays["time_length"], strict=True) for t in range(n)]


def spoken(lines: list[str], known: list[str]) -> list[str]:
    tokens = "".join(lines).replace("\n", " <eos> ").split()
    return [token if token in known else "<unk>" for token in tokens]


def test_words_are_ranked_by_frequency_and_the_rest_is_unknown(files: dict[str, str]) -> None:
    data = Text(**files)
    assert vocabulary(data, 8) == "<unk> the <eos> cat mat sat on a".split()
    assert vocabulary(data, 5) == "<unk> the <eos> cat mat".split()


@pytest.mark.parametrize("window", [1, 4, 7, 8, 100])
def test_windows_hold_the_whole_text_and_next_is_what_follows(files: dict[str, str], window: int) -> None:
    data = Text(**files, window=window)
    words = vocabulary(data, 6)
    for split, lines in {"train": LINES, "validation": OTHER, "test": OTHER[::-1]}.items():
        values = data.splits(graph(6))[split].values
        text = spoken(lines, words)
        assert read_back(values, words) == text[:-1]
        assert read_back(values, words, "next") == text[1:]
        assert values["words"].shape[1] == window
        assert (values["time_length"][:-1] == window).all()
        padding = np.arange(window) >= values["time_length"][:, None]
        assert not values["words"][padding].any()
        assert not values["next"][padding].any()


def test_an_axis_of_a_fixed_length_has_only_whole_windows(files: dict[str, str]) -> None:
    fixed = modgraph.loads(SPEC.replace("[time", "[4"), vocabulary=6).ir
    values = Text(**files, window=4).splits(fixed)["train"].values
    whole = Text(**files, window=4).splits(graph(6))["train"].values
    assert np.array_equal(values["words"], whole["words"][whole["time_length"] == 4])
    assert "time_length" not in values


@pytest.mark.some(1)
@pytest.mark.parametrize(("validation", "test"), [(0.05, 0.05), (0.2, 0.1), (0, 0.3)])
def test_splits_are_cut_by_position(validation: float, test: float) -> None:
    data = Text(validation_fraction=validation, test_fraction=test, window=50)
    splits = data.splits(graph(500))
    words, text = vocabulary(data, 500), read_king_james()
    known, parts = set(words), {split: arrays.values for split, arrays in splits.items()}
    assert list(parts) == ["train", *["validation"] * (validation > 0), "test"]
    start = 0
    for values in parts.values():
        found = read_back(values, words)
        assert found == [word if word in known else "<unk>" for word in text[start : start + len(found)]]
        start += len(found) + 1
    assert start == len(text)
    shares = [(values["time_length"].sum() + 1) / len(text) for values in parts.values()]
    assert shares == pytest.approx([1 - validation - test, *[validation] * (validation > 0), test], abs=1e-5)


def test_each_part_of_a_text_gives_its_end_to_validation_and_test(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(f"word{n}\n" for n in range(12)))  # 24 words, <eos> after each
    data = Text(train=f"{tmp_path}/text.txt", parts=3, validation_fraction=0.25, test_fraction=0.25, window=100)
    splits = {name: arrays.values for name, arrays in data.splits(graph(8)).items()}
    words = vocabulary(data, 8)
    train = [word for word in read_back(splits["train"], words) if word != "<eos>"]
    assert train == ["word0", "word1", "word4", "word5", "word8", "word9"], "the first half of each third"
    for name in ("validation", "test"):
        assert splits[name]["time_length"].tolist() == [5], f"{name}: three times two words, but for the first"
        assert set(read_back(splits[name], words)) == {"<unk>", "<eos>"}, f"{name}: no word of the training text"


def test_the_bible_is_whole_and_its_signs_stand_by_themselves() -> None:
    text = read_king_james()
    assert text[:12] == tuple("in the beginning god created the heaven and the earth . <eos>".split())
    assert text.count("<eos>") == 31_103
    assert text[-3:] == ("amen", ".", "<eos>")


def test_a_limit_takes_windows_from_all_over_the_text(files: dict[str, str]) -> None:
    whole = Text(**files, window=2).splits(graph(6))["train"].values["words"]
    few = Text(**files, window=2, limit=3).splits(graph(6))["train"].values["words"]
    assert [row.tolist() for row in few] == [whole[place].tolist() for place in (0, round((len(whole) - 1) / 2), -1)]
    assert len(Text(**files, window=2, limit=99).splits(graph(6))["train"]) == len(whole)


# ---------------------------------------------------------------- a run


@pytest.fixture
def spec(files: dict[str, str], tmp_path: Path) -> Path:
    """A language model and its recipe."""
    named = ", ".join(f"{split}: {path}" for split, path in files.items())
    (tmp_path / "words.mod").write_text(SPEC)
    (tmp_path / "words.yaml").write_text(
        f"data: {{name: text, {named}, window: 5}}\n"
        "train: {epochs: 30, batch: 2, optimizer: {name: adam, lr: 0.03}}\n"
    )
    return tmp_path / "words.mod"


def test_a_language_model_learns_and_is_measured_and_exported(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    spec.write_text(SPEC.replace("(logits, next)", '(logits, next, reduce="sum")'))
    assert main(["train", str(spec), "--out", str(out), "-s", "vocabulary=8"]) == 0
    metrics = json.loads(capsys.readouterr().out.splitlines()[-1])
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    train = [line for line in lines if line["split"] == "train"]
    assert train[0]["perplexity"] > 5 > 2 > train[-1]["perplexity"]
    run = load_run(out)
    words = json.loads((out / "vocabulary.json").read_text())
    assert run.description()["classes"]["next"] == words
    values = run.splits()["test"].values
    inputs = {name: torch.from_numpy(values[name]) for name in ("words", "time_length")}
    log_p = run.model()(**inputs).detach().double().log_softmax(-1).numpy()
    each = [log_p[i, t, values["next"][i, t]] for i, n in enumerate(values["time_length"]) for t in range(n)]
    assert metrics["test.perplexity"] == pytest.approx(np.exp(-np.mean(each)), rel=1e-5)
    bundle = tmp_path / "words.onnx"
    assert main(["export", str(out), "-o", str(bundle)]) == 0
    capsys.readouterr()
    assert main(["eval", str(out), "--bundle", str(bundle), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["test.perplexity"] == pytest.approx(metrics["test.perplexity"], rel=1e-4)
    assert Bundle(str(bundle)).manifest["classes"] == {"logits": words}
    assert main(["run", str(bundle), "--info"]) == 0
    assert "words    words: 8, <unk>, the, <eos>, cat, mat, sat, on, a\n" in capsys.readouterr().out
    log_p = run.model()(torch.tensor([[words.index(word) for word in "the cat <unk> on".split()]]))
    expected = [words[id_] for id_ in log_p[0].argmax(-1)]
    assert continued("the cat quickly on", bundle) == expected


def continued(sentence: str, path: Path) -> list[str]:
    """The word that a bundle expects after each of a sentence, by what the file tells alone."""
    bundle = Bundle(path)
    ids = {word: id_ for id_, word in enumerate(bundle.manifest["words"]["words"])}
    encoded = [[ids.get(word, ids["<unk>"]) for word in sentence.split()]]
    (found,) = bundle.predict({"words": encoded})["logits"].tolist()
    return [str(word) for word in found]


def test_a_run_keeps_its_vocabulary_whatever_text_it_reads(spec: Path, files: dict[str, str], tmp_path: Path) -> None:
    begin(spec, tmp_path / "run", train__epochs=1, vocabulary=8)
    words = json.loads((tmp_path / "run/vocabulary.json").read_text())
    Path(files["train"]).write_text("quite another text\nof other words\n" * 3)
    run = load_run(tmp_path / "run")
    assert read_back(run.splits()["test"].values, words) == spoken(OTHER[::-1], words)[:-1]
    assert set(read_back(run.splits()["train"].values, words)) == {"<unk>", "<eos>"}
    other = begin(
        spec, tmp_path / "more", train__epochs=1, vocabulary=8, data__vocabulary=f"{run.path}/vocabulary.json"
    )
    assert other["test.perplexity"] > 1
    assert json.loads((tmp_path / "more/vocabulary.json").read_text()) == words


def test_a_language_model_goes_on_as_if_never_stopped(spec: Path, tmp_path: Path) -> None:
    options = {"vocabulary": 8, "train__epochs": 3}
    begin(spec, tmp_path / "whole", **options)
    begin(spec, tmp_path / "part", **options)
    newest = max((tmp_path / "part/checkpoints").glob("step-*.json"))
    newest.unlink()
    newest.with_suffix(".safetensors").unlink()
    go_on(tmp_path / "part")
    assert final_weights(tmp_path / "part") == final_weights(tmp_path / "whole")


def test_balanced_weights_do_not_count_padding(spec: Path, tmp_path: Path) -> None:
    begin(
        spec, tmp_path / "run", train__epochs=1, vocabulary=8, train__labels__next__weights="balanced", data__window=7
    )
    run = load_run(tmp_path / "run")
    values = run.splits()["train"].values
    label = [row[t] for row, n in zip(values["next"], values["time_length"], strict=True) for t in range(n)]
    counts = np.bincount(label, minlength=8)
    (weights,) = [node.op.class_weights for node in run.graph if hasattr(getattr(node, "op", None), "class_weights")]
    assert weights == pytest.approx(len(label) / (8 * counts))


# ---------------------------------------------------------------- mistakes

MISTAKES = {
    "more words than the text": (SPEC, 9, {}, "MG520", "has 8 words, <unk> included, but the spec has 9"),
    "no file": (SPEC, 8, {"train": "nowhere.txt"}, "MG510", "no such file"),
    "a folder": (SPEC, 8, {"test": "."}, "MG510", "it is a folder"),
    "not UTF-8": (SPEC, 8, {"validation": "latin.txt"}, "MG510", "not UTF-8 (byte 4)"),
    "empty": (SPEC, 8, {"train": "empty.txt"}, "MG510", "has no words"),
    "blank": (SPEC, 8, {"test": "blank.txt"}, "MG510", "has no words"),
    "too short": (SPEC, 3, {"train": "short.txt", "test": None}, "MG510", "too few"),
    "no JSON": (SPEC, 8, {"vocabulary": "short.txt"}, "MG510", "no list of words"),
    "no list of words": (SPEC, 8, {"vocabulary": "numbers.json"}, "MG510", "no list of words"),
    "no unknown": (SPEC, 2, {"vocabulary": "known.json"}, "MG510", "<unk> is not in it"),
    "twice": (SPEC, 3, {"vocabulary": "twice.json"}, "MG510", 'has "a" twice'),
    "another number": (SPEC, 8, {"vocabulary": "three.json"}, "MG520", "has 3 words"),
    "no words": (SPEC.replace("words", "tokens"), 8, {}, "MG511", 'gives "words"'),
    "no next": (SPEC.replace("next", "following"), 8, {}, "MG511", 'gives "next"'),
    "unequal": (
        SPEC.replace("target next: class[time, vocabulary]", "target next: class[time, 7]"),
        8,
        {},
        "MG511",
        '"words" has 8 words and "next" 7',
    ),
    "no time": (SPEC, 8, {"window": 0}, "MG504", "at least 1"),
}
CONTENT = {
    "latin.txt": "caf\xe9".encode("latin-1"),
    "empty.txt": b"",
    "blank.txt": b"\n  \n",
    "short.txt": b"a b\n",
    "numbers.json": b"[1, 2]",
    "known.json": b'["a", "b"]',
    "twice.json": b'["<unk>", "a", "a"]',
    "three.json": b'["<unk>", "a", "b"]',
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_no_text_for_the_spec_is_reported(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    text, size, options, code, words = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    for name, content in CONTENT.items():
        (tmp_path / name).write_bytes(content)
    if "unequal" in mistake:
        text = text.replace("linear(vocabulary)", "linear(7)")
    spec.write_text(text)
    with pytest.raises(ModgraphError) as caught:
        begin(spec, tmp_path / "run", vocabulary=size, **{f"data__{key}": value for key, value in options.items()})
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert words.lower() in str(caught.value).lower()
    assert not (tmp_path / "run").exists()
