"""The files with which a page runs exported models: an ES module, and the WebAssembly of ONNX Runtime.

The scripts stand next to this file. Building the package puts libraries into `vendor`.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["MissingWebAssembly", "available", "files"]

FOLDER = Path(__file__).parent
SCRIPTS = [
    f"{name}.js"
    for name in (
        "modgraph bundle arrays errors generation integrity manifest ports preprocess source steps tokenizer".split()
    )
]
WEBASSEMBLY = ["ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"]
DIGESTS = ["sha2.js", "_md.js", "_u64.js", "utils.js"]
LICENCES = ["LICENSE-onnxruntime", "LICENSE-noble-hashes"]
NAMES = [*SCRIPTS, *(f"vendor/{name}" for name in (*WEBASSEMBLY, *DIGESTS, *LICENCES))]


class MissingWebAssembly(FileNotFoundError):
    """The package was not built: the files from npm are missing."""


def files() -> dict[str, Path]:
    """Find the files that a page needs, by their paths below the folder of `modgraph.js`.

    Raises `MissingWebAssembly`.
    """
    found = {name: FOLDER / name for name in NAMES}
    missing = next((name for name, path in found.items() if not path.is_file()), None)
    if missing is not None:
        raise MissingWebAssembly(
            f'modgraph_web has no "{missing}": install it with pip install ./export/web, which needs npm (Node 20) once'
        )
    return found


def available() -> bool:
    """Whether all of these files exist."""
    return all((FOLDER / name).is_file() for name in NAMES)
