"""Images in folders: `folder/class/*.jpg`, or `root/domain/class/*.jpg`, the layout of DomainBed's data sets (PACS,
VLCS, OfficeHome, …)."""

from __future__ import annotations

import unicodedata
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.data.declaration import HELD_OUT, TRAIN, Arrays, DataSet, check_splits, shuffle
from modgraph.data.errors import BadImageFolder, does_not_fit
from modgraph.data.images import ImageFiles, describe_images, find_shape_of_images
from modgraph.declare import setting
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.extras import require
from modgraph.files import explain_error, is_not_utf8
from modgraph.ir import Graph

if TYPE_CHECKING:
    pass

SUFFIXES = (".jpg", ".jpeg", ".png")
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's channels
Layout = tuple[str, str]  # the layout of folders, and the help for another one
Files = dict[str, list[Path]]  # images by class
CLASSES: Layout = "folder/class/image", "name the folder that contains a folder for each class"
DOMAINS: Layout = BadImageFolder.layout, BadImageFolder.way_out


class ImagesInFolders(DataSet):
    """Images by their files, with the settings `mean` and `deviation`: three numbers for colours, one for grey."""

    @abstractmethod
    def _domains(self) -> dict[str, Files]:
        """Return the images by domain; one domain without a name where there are none. Raises `ModgraphError`."""

    @abstractmethod
    def _parts(self, domains: dict[str, Files]) -> dict[str, dict[str, Files]]:
        """Return the images of each split by domain. Raises `ModgraphError`."""

    def extras(self) -> tuple[str, ...]:
        return ("images",)

    def contradiction(self) -> str | None:
        return None if self.scale().is_grey else self.scale().not_of_colours()

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        import numpy as np

        require("images", f"the data set {self.name}")
        shape, domains, made = self._shape_of_images(graph), self._domains(), {}
        classes, target = len(next(iter(domains.values()))), graph.target_types.get("label")
        if target is not None and target.size not in (None, classes) and not target.of:
            reason = f'{classes} folders of classes do not fit the target "label" with {target.size} classes'
            raise does_not_fit(
                reason,
                f"write target label: class[{classes}], or if it is a parameter of the spec: -s classes={classes}",
            )
        for split, part in self._parts(domains).items():
            rows = [
                (str(path), label, domain)
                for domain, files in part.items()
                for label, paths in enumerate(files.values())
                for path in paths
            ]
            paths, labels, words = (np.array(column) for column in zip(*rows, strict=True))
            groups, images = {} if "" in part else {"domain": words}, ImageFiles(shape, paths, self.scale())
            made[split] = shuffle(Arrays({"label": labels}, groups, {"image": images}))
        return check_splits(made, graph)

    def _shape_of_images(self, graph: Graph) -> tuple[int, int, int]:
        """Return the shape of the input. Raises `ModgraphError`, also where it is grey and the scale is of colours."""
        type_, is_grey = graph.input_types.get("image"), self.scale().is_grey
        if not is_grey and type_ is not None and type_.dimensions[:1] == (1,):
            reason = 'the input "image" is grey, so mean and deviation need one number each'
            raise does_not_fit(reason, "for example: -s 'data.mean=[0.5]' -s 'data.deviation=[0.5]'")
        return find_shape_of_images(graph, channels=1 if is_grey else 3)

    def description(self) -> dict[str, Any]:
        scale = self.scale()
        light = "luminance" if scale.is_grey else "RGB"
        words = f"{light} from 0 to 1, resized (bilinear), minus {list(scale.mean)}, divided by {list(scale.deviation)}"
        return describe_images(next(iter(self._domains().values())), words, scale)


class ImageFolders(ImagesInFolders, name="image_folders"):
    """Images from `root/domain/class/*.jpg` or `.png`, in the size of the spec's input.

    Domains that are held out are the test. Images are read when a step needs them.
    """

    root: str = setting(path=True, doc="folder that contains a folder for each domain")
    held_out: str | tuple[str, ...] = setting((), doc="the domain, or the domains, held out for the test")
    mean: tuple[float, ...] = setting(MEAN, doc="subtracted from red, green and blue; one number for grey images")
    deviation: tuple[float, ...] = setting(DEVIATION, min=1e-6, doc="divides the result")

    def _domains(self) -> dict[str, Files]:
        return list_folders(Path(self.root))

    def _parts(self, domains: dict[str, Files]) -> dict[str, dict[str, Files]]:
        excluded = {self.held_out} if isinstance(self.held_out, str) else set(self.held_out)
        unknown = sorted(excluded - domains.keys())
        if unknown:
            way_out = did_you_mean(unknown[0], domains, "its domains are: {known}")
            raise _fault(DOMAINS, Path(self.root), f'unknown domain "{unknown[0]}"', way_out)
        if len(excluded) == len(domains):
            raise _fault(DOMAINS, Path(self.root), "every domain is held out", "keep one for training")
        learnt = {name: files for name, files in domains.items() if name not in excluded}
        tested = {HELD_OUT: {name: domains[name] for name in sorted(excluded)}} if excluded else {}
        return {TRAIN: learnt, **tested}


class ClassFolders(ImagesInFolders, name="class_folders"):
    """Images from `train/class/*.jpg` or `.png`, in the size of the spec's input, and `label`.

    A share of each class is the test, unless that has a folder of its own with the same classes. Images are read when a
    step needs them.
    """

    train: str = setting(path=True, doc="folder that contains a folder for each class")
    test: str | None = setting(None, path=True, doc="test folder; a part of the training images if not given")
    test_fraction: float = setting(0.2, min=0.01, max=0.9, doc="share of each class for the test if it has no folder")
    seed: int = setting(0, min=0, doc="seed of the split")
    mean: tuple[float, ...] = setting(MEAN, doc="subtracted from red, green and blue; one number for grey images")
    deviation: tuple[float, ...] = setting(DEVIATION, min=1e-6, doc="divides the result")

    def _domains(self) -> dict[str, Files]:
        return {"": _files_in(Path(self.train), CLASSES)}

    def _parts(self, domains: dict[str, Files]) -> dict[str, dict[str, Files]]:
        import numpy as np

        files, tested = domains[""], dict[str, list[Path]]()
        if self.test is not None:
            tested = _files_in(Path(self.test), CLASSES)
            for name in sorted(tested.keys() ^ files.keys())[:1]:
                lacking = self.test if name in files else self.train
                reason = f'it has no class "{name}", but the other folder has'
                raise _fault(CLASSES, Path(lacking), reason, "add it, or remove it from the other")
            return {TRAIN: domains, "test": {"": tested}}
        learnt = dict[str, list[Path]]()
        for at, (name, paths) in enumerate(files.items()):
            kept = max(1, round(self.test_fraction * len(paths)))
            if kept >= len(paths):
                reason = "it has too few images for a test split"
                raise _fault(CLASSES, Path(self.train) / name, reason)
            order = np.random.default_rng((self.seed, at)).permutation(len(paths))
            tested[name] = [paths[index] for index in sorted(order[:kept])]
            learnt[name] = [paths[index] for index in sorted(order[kept:])]
        return {TRAIN: {"": learnt}, "test": {"": tested}}


def list_folders(root: Path) -> dict[str, Files]:
    """Return the images of each class of each domain, in alphabetical order. Raises `ModgraphError`."""
    domains = {each.name: _files_in(each, DOMAINS) for each in _folders_in(root, "domain", DOMAINS)}
    first, classes = next(iter(domains.items()))
    for name, found in domains.items():
        for different in sorted(found.keys() ^ classes.keys())[:1]:
            lacking, having = (first, name) if different in found else (name, first)
            reason = f'"{lacking}" has no class "{different}", but "{having}" has'
            raise _fault(DOMAINS, root, reason, "give every domain the same classes")
    return domains


def _files_in(folder: Path, layout: Layout) -> Files:
    """Return the images of each class, at least one, in alphabetical order. Raises `ModgraphError`."""
    files = {}
    for kind in _folders_in(folder, "class", layout):
        files[kind.name] = [each for each in _entries(kind, layout) if each.suffix.lower() in SUFFIXES]
        if not files[kind.name]:
            reason = f"it has no image ({', '.join(SUFFIXES)})"
            raise _fault(layout, kind, reason, "add images or remove the class")
    return files


def _folders_in(path: Path, what: str, layout: Layout) -> list[Path]:
    """Return the folders in a folder, or links to them, at least one, without hidden ones. Raises `ModgraphError`, also
    for names that cannot be printed, since metrics, bundles and pages contain them."""
    found: list[Path] = []
    faults: list[Diagnostic] = []
    for each in _entries(path, layout):
        try:
            is_folder = each.is_dir()
        except OSError as error:
            raise _fault(layout, each, explain_error(error)) from error
        if not is_folder or each.name.startswith("."):
            continue
        found.append(each)
        wrong = "is not UTF-8" if is_not_utf8(each.name) else None
        if wrong is None and any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in each.name):
            wrong = "has characters that end a line or control a terminal"
        if wrong is not None:
            faults += _fault(layout, each, f"its name {wrong}", f"rename the folder of the {what}").diagnostics
    if faults:
        raise ModgraphError(faults)
    if not found:
        raise _fault(layout, path, f"it has no folder for each {what}")
    return found


def _entries(path: Path, layout: Layout) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except (OSError, ValueError) as error:
        raise _fault(layout, path, explain_error(error)) from error


def _fault(layout: Layout, path: Path, reason: str, way_out: str | None = None) -> ModgraphError:
    words, usual = layout
    return ModgraphError([BadImageFolder(path=str(path), reason=reason, way_out=way_out or usual, layout=words)])
