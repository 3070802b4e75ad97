"""Checks a batch against a model's types by name: shapes, dtypes and, on the processor, ids and lengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from modgraph.backends.torch.labelled import Batch, TargetLabels
from modgraph.diagnostics import did_you_mean
from modgraph.ir import Graph, find_ignored_labels, list_padding, longest, name_length, with_missing_labels
from modgraph.types import Axis, TensorType

Sizes = dict[str, tuple[int, str]]  # of axes of any length, each with the value where it was found
BATCH = Axis(None, "the batch")  # unlike any other axis: no name has a space


@dataclass(frozen=True)
class BatchTypes:
    """The types of a model's inputs and targets."""

    model: str
    inputs: Mapping[str, TensorType]
    targets: Mapping[str, TensorType]
    others: frozenset[str]  # further names of a batch: forced choices of draws, lengths that no node reads
    labels: Mapping[str, TargetLabels]  # of targets, and of inputs the same: which of their numbers count
    longest: Mapping[str, int]
    ends: Mapping[str, tuple[tuple[Axis, str], ...]]  # of edges: the axis of each end, and the name of its lengths

    @classmethod
    def from_graph(cls, graph: Graph, others: Iterable[str]) -> BatchTypes:
        """The types of a graph's inputs and targets."""
        types = {**graph.input_types, **graph.target_types}
        lengths = {name_length(graph, axis) for type_ in types.values() for axis in type_.padded} - types.keys()
        ignored, missing = find_ignored_labels(graph), with_missing_labels(graph)
        return cls(
            model=graph.name,
            inputs=graph.input_types,
            targets=graph.target_types,
            others=frozenset(others) | lengths,
            labels={
                name: TargetLabels(name, list_padding(graph, type_), ignored.get(name), name in missing)
                for name, type_ in types.items()
            },
            longest=longest(graph),
            ends={
                name: tuple((axis, name_length(graph, axis.lengths)) for axis in type_.ends)
                for name, type_ in types.items()
                if type_.ends
            },
        )

    def check(self, batch: Batch, module: nn.Module) -> None:
        """Raises `TypeError` for a wrong name or dtype, `ValueError` for a wrong shape or number. Checks only shapes
        and dtypes while torch traces the model, and nothing while it exports it."""
        if torch.compiler.is_exporting():
            return
        if not isinstance(batch, Mapping):
            expected = ", ".join(f'"{name}": …' for name in (*self.inputs, *self.targets) if name not in self.others)
            raise TypeError(f"{self.model} takes a batch by name, {{{expected}}}, not {type(batch).__name__}")
        given = batch
        batch = {name: value for name, value in batch.items() if name not in self.others}
        sizes: Sizes = {}
        for name, value in batch.items():
            type_ = self._type_of(name)
            if not isinstance(value, Tensor):
                raise TypeError(f"{self._describe(name, type_)}: a tensor is expected, not {type(value).__name__}")
            if (problem := self._misfit(name, type_, value, sizes)) is not None:
                expected = ", ".join(["B", *(str(axis.size or axis.name) for axis in type_.shape)])
                found = f"[{expected}] is expected, not {[*value.shape]}"
                raise ValueError(f"{self._describe(name, type_)}, batch first: {found}{problem}")
            if type_.dtype == "float" and not value.is_floating_point():
                raise TypeError(f"{self._describe(name, type_)}: it takes floats, not {value.dtype}: {name}.float()")
            inexact = value.is_floating_point() or value.is_complex() or value.dtype == torch.bool
            if type_.dtype != "float" and inexact:
                raise TypeError(
                    f"{self._describe(name, type_)}: it takes whole numbers, not {value.dtype}: {name}.long()"
                )
        if not torch.compiler.is_compiling():
            self._check_precision(batch, module)
            self._check_numbers(batch, sizes)
            for name in self.ends.keys() & batch.keys():
                self._check_ends(name, given, sizes)

    def _type_of(self, name: str) -> TensorType:
        type_ = self.inputs.get(name) or self.targets.get(name)
        if type_ is None:
            known = [*self.inputs, *self.targets]
            advice = did_you_mean(name, known, "they are {known}")
            raise TypeError(f'{self.model} has no input and no target "{name}": {advice}')
        return type_

    def _describe(self, name: str, type_: TensorType) -> str:
        return f'{self.model}: the {"input" if name in self.inputs else "target"} "{name}" is {type_}'

    def _misfit(self, name: str, type_: TensorType, value: Tensor, sizes: Sizes) -> str | None:
        """Return the end of the message for a value with wrong axes; None if the axes fit."""
        if value.dim() != len(type_.shape) + 1:
            one = [axis.size or length for axis, length in zip(type_.shape, value.shape, strict=False)]
            return f"; for one example: {name}[None]" if one == [*value.shape] else ""
        for length, axis in zip(value.shape, (BATCH, *type_.shape), strict=True):
            if axis.size is not None and length != axis.size:
                return ""
            before, other = sizes.setdefault(axis.lengths, (length, name)) if axis.size is None else (length, name)
            if length != before:
                return f': {axis.lengths} is {before} in "{other}"'
            if length > self.longest.get(axis.lengths, length):
                return f": {axis.lengths} is at most {self.longest[axis.lengths]}"
        return None

    def _check_precision(self, batch: Batch, module: nn.Module) -> None:
        """Raises `TypeError` where an input has another precision than the weights and torch does not cast it."""
        weight = next(module.parameters(), None)
        if weight is None or not weight.is_floating_point():
            return
        for name, type_ in self.inputs.items():
            value = batch.get(name)
            if value is None or type_.dtype != "float" or value.dtype == weight.dtype:
                continue
            if not torch.is_autocast_enabled(value.device.type):
                of = f"{self._describe(name, type_)}: the weights are {weight.dtype}, and this is {value.dtype}"
                raise TypeError(f"{of}: {name}.to({weight.dtype})")

    def _check_ends(self, name: str, batch: Batch, sizes: Sizes) -> None:
        """Raises `ValueError` for edges at nodes that an example does not have; a device would have to wait."""
        value = batch[name]
        if value.device.type != "cpu" or not value.numel() or self._are_within(name, batch, sizes):
            return
        counts = self.labels[name].make_mask(batch)
        for end, (axis, length) in enumerate(self.ends[name]):
            full = sizes.get(axis.lengths, (axis.size, ""))[0] if axis.is_padded else axis.size
            most = batch[length].unsqueeze(-1) if length in batch else full
            if most is None:
                continue
            ids = value[..., end]
            wrong = counts[..., end] & ((ids < 0) | (ids >= most))
            if wrong.any():
                example, place = (int(each[0]) for each in wrong.nonzero(as_tuple=True))
                nodes = int(batch[length][example]) if length in batch else most
                edge = f"edge {place} of example {example} {('begins', 'ends')[end]} at {int(ids[example, place])}"
                described = self._describe(name, self._type_of(name))
                raise ValueError(f"{described}: {edge}, and {axis.name} has 0 to {int(nodes) - 1}")

    def _are_within(self, name: str, batch: Batch, sizes: Sizes) -> bool:
        """Whether all ends, those of padding too, are places that the nodes of every example have at both ends."""
        full = (sizes.get(axis.lengths, (axis.size, ""))[0] for axis, _ in self.ends[name])
        most = min((each for each in full if each is not None), default=0)
        given = [batch[length] for _, length in self.ends[name] if length in batch]
        least, largest = batch[name].aminmax()
        return int(least) >= 0 and int(largest) < min([most, *(int(each.min()) for each in given)])

    def _check_numbers(self, batch: Batch, sizes: Sizes) -> None:
        """Raises `ValueError` for ids beyond their type and lengths beyond their axis; a device would have to wait."""
        for name, value in batch.items():
            type_ = self._type_of(name)
            if type_.dtype in ("float", "edge") or value.device.type != "cpu" or not value.numel():
                continue
            most = sizes[type_.of][0] if type_.dtype == "length" and type_.of in sizes else (type_.size or 0) - 1
            least, largest = (int(each) for each in value.aminmax())
            if (type_.dtype == "length" and type_.of not in sizes) or (least >= 0 and largest <= most):
                continue
            wrong = (value < 0) | (value > most)
            if type_.dtype != "length":
                wrong &= self.labels[name].make_mask(batch)
            if wrong.any():
                first = int(value[wrong].flatten()[0])
                raise ValueError(
                    f"{self._describe(name, type_)}: its numbers are 0 to {most}, and {first} is among them"
                )
