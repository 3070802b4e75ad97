"""Data sets that a program gives in Python: any `torch.utils.data.Dataset`, or arrays by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from modgraph.data.declaration import TRAIN, Arrays, DataSet, check
from modgraph.data.errors import DataNotGiven, UnknownArray, does_not_fit
from modgraph.declare import format_count
from modgraph.diagnostics import ModgraphError, did_you_mean
from modgraph.ir import Graph, name_length
from modgraph.types import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Examples = dict[str, list[NDArray[Any]]]  # the value of each example by the name of an input or target

Types = Mapping[str, TensorType]


class InPython(DataSet, name="python"):
    """Data sets given in Python (`modgraph.train(…, data={"train": …, "test": …})`). A run keeps their fingerprints,
    not the data."""

    sets: ClassVar[Mapping[str, Any]] = {}
    _read: ClassVar[dict[str, Arrays]]

    @classmethod
    def from_splits(cls, sets: Mapping[str, Any]) -> InPython:
        """Wrap data sets by split. Raises `TypeError` for anything else."""
        if not isinstance(sets, Mapping):
            raise TypeError(f'data must be data sets by split, data={{"train": …}}, not {type(sets).__name__}')
        found = cls()
        vars(found).update(sets=dict(sets), _read={})
        return found

    def splits(self, graph: Graph) -> dict[str, Arrays]:
        """Return the arrays of every split. Each data set is read once, example by example, and kept in memory."""
        if not self.sets:
            raise ModgraphError([DataNotGiven()])
        types = {**graph.input_types, **graph.target_types}
        for split, examples in self.sets.items():
            if split not in self._read:
                self._read[split] = Arrays(stack_examples(examples, types, graph, split))
        return {split: check(arrays, graph, split) for split, arrays in self._read.items()}


def refuse_without_training(sets: Mapping[str, Any]) -> None:
    """Raises `ModgraphError` unless there is a `train` split."""
    if TRAIN not in sets:
        known = ", ".join(map(str, sets)) or "none"
        raise does_not_fit(f'data must have "{TRAIN}", not only {known}', 'add the training data: data={"train": …}')


def stack_examples(examples: Any, types: Types, graph: Graph, split: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a data set. Raises `ModgraphError` where it does not fit the types, and `TypeError`."""
    if isinstance(examples, Mapping):
        _refuse_names(examples, types, split)
        return {name: _as_array(value, f'{split}["{name}"]') for name, value in examples.items() if name in types}
    found: Examples = {}
    for at, example in enumerate(_each_of(examples, split)):
        named = _name_values(example, types, f"{split}[{at}]")
        if not at:
            _refuse_names(named, types, f"{split}[{at}]")
        for name, value in named.items():
            if name in types:
                array = _as_array(value, f'{split}[{at}]["{name}"]')
                _refuse_shape(array, types[name], f'{split}[{at}]["{name}"]')
                found.setdefault(name, []).append(array)
        short = [name for name, values in found.items() if len(values) <= at]
        if short:
            raise does_not_fit(f'{split}[{at}] has no "{short[0]}", and the examples before have')
    if not found:
        raise does_not_fit(f"{split} has no examples")
    arrays = {name: _stack(values, types[name]) for name, values in found.items()}
    return {**_lengths(found, types, graph, split), **arrays}


def _each_of(examples: Any, split: str) -> Iterable[Any]:
    """Return the examples of a data set in order. Raises `TypeError` for anything else."""
    if hasattr(examples, "batch_sampler") and hasattr(examples, "dataset"):
        raise TypeError(f'data["{split}"] is a loader, which makes batches: give its data set, loader.dataset')
    if hasattr(examples, "__len__") and hasattr(examples, "__getitem__") and not isinstance(examples, str):
        return (examples[at] for at in range(len(examples)))
    if isinstance(examples, Iterable) and not isinstance(examples, str):
        return examples
    wanted = "a torch.utils.data.Dataset, or arrays by name, is needed"
    raise TypeError(f'data["{split}"] is a {type(examples).__name__}: {wanted}')


def _name_values(example: Any, types: Types, place: str) -> Mapping[str, Any]:
    """Return the values of an example by name; a tuple has the order of the spec, inputs before targets."""
    if isinstance(example, Mapping):
        return example
    names = [name for name, type_ in types.items() if type_.dtype != "length"]
    values = list(example) if isinstance(example, tuple | list) else [example]
    if len(values) != len(names):
        way_out = f"give a dictionary by name, or a tuple of {len(names)}: ({', '.join(names)})"
        count = format_count(len(values), "value")
        raise does_not_fit(f"{place} has {count}, and the spec {len(names)} inputs and targets", way_out)
    return dict(zip(names, values, strict=True))


def _refuse_names(given: Mapping[str, Any], types: Types, place: str) -> None:
    """Raises `ModgraphError` where a name is missing, or an unknown one may be misspelt."""
    missing = [name for name, type_ in types.items() if name not in given and type_.dtype != "length"]
    unknown = [str(name) for name in given if name not in types]
    if missing and unknown:
        suggestions = {name: did_you_mean(name, missing, "the spec also needs: {known}") for name in unknown}
        raise ModgraphError(UnknownArray(path=place, name=name, suggestion=each) for name, each in suggestions.items())
    if missing:
        known = ", ".join(map(str, given)) or "none"
        raise does_not_fit(f'{place} has no "{missing[0]}" for {types[missing[0]]}; it has: {known}')


def _as_array(value: Any, place: str) -> NDArray[Any]:
    """Convert a value to numpy. Raises `TypeError` for a value without numbers."""
    import numpy as np

    detached = value.detach().cpu() if hasattr(value, "detach") else value
    try:
        array = np.asarray(detached)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{place} is a {type(value).__name__}, and an array of numbers is needed: {error}") from error
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{place} is {_kind(value, array)}, and numbers are needed: map classes and words to ids first")
    return array


def _kind(value: Any, array: NDArray[Any]) -> str:
    return "a string" if array.dtype.kind in "US" and not array.ndim else f"a {type(value).__name__} of {array.dtype}"


def _refuse_shape(array: NDArray[Any], type_: TensorType, place: str) -> None:
    """Raises `ModgraphError` unless an example's array has the axes of its type."""
    sizes = [axis.size for axis in type_.shape]
    fits = len(sizes) == array.ndim and all(
        size in (None, length) for size, length in zip(sizes, array.shape, strict=True)
    )
    if not fits:
        expected = ", ".join(str(axis.size or axis.name) for axis in type_.shape)
        reason = f"{place} has the shape {[*array.shape]}; {type_} needs [{expected}] of each example"
        raise does_not_fit(reason, _suggest_layout(array, sizes) or "change the data set, or the type in the spec")


def _suggest_layout(array: NDArray[Any], sizes: Sequence[int | None]) -> str:
    """Return the help for images with channels last, or without the axis of channels."""
    if array.size == 1 and not sizes:
        return "give a single number: label.item()"
    if [1, *array.shape] == sizes:
        return "add the axis of channels: image[None]"
    channels_first = [*array.shape[-1:], *array.shape[:-1]]
    return "put the channels first: image.permute(2, 0, 1)" if array.ndim == 3 and channels_first == sizes else ""


def _stack(values: Sequence[NDArray[Any]], type_: TensorType) -> NDArray[Any]:
    """Stack the arrays of all examples, with zeros as padding along axes of any length."""
    import numpy as np

    longest = tuple(max(sizes) for sizes in zip(*(each.shape for each in values), strict=True))
    if all(each.shape == longest for each in values):
        return np.stack(values)
    found = np.zeros((len(values), *longest), values[0].dtype)
    for row, each in zip(found, values, strict=True):
        row[tuple(map(slice, each.shape))] = each
    return found


def _lengths(found: Examples, types: Types, graph: Graph, split: str) -> dict[str, NDArray[Any]]:
    """Return the lengths of examples along each axis of any length, where they differ."""
    import numpy as np

    lengths: dict[str, NDArray[Any]] = {}
    for name, values in found.items():
        for at, axis in enumerate(types[name].shape):
            if axis.size is None:
                own = np.array([each.shape[at] for each in values])
                length = name_length(graph, axis.lengths)
                if length in lengths and (lengths[length] != own).any():
                    at = int(np.flatnonzero(lengths[length] != own)[0])
                    has = f"{lengths[length][at]} and {own[at]}"
                    raise does_not_fit(f"example {at} of {split} has two lengths along {axis.lengths}: {has}")
                lengths[length] = own
    return {name: own for name, own in lengths.items() if name not in found and len(np.unique(own)) > 1}
