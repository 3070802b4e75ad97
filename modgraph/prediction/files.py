"""Files as examples of a model: images, arrays, tables and lines of text, prepared as the data of its training were."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import numpy as np
from modgraph_runtime.arrays import read_arrays
from modgraph_runtime.ports import Array, Inputs

from modgraph.data.files import read_text, reading
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.files import exists, open_file
from modgraph.log import log
from modgraph.prediction.errors import NotAnInput, NoWayFrom
from modgraph.prediction.examples import Examples, examples_of, reporting_misfits, text_arrays
from modgraph.prediction.facts import Facts
from modgraph.prediction.images import prepare_image
from modgraph.prediction.tables import read_table

IMAGES, ARRAY, ARRAYS, TABLE, TEXT = (".png", ".jpg", ".jpeg"), ".npy", ".npz", ".csv", ".txt"
STDIN = "-"
TOGETHER = 64  # images that are read before they are computed


def read_examples(paths: Iterable[str], facts: Facts) -> Iterator[Examples]:
    """The examples of files, and of the images in folders. Raises `ModgraphError` at the end, for all files that cannot
    be read."""
    faults = list[Diagnostic]()
    files = _list_files(paths, faults)
    readers = {ARRAY: _array, ARRAYS: _arrays, TABLE: read_table, TEXT: _lines}
    for suffix, group in groupby(files, _kind_of):
        for few in [list(group)] if suffix in IMAGES else ([path] for path in group):
            with _collecting(faults):
                yield from _images(few, facts, faults) if suffix in IMAGES else [readers[suffix](few[0], facts)]
    if faults:
        raise ModgraphError(faults)


@contextmanager
def _collecting(faults: list[Diagnostic]) -> Iterator[None]:
    """Within it, errors are added to `faults`; the same one only once."""
    try:
        yield
    except ModgraphError as error:
        faults += [each for each in error.diagnostics if each not in faults]


def _kind_of(path: str) -> str:
    suffix = Path(path).suffix.lower()
    return IMAGES[0] if suffix in IMAGES else TEXT if path == STDIN else suffix


def _list_files(paths: Iterable[str], faults: list[Diagnostic]) -> list[str]:
    """Paths of files, with those of the images in folders, by name. Adds what is none to `faults`."""
    files = list[str]()
    for path in paths:
        if path != STDIN and not exists(path):
            faults.append(NotAnInput(path=path, reason="no such file", way_out="check the path"))
        elif path != STDIN and Path(path).is_dir():
            found = [str(each) for each in sorted(Path(path).rglob("*")) if each.suffix.lower() in IMAGES]
            if not found:
                faults.append(NotAnInput(path=path, reason=f"the folder has no image ({', '.join(IMAGES)})"))
            files += found
        elif _kind_of(path) not in (*IMAGES, ARRAY, ARRAYS, TABLE, TEXT):
            faults.append(NotAnInput(path=path, reason="its suffix is no image, array, table or text"))
        else:
            files.append(path)
    return files


def _no_way(path: str, what: str, reason: str, facts: Facts) -> ModgraphError:
    return ModgraphError([NoWayFrom(path=path, what=what, origin=facts.origin, reason=reason, inputs=facts.takes)])


def _images(paths: Sequence[str], facts: Facts, faults: list[Diagnostic]) -> Iterator[Examples]:
    """The examples of images, some at a time. Adds images that cannot be read to `faults`."""
    name = facts.image_input()
    if name is None:
        reason = "no description of how an image becomes its one input"
        raise _no_way(paths[0], "an image", reason, facts)
    how, port = facts.preprocessing[name], facts.inputs[name]
    log.debug(f"{name} {port}: {how.get('words', how)}")
    for at in range(0, len(paths), TOGETHER):
        few, arrays, inverted = paths[at : at + TOGETHER], list[Array](), list[str]()
        for path in few:
            with _collecting(faults):
                image, is_negative = prepare_image(path, port, how)
                arrays.append(image)
                inverted += [path] if is_negative else []
        if faults:
            continue
        if inverted:
            count = f"{len(inverted)} of {len(few)}"
            log.info(f"note: {count} images are inverted: they have a light ground, and the training images a dark one")
            log.debug(f"inverted: {', '.join(inverted)}")
        yield Examples(few, {name: np.stack(arrays)})


def _arrays(path: str, facts: Facts) -> Examples:
    with reporting_misfits(path, facts):
        found = {name: each for name, each in read_arrays(path).items() if name not in facts.ignored}
    return examples_of(found, facts, path)


def _array(path: str, facts: Facts) -> Examples:
    """The one input of a model; of a single example, whose axis of examples may be missing."""
    (name, port), *others = facts.needed.items()
    if others:
        raise _no_way(path, "a single array", "several inputs", facts)
    with reading(path), open_file(path) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
    return examples_of({name: array[None] if array.ndim == len(port.shape) else array}, facts, path)


def _lines(path: str, facts: Facts) -> Examples:
    """An example for each line that is not empty."""
    names = facts.text_inputs()
    if sorted(names) != sorted(facts.needed):
        raise _no_way(path, "a text", "no description of how a text becomes its inputs", facts)
    text = sys.stdin.read() if path == STDIN else read_text(path)
    lines = [(f"{path}:{number}", line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise ModgraphError([NotAnInput(path=path, reason="it has no lines", way_out="write a text in each line")])
    arrays = text_arrays([line for _, line in lines], names, facts)
    with reporting_misfits(path, facts):
        fitted, _ = Inputs(facts.inputs, facts.longest).fit(arrays)
    return Examples([source for source, _ in lines], fitted)
