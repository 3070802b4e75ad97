"""The page on how modgraph works: its example prints what it says, and the files that it names exist."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from modgraph.cli import main

PAGE = Path("docs/architecture.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S)
ROOMS = ("", "modgraph")


def blocks(language: str) -> str:
    return "".join(text for each, text in BLOCKS if each == language)


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.mod").write_text(blocks("mod"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("spec")
@pytest.mark.parametrize("block", blocks("console").split("$ modgraph ")[1:], ids=lambda text: text.partition(" ")[0])
def test_a_command_of_the_example_prints_what_the_page_contains(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, _, expected = block.partition("\n")
    assert main(shlex.split(command)) == 0, f"modgraph {command} fails"
    printed = capsys.readouterr().out
    fits = doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS)
    assert fits, f"docs/architecture.md: modgraph {command} prints\n{printed}"


@pytest.mark.usefixtures("spec")
def test_the_python_of_the_example_prints_what_the_page_contains() -> None:
    example = doctest.DocTestParser().get_doctest(blocks("pycon"), {}, "architecture", "docs/architecture.md", 0)
    report: list[str] = []
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)


def test_the_files_that_the_page_names_exist() -> None:
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.S)
    named = set(re.findall(r"`([\w/-]+/[\w/.-]+|\w+\.(?:py|lark|md))`", prose))
    everywhere = {path.name for path in (*Path("modgraph").rglob("*.py"), *Path("grammar").rglob("*.lark"))}
    missing = {
        name for name in named if name not in everywhere and not any(Path(room, name).exists() for room in ROOMS)
    }
    assert not missing, f"docs/architecture.md names {', '.join(sorted(missing))}"
