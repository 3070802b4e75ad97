"""Every spec beside a variant of itself, as text and as JSON (refresh with --refresh)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modgraph.inspect.diff import Side, apply_diff, as_json, compare_sides, text_of
from modgraph.ir import Graph
from modgraph.program import load

HOME = Path(__file__).parent / "golden"
COSINE = "cosine(k, width=width, noise=noise / experts)"
PARAMETERS = {
    "gmoe": {
        "choose_two": {"k": 2},
        "linear_router": {"gating": "linear"},
        "one_module": {"experts": 7},
        "one_block": {"depth": 13},
    },
    "gmoe_digits": {"choose_two": {"k": 2}, "one_module": {"experts": 7}, "one_block": {"depth": 5}},
    "modular_networks": {"choose_two": {"slots": 2}, "one_module": {"modules": 3}, "one_block": {"layers": 2}},
    "modular_networks_images": {"choose_two": {"slots": 2}, "one_module": {"modules": 6}},
    "modular_networks_lm": {"choose_two": {"slots": 2}, "one_module": {"modules": 6}},
    "mt_rmn": {"one_cell": {"cells": 5}},
    "sema": {"one_adapter": {"adapters": [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1]}},
    "sema_backbone": {"one_block": {"depth": 5}},
    "smn": {"one_module": {"modules": 3}, "one_round": {"iterations": 5}},
    "smn_parity": {"one_module": {"added": 3}, "tuned_router": {"tune_router": True}},
    "story": {"one_expert": {"experts": 9}, "one_layer": {"depth": 5}},
}
TEXTS = {
    "gmoe_digits": {"linear_router": (COSINE, "linear(k, noise=noise / experts)")},
    "modular_networks_images": {"one_block": ("0..3", "0..4")},
    "modular_networks_lm": {"another_name": ("transition", "step")},
    "smn": {"another_name": ("specialist", "expert")},
}
CASES = [(name, variant) for table in (PARAMETERS, TEXTS) for name, variants in table.items() for variant in variants]


def variant_of(name: str, variant: str, folder: Path) -> Graph:
    spec = Path(f"specs/{name}.mod")
    if variant in PARAMETERS[name]:
        return load(spec, **PARAMETERS[name][variant]).ir
    before, after = TEXTS[name][variant]
    text = spec.read_text()
    for imported in spec.parent.glob("*.mod"):
        (folder / imported.name).write_text(imported.read_text())
    assert before in text
    (folder / spec.name).write_text(text.replace(before, after))
    return load(folder / spec.name).ir


@pytest.mark.some(5)
@pytest.mark.parametrize(("name", "variant"), CASES)
def test_a_spec_and_a_variant(name: str, variant: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    before, after = load(f"specs/{name}.mod").ir, variant_of(name, variant, tmp_path)
    sides = Side(f"{name}.mod", "spec", before), Side(f"{variant}.mod", "spec", after)
    found = compare_sides(*sides, {}, {})
    assert apply_diff(found.diff, before).hash() == after.hash()
    texts = {"txt": text_of(found) + "\n", "json": json.dumps(as_json(found), indent=1, ensure_ascii=False) + "\n"}
    for suffix, text in texts.items():
        path = HOME / name / f"{variant}.{suffix}"
        if request.config.getoption("--refresh"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.read_text() == text


def test_every_spec_has_a_variant() -> None:
    assert {path.stem for path in Path("specs").glob("*.mod")} == set(PARAMETERS)
