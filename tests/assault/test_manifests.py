"""Bundles whose manifest was changed on purpose, with a digest that is right: refused with a message, or they work."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from modgraph_runtime import Bundle, BundleError
from modgraph_runtime.command import describe

import modgraph
from modgraph.cli import main
from tests.examples import SEQUENCE
from tests.runtime.test_runtime import sealed
from tests.traces import shared_traces

GONE = object()
VALUES = [
    None,
    True,
    5,
    -1,
    0,
    10**30,
    10**400,
    1.5,
    float("inf"),
    "",
    "x",
    "\ud800",
    "__proto__",
    [],
    {},
    [[]],
    [None],
    GONE,
]
MORE = {
    "left_out": {"outputs": ["o"], "inputs": ["i"], "targets": ["t"]},
    "int8": {"metrics": {"accuracy": {"float": 1, "int8": 2}}},
    "axes": {"time": {"longest": 100}},
}
Path_ = tuple[str | int, ...]
SEEDS = pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 1500), marks=pytest.mark.slow)], ids=str)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, traces: Path) -> Path:
    path = tmp_path_factory.mktemp("manifests") / "words.onnx"
    with shared_traces(traces):
        names = {"classes": {"label": ["a", "b", "c"]}}
        modgraph.export(modgraph.loads(SEQUENCE).build(), path, routing=True, description=names)
    return path


def paths(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Where anything stands in a manifest."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from paths(each, (*path, key))


def changed(manifest: Any, path: Path_, value: Any) -> Any:
    if not path:
        return value
    found = copy.deepcopy(manifest)
    *above, last = path
    place = found
    for key in above:
        place = place[key]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return found


def hostile(source: Path, out: Path, seed: int, of_graph: bool) -> tuple[Path, str]:
    """A bundle with one change, and what it is."""
    proto, rng = onnx.load(source), random.Random(seed)
    manifest = {**json.loads(proto.metadata_props[0].value), **MORE}
    path = rng.choice([path for path in paths(manifest) if path and ("ir" in path) == of_graph])
    value = rng.choice(VALUES)
    onnx.helper.set_model_props(proto, {"modgraph": json.dumps(changed(manifest, path, value))})
    return sealed(proto.SerializeToString(), out), f"{path}: {'gone' if value is GONE else value!r}"


@contextmanager
def naming(seed: int, what: str) -> Iterator[None]:
    """Names the change with which something fails."""
    try:
        yield
    except Exception as error:
        error.add_note(f"seed {seed}, {what}")
        raise


WORDS = np.zeros((2, 4), int)
USES: list[Callable[[Bundle], object]] = [
    lambda found: found.run({"words": WORDS}, routing=True),
    lambda found: found.run({"words": WORDS[:0]}, routing=True),
    lambda found: found.run({"words": WORDS, "time_length": [2, 1]}),
    lambda found: found.run({"other": WORDS}),
    lambda found: found.predict({"words": WORDS}),
    describe,
    repr,
]


@SEEDS
def test_a_hostile_manifest_is_refused_by_the_runtime_or_accepted(bundle: Path, tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        path, what = hostile(bundle, tmp_path / "m.onnx", seed, of_graph=False)
        with naming(seed, what), contextlib.suppress(BundleError):
            found = Bundle(path, threads=1)
            for use in USES:
                with contextlib.suppress(BundleError):
                    assert use(found) is not None


def test_numbers_that_no_float_holds_are_refused_in_the_graph(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proto = onnx.load(bundle)
    manifest = json.loads(proto.metadata_props[0].value)
    scales = [path for path in paths(manifest) if path and path[-1] == "scale"]
    assert scales, "the graph has no start of a weight"
    onnx.helper.set_model_props(proto, {"modgraph": json.dumps(changed(manifest, scales[0], 10**400))})
    path = sealed(proto.SerializeToString(), tmp_path / "m.onnx")
    assert main(["diff", str(bundle), str(path)]) == 1
    assert "is no number" in capsys.readouterr().err


@SEEDS
def test_a_hostile_manifest_is_refused_by_diff_or_accepted(bundle: Path, tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        path, what = hostile(bundle, tmp_path / "m.onnx", seed, of_graph=seed % 4 != 0)
        with naming(seed, what):
            assert main(["diff", str(bundle), str(path)]) in (0, 1, 2)
