"""The files with which a page runs exported models, and the playground runs Python: scripts, and vendored libraries.

The scripts stand next to this file. Building the package puts libraries into `vendor`.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["MissingWebAssembly", "available", "files", "playground"]

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

# Python for WebAssembly. Not every server knows the type of a module called .mjs, so pages get it as .js.
PYTHON = ["pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"]
# Each module of the editor imports the others by the names of their packages, which a page maps to these files.
EDITOR = {
    "@codemirror/autocomplete": "codemirror-autocomplete.js",
    "@codemirror/commands": "codemirror-commands.js",
    "@codemirror/language": "codemirror-language.js",
    "@codemirror/legacy-modes": "codemirror-legacy-modes.js",
    "@codemirror/lint": "codemirror-lint.js",
    "@codemirror/lsp-client": "codemirror-lsp-client.js",
    "@codemirror/search": "codemirror-search.js",
    "@codemirror/state": "codemirror-state.js",
    "@codemirror/streamparser": "codemirror-streamparser.js",
    "@codemirror/view": "codemirror-view.js",
    "@lezer/common": "lezer-common.js",
    "@lezer/highlight": "lezer-highlight.js",
    "@marijn/find-cluster-break": "marijn-find-cluster-break.js",
    "codemirror": "codemirror.js",
    "crelt": "crelt.js",
    "dompurify": "dompurify.js",
    "fflate": "fflate.js",
    "marked": "marked.js",
    "style-mod": "style-mod.js",
    "w3c-keyname": "w3c-keyname.js",
}


class MissingWebAssembly(FileNotFoundError):
    """The package was not built: the files from npm are missing."""


def files() -> dict[str, Path]:
    """Find the files that a page of a model needs, by their paths below the folder of `modgraph.js`.

    Raises `MissingWebAssembly`.
    """
    return _find({name: FOLDER / name for name in NAMES})


def playground() -> dict[str, Path]:
    """Find the files that the playground needs, by their paths below its own folder: `pyodide/…` and `editor/…`.

    Raises `MissingWebAssembly`.
    """
    licences = [f"LICENSE-{Path(name).stem}" for name in EDITOR.values()]
    names = [f"pyodide/{name}" for name in PYTHON] + [f"editor/{name}" for name in (*EDITOR.values(), *licences)]
    vendored = {name.replace(".mjs", ".js"): FOLDER / "vendor" / name for name in names}
    return _find(vendored | {"pyodide/LICENSE-pyodide": FOLDER / "vendor" / "LICENSE-pyodide"})


def _find(wanted: dict[str, Path]) -> dict[str, Path]:
    missing = next((path for path in wanted.values() if not path.is_file()), None)
    if missing is not None:
        name = missing.relative_to(FOLDER).as_posix()
        raise MissingWebAssembly(
            f'modgraph_web has no "{name}": install it with pip install ./export/web, which needs npm (Node 20) once'
        )
    return wanted


def available() -> bool:
    """Whether the files of pages and those of the playground exist."""
    try:
        return bool(files() and playground())
    except MissingWebAssembly:
        return False
