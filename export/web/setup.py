"""Builds the package with two npm packages: ONNX Runtime for the web, and SHA-256. pyproject.toml has the rest.

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
ORT, HASHES = "onnxruntime-web", "@noble/hashes"
VENDORED = {
    ORT: ["dist/ort.wasm.min.mjs", "dist/ort-wasm-simd-threaded.mjs", "dist/ort-wasm-simd-threaded.wasm"],
    HASHES: ["sha2.js", "_md.js", "_u64.js", "utils.js", "LICENSE"],
}
RENAMED = {"LICENSE": "LICENSE-noble-hashes"}
LICENCES = HERE / "licences"  # licences of packages that contain none
NO_NPM = "error: building modgraph-web needs npm, which is not here: install Node 20 or newer, then build it again"


class BuildWithLibraries(build_py):
    """Copies the vendored libraries into the package, then builds it."""

    def run(self) -> None:
        if not is_installed():
            install()
        VENDOR.mkdir(exist_ok=True)
        for package, files in VENDORED.items():
            for file in files:
                name = Path(file).name
                shutil.copyfile(MODULES / package / file, VENDOR / RENAMED.get(name, name))
        for licence in LICENCES.iterdir():
            shutil.copyfile(licence, VENDOR / licence.name)
        super().run()


def is_installed() -> bool:
    """Whether npm has installed exactly what the lock file asks for."""
    if not INSTALLED.exists():
        return False
    wanted, found = (json.loads(path.read_text())["packages"] for path in (LOCK, INSTALLED))
    keys = [f"node_modules/{package}" for package in VENDORED]
    return all(found.get(key, {}).get("integrity") == wanted[key]["integrity"] for key in keys)


def install() -> None:
    """Install the npm packages. Raises `SystemExit` if that fails."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit(NO_NPM)
    command = [npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: npm could not install what modgraph-web needs:\n{done.stderr}")


setup(cmdclass={"build_py": BuildWithLibraries})
