"""Whatever becomes of a command's streams, memory and folder, it does its work or tells why not."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from modgraph_runtime.streams import keep_streams_open

from modgraph.cli import main
from modgraph.cli.surroundings import message_of
from tests.children import CLOSED, in_a_child

SMN = str(Path("specs/smn.mod").resolve())
WRONG = "model m() { input x: float[4] y = x -> liner(2) output y }"
LARGE = "model m() { input x: float[100] y = x -> linear(6 * 10**6) output y }"


@pytest.fixture
def broken() -> int:
    """A pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.fixture
def full() -> int:
    return os.open("/dev/full", os.O_WRONLY)


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    """A file to which a standard stream may lead."""
    return tmp_path / "paper"


def opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT)


@pytest.mark.parametrize(("text", "code"), [("", 0), (WRONG, 1)])
def test_the_exit_code_is_the_same_without_a_reader(tmp_path: Path, broken: int, text: str, code: int) -> None:
    spec = tmp_path / "m.mod"
    spec.write_text(text or Path(SMN).read_text())
    for arguments in (["check", "--json", str(spec)], ["check", str(spec)]):
        assert in_a_child(lambda given=arguments: main(given), broken, broken) == code  # type: ignore[misc]
        assert in_a_child(lambda given=arguments: main(given), CLOSED, CLOSED) == code  # type: ignore[misc]


def test_output_that_cannot_be_written_is_reported(full: int, paper: Path) -> None:
    assert in_a_child(lambda: main(["show", SMN]), full, opened(paper)) == 1
    assert "error[MG131]: the system refuses: no space left on device" in paper.read_text()


def test_messages_that_cannot_be_written_change_nothing(tmp_path: Path, full: int, paper: Path) -> None:
    (tmp_path / "m.mod").write_text(WRONG)
    assert in_a_child(lambda: main(["check", str(tmp_path / "m.mod")]), opened(paper), full) == 1
    assert in_a_child(lambda: main(["show", SMN]), opened(paper), full) == 0
    assert paper.read_text().startswith("module glimpses(")


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """The lowest free descriptor is the next file's: what is printed would end up in it."""
    target = tmp_path / "file"

    def write() -> int:
        with keep_streams_open(), target.open("w") as file:
            print("printed")
            print("a warning", file=sys.stderr)
            file.write("kept")
        return 0

    assert in_a_child(write, CLOSED, CLOSED) == 0
    assert target.read_text() == "kept"


def test_any_character_is_printed_in_any_encoding(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explain() -> int:
        sys.stdout.reconfigure(encoding="ascii")  # type: ignore[union-attr]
        return main(["explain", "contract"])

    assert in_a_child(explain, opened(paper), CLOSED) == 0
    assert "\\u03a3" in paper.read_text(encoding="ascii")


def test_warnings_that_are_errors_elsewhere_are_warnings_here(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["compile", SMN]) == 0


def test_too_little_memory_is_reported(tmp_path: Path, paper: Path) -> None:
    (tmp_path / "m.mod").write_text(LARGE)
    import modgraph.backends.report  # noqa: F401 - torch takes its own share first

    def compile_it() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + 2**30
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        return main(["compile", str(tmp_path / "m.mod")])

    assert in_a_child(compile_it, opened(paper), opened(paper)) == 1
    assert "error[MG130]: out of memory" in paper.read_text()


def test_a_bound_on_addresses_is_reported(tmp_path: Path) -> None:
    command = f"ulimit -v {2**26}; exec {sys.executable} -m modgraph visualize {SMN} -o {tmp_path}/net.svg"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert ran.returncode == 1
    assert "error[MG142]" in ran.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_gone_is_reported(tmp_path: Path, paper: Path) -> None:
    (tmp_path / "here").mkdir()

    def check() -> int:
        os.chdir(tmp_path / "here")
        (tmp_path / "here").rmdir()
        return main(["check", SMN])

    assert in_a_child(check, CLOSED, opened(paper)) == 1
    assert "error[MG132]" in paper.read_text()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        *(
            (command, "name too long")
            for command in ("check", "fmt", "show", "cost", "compile", "eval", "trace", "train")
        ),
        ("new", "at most 250 letters"),
    ],
)
def test_a_name_that_is_too_long_is_reported(command: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "a" * 300]) == 1
    assert words in capsys.readouterr().err


def test_what_is_a_fault_of_ours_stays_one() -> None:
    assert message_of(RuntimeError("shapes differ")) is None
    assert message_of(KeyError("memory")) is None
    message = message_of(OSError(errno.EIO, "Input/output error", "file"))
    assert message is not None
    assert message.text() == 'the system refuses "file": input/output error'
