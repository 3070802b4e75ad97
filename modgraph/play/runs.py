"""Models that run next to their spec in the playground: pages of `export --web`, and those of runs and bundles."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from modgraph.diagnostics import ModgraphError
from modgraph.log import log
from modgraph.play.bundle_page import write_page_of_bundle
from modgraph.play.errors import BadPage
from modgraph.play.page_of_run import PageOfRun, StoredPage, to_json
from modgraph.store.run_directory import RunDirectory
from modgraph.web.folder import PAGE, RECORD
from modgraph.web.write import EXAMPLES, MODEL, write_frame, write_scripts

FOLDER = "runs"  # of the playground, with the scripts of pages and a folder for each run
ExportRun = Callable[[Path, Path], object]  # writes the page of a run into a folder


def read_pages(
    given: Sequence[str | Path], spec: str | Path | None = None, export_run: ExportRun | None = None
) -> list[PageOfRun]:
    """Read and check pages, of which those of runs and bundles are made first: of runs by `export_run`, of bundles with
    the `spec`. Raises `ModgraphError` for all that cannot be used."""
    found, faults, known = list[PageOfRun](), list[Any](), set[Path]()
    for path in map(Path, given):
        try:
            if path.resolve() in known:
                raise ModgraphError([BadPage(path=str(path), reason="it is given twice")])
            known.add(path.resolve())
            with _making_page(path, spec, export_run) as folder:
                log.info(f"{path}: checking its page")
                found.append(StoredPage(path, folder).read())
        except ModgraphError as error:
            faults += error.diagnostics
    if faults:
        raise ModgraphError(faults)
    return found


@contextmanager
def _making_page(path: Path, spec: str | Path | None, export_run: ExportRun | None) -> Iterator[Path]:
    """Yield the folder of a page: the given one, or that of a run or a bundle, which is removed when the block ends."""
    if path.suffix == ".onnx" and path.is_file():
        make: Callable[[Path], object] = partial(write_page_of_bundle, path, spec)
    elif export_run is not None and RunDirectory(path).record.is_file():
        make = partial(export_run, path)
    else:
        yield path
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "page"
        log.info(f"{path}: exporting its page")
        make(folder)
        yield folder


def write_pages(folder: Path, pages: Sequence[PageOfRun]) -> list[dict[str, Any]]:
    """Write pages below the folder of a playground, the scripts of all of them once: what the playground's page knows
    of them."""
    if not pages:
        return []
    shared = folder / FOLDER
    shared.mkdir()
    write_scripts(shared)
    for number, page in enumerate(pages, 1):
        place = shared / str(number)
        place.mkdir()
        (place / MODEL).write_bytes(page.bundle)
        (place / RECORD).write_bytes(to_json(page.record))
        (place / EXAMPLES).write_bytes(to_json(page.examples))
        write_frame(place / PAGE, page.label, "../", "part")
    return [page.describe(f"{FOLDER}/{number}/{PAGE}") for number, page in enumerate(pages, 1)]
