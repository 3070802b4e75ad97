"""What is written can leave the machine: it says nothing of the folder that it was written in."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from modgraph.cli import main
from modgraph.prelude import HOME

BLOCKS = """
block narrow(width=8) {
  input x: float[d]
  y = x -> linear(width) -> relu
  output y
}
"""
SPEC = """
import narrow from "parts/blocks.mod"
model net(classes=10, experts=3) {
  input  image: float[1, 8, 8]
  target label: class[classes]
  pool   expert[experts] = linear(8)
  router pick = noisy_top_k(1)
  logits = image -> patch_embed(4, 8) -> narrow -> expert by pick -> mean -> linear(classes)
  output logits
  loss cross_entropy(logits, label)
  loss 0.01 * importance(pick)
}
"""
RECIPE = "data: {name: digits, limit: 40}\ntrain: {epochs: 1, batch: 20, threads: 1}\n"

Files = dict[str, bytes]
SECONDS = re.compile(rb'\["seconds",[\d.e-]+\]')  # in the page of a run


def in_two_folders(root: Path, write: Callable[[Path], object]) -> tuple[Files, Files]:
    """What is written in two folders whose paths are of different lengths, by the files' names within."""
    short, long = root / "s", root / "a_much_longer_name" / "of" / "a_folder"
    for folder in (short, long):
        write(write_files(folder))
    return _files(short), _files(long)


def write_files(folder: Path) -> Path:
    """A folder with a spec, what it imports, and its recipe."""
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "blocks.mod").write_text(BLOCKS)
    (folder / "net.mod").write_text(SPEC)
    (folder / "net.yaml").write_text(RECIPE)
    return folder


def _files(folder: Path) -> Files:
    """All but what holds times: the events of tensorboard, and the seconds of steps and trainings."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != "seconds.jsonl")
    paths = (path for path in paths if path.parent.name != "tensorboard")
    return {path.relative_to(folder).as_posix(): SECONDS.sub(b"", path.read_bytes()) for path in paths}


def assert_written_equally(found: tuple[Files, Files], root: Path, *expected: str) -> None:
    short, long = found
    assert set(expected) <= set(short), f"not written: {set(expected) - set(short)}"
    assert set(short) == set(long)
    places = {str(root), str(HOME), str(Path.cwd()), str(Path.home())} - {"/"}
    for name, content in long.items():
        assert [place for place in places if place.encode() in content] == [], f"{name} names a folder of the machine"
        assert content == short[name], f"{name} depends on the folder that it is written in"


def run(*words: object) -> None:
    assert main([*map(str, words)]) in (0, 2), words  # 2: two graphs differ


@pytest.mark.usefixtures("capsys")
def test_drawings_and_sources_of_a_spec_name_no_folder(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        spec = folder / "net.mod"
        for suffix in ("html", "svg", "dot", "mmd"):
            run("visualize", spec, "-o", folder / f"net.{suffix}")
        run("compile", spec, "-o", folder / "model.py")
        run("diff", spec, spec, "--set-after", "experts=4", "--html", folder / "diff.html")

    written = ("net.html", "net.svg", "net.dot", "net.mmd", "model.py", "diff.html")
    assert_written_equally(in_two_folders(tmp_path, write), tmp_path, *written)


def has_web() -> bool:
    """Whether what pages for browsers need is installed; where it is not, the bundle is written without its page."""
    if find_spec("modgraph_web") is None:
        return False
    import modgraph_web

    return modgraph_web.available()


@pytest.mark.slow
@pytest.mark.usefixtures("capsys")
def test_runs_their_pages_and_bundles_name_no_folder(tmp_path: Path) -> None:
    web = has_web()

    def write(folder: Path) -> None:
        trained, bundle = folder / "run", folder / "page" / "model.onnx"
        run("train", folder / "net.mod", "--out", trained)
        run("visualize", trained, "-o", folder / "before.html")
        run("trace", trained, "--html", folder / "trace.html", "-o", folder / "trace.json")
        run("visualize", trained, "-o", folder / "run.html")
        run("migrate", trained, "--to", folder / "net.mod", "-s", "experts=4", "--out", folder / "wider")
        run("diff", trained, folder / "wider", "--html", folder / "diff.html")
        if not web:
            bundle.parent.mkdir()
        run("export", trained, "-o", *([bundle.parent, "--web"] if web else [bundle]))
        run("visualize", bundle, "-o", folder / "bundle.html")
        run("diff", trained, bundle, "--html", folder / "exported.html")

    of_run = ("before.html", "run.html", "trace.html", "trace.json", "run/trace.json", "wider/start.json")
    exported = ("page/model.onnx", "page/model.json", "bundle.html", "diff.html", "exported.html")
    page = ("page/index.html", "page/page.json") if web else ()
    assert_written_equally(in_two_folders(tmp_path, write), tmp_path, *of_run, *exported, *page)


def test_a_run_names_the_folders_of_its_recipe_only_in_its_recipe(tmp_path: Path) -> None:
    """Whoever goes on from another folder finds the same files: that is what its recipe keeps paths for."""
    spec, first, second = write_files(tmp_path) / "net.mod", tmp_path / "first", tmp_path / "second"
    run("train", spec, "--out", first)
    run("train", spec, "--out", second, "-s", f"start.run={first}")
    named = {name for name, content in _files(second).items() if str(tmp_path).encode() in content}
    assert named == {"recipe.yaml"}
