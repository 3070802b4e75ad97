"""`modgraph generate`: texts are continued by the words of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modgraph.cli import main
from tests.small_runs import begin

Printed = pytest.CaptureFixture[str]
SPEC = """
model tiny() {
  input  words: token[time, 6]
  target next: class[time, 6]
  pool expert[3] = linear(8)
  x = words -> embedding(8)
  scores = x -> linear(expert)
  x = x + (x -> expert by ((scores, scores -> top_k(1)) -> masked_softmax)) -> gru(8)
  logits = x -> linear(6)
  output logits
  loss cross_entropy(logits, next)
}
"""
TEXT = "the cat saw the dog\nthe dog saw the cat\n" * 30


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    (folder / "tiny.mod").write_text(SPEC)
    (folder / "text.txt").write_text(TEXT)
    data, train = f"{{name: text, train: {folder / 'text.txt'}, window: 10}}", "{name: adam, lr: 0.02}"
    recipe = f"data: {data}\ntrain: {{epochs: 12, batch: 4, optimizer: {train}}}\n"
    (folder / "tiny.yaml").write_text(recipe)
    begin(folder / "tiny.mod", folder / "run")
    return folder / "run"


def generate(capsys: Printed, *words: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["generate", *map(str, words)])
    return code, *capsys.readouterr()


def test_a_text_goes_on_word_by_word(trained: Path, capsys: Printed) -> None:
    code, out, _ = generate(capsys, trained, "--prompt", "the cat", "--tokens", 4, "--stop", "<eos>")
    assert (code, out) == (0, "the cat saw the dog\n")
    code, out, _ = generate(
        capsys, trained, "--prompt", "the", "--prompt", "the dog saw", "--samples", 2, "--tokens", 3
    )
    assert code == 0
    assert [line[:3] for line in out.splitlines() if line[:1].isdigit()] == ["1: ", "2: ", "3: ", "4: "]


def test_words_show_the_modules_that_they_chose(trained: Path, capsys: Printed) -> None:
    code, out, _ = generate(capsys, trained, "--prompt", "the cat", "--tokens", 3, "--trace", "--json")
    (text,) = json.loads(out)["texts"]
    assert code == 0 and text["prompt"] == "the cat" and text["text"].startswith("the cat")
    (route,) = text["words"][0]["modules"]
    modules = [next(iter(word["modules"].values())) for word in text["words"]]
    assert len(modules) == 3 and all(len(each) == 1 and each[0] in range(3) for each in modules)
    _, out, _ = generate(capsys, trained, "--prompt", "the cat", "--tokens", 3, "--trace", route)
    expected = "".join(f"{word['word']}[{each[0]}]" for word, each in zip(text["words"], modules, strict=True))
    assert "".join(out.split()) == "".join(f"thecat{expected}".split())


WRONG = {
    ("--prompt", ""): "MG718",
    ("--prompt", "the", "--tokens", "0"): "MG563",
    ("--prompt", "the", "--samples", "-1"): "MG563",
    ("--prompt", "the", "--temperature", "-2"): "MG563",
    ("--prompt", "the", "--temperature", "nan"): "MG563",
    ("--prompt", "the", "--top-p", "0"): "MG563",
    ("--prompt", "the", "--stop", "catt"): "MG562",
    ("--prompt", "the", "--trace", "expret"): "MG564",
    ("--prompt", "the", "--top-k", "some"): "invalid int value",
    (): "required: --prompt",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_reported(trained: Path, capsys: Printed, words: tuple[str, ...]) -> None:
    try:
        code, out, err = generate(capsys, trained, *words)
    except SystemExit as end:
        code, (out, err) = end.code, capsys.readouterr()
    assert code == 1 and WRONG[words] in err and out == "", err


def test_unknown_words_are_named_and_count_as_unk(trained: Path, capsys: Printed) -> None:
    code, out, err = generate(capsys, trained, "--prompt", "the zebra saw", "--tokens", 2)
    assert code == 0 and 'does not know "zebra"' in err and out.startswith("the zebra saw")


def test_what_is_no_language_model_is_refused(tmp_path: Path, capsys: Printed) -> None:
    code, _, err = generate(capsys, tmp_path, "--prompt", "the")
    assert code == 1 and "error[MG" in err
