"""Folders whose names are no text are refused before a training begins; images may be called anything."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import modgraph
from modgraph.data.fingerprint import Fingerprint
from modgraph.data.image_folders import ClassFolders, ImageFolders
from modgraph.diagnostics import ModgraphError
from modgraph.store.run_directory import RunDirectory

GRAPH = modgraph.loads("model m() { input image: float[3, 4, 4] target label: class[2] output image }").ir
WRONG = {b"caf\xe9": "not UTF-8", b"a\nb": "end a line", b"\x1b[31mred": "control a terminal"}


def painted(folder: bytes, name: bytes = b"0.png") -> None:
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - a name that is no text
    for at in range(3):
        pixels = np.full((4, 4, 3), at, np.uint8)
        Image.fromarray(pixels).save(os.path.join(folder, b"%d" % at + name))  # noqa: PTH118


def make_folders(root: Path, *folders: bytes) -> None:
    for folder in folders:
        painted(os.fsencode(root) + b"/" + folder)


def refused(data: Any) -> str:
    with pytest.raises(ModgraphError) as caught:
        data.splits(GRAPH)
    (only,) = caught.value.diagnostics
    assert only.code == "MG519" and only.advice().startswith("rename the folder of the ")
    return only.text()


@pytest.mark.parametrize("name", WRONG)
def test_a_class_whose_name_is_no_text_is_refused_when_data_are_read(name: bytes, tmp_path: Path) -> None:
    make_folders(tmp_path, name, b"tea")
    text = refused(ClassFolders(train=str(tmp_path)))
    assert WRONG[name] in text and os.fsdecode(name) in text, "the folder is named"


@pytest.mark.parametrize("name", WRONG)
def test_so_is_a_domain(name: bytes, tmp_path: Path) -> None:
    make_folders(tmp_path, *(domain + b"/" + kind for domain in (name, b"plain") for kind in (b"cup", b"tea")))
    assert WRONG[name] in refused(ImageFolders(root=str(tmp_path)))


def test_all_such_folders_are_reported_at_once(tmp_path: Path) -> None:
    make_folders(tmp_path, *WRONG)
    with pytest.raises(ModgraphError) as caught:
        ClassFolders(train=str(tmp_path)).splits(GRAPH)
    assert len(caught.value.diagnostics) == len(WRONG)


def test_images_may_be_called_anything_and_classes_by_any_letters(tmp_path: Path) -> None:
    painted(os.fsencode(tmp_path) + "/café".encode(), b"\xe9.png")
    painted(os.fsencode(tmp_path) + "/お茶\u3000".encode(), b"\n.png")
    data = ClassFolders(train=str(tmp_path))
    train = data.splits(GRAPH)["train"]
    assert data.description()["classes"] == {"label": ["café", "お茶\u3000"]}
    assert Fingerprint.compute(data, train).examples == len(train)


def test_a_run_is_not_begun_below_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"r\xe9")
    with pytest.raises(ModgraphError, match="its name must be UTF-8"):
        RunDirectory(folder).refuse_existing()
    assert not folder.exists()
