"""What the commands say of themselves, and how much they say while they work."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.cli.main import COMMANDS, GROUPS, parser


def examples_of(command: str) -> list[str]:
    """The command lines in a command's help, without what a shell does with their output."""
    lines = import_module(f"modgraph.cli.{command}_command").USAGE
    return [line.partition(" >")[0].removeprefix("modgraph ") for line in lines]


def test_every_command_stands_in_one_group() -> None:
    assert sorted(" ".join(GROUPS.values()).split()) == sorted(COMMANDS), "a command is missing, or stands twice"


def test_help_lists_commands_by_group_in_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    for group, names in GROUPS.items():
        at = lines.index(f"{group}:")
        listed = lines[at + 1 : at + 1 + len(names.split())]
        assert [line.split()[0] for line in listed] == names.split(), group
        assert all(len(line) < 120 and line.endswith(".") for line in listed), f"a line each, and whole: {listed}"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_examples_that_parse(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    printed = capsys.readouterr().out
    assert "for example:" in printed
    for line in examples_of(command):
        assert f"  modgraph {line}" in printed, "the help has the example"
        words = shlex.split(line)
        assert parser(words).parse_args(words).command == command, f"{line} is no line of {command}"


CHEAP = ("new", "check", "fmt", "show", "cost", "diff", "visualize", "explain", "completion")


def test_examples_in_help_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in CHEAP:
        for line in examples_of(command):
            expected = 2 if command == "diff" else 0
            assert main(shlex.split(line)) == expected, line


def test_quiet_leaves_cautions_out_and_errors_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mod").write_text("model m() { input x: float[4] y = x -> linear(3) z = x -> linear(2) output y }")
    assert main(["show", str(tmp_path / "m.mod")]) == 0
    loud = capsys.readouterr()
    assert "warning[MG" in loud.err
    assert main(["show", str(tmp_path / "m.mod"), "-q"]) == 0
    assert capsys.readouterr() == (loud.out, ""), "the result, and nothing else"
    assert main(["show", str(tmp_path / "none.mod"), "--quiet"]) == 1
    assert "error[MG" in capsys.readouterr().err


def test_verbose_says_what_is_read_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, drawing = tmp_path / "m.mod", tmp_path / "m.svg"
    spec.write_text("model m() { input x: float[4] y = x -> linear(3) output y }")
    assert main(["visualize", str(spec), "-o", str(drawing), "--verbose"]) == 0
    printed = capsys.readouterr().err
    assert f"read {spec}" in printed
    assert f"wrote {drawing}" in printed


def test_verbose_says_what_a_training_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "m", "--task", "table"]) == 0
    assert main(["train", "m.mod", "-v", "-s", "train.epochs=1"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert "examples: 2,000 of train, 1,000 of test; on cpu, in float32" in lines
    assert "the checkpoint of step 63, epoch 1, is taken" in lines
    assert lines.count("read m.yaml") == 1, "what is read twice is said once"


def test_quiet_and_verbose_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["check", "m.mod", "-q", "-v"])
    assert caught.value.code == 1
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--version"], ["--help"]])
def test_what_needs_no_work_imports_nothing_heavy(words: list[str]) -> None:
    script = (
        "import sys; from modgraph.cli import main\n"
        f"try: main({words!r})\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'lark', 'networkx', 'yaml', 'logging'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
