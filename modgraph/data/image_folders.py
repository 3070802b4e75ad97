"""Images in folders, `root/domain/class/*.jpg`: the layout of DomainBed's data sets (PACS, VLCS, OfficeHome, …)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from modgraph.data.declaration import TRAIN, Arrays, DataSet, Scale, check, mixed
from modgraph.data.errors import DataDoesNotFit
from modgraph.data.folders import Layout, folders_in, images_in
from modgraph.data.image_arrays import shape_of_images
from modgraph.data.image_files import ImageFiles
from modgraph.data.preprocessing import of_images
from modgraph.data.rotated_digits import HELD_OUT
from modgraph.declare import setting
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph

LAYOUT = Layout("root/domain/class/image", "name the folder that holds the domains as root")
Folders = Mapping[str, Mapping[str, list[Path]]]  # images by domain and class


class ImageFolders(DataSet):
    """Images in colour from `root/domain/class/*.jpg` or `.png`, in the size of the spec's input.

    Domains that are held out are what is tested on. Images are read when a step needs them.
    """

    name = "image_folders"

    root: str = setting(path=True, doc="the folder whose folders are the domains")
    held_out: str | tuple[str, ...] = setting((), doc="the domain, or the domains, that nothing is learnt from")
    mean: tuple[float, ...] = setting((0.485, 0.456, 0.406), doc="subtracted from red, green and blue")
    deviation: tuple[float, ...] = setting((0.229, 0.224, 0.225), min=1e-6, doc="by which they are divided then")

    def contradiction(self) -> str | None:
        return self.scale().not_of_colours()

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        shape = shape_of_images(graph, channels=3)
        domains = folders_of(Path(self.root))
        check_classes(graph, len(classes_of(domains)))
        held = self._held_out(domains)
        names = {TRAIN: [name for name in domains if name not in held], HELD_OUT: held}
        return {
            split: check(mixed(self._arrays({name: domains[name] for name in each}, shape)), graph, split)
            for split, each in names.items()
            if each
        }

    def scale(self) -> Scale:
        return Scale(self.mean, self.deviation)

    def description(self) -> dict[str, Any]:
        classes = classes_of(folders_of(Path(self.root)))
        return {"classes": {"label": classes}, "preprocessing": {"image": made_of_files(self.scale())}}

    def _held_out(self, domains: Folders) -> list[str]:
        held = {self.held_out} if isinstance(self.held_out, str) else set(self.held_out)
        unknown = sorted(held - domains.keys())
        if unknown:
            way_out = did_you_mean(unknown[0], domains, "its domains are: {known}")
            raise LAYOUT.fault(Path(self.root), f'there is no domain "{unknown[0]}" to hold out', way_out)
        if len(held) == len(domains):
            raise LAYOUT.fault(Path(self.root), "every domain is held out", "leave one to learn from")
        return sorted(held)

    def _arrays(self, domains: Folders, shape: tuple[int, ...]) -> Arrays:
        """The images of some domains in the order of their names."""
        classes = classes_of(domains)
        rows = [
            (str(path), classes.index(kind), domain)
            for domain, kinds in domains.items()
            for kind, paths in kinds.items()
            for path in paths
        ]
        paths, labels, words = (np.array(column) for column in zip(*rows, strict=True))
        files = ImageFiles(paths, shape, self.mean, self.deviation)
        return Arrays({"label": labels}, {"domain": words}, {"image": files})


def made_of_files(scale: Scale) -> dict[str, Any]:
    """How numbers are made of an image file, for those who deploy a model."""
    words = f"RGB from 0 to 1, resized (bilinear), minus {list(scale.mean)}, divided by {list(scale.deviation)}"
    return of_images(words, "red, green, blue", scale)


def folders_of(root: Path) -> dict[str, dict[str, list[Path]]]:
    """The images of each class of each domain, in the order of their names. Raises `ModgraphError`."""
    domains = {
        domain.name: {kind.name: images_in(kind, LAYOUT) for kind in folders_in(domain, "class", LAYOUT)}
        for domain in folders_in(root, "domain", LAYOUT)
    }
    first, classes = next(iter(domains.items()))
    for name, found in domains.items():
        different = sorted(found.keys() ^ classes.keys())
        if different:
            lacking, having = (first, name) if different[0] in found else (name, first)
            reason = f'"{lacking}" has no class "{different[0]}", but "{having}" has'
            raise LAYOUT.fault(root, reason, "give every domain the same classes")
    return domains


def classes_of(domains: Folders) -> list[str]:
    """The classes, which are the same in every domain."""
    return list(next(iter(domains.values())))


def check_classes(graph: Graph, count: int) -> None:
    target = graph.target_types.get("label")
    if target is not None and target.size not in (None, count) and not target.of:
        reason = f'there are {count} folders of classes, and the target "label" has {target.size} classes'
        raise ModgraphError(
            [DataDoesNotFit(reason=reason, way_out=f"if it is a parameter of the spec: -s classes={count}")]
        )
