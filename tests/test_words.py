"""Names and messages are in the words of the glossary."""

from __future__ import annotations

from pathlib import Path

from tests.words import FOLDERS, find_words, is_no_verb, replaced_words, split_name


def test_names_and_messages_are_in_the_words_of_the_glossary() -> None:
    found = [*find_words(Path(__file__).parents[1], FOLDERS)]
    assert not found, "\n".join(["say it in the words of docs/glossary.md:", *found])


def test_a_word_that_the_glossary_replaces_is_found(tmp_path: Path) -> None:
    (tmp_path / "modgraph").mkdir()
    (tmp_path / "modgraph/errors.py").write_text('"""Told."""\n\n\ndef moved(beside):\n    return "it was told"\n')
    assert [*find_words(tmp_path, ("modgraph",))] == [
        "modgraph/errors.py:4: beside says 'beside'",
        "modgraph/errors.py:5: a message says 'told'",
        "modgraph/errors.py:4: moved() is no verb",
    ]


def test_a_word_in_javascript_is_found_but_in_texts_and_comments(tmp_path: Path) -> None:
    (tmp_path / "modgraph").mkdir()
    script = '// it was told\nconst told = "told", a = `shown\n`;\nfunction nameBeside() {} // beside\n'
    (tmp_path / "modgraph/page.js").write_text(script)
    assert [*find_words(tmp_path, ("modgraph",))] == [
        "modgraph/page.js:2: told says 'told'",
        "modgraph/page.js:4: nameBeside says 'beside'",
    ]


def test_words_are_parts_of_names() -> None:
    assert {"told", "chosen"} <= replaced_words()
    assert is_no_verb("_of_one")
    assert is_no_verb("laid_out")
    assert not is_no_verb("embed_tokens")
    assert not is_no_verb("to_json")
    assert split_name("held_out") == ["heldout"]
