"""`modgraph explain`: an index by subject without a word, and pages of keys and commands besides the vocabulary."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import modgraph
from modgraph.cli import main
from modgraph.cli.main import COMMANDS
from modgraph.cli.metric_pages import EXAMPLE
from modgraph.cli.reference import recipe_keys, write_commands
from modgraph.diagnostics import Diagnostic
from modgraph.ops.measures import ACCURACY, PERPLEXITY, SQUARED_ERROR
from modgraph.recipes.metrics import REQUESTED_METRICS
from modgraph.recipes.optimizers import Optimizer
from modgraph.training.sections import Train


def explain(word: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["explain", word]) == 0
    return capsys.readouterr().out


def test_the_index_has_every_subject(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    printed = capsys.readouterr().out
    for title in (
        "the language:",
        "ops:",
        "  losses",
        "  routers",
        "recipes:",
        "  data sets",
        "commands:",
        "  messages",
    ):
        assert f"\n{title}" in printed, title
    listed = printed.replace("\n", " ")
    for word in (*COMMANDS, *Train.settings(), *Optimizer.registry, "cross_entropy", "noisy_top_k"):
        assert f" {word}" in listed, word
    counted = sum(int(part.split(")")[0]) for part in printed.split("messages")[-1].split("(")[1:])
    assert counted == len(Diagnostic.catalogue), "each message is in one of the hundreds"


def test_a_key_is_explained_by_its_path_or_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    page = explain("train.epochs", capsys)
    assert "passes over the training data" in page
    assert "10 where it is not given" in page
    assert "-s train.epochs=" in page
    assert explain("epochs", capsys) == page
    assert "written train: {early_stop: {patience: …}}" in explain("patience", capsys)
    assert "one of adam, adamw, sgd" in explain("train.optimizer", capsys)
    assert "labels: {NAME: {missing: …}}" in explain("train.labels.missing", capsys)


@pytest.mark.parametrize("path", recipe_keys())
def test_every_key_has_a_page(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{path}: a key of recipes" in explain(path.replace(".NAME", ""), capsys)


def test_a_word_may_mean_several_things(capsys: pytest.CaptureFixture[str]) -> None:
    page = explain("train", capsys)
    assert "train: a section of recipes" in page
    assert "modgraph train: a command" in page
    assert "linear" in explain("linear", capsys)
    compile_page = explain("compile", capsys)
    assert "train.compile: a key of recipes" in compile_page
    assert "usage: modgraph compile" in compile_page


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_page(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"usage: modgraph {command} " in explain(command, capsys)


@pytest.mark.parametrize(
    ("word", "meant"), [("epoch", "epochs"), ("predct", "predict"), ("train.epoch", "train.epochs")]
)
def test_a_misspelt_key_or_command_is_suggested(word: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", word]) == 1
    assert f'did you mean "{meant}"?' in capsys.readouterr().err


def test_explain_imports_neither_torch_nor_numpy() -> None:
    script = "import sys; from modgraph.cli import main; main(['explain']); main(['explain', 'epochs']); "
    script += "assert not {'torch', 'numpy'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_reference_of_commands_is_that_of_the_commands() -> None:
    assert Path("docs/commands.md").read_text() == write_commands() + "\n", (
        "run: modgraph explain --commands > docs/commands.md"
    )


def test_it_is_explained_how_numbers_of_a_spec_move_and_where_they_are_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for word in ("train.states", "state"):
        page = explain(word, capsys)
        assert "without a rule" in page.lower()
        assert "metrics.jsonl" in page and "state.NAME" in page
    assert "`next bias = …`" in explain("state", capsys)
    assert "modules do not run" in explain("relu", capsys)


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("H_a", "entropy of a decision"),
        ("layer.0.expert.H_b", "entropy of the mean distribution"),
        ("use.3", "share of the choices"),
        ("expert.use.0", "share of the choices"),
        ("validation.accuracy", "likeliest class"),
        ("total_loss", "sum of all losses"),
        ("data", "class_folders"),
        ("data.test", "of npz: test"),
        ("data.held_out", "of image_folders: held_out"),
        ("digits", "1,797"),
        ("npz", "test_fraction"),
    ],
)
def test_what_a_training_prints_and_reads_has_a_page(word: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in explain(word, capsys)


def test_every_metric_has_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    for name in (*REQUESTED_METRICS, ACCURACY.name, PERPLEXITY.name, SQUARED_ERROR.name):
        assert f"{name}: a metric" in explain(name, capsys), name


@pytest.mark.parametrize("word", ["MoE", "moe", "mixture of experts", "mixture_of_experts", "gating", "gate", "expert"])
def test_words_for_a_mixture_of_experts_lead_to_pools_and_routers(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = explain(word, capsys)
    assert all(f"    {line}\n" in page for line in EXAMPLE), page
    body = "\n".join(EXAMPLE)
    assert modgraph.loads(f"model m() {{ input x: float[8] {body} output y }}").ir.pools(), "it is a valid spec"


@pytest.mark.parametrize("word", ["data.nothing", "accuracy.3", "H_c"])
def test_what_is_no_metric_and_no_key_is_unknown(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", word]) == 1
    assert f'unknown name "{word}"' in capsys.readouterr().err
