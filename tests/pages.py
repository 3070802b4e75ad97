"""Runs the blocks of a page of Markdown, in their order and in the current folder.

A block with a title is written to a file. `mod` blocks are checked, `python` blocks without a title executed. Lines of
a `console` block that begin with `$` are run, and print what follows them. Lines of a `sh` block are only parsed.
`python -m tests.pages FILE…` runs pages in a temporary folder and renews what their commands print.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from modgraph.cli import main
from modgraph.cli.main import parser

CHECKOUT = Path(__file__).parents[1]
FENCE = re.compile(r'^( *)```(\w+)(?: title="([^"]+)")?\n(.*?)^ *```$', re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+\.\d+(e[-+]?\d+)?|\d+e-\d+")
LINES = doctest.OutputChecker()


@dataclass(frozen=True)
class Block:
    """A block of code of a page: its language, the file that it is, and its text."""

    language: str
    title: str | None
    text: str
    line: int


def read_blocks(page: Path) -> list[Block]:
    """The blocks of a page, in their order."""
    text = page.read_text()
    return [
        Block(
            found[2],
            found[3],
            re.sub(rf"^{found[1]}", "", found[4], flags=re.MULTILINE),
            text[: found.start()].count("\n") + 1,
        )
        for found in FENCE.finditer(text)
    ]


def run_page(page: Path, without: str = "") -> None:
    """Run a page's blocks in the current folder, `without` untitled ones of a language. Raises `AssertionError` with
    the place."""
    names: dict[str, object] = {"__name__": "page"}
    for block in read_blocks(page):
        place = f"{page}:{block.line}"
        if block.title is not None:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text)
        elif block.language == without:
            continue
        match block.language:
            case "mod":
                check_spec(block, place)
            case "console":
                for command, expected in split_commands(block.text):
                    printed = run_command(command, place)
                    assert agrees(expected, printed), (
                        f"{place}: {command} prints (python -m tests.pages renews it)\n{printed}"
                    )
            case "sh":
                for command in block.text.replace("\\\n", " ").splitlines():
                    read_command(command, place)
            case "python" if block.title is None:
                exec(compile(block.text, place, "exec"), names)
            case "pycon":
                report: list[str] = []
                example = doctest.DocTestParser().get_doctest(block.text, names, place, str(page), block.line)
                runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
                runner.run(example, out=report.append, clear_globs=False)
                names.update(example.globs)
                assert not report, "".join(report)


def check_page(page: Path) -> None:
    """Check a page's specs and parse its commands, which is quick. Raises `AssertionError` with the place."""
    for block in read_blocks(page):
        place = f"{page}:{block.line}"
        if block.title is not None:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text)
        if block.language == "mod":
            check_spec(block, place)
        elif block.language == "console":
            for command, _ in split_commands(block.text):
                read_command(command, place)


def check_spec(block: Block, place: str) -> None:
    """A spec, or a file of blocks alone, has the one layout and no mistake, unless a comment announces one."""
    path = Path(block.title or "block.mod")
    path.write_text(block.text)
    with contextlib.redirect_stderr(io.StringIO()) as report:
        code = main(["check", str(path)])
    wanted = int("# a mistake" in block.text)
    assert code == wanted, f"{place}: {report.getvalue()}"
    if code == 0:
        assert main(["fmt", "--check", str(path)]) == 0, f"{place} is laid out otherwise"


def split_commands(text: str) -> Iterator[tuple[str, str]]:
    """The command lines of a console, each with what it prints."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def run_command(command: str, place: str) -> str:
    """What a command line prints, mistakes included: `modgraph …`, `python FILE`, `cat FILE`, or an assignment."""
    words = shlex.split(command, comments=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        match words:
            case ["modgraph", *arguments]:
                code = main(arguments)
                assert code in ((0, 2) if arguments[0] == "diff" else (0, 1)), (
                    f"{place}: {command}\n{printed.getvalue()}"
                )
                assert code != 1 or "error" in printed.getvalue(), f"{place}: {command}\n{printed.getvalue()}"
            case ["python", file]:
                runpy.run_path(file, run_name="__main__")
            case ["cat", file]:
                print(Path(file).read_text(), end="")
            case _:
                raise AssertionError(f"{place}: no test runs {command}")
    return printed.getvalue()


def read_command(command: str, place: str) -> None:
    """A command line of modgraph is one that its parser takes, and the specs that it names exist."""
    found = re.search(r"(?:^|\s)modgraph ([a-z].*)", command.partition("  #")[0])
    if found is None:
        return
    words = [word for word in shlex.split(found[1], comments=True) if word not in ("&&", "&")]
    with contextlib.redirect_stderr(io.StringIO()) as report:
        try:
            parser(words).parse_args(words)
        except SystemExit as end:
            assert end.code == 0, f"{place}: {command}\n{report.getvalue()}"
    for name in re.findall(r"\bspecs/[\w/]+\.\w+", command):
        assert (CHECKOUT / name).exists(), f"{place}: there is no {name}"


def agrees(expected: str, printed: str) -> bool:
    """Whether a text is what was printed, but for decimal fractions, the width of blanks, and what `...` stands for."""
    wanted, got = (re.sub(r"[ \t]+", " ", NUMBER.sub("0.0", text)).strip() for text in (expected, printed))
    return not expected or LINES.check_output(wanted.replace("\n...", "...") + "\n", got + "\n", doctest.ELLIPSIS)


def renew_page(page: Path) -> None:
    """Run a page and renew what its commands print, but where `...` leaves something out."""
    text = page.read_text()
    for block in read_blocks(page):
        if block.title is not None:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text)
        if block.language == "console":
            for command, expected in split_commands(block.text):
                printed = run_command(command, f"{page}:{block.line}")
                if "..." in expected:
                    continue
                line = next(each for each in block.text.splitlines() if each.startswith(f"$ {command[:20]}"))
                assert f"{line}\n{expected}" in text, f"{page}:{block.line}: write {command} in one line"
                text = text.replace(f"{line}\n{expected}", f"{line}\n{printed}", 1)
    page.write_text(text)


if __name__ == "__main__":
    for each in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            Path("specs").symlink_to(CHECKOUT / "specs")
            renew_page(CHECKOUT / each)
