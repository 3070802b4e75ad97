"""modgraph is imported from any folder, the checkout's own included, and from every form that it is installed in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import lark
import modgraph_web
import pytest
from setuptools import build_meta

import modgraph
from tests.children import output_of_child

CHECKOUT = Path(__file__).parents[1]
PROJECTS = ("grammar", "export/runtime", "export/web", ".")  # folders that hold a pyproject.toml
MODEL = "model m() { input x: float[2] output x }"


@pytest.mark.parametrize("there", ["checkout", "elsewhere"])
def test_modgraph_runs_as_a_module_from_any_folder(there: str, tmp_path: Path) -> None:
    folder = CHECKOUT if there == "checkout" else tmp_path
    spec = CHECKOUT / "specs" / "smn.mod"
    command = [sys.executable, "-m", "modgraph", "check", str(spec)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    code = f"import modgraph; print(modgraph.loads({MODEL!r}).ir.name)"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("m\n", "")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout's files, without what building leaves there."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in _files("."):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, folder / name)
    return folder


@pytest.mark.parametrize(
    "kind", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("wheel", "editable")), "sdist"]
)
def test_every_installation_runs_from_any_folder(kind: str, copy: Path, tmp_path: Path) -> None:
    installed = tmp_path / "site-packages"
    for project in ("grammar", "export/runtime", "."):
        source = copy / project
        if kind == "sdist":
            shutil.unpack_archive(_build("sdist", source, tmp_path), tmp_path / project, filter="data")
            [source] = (each.parent for each in (tmp_path / project).glob("modgraph*-*/PKG-INFO"))
        with zipfile.ZipFile(_build("editable" if kind == "editable" else "wheel", source, tmp_path)) as wheel:
            wheel.extractall(installed)
    libraries = Path(lark.__file__).parents[1]
    code = f"""
import runpy, site, sys
site.addsitedir({str(installed)!r})
sys.path.append({str(libraries)!r})
import modgraph, modgraph_grammar
print(modgraph.loads({MODEL!r}).ir.name, modgraph.__file__, modgraph_grammar.__file__, flush=True)
for words in sys.argv[1:]:
    sys.argv = ["modgraph", *words.split()]
    try:
        runpy.run_module("modgraph", run_name="__main__")
    except SystemExit as end:
        assert not end.code, words
"""
    commands = ("new mine --from zoo/mixtral", "check mine.mod", "--version")
    whole, grammar = (copy, copy / "grammar") if kind == "editable" else (installed, installed)
    for folder, found, words in ((tmp_path, whole, commands), (copy, copy, ())):
        done = subprocess.run([sys.executable, "-ESsc", code, *words], cwd=folder, capture_output=True, text=True)
        expected = f"m {found / 'modgraph/__init__.py'} {grammar / 'modgraph_grammar/__init__.py'}\n"
        assert done.stdout.startswith(expected) and (done.returncode, done.stderr) == (0, ""), f"imported from {folder}"
        assert not words or done.stdout.endswith(f"modgraph {modgraph.__version__}\n"), "its version is printed"
    assert (tmp_path / "mine.mod").exists() and (tmp_path / "mine.yaml").exists(), "a shipped spec is copied"


def _build(kind: str, source: Path, folder: Path) -> Path:
    """The path of what setuptools builds of a project: a wheel, an sdist, or the wheel of an editable install."""

    def build() -> int:
        os.chdir(source)
        sys.argv = ["setup.py"]
        print(getattr(build_meta, f"build_{kind}")(str(folder)), flush=True)
        return 0

    code, printed = output_of_child(build)
    assert code == 0, printed
    return folder / printed.splitlines()[-1]


def test_modgraph_needs_its_sibling_packages_in_their_present_versions() -> None:
    records = {name: tomllib.loads((CHECKOUT / name / "pyproject.toml").read_text())["project"] for name in PROJECTS}
    whole = records.pop(".")
    needed = [*whole["dependencies"], *whole["optional-dependencies"]["web"]]
    for name, record in records.items():
        assert f"{record['name']}=={record['version']}" in needed, f"{name}/pyproject.toml names another version"
        assert record["version"] == modgraph.__version__, f"{name}/pyproject.toml: all packages have one version"


def test_one_command_gives_all_packages_a_version(copy: Path) -> None:
    script = copy / ".ci" / "set-version"
    before = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (before.stdout, before.stderr) == (f"{modgraph.__version__}\n", ""), "all places agree"
    try:
        subprocess.run([sys.executable, script, "9.8.7"], check=True)
        after = subprocess.run([sys.executable, script], capture_output=True, text=True)
        assert after.stdout == "9.8.7\n"
        assert "modgraph-web==9.8.7" in (copy / "pyproject.toml").read_text()
        (copy / "grammar" / "pyproject.toml").write_text('version = "1.0.0"\n')
        wrong = subprocess.run([sys.executable, script], capture_output=True, text=True)
        assert (wrong.returncode, wrong.stderr) == (1, "grammar/pyproject.toml: 1.0.0\n"), "who differs is named"
    finally:
        for name in _files("."):
            shutil.copy(CHECKOUT / name, copy / name)


@pytest.mark.slow
def test_modgraph_web_is_built_with_its_libraries(copy: Path, tmp_path: Path) -> None:
    installed = CHECKOUT / "export" / "web" / "node_modules"
    if not (installed / ".package-lock.json").exists():
        pytest.skip("needs npm ci --ignore-scripts --prefix export/web")
    web = copy / "export" / "web"
    (web / "node_modules").symlink_to(installed)
    with zipfile.ZipFile(_build("wheel", web, tmp_path)) as wheel:
        assert {f"modgraph_web/{name}" for name in modgraph_web.NAMES} <= {*wheel.namelist()}
    assert _build("sdist", web, tmp_path).name == f"modgraph_web-{modgraph.__version__}.tar.gz"


@pytest.mark.parametrize("project", PROJECTS)
def test_every_file_that_is_no_python_is_listed_as_package_data(project: str) -> None:
    """A wheel holds no other: the grammar, the pages' scripts and styles, the layout library with its licence."""
    home = CHECKOUT / project
    data = tomllib.loads((home / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    listed = {
        path
        for package, globs in data.items()
        for glob in globs
        for path in (home / package.replace(".", "/")).glob(glob)
    }
    packages = {package.partition(".")[0] for package in data}
    tracked = {CHECKOUT / name for package in packages for name in _files(f"{project}/{package}")}
    assert tracked, f"{project} has no files"
    assert {path for path in tracked if path.suffix != ".py"} - listed == set()


def _files(folder: str) -> list[str]:
    """The files of a folder of the checkout that are, or may be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if (CHECKOUT / name).exists()]
