"""A long check in parts, each a function of its number: it can be cut off anywhere and goes on where it was.

What a part found is kept as a line of JSON under `.assault/`, for the very sources that it was found with.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

JOURNALS = Path(".assault")
PROCESSES = 2
SOURCES = ("grammar/modgraph_grammar", "modgraph", "export/runtime/modgraph_runtime", "tests/assault")

Work = Callable[[int], Counter[str]]  # what a part has tried, counted by kind; raises AssertionError where it fails


def campaign(name: str, work: Work, parts: int, sources: Sequence[str] = SOURCES) -> Counter[str]:
    """The counts of all parts together, those of earlier runs included, as long as the `sources` are the same: what is
    assaulted, and with what. Raises what the first failing part raises.
    """
    journal, version = JOURNALS / f"{name}.jsonl", digest_of(sources)
    done = dict(_finished(journal, version))
    left = [part for part in range(parts) if part not in done]
    with ProcessPoolExecutor(PROCESSES, get_context("forkserver")) as pool:
        running = {pool.submit(work, part): part for part in left}
        for future in as_completed(running):
            try:
                done[running[future]] = future.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
            _note(journal, version, running[future], done[running[future]])
    return sum((done[part] for part in range(parts)), Counter())


def _finished(journal: Path, version: str) -> Iterator[tuple[int, Counter[str]]]:
    """The parts that a journal tells of, found with these sources."""
    for line in journal.read_text().splitlines() if journal.exists() else ():
        record = json.loads(line)
        if record["sources"] == version:
            yield record["part"], Counter(record["counts"])


def _note(journal: Path, version: str, part: int, counts: Counter[str]) -> None:
    journal.parent.mkdir(exist_ok=True)
    with journal.open("a") as file:
        file.write(json.dumps({"part": part, "sources": version, "counts": counts}) + "\n")


def digest_of(sources: Sequence[str]) -> str:
    """A name for the content of some files and folders."""
    assert all(Path(source).exists() for source in sources), "there is no such source"
    paths = sorted(path for source in sources for path in (Path(source), *Path(source).rglob("*")) if path.is_file())
    digest = hashlib.sha256()
    for path in paths:
        if "__pycache__" not in path.parts:
            digest.update(f"{path} ".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
