"""The base of data sets: a section of a recipe that yields arrays for a spec's inputs and targets."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from modgraph.data.errors import DataDoesNotFit, LabelsBeyond, NothingToBucket, does_not_fit
from modgraph.data.padding import clear_padding, find_padding_in
from modgraph.declare import Registry, format_count
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.ir import Graph, Padding, comparisons, find_ignored_labels, name_length, with_missing_labels
from modgraph.recipes.schema import Named
from modgraph.types import TensorType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TRAIN, VALIDATION, HELD_OUT = "train", "validation", "held_out"  # splits
BY_SUFFIX = {".npz": "npz", ".conllu": "conll", ".txt": "text", ".json": "graphs", ".jsonl": "graphs"}  # of one file
MOST_REPORTED = 20  # files that cannot be read
Lengths = dict[int | str, tuple[str, int]]  # by axis, with the array that it was read from


@dataclass(frozen=True)
class OnDisk(ABC):
    """One array of a split, read on request. Fields that are arrays have a value for each example."""

    shape: tuple[int, ...]  # of one example

    def take(self, indices: NDArray[Any]) -> Self:
        """Return some of the examples, unread."""
        import numpy as np

        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        taken = {name: each[indices] for name, each in columns.items() if isinstance(each, np.ndarray)}
        taken |= {name: each.take(indices) for name, each in columns.items() if isinstance(each, OnDisk)}
        return replace(self, **taken)

    @abstractmethod
    def read(self, indices: NDArray[Any] | slice) -> NDArray[np.float32]:
        """Read some of the examples. Raises `ModgraphError`."""

    @abstractmethod
    def digest(self) -> bytes:
        """Return a digest of all its examples, independent of paths: of files, of their names and contents. Raises
        `ModgraphError`."""

    def find_unreadable(self) -> list[Diagnostic]:
        """Return a diagnostic for each file that cannot be read."""
        return []


@dataclass(frozen=True)
class Arrays:
    """One split: arrays by the name of an input or target, examples along the first axis.

    `groups` have a word for each example by the name of a grouping; `orders` give the order of groups where it is not
    alphabetical. Arrays that are too large for memory are `on_disk`. `padded` says which axes of which arrays hold
    padding, and which arrays have the lengths of examples. `characters` are the numbers of characters of the text of
    each class, by target.
    """

    values: Mapping[str, NDArray[Any]]
    groups: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    on_disk: Mapping[str, OnDisk] = field(default_factory=dict)
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    padded: Mapping[str, Padding] = field(default_factory=dict)
    characters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        shapes = {name: array.shape[1:] for name, array in self.values.items()}
        shapes |= {name: column.shape for name, column in self.on_disk.items()}
        described = ", ".join(f"{name} {[*shape]}" for name, shape in shapes.items())
        return f"<Arrays of {len(self) if self.values else 0} examples: {described}>"

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def take(self, indices: NDArray[Any]) -> Arrays:
        """Return some of the examples."""
        groups = {name: words[indices] for name, words in self.groups.items()}
        on_disk = {name: column.take(indices) for name, column in self.on_disk.items()}
        values = {name: array[indices] for name, array in self.values.items()}
        return replace(self, values=values, groups=groups, on_disk=on_disk)

    def read(self, indices: NDArray[Any] | slice, among: NDArray[Any] | slice | None = None) -> dict[str, NDArray[Any]]:
        """Read every array of some examples. Padding is cut to the longest of them, or of `among`, a superset of them.
        Raises `ModgraphError` where a file cannot be read."""
        import numpy as np

        stored = {name: column.read(indices) for name, column in self.on_disk.items()}
        rows = indices if among is None else among
        longest = {name: max(1, int(self.values[name][rows].max(initial=1))) for name in self._lengths}
        found = {}
        for name, array in self.values.items():
            stops = {at: longest[length] for at, length in self.padded.get(name, ())}
            found[name] = array[tuple(slice(stops.get(at)) for at in range(array.ndim))] if stops else array
        return {name: np.ascontiguousarray(array[indices]) for name, array in found.items()} | stored

    @property
    def _lengths(self) -> list[str]:
        """The names of arrays with the lengths of examples."""
        return sorted({name for padding in self.padded.values() for _, name in padding})

    def lengths(self) -> NDArray[np.int64]:
        """Return the length of each example [B], summed over its padded axes. Raises `ModgraphError` if no axis is
        padded."""
        import numpy as np

        if not self._lengths:
            raise ModgraphError([NothingToBucket()])
        lengths: NDArray[np.int64] = np.sum([self.values[name] for name in self._lengths], axis=0)
        return lengths

    def names_of_groups(self, by: str | None) -> list[str]:
        """Return the groups of the examples, in their order; none if the grouping does not exist."""
        import numpy as np

        if by is None or by not in self.groups:
            return []
        found = np.unique(self.groups[by]).tolist()
        return [name for name in self.orders.get(by, found) if name in found]


@dataclass(frozen=True)
class Scale:
    """The encoding of light by numbers: a pixel p, from 0 for black to 1 for white, is (p − mean) / deviation, by
    channel."""

    mean: tuple[float, ...] = (0.0,)
    deviation: tuple[float, ...] = (1.0,)

    def not_of_colours(self) -> str | None:
        """Return the problem with it as the scale of colour images, worded for a section of a recipe."""
        three = len(self.mean) == len(self.deviation) == 3
        return None if three else "needs three numbers for mean and three for deviation: red, green, blue"

    @property
    def is_grey(self) -> bool:
        """Whether it is that of grey images: one number each."""
        return len(self.mean) == len(self.deviation) == 1

    def normalise(self, light: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return images [B, C, H, W] from 0 to 1 in this scale."""
        return (light - _reshape_channels(self.mean)) / _reshape_channels(self.deviation)

    def light(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return images [B, C, H, W] of this scale as light from 0 to 1."""
        return images * _reshape_channels(self.deviation) + _reshape_channels(self.mean)


def _reshape_channels(numbers: tuple[float, ...]) -> NDArray[np.float32]:
    import numpy as np

    return np.array(numbers, np.float32)[:, None, None]


class DataSet(Named):
    """A data set. The split `train` is for training, `validation` is measured meanwhile; all others are tests."""

    registry: ClassVar[Registry[DataSet]] = Registry("data set")
    exact: ClassVar[bool] = True  # its numbers are read; computed ones may differ in their last bits between machines

    @classmethod
    def suggest(cls, name: str) -> str:
        """Return the help for an unknown data set: that of its kind of file for the path of one."""
        kind = BY_SUFFIX.get(Path(name).suffix.lower())
        return super().suggest(name) if kind is None else f"write data: {{name: {kind}, train: {name}}}"

    @abstractmethod
    def splits(self, graph: Graph) -> dict[str, Arrays]:
        """Return the arrays of every split. Raises `ModgraphError`."""

    def is_exact(self) -> bool:
        """Whether its numbers are the same on every machine; a wrapper returns that of the data set within."""
        return self.exact

    def extras(self) -> tuple[str, ...]:
        """Extras that `splits` needs under these settings."""
        return ()

    def follows(self) -> Mapping[str, str]:
        """Return the targets that are an input one place later, such as the next word of a text, each with that
        input. A model that reads later places of it can copy the target."""
        return {}

    def scale(self) -> Scale:
        """Return the scale of its images: its settings `mean` and `deviation`, if it has them."""
        return Scale(**{each: getattr(self, each) for each in ("mean", "deviation") if each in self.settings()})

    def files(self) -> tuple[str, ...]:
        """Return files that identify the data, beyond the arrays that are `exact`."""
        return ()

    kept: ClassVar[str] = ""  # the setting with the path of the file that `keeps` returns

    def keeps(self, graph: Graph) -> dict[str, bytes]:
        """Return the files that a run keeps because the training data decide them, such as a vocabulary. Raises
        `ModgraphError`."""
        return {}

    def with_kept_files(self, folder: Path) -> DataSet:
        """Return the same data with the files that a run keeps in a folder."""
        path = folder / f"{self.kept}.json"
        return replace(self, **{self.kept: str(path)}) if self.kept and path.exists() else self

    def description(self) -> dict[str, Any]:
        """Return the facts that deploying the model needs: names of classes by target, words by input of tokens, and
        how inputs were made."""
        return {}


def shuffle(arrays: Arrays, seed: int = 0) -> Arrays:
    """Return the examples in a random order, so that the first of them represent all."""
    import numpy as np

    return arrays.take(np.random.default_rng((seed, 5)).permutation(len(arrays)))


def split_off(arrays: Arrays, fraction: float, seed: int) -> dict[str, Arrays]:
    """Return a random share of the examples as the test, and all others for training. Raises `ModgraphError`."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(arrays))
    kept = max(1, round(fraction * len(arrays)))
    if kept >= len(arrays):
        raise does_not_fit(
            f"{format_count(len(arrays), 'example')} cannot be split", "give the test a file of its own: test"
        )
    return {TRAIN: arrays.take(order[kept:]), "test": arrays.take(order[:kept])}


def check(arrays: Arrays, graph: Graph, split: str) -> Arrays:
    """Check that arrays fit the spec's inputs and targets, and cast them to torch's types. Raises `ModgraphError`."""
    wanted = {**graph.input_types, **graph.target_types}
    ignored, missing = find_ignored_labels(graph), with_missing_labels(graph)
    given = clear_padding(arrays.values, graph, ignored)
    found: list[DataDoesNotFit] = []
    checked: dict[str, NDArray[Any]] = {}
    lengths: Lengths = {}
    for name, type_ in wanted.items():
        if name in arrays.on_disk and arrays.on_disk[name].shape == type_.dimensions:
            continue
        if name in given:
            array = given[name]
            problem = _wrong_shape(array, type_, name, lengths)
            problem = problem or _wrong_values(array, type_, ignored.get(name), name in missing)
            if problem is None:
                checked[name] = _cast(array, type_)
            else:
                way_out = _way_out(name, array, graph, type_)
                found.append(DataDoesNotFit(reason=f'array "{name}" of {split} {problem}', way_out=way_out))
        elif type_.dtype != "length":
            known = ", ".join(sorted(given)) or "none"
            found.append(DataDoesNotFit(reason=f'{split} has no array "{name}" for {type_}; it has: {known}'))
    for name, array in checked.items():
        _, longest = lengths.get(wanted[name].of, (name, None))
        if wanted[name].dtype == "length" and longest is not None and (array.min() < 0 or array.max() > longest):
            problem = f"holds {array.min()} to {array.max()}; lengths along it are 0 to {longest}"
            found.append(DataDoesNotFit(reason=f'array "{name}" of {split} {problem}'))
    for name, array in checked.items():
        if wanted[name].ends and (problem := _wrong_ends(array, wanted[name], checked, graph, lengths)) is not None:
            found.append(DataDoesNotFit(reason=f'array "{name}" of {split} {problem}'))
    if found:
        raise ModgraphError(found)
    return replace(arrays, values=checked, padded=find_padding_in(graph, checked))


def find_unreadable(splits: Mapping[str, Arrays]) -> dict[str, list[Diagnostic]]:
    """Decode every file of some splits once, and return a diagnostic for each that cannot be read, by split."""
    columns = {split: arrays.on_disk.values() for split, arrays in splits.items()}
    found = {split: [fault for each in stored for fault in each.find_unreadable()] for split, stored in columns.items()}
    return {split: faults for split, faults in found.items() if faults}


def refuse_unreadable(splits: Mapping[str, Arrays]) -> None:
    """Raises `ModgraphError` for files of some splits that cannot be read, for the first of many."""
    if faults := [*itertools.chain(*find_unreadable(splits).values())]:
        raise ModgraphError(faults[:MOST_REPORTED])


def check_splits(splits: Mapping[str, Arrays], graph: Graph) -> dict[str, Arrays]:
    """Check every split. Raises `ModgraphError`."""
    return {split: check(arrays, graph, split) for split, arrays in splits.items()}


def _way_out(name: str, array: NDArray[Any], graph: Graph, type_: TensorType) -> str:
    """Return the help for an array that does not fit: for labels in another form, its conversion; for negative labels
    or NaN, the key of the recipe that allows missing labels; for values in padding, the array of lengths."""
    import numpy as np

    if (conversion := _find_conversion(array, type_)) is not None:
        return f"convert it: {name}{conversion}"
    absent = np.isnan(array) if array.dtype.kind == "f" else array < 0 if array.dtype.kind == "i" else np.zeros(1)
    if absent.any():
        if name in {each.target for each in comparisons(graph) if each.may_miss} - with_missing_labels(graph):
            return f"if labels may be missing, say so: train.labels: {{{name}: {{missing: true}}}}"
        if ends := [name_length(graph, axis) for axis in type_.padded]:
            return f"if it is padding, give the length of each example: the array {' and the array '.join(ends)}"
    return DataDoesNotFit.way_out


def _find_conversion(array: NDArray[Any], type_: TensorType) -> str | None:
    """Return the call of numpy that makes an array fit its type: one of one-hot labels, of a last axis of length 1, or
    of whole numbers stored as floats. None if there is none."""
    import numpy as np

    if array.dtype.kind not in "fiub" or not array.size:
        return None
    axis, is_of_numbers = array.ndim - 1, type_.dtype == "float"
    if axis == len(type_.shape) + 1 and array.shape[-1] == 1:
        return f".squeeze({axis})" + ("" if is_of_numbers else _whole(array))
    if is_of_numbers:
        return None
    if axis == len(type_.shape) + 1 and array.shape[-1] == type_.size:
        is_one_hot = np.isin(array, (0, 1)).all() and (array.sum(-1) == 1).all()
        return f".argmax({axis})" if is_one_hot else None
    fits = axis == len(type_.shape) and all(
        size == length for size, length in zip(type_.dimensions, array.shape[1:], strict=True) if isinstance(size, int)
    )
    return (_whole(array) or None) if fits else None


def _whole(array: NDArray[Any]) -> str:
    """Return the conversion of floats that are all whole numbers to integers, "" where none is needed or possible."""
    import numpy as np

    is_whole = array.dtype.kind == "b" or (array.dtype.kind == "f" and bool((np.trunc(array) == array).all()))
    return '.astype("int64")' if is_whole else ""


def _wrong_shape(array: NDArray[Any], type_: TensorType, name: str, lengths: Lengths) -> str | None:
    """Return the problem with the shape of an array. An axis of any length must have one length everywhere."""
    if array.ndim != len(type_.shape) + 1:
        return f"has the shape {array.shape}; {type_} needs {len(type_.shape) + 1} axes, examples first"
    for axis, length in zip(("examples", *type_.dimensions), array.shape, strict=True):
        if isinstance(axis, int):
            if axis != length:
                return f"has the shape {array.shape}; {type_} needs {axis} where it has {length}"
        elif lengths.setdefault(axis, (name, length))[1] != length:
            other, expected = lengths[axis]
            return f'has {length} {axis}, but "{other}" has {expected}'
    if len(array) == 0:
        return "has no examples"
    return f"has the shape {array.shape} without values" if array.size == 0 else None


def _wrong_values(array: NDArray[Any], type_: TensorType, ignored: int | None, missing: bool) -> str | None:
    """Return the problem with the values of an array. Labels that may be `missing` are negative or NaN. Labels of a
    named axis of classes have no upper bound: a training may add classes."""
    import numpy as np

    if type_.dtype == "float":
        if array.dtype.kind not in "fiub":
            return f"holds {array.dtype}, not numbers"
        numbers = _cast(array, type_)
        wrong = np.argwhere(np.isinf(numbers) if missing else ~np.isfinite(numbers))
        place = ", ".join(map(str, wrong[0])) if len(wrong) else ""
        what = "has values that are infinite, NaN or too large for float32"
        return f"{what}, first at [{place}]" if len(wrong) else None
    if array.dtype.kind not in "iu":
        return f"holds {array.dtype}, not whole numbers"
    array = array[array >= 0] if missing else array
    array = array if ignored is None else array[array != ignored]
    if not array.size:
        return None if missing else f"has only {ignored}, which is ignored"
    least, most = array.min(), array.max()
    if type_.size is None or (least >= 0 and (type_.of or most < type_.size)):
        return None
    to, allowed = ("", "and more") if type_.of else (f" to {most}", f"to {type_.size - 1}")
    return f"holds values from {least}{to}; {type_} allows 0 {allowed}"


def _wrong_ends(
    array: NDArray[Any], type_: TensorType, values: Mapping[str, NDArray[Any]], graph: Graph, lengths: Lengths
) -> str | None:
    """Return the problem with the ends of edges, which are nodes that their examples have."""
    import numpy as np

    own = values.get(name_length(graph, type_.shape[0].lengths))
    is_edge = np.arange(array.shape[1]) < (array.shape[1] if own is None else own[:, None])
    for at, axis in enumerate(type_.ends):
        full: Any = lengths.get(axis.lengths, ("", axis.size))[1] if axis.is_padded else axis.size
        nodes: Any = values.get(name_length(graph, axis.lengths))
        most = np.broadcast_to(full if nodes is None else nodes, len(array))
        ids = array[..., at]
        wrong = np.argwhere(is_edge & ((ids < 0) | (ids >= most[:, None])))
        if len(wrong):
            example, place = wrong[0]
            verb, known = ("begins", "ends")[at], f"{axis.name} has 0 to {most[example] - 1}"
            return f"has an edge that {verb} at {ids[example, place]}, first at [{example}, {place}], where {known}"
    return None


def _cast(array: NDArray[Any], type_: TensorType) -> NDArray[Any]:
    import numpy as np

    with np.errstate(over="ignore"):  # larger numbers become infinite in float32
        return np.ascontiguousarray(array, dtype=np.float32 if type_.dtype == "float" else np.int64)


def refuse_labels_beyond(arrays: Arrays, graph: Graph) -> None:
    """Raises `ModgraphError` where labels are not among the classes that a graph has now."""
    for name, beyond in _beyond(arrays, graph).items():
        if beyond.any():
            label, classes = int(arrays.values[name][beyond].min()), graph.target_types[name].size
            raise ModgraphError([LabelsBeyond(target=name, label=label, classes=classes)])


def drop_unknown_classes(arrays: Arrays, graph: Graph) -> Arrays:
    """Return the examples whose labels are all among the classes that a graph has now."""
    import numpy as np

    known = np.ones(len(arrays), bool)
    for beyond in _beyond(arrays, graph).values():
        known &= ~beyond.reshape(len(arrays), -1).any(1)
    return arrays if known.all() else arrays.take(np.flatnonzero(known))


def _beyond(arrays: Arrays, graph: Graph) -> dict[str, NDArray[np.bool_]]:
    """Return a mask of labels beyond the current classes, by target, for classes that are a named axis."""
    ignored, labels = find_ignored_labels(graph), arrays.values
    types = {name: each for name, each in graph.target_types.items() if each.of and each.size is not None}
    known = {name: (labels[name], each.size) for name, each in types.items() if name in labels}
    return {name: (label >= size) & (label != ignored.get(name, -1)) for name, (label, size) in known.items()}
