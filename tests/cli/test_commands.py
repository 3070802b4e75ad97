"""The commands of the front end: what they print, their exit codes, and what they never load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from modgraph.cli import main
from tests.work import count_calls

SMN = "specs/smn.mod"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "modgraph", *arguments], capture_output=True, text=True)


def test_a_sound_spec_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", SMN]) == 0
    assert capsys.readouterr() == ("", "")


def test_mistakes_of_several_specs_go_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.mod").write_text("model a() { input x: float[4] y = x -> liner(3) output y }")
    (tmp_path / "b.mod").write_text("model b() { input x: flot[4] output x }")
    assert main(["check", str(tmp_path / "a.mod"), SMN, str(tmp_path / "b.mod")]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "error[MG202]" in printed.err
    assert "error[MG302]" in printed.err
    assert "2 errors" in printed.err


def test_messages_come_as_json_for_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.mod").write_text("model a() {\n  input x: float[4]\n  y = x -> liner(3)\n  output y\n}")
    assert main(["check", "--json", str(tmp_path / "a.mod")]) == 1
    (message,) = json.loads(capsys.readouterr().out)
    assert (message["code"], message["severity"], message["line"], message["column"]) == ("MG202", "error", 3, 12)
    assert message["help"] == 'did you mean "linear"?'


def test_cost_prints_the_four_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", SMN, "-s", "bias=true", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert set(counts) == {"parameters", "trainable", "macs", "active_macs", "nodes", "lengths"}
    assert counts["parameters"] == counts["trainable"] == 131_210
    assert set(counts["nodes"]["agree"]) == {"parameters", "trainable", "macs", "active_macs"}
    assert main(["cost", SMN]) == 0
    assert "131,210" not in capsys.readouterr().out


def test_show_prints_the_graph_and_what_passes_make_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", SMN]) == 0
    assert "lowering" not in capsys.readouterr().out
    for name, has_loss in (("lower", False), ("inference.lower", False), ("training.lower", True)):
        assert main(["show", SMN, "--after", name]) == 0
        lowered = capsys.readouterr().out
        assert "lowering factorised" in lowered
        assert ("cross_entropy" in lowered) == has_loss
    assert main(["show", SMN, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "smn"


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "missing.mod"],
        ["check", SMN, "-s", "x"],
        ["check", SMN, "-s", "=3"],
        ["check", SMN, "-s", "modulse=3"],
        ["check", SMN, "-s", "modules=["],
        ["cost", SMN, "--length", "time"],
        ["show", "specs"],
        ["show", SMN, "--after", "training.determinize"],
        ["trace", "specs"],
        ["trace", "specs", "-o", "trace.gif"],
    ],
)
def test_the_users_mistakes_exit_with_one(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    assert "error[MG" in capsys.readouterr().err


def test_a_pass_that_is_none_is_reported_with_those_of_both_pipelines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", SMN, "--after", "nothing"]) == 1
    printed = capsys.readouterr().err
    assert "error[MG150]" in printed
    for name in ("training.lower", "inference.inference", "inference.determinize", "inference.lower"):
        assert name in printed


@pytest.mark.parametrize("arguments", [[], ["chek"], ["check"], ["show", SMN, "--format", "xml"]])
def test_wrong_usage_exits_with_one(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 1
    assert "usage" in capsys.readouterr().err


def test_python_m_modgraph_is_the_command() -> None:
    assert run("check", SMN).returncode == 0
    assert run("--version").stdout.startswith("modgraph ")


@pytest.mark.parametrize("command", [["check", SMN], ["show", SMN], ["cost", SMN, "--json"]])
def test_the_front_end_never_loads_torch(command: list[str]) -> None:
    script = (
        "import sys; from modgraph.cli import main; "
        f"code = main({command!r}); loaded = {{'torch', 'onnx', 'numpy'}} & set(sys.modules); "
        "sys.exit(f'loaded {loaded}' if loaded else code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_pipe_that_closes_early_is_no_fault() -> None:
    command = f"{sys.executable} -m modgraph show {SMN} | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def generated(statements: int) -> str:
    lines = [f"  x{i} = x{i - 1} -> linear(4) -> relu" for i in range(1, statements + 1)]
    return "\n".join(["model m() {", "  input x0: float[4]", *lines, f"  output x{statements}", "}"])


def test_checking_takes_work_in_proportion_to_the_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mod"

    def calls(statements: int) -> int:
        path.write_text(generated(statements))
        with count_calls() as work:
            assert main(["check", str(path)]) == 0
        return work.calls

    calls(1)  # what is done once a process
    assert calls(1200) < 4.5 * calls(300), "four times the statements"


UNTIDY = "model m(){input x: float[4] y=x->linear(2) output y}"


def test_formatting_keeps_links_and_permissions(tmp_path: Path) -> None:
    (tmp_path / "m.mod").write_text(UNTIDY)
    (tmp_path / "m.mod").chmod(0o600)
    (tmp_path / "link.mod").symlink_to("m.mod")
    assert main(["fmt", str(tmp_path / "link.mod")]) == 0
    assert (tmp_path / "link.mod").is_symlink()
    assert (tmp_path / "m.mod").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "m.mod").read_text() != UNTIDY


@pytest.mark.parametrize("kind", ["hard link", "write-protected"])
def test_formatting_refuses_what_it_cannot_replace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path = tmp_path / "m.mod"
    path.write_text(UNTIDY)
    if kind == "hard link":
        (tmp_path / "other.mod").hardlink_to(path)
    else:
        path.chmod(0o444)
    assert main(["fmt", str(path)]) == 1
    assert kind in capsys.readouterr().err
    assert path.read_text() == UNTIDY
