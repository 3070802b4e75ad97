"""Sentences as data: files of tokens, words and classes of the training part, and a tagger that is trained and used."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from modgraph_runtime import Bundle

import modgraph
from modgraph.cli import main
from modgraph.data import Conll
from modgraph.data.conll_file import read_tokens
from modgraph.data.vocabulary import Tagging
from modgraph.diagnostics import ModgraphError
from modgraph.training.stored_run import load_run
from tests.ordinary_run import some_examples
from tests.small_runs import begin, final_weights, go_on

SPEC = """
model tagger(vocabulary=9, tails=6, kinds=4, genders=3) {
  input  words: token[time, vocabulary]
  input  endings: token[time, tails]
  target upos: class[time, kinds]
  target gender: class[time, genders]
  x = (words -> embedding(6), endings -> embedding(4)) -> concat -> linear(6) -> tanh
  kind = x -> linear(kinds)
  sex = x -> linear(genders)
  output kind
  output sex
  loss cross_entropy(kind, upos)
  loss cross_entropy(sex, gender)
}
"""
TARGETS = {"upos": "UPOS", "gender": "Feats.Gender"}
FEATURES = {"Fem": "Gender=Fem|Number=Sing", "Masc": "Number=Plur|Gender=Masc", "_": "_"}
TEXT = [
    "A/DET/Fem costa/NOUN/Fem brasileira/ADJ/Fem",
    "os/DET/Masc trabalhos/NOUN/Masc e/CCONJ/_ a/DET/Fem costa/NOUN/Fem",
    "costa/NOUN/Fem costa/NOUN/Fem",
    "a/DET/Fem bacia/NOUN/Fem",
]
Sentence = list[tuple[str, str, str]]


def universal(sentences: list[Sentence]) -> str:
    """CoNLL-U as the format's page has it, each sentence with a comment, a multiword token and an empty node."""
    lines = []
    for sentence in sentences:
        lines.append("# text = " + " ".join(word for word, *_ in sentence))
        for at, (word, kind, gender) in enumerate(sentence, start=1):
            if at == 2:
                lines += ["2-3\tna" + "\t_" * 8, "1.1\telide" + "\t_" * 8]
            lines.append(f"{at}\t{word}\t{word.lower()}\t{kind}\tx\t{FEATURES[gender]}\t0\troot\t_\t_")
        lines.append("")
    return "\n".join(lines)


def parsed(text: list[str]) -> list[Sentence]:
    return [
        [(word, kind, gender) for word, kind, gender in (each.split("/") for each in line.split())] for line in text
    ]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "train.conllu").write_text(universal(parsed(TEXT)), encoding="utf-8")
    (tmp_path / "test.conllu").write_text(universal(parsed(TEXT[3:0:-1])), encoding="utf-8")
    return {
        "train": f"{tmp_path}/train.conllu",
        "test": f"{tmp_path}/test.conllu",
        "validation_fraction": 0.0,
        "targets": TARGETS,
    }


def graph(**parameters: Any) -> Any:
    return modgraph.loads(SPEC, **parameters).ir


def message_of(data: Conll, **parameters: Any) -> str:
    with pytest.raises(ModgraphError) as caught:
        data.splits(graph(**parameters))
    return str(caught.value)


word = st.text("abçé.#-_0", min_size=1, max_size=5)
tokens = st.tuples(word, st.sampled_from(["NOUN", "VERB", "_"]), st.sampled_from([*FEATURES]))


@given(st.lists(st.lists(tokens, min_size=1, max_size=6), min_size=1, max_size=6))
@some_examples(40)
def test_tokens_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[Sentence]
) -> None:
    """In CoNLL-U and in columns, ends of lines of either kind."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "a.conllu").write_text(universal(sentences), encoding="utf-8", newline="\r\n")
    rows = ["\n".join(f"{word}  {kind} {gender}" for word, kind, gender in each) for each in sentences]
    (folder / "a.txt").write_text("-DOCSTART- -X- O\n\n" + "\n\n".join(rows), encoding="utf-8")
    flat = [each for sentence in sentences for each in sentence]
    for path, columns in (("a.conllu", ("UPOS", "Feats.Gender")), ("a.txt", ("2", "3"))):
        found = read_tokens(str(folder / path), columns)
        assert list(found.words) == [word for word, *_ in flat]
        assert found.lengths.tolist() == list(map(len, sentences))
        labels = [(kind, gender) for _, kind, gender in flat]
        assert list(zip(*(found.labels[each] for each in columns), strict=True)) == labels
        lines = (folder / path).read_text(encoding="utf-8").split("\n")
        assert all(word in lines[number - 1] for word, number in zip(found.words, found.lines, strict=True))


def test_words_endings_and_classes_are_those_of_the_training_part(files: dict[str, Any]) -> None:
    data = Conll(**files, lower=True)
    known = json.loads(data.keeps(graph(vocabulary=8))["tagging.json"])
    flat = [each for sentence in parsed(TEXT) for each in sentence]
    counts = Counter(word.lower() for word, *_ in flat)
    ranked = sorted(counts, key=lambda each: (-counts[each], each))
    assert known["words"]["words"] == ["<unk>", *ranked]
    assert known["words"]["endings"][:3] == ["<unk>", "sta", "a"]
    assert known["classes"] == {"gender": ["Fem", "Masc", "_"], "upos": ["ADJ", "CCONJ", "DET", "NOUN"]}
    values = data.splits(graph(vocabulary=8))["test"].values
    assert values["time_length"].tolist() == [2, 2, 5]
    for row, sentence in enumerate(parsed(TEXT[3:0:-1])):
        for at, (spoken, kind, gender) in enumerate(sentence):
            assert known["words"]["words"][values["words"][row, at]] in (spoken.lower(), "<unk>")
            assert known["words"]["endings"][values["endings"][row, at]] in (spoken.lower()[-3:], "<unk>")
            assert known["classes"]["upos"][values["upos"][row, at]] == kind
            assert known["classes"]["gender"][values["gender"][row, at]] == gender
        assert not values["words"][row, len(sentence) :].any()


def test_what_a_token_has_none_of_is_a_class_or_missing(files: dict[str, Any]) -> None:
    """Names that are rare in the training part are as none."""
    text = SPEC.replace("gender)\n", "gender, missing=true)\n").replace("upos)\n", "upos, missing=true)\n")
    asked = modgraph.loads(text, kinds=2, genders=2).ir
    data = Conll(**files, without="missing", least=2)
    values = data.splits(asked)["test"].values
    names = ("DET", "NOUN"), ("Fem", "Masc")
    for row, sentence in enumerate(parsed(TEXT[3:0:-1])):
        for at, (_, kind, gender) in enumerate(sentence):
            assert values["upos"][row, at] == (names[0].index(kind) if kind in names[0] else -1)
            assert values["gender"][row, at] == (names[1].index(gender) if gender in names[1] else -1)
    message = message_of(data, kinds=2, genders=2)
    assert "train.labels: {upos: {missing: true}}" in message
    known = json.loads(Conll(**files, least=2).keeps(graph(kinds=3))["tagging.json"])
    assert known["classes"]["upos"] == ["DET", "NOUN", "_"]


@pytest.mark.parametrize("longest", [1, 2, 4, 100])
def test_a_sentence_that_is_too_long_goes_on_in_another_example(files: dict[str, Any], longest: int) -> None:
    whole, cut = (Conll(**files, longest=each).splits(graph())["train"].values for each in (128, longest))
    assert cut["time_length"].max() == min(longest, 5)
    for name in ("words", "endings", "upos", "gender"):
        flat = [
            [values[name][row, at] for row, n in enumerate(values["time_length"]) for at in range(n)]
            for values in (whole, cut)
        ]
        assert flat[0] == flat[1]


def test_parts_are_cut_off_by_sentences_and_few_may_be_learnt_from(tmp_path: Path) -> None:
    (tmp_path / "all.conllu").write_text(universal(parsed(TEXT * 10)), encoding="utf-8")
    data = {"train": f"{tmp_path}/all.conllu", "targets": TARGETS, "validation_fraction": 0.1, "test_fraction": 0.2}
    splits = Conll(**data).splits(graph())
    assert [len(splits[split]) for split in ("train", "validation", "test")] == [28, 4, 8]
    few = Conll(**data, limit=3).splits(graph())["train"].values
    np.testing.assert_array_equal(few["words"], splits["train"].values["words"][[0, 14, 27], : few["words"].shape[1]])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("\tGender=Fem|", "\tGender|"), 'line 2: "Gender|Number=Sing" is no NAME=VALUE'),
        (("\n3\t", "\n4\t"), 'line 6 has the ID "4", not 3'),
        (("\troot\t_\t_", "\troot\t_"), "line 2 has 9 columns between tabs, not 10"),
    ],
)
def test_a_line_that_is_wrong_is_reported(files: dict[str, Any], change: tuple[str, str], expected: str) -> None:
    path = Path(files["train"])
    path.write_text(path.read_text(encoding="utf-8").replace(*change, 1), encoding="utf-8")
    message = message_of(Conll(**files))
    assert expected in message and "MG510" in message


def test_columns_that_are_not_there_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("in IN B-PP\n\nthe DT\n")
    with pytest.raises(ModgraphError, match="line 3 has 2 columns, but the recipe names column 3"):
        read_tokens(f"{tmp_path}/a.txt", ["3"])
    (tmp_path / "a.txt").write_text("-DOCSTART- -X-\n\n# no\n" * 0 + "\n\n")
    with pytest.raises(ModgraphError, match="it has no sentences"):
        read_tokens(f"{tmp_path}/a.txt", ["2"])
    known = {"train": "a.conllu", "targets": {"upos": "POS"}}
    assert "POS is no column: they are ID, FORM" in str(Conll(**known).contradiction())
    assert "they are numbers from 1" in str(Conll(train="a.txt", targets={"upos": "UPOS"}).contradiction())
    assert "CoNLL-U and other" in str(Conll(train="a.txt", test="b.conllu", targets={"upos": "2"}).contradiction())
    assert Conll(train="a.txt", targets={"upos": 2}).contradiction() is None


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"kinds": 7}, "declare: target upos: class[time, 4]"),
        ({"vocabulary": 10}, "declare: input words: token[time, 9]"),
        ({"tails": 99}, "the training sentences give 9 words, <unk> included"),
    ],
)
def test_other_numbers_of_words_and_classes_are_reported(
    files: dict[str, Any], parameters: dict[str, int], expected: str
) -> None:
    assert expected in message_of(Conll(**files), **parameters)


def test_a_tagger_is_trained_resumed_measured_on_other_text_and_exported(
    files: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tagger.mod").write_text(SPEC)
    keys = f"train: {files['train']}, test: {files['test']}, validation_fraction: 0.0"
    recipe = f"data: {{name: conll, {keys}, targets: {{upos: UPOS, gender: Feats.Gender}}}}\n"
    (tmp_path / "tagger.yaml").write_text(recipe + "train: {epochs: 2, batch: 2, bucket: 2}\n")
    expected = begin(tmp_path / "tagger.mod", tmp_path / "run")
    weights = final_weights(tmp_path / "run")
    assert go_on(tmp_path / "run") == expected
    assert final_weights(tmp_path / "run") == weights
    kept = Tagging.read(f"{tmp_path}/run/tagging.json")
    assert main(["export", f"{tmp_path}/run", "-o", f"{tmp_path}/tagger.onnx"]) == 0
    manifest = Bundle(f"{tmp_path}/tagger.onnx").manifest
    assert manifest["classes"]["kind"] == list(kept.classes["upos"])
    assert manifest["words"] == {name: list(each.words) for name, each in kept.words.items()}
    capsys.readouterr()
    assert main(["eval", f"{tmp_path}/run", "--bundle", f"{tmp_path}/tagger.onnx", "--json"]) == 0
    of_bundle = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert of_bundle["test.upos.accuracy"] == expected["test.upos.accuracy"]
    other = tmp_path / "other.conllu"
    other.write_text(universal(parsed(["cães/NOUN/Masc ladram/VERB/_"])), encoding="utf-8")
    with pytest.raises(ModgraphError, match='"VERB" of line 5 is not a class of "upos"'):
        load_run(tmp_path / "run", test=str(other)).splits()
    other.write_text(universal(parsed(["cães/NOUN/Masc e/CCONJ/_"])), encoding="utf-8")
    assert load_run(tmp_path / "run", test=str(other)).splits()["test"].values["words"].tolist() == [
        [0, kept.words["words"].words.index("e")]
    ]
