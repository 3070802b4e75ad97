"""The gallery has every shipped spec, with its figures and its picture."""

from __future__ import annotations

import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

CHECKOUT = Path(__file__).parents[1]
SPECS = CHECKOUT / "specs"
SCRIPT = CHECKOUT / "docs/gallery.py"
GALLERY = runpy.run_path(str(SCRIPT))
ENTRIES = {entry.name: entry for entry in GALLERY["ENTRIES"]}
PICTURES: Path = GALLERY["PICTURES"]


def test_the_gallery_has_every_shipped_spec() -> None:
    shipped = [*SPECS.glob("*.mod"), *(SPECS / "zoo").glob("*.mod")]
    assert {*ENTRIES} == {path.relative_to(SPECS).with_suffix("").as_posix() for path in shipped}


def test_the_gallery_has_the_figures_of_today() -> None:
    text, _, _ = SCRIPT.with_suffix(".md").read_text().partition(GALLERY["RULE"])
    assert text == GALLERY["write_page"](), "run: python docs/gallery.py"


def test_each_picture_of_the_gallery_is_small_and_has_the_outputs_of_its_model() -> None:
    assert {path.stem for path in PICTURES.iterdir()} == {entry.stem for entry in ENTRIES.values()}
    for entry in ENTRIES.values():
        path = PICTURES / f"{entry.stem}.svg"
        texts = {*ElementTree.parse(path).getroot().itertext()}
        assert {*entry.program.ir.outputs} <= texts, f"{path} is of another model: run python docs/gallery.py"
        assert path.stat().st_size < 40_000, f"{path} is large"


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES)
def test_a_picture_of_the_gallery_is_that_of_today(name: str) -> None:
    assert (PICTURES / f"{ENTRIES[name].stem}.svg").read_text() == ENTRIES[name].draw(), "run: python docs/gallery.py"
