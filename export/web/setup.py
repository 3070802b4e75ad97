"""Builds the package with what npm installs: ONNX Runtime and SHA-256 for pages of models; Python and an editor for the
playground. pyproject.toml has the rest.

npm checks what it installs against the digests in package-lock.json. Users of the package need no npm.
"""

import json
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
VENDOR = HERE / "modgraph_web" / "vendor"
MODULES = HERE / "node_modules"
LOCK, INSTALLED = HERE / "package-lock.json", MODULES / ".package-lock.json"
ORT, HASHES, PYODIDE = "onnxruntime-web", "@noble/hashes", "pyodide"
VENDORED = {
    ORT: ["dist/ort.wasm.min.mjs", "dist/ort-wasm-simd-threaded.mjs", "dist/ort-wasm-simd-threaded.wasm"],
    HASHES: ["sha2.js", "_md.js", "_u64.js", "utils.js", "LICENSE"],
    PYODIDE: ["pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"],
}
RENAMED = {"LICENSE": "LICENSE-noble-hashes"}
FOLDERS = {PYODIDE: "pyodide"}  # of packages that do not stand in the folder itself
LICENCES = HERE / "licences"  # licences of packages that contain none
# The editor, unbundled: each package is one module, which imports the others by the names of their packages.
EDITOR = {
    "@codemirror/autocomplete": "dist/index.js",
    "@codemirror/commands": "dist/index.js",
    "@codemirror/language": "dist/index.js",
    "@codemirror/legacy-modes": "mode/yaml.js",
    "@codemirror/lint": "dist/index.js",
    "@codemirror/lsp-client": "dist/index.js",
    "@codemirror/search": "dist/index.js",
    "@codemirror/state": "dist/index.js",
    "@codemirror/streamparser": "dist/index.js",
    "@codemirror/view": "dist/index.js",
    "@lezer/common": "dist/index.js",
    "@lezer/highlight": "dist/index.js",
    "@marijn/find-cluster-break": "src/index.js",
    "codemirror": "dist/index.js",
    "crelt": "index.js",
    "dompurify": "dist/purify.es.mjs",
    "fflate": "esm/browser.js",
    "marked": "lib/marked.esm.js",
    "style-mod": "src/style-mod.js",
    "w3c-keyname": "index.js",
}
NO_NPM = "error: building modgraph-web needs npm, which is not here: install Node 20 or newer, then build it again"


class BuildWithLibraries(build_py):
    """Copies the vendored libraries into the package, then builds it."""

    def run(self) -> None:
        if not is_installed():
            install()
        for package, files in VENDORED.items():
            for file in files:
                name = Path(file).name
                copy(MODULES / package / file, VENDOR / FOLDERS.get(package, "") / RENAMED.get(name, name))
        for licence in LICENCES.iterdir():
            copy(licence, VENDOR / licence.name)
        for package, module in EDITOR.items():
            name = package.removeprefix("@").replace("/", "-")
            copy(MODULES / package / module, VENDOR / "editor" / f"{name}.js")
            copy(find_licence(MODULES / package), VENDOR / "editor" / f"LICENSE-{name}")
        super().run()


def copy(file: Path, target: Path) -> None:
    """Copy a file, and make its folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)


def find_licence(package: Path) -> Path:
    """The licence that a package contains."""
    return next(path for path in sorted(package.iterdir()) if path.stem.upper() in ("LICENSE", "LICENCE"))


def is_installed() -> bool:
    """Whether npm has installed exactly what the lock file asks for."""
    if not INSTALLED.exists():
        return False
    wanted, found = (json.loads(path.read_text())["packages"] for path in (LOCK, INSTALLED))
    keys = [f"node_modules/{package}" for package in (*VENDORED, *EDITOR)]
    return all(found.get(key, {}).get("integrity") == wanted[key]["integrity"] for key in keys)


def install() -> None:
    """Install the npm packages. Raises `SystemExit` if that fails."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit(NO_NPM)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: npm could not install what modgraph-web needs:\n{done.stderr}")


setup(cmdclass={"build_py": BuildWithLibraries})
