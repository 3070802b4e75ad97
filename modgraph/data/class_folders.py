"""Images in folders of one level, `folder/class/*.jpg`: the layout of ImageNet and of many data sets of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from modgraph.data.declaration import TRAIN, Arrays, DataSet, Scale, check, mixed
from modgraph.data.folders import Layout, folders_in, images_in
from modgraph.data.image_arrays import shape_of_images
from modgraph.data.image_files import ImageFiles
from modgraph.data.image_folders import check_classes, made_of_files
from modgraph.declare import setting
from modgraph.ir import Graph

LAYOUT = Layout("folder/class/image", "name the folder that holds a folder for each class")
Files = dict[str, list[Path]]  # of each class


class ClassFolders(DataSet):
    """Images in colour from `train/class/*.jpg` or `.png`, in the size of the spec's input, and `label`.

    A share of each class is kept for the test, unless that has a folder of its own, with the same classes. Images are
    read when a step needs them.
    """

    name = "class_folders"

    train: str = setting(path=True, doc="the folder whose folders are the classes")
    test: str | None = setting(None, path=True, doc="the same to test on; part of the other if not given")
    test_fraction: float = setting(0.2, min=0.01, max=0.9, doc="share of each class kept where there is no folder")
    seed: int = setting(0, min=0, doc="of the split")
    mean: tuple[float, ...] = setting((0.485, 0.456, 0.406), doc="subtracted from red, green and blue")
    deviation: tuple[float, ...] = setting((0.229, 0.224, 0.225), min=1e-6, doc="by which they are divided then")

    def contradiction(self) -> str | None:
        return self.scale().not_of_colours()

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        shape = shape_of_images(graph, channels=3)
        files = files_of(Path(self.train))
        check_classes(graph, len(files))
        parts = (
            self._parted(files) if self.test is None else {TRAIN: files, "test": self._others(Path(self.test), files)}
        )
        return {split: check(mixed(self._arrays(part, shape)), graph, split) for split, part in parts.items()}

    def scale(self) -> Scale:
        return Scale(self.mean, self.deviation)

    def description(self) -> dict[str, Any]:
        classes = list(files_of(Path(self.train)))
        return {"classes": {"label": classes}, "preprocessing": {"image": made_of_files(self.scale())}}

    def _parted(self, files: Files) -> dict[str, Files]:
        """The images of each class, a share of them kept for the test. Raises `ModgraphError`."""
        parts: dict[str, Files] = {TRAIN: {}, "test": {}}
        for at, (name, paths) in enumerate(files.items()):
            kept = max(1, round(self.test_fraction * len(paths)))
            if kept >= len(paths):
                raise LAYOUT.fault(Path(self.train) / name, "it has too few images to keep some for the test")
            order = np.random.default_rng((self.seed, at)).permutation(len(paths))
            parts["test"][name] = [paths[index] for index in sorted(order[:kept])]
            parts[TRAIN][name] = [paths[index] for index in sorted(order[kept:])]
        return parts

    def _others(self, folder: Path, files: Files) -> Files:
        """The images to test on of the same classes. Raises `ModgraphError`."""
        found = files_of(folder)
        different = sorted(found.keys() ^ files.keys())
        if different:
            lacking = folder if different[0] in files else Path(self.train)
            raise LAYOUT.fault(
                lacking, f'it has no class "{different[0]}", but the other folder has', "add it, or take it out"
            )
        return found

    def _arrays(self, files: Files, shape: tuple[int, ...]) -> Arrays:
        rows = [(str(path), label) for label, paths in enumerate(files.values()) for path in paths]
        paths, labels = (np.array(column) for column in zip(*rows, strict=True))
        return Arrays({"label": labels}, on_disk={"image": ImageFiles(paths, shape, self.mean, self.deviation)})


def files_of(folder: Path) -> Files:
    """The images of each class, in the order of their names. Raises `ModgraphError`."""
    return {each.name: images_in(each, LAYOUT) for each in folders_in(folder, "class", LAYOUT)}
