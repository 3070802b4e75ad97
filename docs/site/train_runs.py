"""Trains models for the playground of the site and exports their pages, which the build of the site then puts there.

    nice python docs/site/train_runs.py     # into build/runs and build/pages, about ten minutes on two cores

Data come with packages: pip install '.[digits,texts,tokenizers]' ./export/web. What is there already is kept, and a
training that was interrupted goes on. Delete a run and its page to train it anew.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from modgraph.cli import main
from modgraph.store.run_directory import FINISHED, RunDirectory
from modgraph.web.folder import RECORD

ROOT = Path(__file__).parents[2]
RUNS, PAGES = "runs", "pages"
MODELS: Mapping[str, Sequence[str]] = {
    "smn": (),
    "gmoe_digits": (),
    "story": ("-s", "train.epochs=2"),  # half of the recipe: its text is not as good, but can be read
}


def make_pages(folder: Path, models: Mapping[str, Sequence[str]] = MODELS) -> int:
    """Train the models that have no finished run in a folder, and export the pages that are missing: the exit code of
    the first command that fails, or 0."""
    (folder / PAGES).mkdir(parents=True, exist_ok=True)
    for name, options in models.items():
        run, page = folder / RUNS / name, folder / PAGES / name
        code = _train(str(ROOT / "specs" / f"{name}.mod"), run, options) or (
            not (page / RECORD).exists() and _export(run, page)
        )
        if code:
            return int(code)
    return 0


def _train(spec: str, run: Path, options: Sequence[str]) -> int:
    directory = RunDirectory(run)
    if not directory.record.exists():
        return main(["train", spec, "--out", str(run), *options])
    if directory.read_record()["status"] == FINISHED:
        return 0
    return main(["train", "--resume", str(run)])


def _export(run: Path, page: Path) -> int:
    return main(["export", str(run), "-o", str(page), "--web"])


if __name__ == "__main__":
    sys.exit(make_pages(ROOT / "build"))
