"""Files of the wrong kind: what a path holds, what a command takes instead, and the way out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.files import exists
from modgraph.syntax.errors import UnreadableFile

SPEC, RUN, BUNDLE, CHECKPOINT, GRAPH, RECIPE = "SPEC", "RUN", "BUNDLE", "CHECKPOINT", "GRAPH", "RECIPE"
WORDS = {  # of what a path holds
    SPEC: "a spec",
    RUN: "a run",
    BUNDLE: "a bundle",
    CHECKPOINT: "a checkpoint",
    GRAPH: "a graph",
    RECIPE: "a recipe",
}
SUFFIXES = {
    ".mod": SPEC,
    ".onnx": BUNDLE,
    ".safetensors": CHECKPOINT,
    ".json": GRAPH,
    ".yaml": RECIPE,
    ".yml": RECIPE,
    **dict.fromkeys((".png", ".jpg", ".jpeg"), "an image"),
    **dict.fromkeys((".npz", ".npy"), "an array"),
    **{".csv": "a table", ".py": "Python"},
}
TAKES = {  # what an argument takes, by the parts of its name in help
    **{name: (name,) for name in WORDS},
    "MODEL.ONNX": (BUNDLE,),
}


class WrongKind(Diagnostic, code="MG124"):
    """A command takes files of certain kinds: a spec (.mod), a run's folder, a bundle (.onnx), a recipe (.yaml)."""

    message = 'expected {wanted}, found {found}: "{path}"'
    help = "{way_out}"


def kinds_of_arguments(arguments: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The kinds that arguments take, by the name of each, given what help calls them: `SPEC|RUN`."""
    found = {}
    for name, called in arguments.items():
        parts = called.upper().split("|")
        if all(part in TAKES for part in parts):
            kinds = [kind for part in parts for kind in TAKES[part]]
            found[name] = (*kinds, GRAPH) if CHECKPOINT in kinds else tuple(kinds)
    return found


def refuse_other_kinds(path: str, wanted: Sequence[str], command: str) -> None:
    """Raises `ModgraphError` where there is something of a known kind that is none of those wanted, or nothing but a
    spec of the same name with its suffix."""
    if SPEC in wanted and not exists(path) and exists(f"{path}.mod"):
        way_out = f'did you mean "{path}.mod"?'
        raise ModgraphError([UnreadableFile(path=path, reason="no such file or directory", way_out=way_out)])
    found = _find_kind(path)
    if found is not None and found not in wanted:
        *others, last = (WORDS[each] for each in wanted if each != GRAPH)
        words = f"{', '.join(others)} or {last}" if others else last
        way_out = _find_way_out(Path(path), found, wanted, command)
        raise ModgraphError([WrongKind(path=path, found=WORDS.get(found, found), wanted=words, way_out=way_out)])


def _find_kind(path: str) -> str | None:
    """Return the kind of a path; None if nothing is there, or if its name does not say."""
    if os.path.isdir(path):  # noqa: PTH112 (`Path.is_dir` raises for a name that is too long)
        return RUN if (Path(path) / "run.json").exists() else None
    is_file = os.path.isfile(path)  # noqa: PTH113
    return SUFFIXES.get(Path(path).suffix.lower()) if is_file else None


def _find_way_out(path: Path, found: str, wanted: Sequence[str], command: str) -> str:
    spec, recipe = path.with_suffix(".mod"), path.with_suffix(".yaml")
    if SPEC in wanted:
        if found == RUN:
            return (
                f"resume it: modgraph train --resume {path}" if command == "train" else f"its spec is {path}/spec.mod"
            )
        return f"name the spec: {spec}" if spec.exists() else "name a spec (.mod)"
    if RECIPE in wanted:
        return f"name the recipe: {recipe}" if recipe.exists() else "name a recipe (.yaml)"
    if BUNDLE in wanted and RUN not in wanted:
        return f"export it first: modgraph export {path if found == RUN else 'RUN'} -o model.onnx"
    if found == SPEC:
        return f"train it first, modgraph train {path}, then name its run: runs/{path.stem}"
    if found == CHECKPOINT:
        return f"name its run: {path.absolute().parent.parent}"
    if found == BUNDLE and command == "eval":
        return f"name the run and its bundle: modgraph eval RUN --bundle {path}"
    return "name a run's folder, which modgraph train writes"
