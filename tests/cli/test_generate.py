"""`modgraph generate`: texts are continued by the words of a run."""

from __future__ import annotations

import json
import shutil
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
  x = words -> embedding(8) -> position(length=12)
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
    ("--prompt", "the", "--tokens", "13"): "ask for at most 12 new words",
    ("--prompt", "the cat", "--tokens", "11", "--trace"): "for the last one is read too, for its modules",
    ("--prompt", "the cat " * 7): "give a shorter prompt",
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


@pytest.fixture(scope="module")
def bundle(trained: Path) -> Path:
    path = trained.parent / "m.onnx"
    assert main(["export", str(trained), "-o", str(path), "--stepwise", "--routing", "--quiet"]) == 0
    return path


def test_a_bundle_continues_texts_as_its_run(trained: Path, bundle: Path, capsys: Printed) -> None:
    for words in (
        ("--prompt", "the cat", "--tokens", 4, "--stop", "<eos>"),
        ("--prompt", "the", "--prompt", "the dog saw", "--samples", 2, "--tokens", 3, "--trace"),
        ("--prompt", "the cat", "--tokens", 3, "--trace", "--json"),
        ("--prompt", "the zebra", "--tokens", 2),
    ):
        code, out, err = generate(capsys, bundle, *words)
        _, expected, warned = generate(capsys, trained, *words)
        assert (code, out) == (0, expected) and ("zebra" in err) == ("zebra" in warned)
    settings = "--temperature", 1.5, "--seed", 3, "--tokens", 8
    sampled = generate(capsys, bundle, "--prompt", "the", *settings)
    assert sampled == generate(capsys, bundle, "--prompt", "the", *settings)


def test_predictions_and_comparisons_take_stepwise_bundles(trained: Path, bundle: Path, capsys: Printed) -> None:
    (trained.parent / "lines.txt").write_text("the cat saw\nthe dog\n")
    printed = {}
    for path in (trained, bundle):
        assert main(["predict", str(path), str(trained.parent / "lines.txt")]) == 0
        printed[path] = capsys.readouterr().out
    assert printed[trained] == printed[bundle]
    assert main(["diff", str(trained), str(bundle)]) == 0
    assert "equal" in capsys.readouterr().out
    assert main(["eval", str(trained), "--bundle", str(bundle)]) == 0


@pytest.mark.parametrize("words", [each for each in WRONG if each])
def test_what_is_wrong_with_a_bundle_is_reported(bundle: Path, capsys: Printed, words: tuple[str, ...]) -> None:
    try:
        code, out, err = generate(capsys, bundle, *words)
    except SystemExit as end:
        code, (out, err) = end.code, capsys.readouterr()
    assert code == 1 and WRONG[words] in err and out == "", err


@pytest.mark.slow
def test_a_bundle_that_cannot_continue_says_how_to_export_it(trained: Path, tmp_path: Path, capsys: Printed) -> None:
    plain, untraced = tmp_path / "plain.onnx", tmp_path / "untraced.onnx"
    main(["export", str(trained), "-o", str(plain), "--quiet"])
    main(["export", str(trained), "-o", str(untraced), "--stepwise", "--quiet"])
    code, _, err = generate(capsys, plain, "--prompt", "the")
    assert code == 1 and "MG727" in err and "--stepwise" in err, err
    code, _, err = generate(capsys, untraced, "--prompt", "the", "--trace")
    assert code == 1 and "MG564" in err and "--stepwise --routing" in err
    code, _, err = generate(capsys, tmp_path / "none.onnx", "--prompt", "the")
    assert code == 1 and "MG706" in err and "no such file" in err


def test_a_run_that_is_not_causal_or_is_damaged_says_so(trained: Path, tmp_path: Path, capsys: Printed) -> None:
    folder = trained.parent
    (folder / "wide.mod").write_text(SPEC.replace("-> gru(8)", "-> attention(2)"))
    (folder / "wide.yaml").write_text((folder / "tiny.yaml").read_text().replace("epochs: 12", "epochs: 1"))
    begin(folder / "wide.mod", folder / "wide")
    code, _, err = generate(capsys, folder / "wide", "--prompt", "the")
    assert code == 1 and "MG730" in err and "reads later tokens" in err and "require causal(logits, words)" in err
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run/vocabulary.json").write_text("{")
    code, _, err = generate(capsys, tmp_path / "run", "--prompt", "the")
    assert code == 1 and "MG611" in err and "vocabulary.json" in err
    shutil.copy(trained / "vocabulary.json", tmp_path / "run")
    for path in (tmp_path / "run/checkpoints").glob("*.safetensors"):
        path.unlink()
    code, _, err = generate(capsys, tmp_path / "run", "--prompt", "the")
    assert code == 1 and "MG603" in err and "no such file" in err


def test_a_spec_is_to_be_trained_first(trained: Path, capsys: Printed) -> None:
    code, _, err = generate(capsys, trained.parent / "tiny.mod", "--prompt", "the")
    assert code == 1 and "MG124" in err and "train it first" in err


PIECES = SPEC.replace("6", "266").replace("tiny", "pieces").replace(" -> position(length=12)", "")
ACCENTS = "the naïve café — 日本\nthe café, 日本 — naïve\n" * 30


@pytest.mark.slow
def test_pieces_join_into_the_text_with_whole_letters(tmp_path: Path, capsys: Printed) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "pieces.mod").write_text(PIECES)
    (tmp_path / "text.txt").write_text(ACCENTS)
    data, train = f"{{name: text, train: {tmp_path / 'text.txt'}, units: bpe, window: 16}}", "{name: adam, lr: 0.02}"
    (tmp_path / "pieces.yaml").write_text(f"data: {data}\ntrain: {{epochs: 12, batch: 4, optimizer: {train}}}\n")
    begin(tmp_path / "pieces.mod", tmp_path / "run")
    code, out, _ = generate(capsys, tmp_path / "run", "--prompt", "the naïve", "--tokens", 40)
    assert code == 0 and out.startswith("the naïve") and "café" in out and "日本" in out and "\ufffd" not in out, out
    _, out, _ = generate(capsys, tmp_path / "run", "--prompt", "the naïve", "--tokens", 9, "--trace", "--json")
    (text,) = json.loads(out)["texts"]
    assert text["text"] == "the naïve" + "".join(each["word"] for each in text["words"])
    assert len(text["words"]) == 9 and any(each["word"] == "" for each in text["words"]), "no letter has several pieces"


def test_a_stepwise_bundle_is_traced_as_its_run(trained: Path, bundle: Path, capsys: Printed) -> None:
    capsys.readouterr()
    summaries = []
    for words in ([bundle, "--recipe", trained / "recipe.yaml"], [trained]):
        assert main(["trace", *map(str, words), "--json"]) == 0
        summaries.append(json.loads(capsys.readouterr().out)["routes"])
    (of_bundle,), (of_run,) = ([*each.values()] for each in summaries)
    assert of_bundle["rounds"][0]["use"] == of_run["rounds"][0]["use"]
    assert of_bundle["together"] == of_run["together"]
