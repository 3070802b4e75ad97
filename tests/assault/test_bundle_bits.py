"""Every bit of a bundle and of the manifest beside it: changed, it is refused or makes no difference."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from modgraph_runtime import Bundle, BundleError, Port
from modgraph_runtime.integrity import find_damage, find_manifest_damage

import modgraph
from tests.assault.campaign import campaign
from tests.assault.damage import PARTS, damaged

SPEC = """
model small(experts=2) {
  input  words: token[time, 6]
  target label: class[2]
  pool   expert[experts] = linear(3)
  router gate = cosine(k=1, width=2)
  logits = words -> embedding(3) -> expert by gate -> mean -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}
"""
DESCRIPTION = {"classes": {"label": ["no", "yes"]}, "words": {"words": ["<unk>", *"abcde"]}}
INPUTS = {"words": np.array([[0, 1, 2], [3, 4, 5]]), "time_length": np.array([3, 2])}

Found = tuple[dict[str, Port], dict[str, Port], dict[str, Port], dict[str, bytes]]


@cache
def exported() -> tuple[bytes, bytes]:
    """A small bundle and its manifest."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        modgraph.export(modgraph.loads(SPEC).build(), path, routing=True, description=DESCRIPTION)
        return path.read_bytes(), path.with_suffix(".json").read_bytes()


def found_in(bundle: bytes, manifest: bytes) -> Found | None:
    """All ports, and what is computed for some inputs; None if the bundle is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        path.write_bytes(bundle)
        path.with_suffix(".json").write_bytes(manifest)
        try:
            opened = Bundle(path, threads=1)
            results = opened.run(INPUTS, routing=True)
        except BundleError:
            return None
        values = {name: array.tobytes() for name, array in results.items()}
        return opened.inputs, opened.outputs, opened.routing, values


def assault(part: int) -> Counter[str]:
    """What was refused for its bytes is not looked at by anything else; whatever was not is opened and computed."""
    bundle, manifest = exported()
    plain, inside = found_in(bundle, manifest), json.loads(manifest)
    assert plain is not None
    counts = Counter([f"parts of {sha256(bundle + manifest).hexdigest()[:8]}"])
    for kind, content in damaged(bundle, part):
        refused = find_damage(content) is not None
        assert refused or found_in(content, manifest) == plain, (kind, content.hex())
        counts[f"bundle {kind}: {'refused' if refused else 'no effect'}"] += 1
    for kind, content in damaged(manifest, part):
        refused = find_manifest_damage(content, inside) is not None
        assert refused or found_in(bundle, content) == plain, (kind, content)
        counts[f"manifest {kind}: {'refused' if refused else 'no effect'}"] += 1
    return counts


def test_a_bundle_with_a_bit_changed_is_refused_or_the_same() -> None:
    counts = assault(0)
    assert counts["bundle flipped: refused"] > 200
    assert counts["manifest flipped: refused"] > 100


def test_what_is_refused_for_its_bytes_is_refused_when_it_is_opened() -> None:
    bundle, manifest = exported()
    for part in range(0, PARTS, 9):
        _, content = next(damaged(bundle, part))
        assert found_in(content, manifest) is None
        _, content = next(damaged(manifest, part))
        assert found_in(bundle, content) is None


@pytest.mark.slow
def test_every_bit_of_a_bundle() -> None:
    bundle, manifest = exported()
    counts = campaign("bundle_bits", assault, PARTS)
    assert counts[f"parts of {sha256(bundle + manifest).hexdigest()[:8]}"] == PARTS
    assert counts["bundle flipped: refused"] == 8 * len(bundle)
    assert counts["manifest flipped: refused"] + counts["manifest flipped: no effect"] == 8 * len(manifest)
