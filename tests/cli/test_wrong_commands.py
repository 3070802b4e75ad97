"""Wrong commands: one clear message each, with a way out, and exit code 1 (refresh with --refresh)."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from modgraph.cli import main

GOLDEN = Path(__file__).parent / "golden" / "wrong_commands.txt"
WRONG = """\
chek m.mod
generate runs/m
check m.mod --recepie m.yaml
check m.yaml
check runs/m
check folder
fmt a.png
show m.mod --format xml
show m.mod runs/m
compile m.mod -o m.pt
compile m.onnx -o m.py
compile m.mod -o none/m.py
visualize m.mod -o a.png/m.svg
visualize m.mod -o m.jpg
cost a.png
train
train runs/m
train m.onnx
train m.mod --recipe m.mod
train m.mod --out a.png
train m.mod -s train.epochs
train m.mod -s train.epoch=3
train --resume m.mod
eval m.mod
eval m.onnx
export m.mod -o m.onnx
export runs/m
export runs/m -o m.pt
export runs/m -o none/m.onnx
predict m.mod a.png
predict runs/m nothing.png
predict runs/m a.png
predict runs/m x.npz --csv none/x.csv
run m.mod --input x.npz
run runs/m --input x.npz
trace m.mod
diff m.mod
new m
new 3d
new mine --from mixtrl
explain xyzzy
completion powershell
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a spec, its recipe, a run, a bundle, a folder of other files, and what is called an image."""
    folder = tmp_path_factory.mktemp("wrong")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["new", "m", "--task", "table", "-q"]) == 0
        assert main(["train", "m.mod", "-q", "-s", "train.epochs=1"]) == 0
        assert main(["export", "runs/m", "-o", "m.onnx", "-q"]) == 0
        Path("folder").mkdir()
        Path("a.png").write_text("no image")
    return folder


def test_wrong_commands_are_answered_with_a_way_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    before = sorted(folder.rglob("*"))
    found = []
    for line in WRONG.splitlines():
        capsys.readouterr()
        try:
            code = main(shlex.split(line))
        except SystemExit as error:
            assert isinstance(error.code, int)
            code = error.code
        answer = capsys.readouterr()
        assert code == 1, line
        assert answer.out == "", f"{line}: nothing goes to stdout"
        assert "Traceback" not in answer.err, line
        assert "  help: " in answer.err, f"{line}: there is a way out"
        text = answer.err[answer.err.index("error") :].rstrip()  # without how the command is used
        found.append(f"$ modgraph {line}\n{text}\n")
    assert sorted(folder.rglob("*")) == before, "nothing is written"
    text = "\n".join(found)
    if request.config.getoption("--refresh"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()
