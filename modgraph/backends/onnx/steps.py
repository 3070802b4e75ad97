"""Bundles that take one token after another: examples from real steps, and whole sequences step by step.

The caches of a step are no free inputs: they hold numbers of tokens and positions. So examples are made by the model
itself, which reads the first tokens of a sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from modgraph_runtime.steps import count_lengths
from numpy.typing import NDArray
from torch import Tensor

from modgraph.backends.errors import StepsDisagree, StepsSelectOtherwise
from modgraph.backends.onnx.decisions import Decisions
from modgraph.backends.onnx.examples import LONG, SHORT, Arrays, Examples, Lengths
from modgraph.backends.onnx.trace import Traced
from modgraph.backends.onnx.verify import TOGETHER, TOLERANCE, Session, Values, relative_errors
from modgraph.backends.torch import Model, make_generator
from modgraph.backends.torch.generation import find_logits, list_choices
from modgraph.diagnostics import Diagnostic, ModgraphError
from modgraph.ir import Graph, longest
from modgraph.passes.cache_names import is_cache, list_extents
from modgraph.passes.incremental import find_tokens

Batch = dict[str, Tensor]
Value = Callable[[str, int], NDArray[Any]]
SEQUENCE = 12  # tokens of a sequence that is read step by step
MOST = 512  # tokens of a window that is filled before a step is tried


@dataclass(frozen=True)
class StepPorts:
    """What the inputs and outputs of an incremental form are for. `whole` is the graph that it derives from."""

    whole: Graph
    graph: Graph
    tokens: str
    axis: str  # of new tokens
    place: int  # of this axis among those of the tokens, counted from the last
    caches: tuple[str, ...]
    lengths: Mapping[str, str]  # inputs with lengths of examples, by their axis
    windows: Mapping[str, int]  # the most tokens that caches keep, by the word for their extent

    @classmethod
    def from_graphs(cls, whole: Graph, graph: Graph) -> StepPorts:
        found, types = find_tokens(whole), graph.input_types
        axis = whole.type_of(found.value).shape[found.axis].name
        lengths = {type_.of: name for name, type_ in types.items() if type_.dtype == "length"}
        caches = tuple(filter(is_cache, types))
        return cls(whole, graph, found.value.node, axis, found.axis, caches, lengths, list_extents(graph))

    @property
    def past(self) -> str:
        return f"{self.axis}.past"

    @property
    def widest(self) -> int:
        """The most tokens that a cache of a window keeps."""
        return max(self.windows.values(), default=0)

    @property
    def longest(self) -> int | None:
        """The number of tokens that the model has positions for."""
        return longest(self.whole).get(self.axis)

    @property
    def hidden(self) -> frozenset[str]:
        """Inputs that follow from earlier steps."""
        return frozenset((*self.caches, *(name for axis, name in self.lengths.items() if axis in self._known)))

    @property
    def _known(self) -> frozenset[str]:
        """The axes of earlier tokens, and of all."""
        return frozenset({*count_lengths(self.axis, self.windows, (), ())} - {self.axis})

    def list_lengths(self, new: Sequence[int], past: Sequence[int]) -> Batch:
        """The inputs with lengths of examples."""
        known = count_lengths(self.axis, self.windows, past, new)
        return {name: torch.tensor(known[axis]) for axis, name in self.lengths.items()}

    def begin(self, examples: int) -> Batch:
        """The caches before the first token."""
        types = {name: self.graph.input_types[name] for name in self.caches}
        shapes = {name: (0 if axis.size is None else axis.size for axis in each.shape) for name, each in types.items()}
        dtypes = {name: torch.float if each.dtype == "float" else torch.int64 for name, each in types.items()}
        return {name: torch.zeros(examples, *shape, dtype=dtypes[name]) for name, shape in shapes.items()}

    def complete(self, arrays: Arrays) -> Values:
        """Arrays of whole sequences as inputs of a first step."""
        wanted = {name: type_ for name, type_ in self.whole.input_types.items() if type_.dtype != "length"}
        found = {name: torch.from_numpy(np.asarray(arrays[name])) for name in wanted}
        examples, size = len(found[self.tokens]), found[self.tokens].shape[self.place]
        given = self.lengths.get(self.axis, "")
        new = arrays[given].tolist() if given in arrays else [size] * examples
        batch = {**found, **self.begin(examples), **self.list_lengths(new, [0] * examples)}
        return {name: batch[name].numpy() for name in self.graph.input_types}

    def take(self, tokens: Tensor, first: Tensor, count: int) -> Tensor:
        """`count` tokens of each example from its `first` [B] on; places beyond the end repeat the last token."""
        axis = tokens.dim() + self.place
        places = (first.unsqueeze(1) + torch.arange(count)).clamp(max=tokens.shape[axis] - 1)
        shape = [len(tokens), *[1] * (axis - 1), count, *[1] * (tokens.dim() - axis - 1)]
        return tokens.gather(axis, places.reshape(shape).expand(*tokens.shape[:axis], count, *tokens.shape[axis + 1 :]))

    def as_json(self, choices: Mapping[str, str]) -> dict[str, Any]:
        """The entry of a manifest; `choices` are the records of a bundle with the choice of each route."""
        type_ = self.graph.input_types
        try:
            logits = {"logits": find_logits(self.whole)}
        except ModgraphError:  # its outputs are no logits of the next token
            logits = {}
        of_caches = {axis: name for axis, name in self.lengths.items() if axis in self._known}
        lengths = {axis.removeprefix(f"{self.axis}."): name for axis, name in of_caches.items()}
        return {
            "tokens": self.tokens,
            "axis": self.axis,
            "place": self.place,
            **logits,
            **({"longest": self.longest} if self.longest is not None else {}),
            "caches": [
                {"name": name, **type_[name].as_json(), "shape": [*type_[name].dimensions], "next": f"output.{name}"}
                for name in self.caches
            ],
            "lengths": lengths,
            **({"windows": self.windows} if self.windows else {}),
            "choices": choices,
        }


def list_choice_records(model: Model, ports: StepPorts) -> dict[str, str]:
    """The record with the choice of each route that chooses modules for each token."""
    return dict(list_choices(model.graph, ports.axis))


@dataclass(frozen=True)
class StepExamples(Examples):
    """Steps after a number of tokens that the model itself has read. `whole` are the sequences."""

    model: Model = field(kw_only=True)
    ports: StepPorts = field(kw_only=True)
    whole: Examples = field(kw_only=True)

    @classmethod
    def make(cls, model: Model, ports: StepPorts, given: Arrays | None) -> StepExamples:
        """Examples from a user's arrays of sequences, or random ones. Raises `ModgraphError` if they do not fit."""
        whole = Examples.from_arrays(ports.whole, given)
        return cls(model.graph, model=model, ports=ports, whole=whole)

    def lengths(self) -> tuple[Lengths, ...]:
        """First tokens, one after others, and several after others."""
        wanted = min(MOST, self.ports.widest) + LONG + SHORT
        most = min(wanted, self.ports.longest or wanted)
        if self.whole.given is not None:
            most = min(most, self.whole.given[self.ports.tokens].shape[self.ports.place])
        several = max(1, min(SHORT, SHORT * most // (LONG + SHORT)))
        steps = dict.fromkeys(((most - several or 1, 0), (1, most - 1), (several, most - several)))
        return tuple({self.ports.axis: new, self.ports.past: past} for new, past in steps)

    @torch.no_grad()
    def draw(self, start: int, count: int, lengths: Lengths) -> Batch:
        new, past = lengths[self.ports.axis], lengths[self.ports.past]
        given = self.whole.draw(start, count, {self.ports.axis: new + past})
        tokens = given.pop(self.ports.tokens)
        generator = make_generator("steps", start, count, new, past)
        before = (
            torch.randint(min(1, past), past + 1, (count,), generator=generator) if past else torch.zeros(count).long()
        )
        after = torch.randint(1, new + 1, (count,), generator=generator)
        others = {name: value for name, value in given.items() if name in self.graph.input_types}
        caches = self.ports.begin(count)
        if past:
            caches = self._read(tokens.narrow(self.ports.place, 0, past), before, others)
        batch = {
            self.ports.tokens: self.ports.take(tokens, before, new),
            **others,
            **caches,
            **self.ports.list_lengths(after.tolist(), before.tolist()),
        }
        return {name: batch[name] for name in self.graph.input_types}

    def _read(self, tokens: Tensor, lengths: Tensor, others: Batch) -> Batch:
        """The caches after the first tokens of sequences, of these lengths."""
        first = self.ports.list_lengths(lengths.tolist(), [0] * len(tokens))
        batch = {**others, self.ports.tokens: tokens, **self.ports.begin(len(tokens)), **first}
        return {name: each for name, each in self.model.compute(batch, losses=False).outputs.items() if is_cache(name)}


@torch.no_grad()
def verify_sequences(whole: Model, model: Model, traced: Traced, examples: StepExamples) -> float:
    """Compare sequences that ONNX Runtime reads step by step with torch, which reads them whole: the worst error.

    Choices are compared first. Raises `ModgraphError`.
    """
    ports, decisions = examples.ports, Decisions(whole)
    wanted = max(SEQUENCE, min(MOST, ports.widest) + SHORT)
    most = min(wanted, ports.longest or wanted)
    if examples.whole.given is not None:
        most = min(most, examples.whole.given[ports.tokens].shape[ports.place])
    batch, computed = decisions.clear_calls(examples.whole, TOGETHER, {ports.axis: most})
    expected = {**computed.outputs, **computed.routing}
    places = _find_places(model, ports)
    pairs: dict[str, list[tuple[Any, Any]]] = {name: [] for name in places}
    for row, place, values in _read_on(Session(traced), ports, batch, most):
        for name, axis in places.items():
            pairs[name].append((expected[name][row].select(axis, place).numpy(), values(name, axis)))
    found, choices = list[Diagnostic](), list_choice_records(model, ports)
    for route, record in choices.items():
        if record in pairs:
            count = sum(int(((theirs != 0) != (ours != 0)).any()) for theirs, ours in pairs[record])
            found += [StepsSelectOtherwise(route=route, count=count)] if count else []
    both = [
        {name: np.stack([pair[side] for pair in each]) for name, each in pairs.items() if each} for side in range(2)
    ]
    errors = relative_errors(*both)
    wrong = {name: error for name, error in errors.items() if not error <= TOLERANCE}
    found = found or [StepsDisagree(output=name, error=error, tolerance=TOLERANCE) for name, error in wrong.items()]
    if found:
        raise ModgraphError(found)
    return max(errors.values(), default=0.0)


def _find_places(model: Model, ports: StepPorts) -> dict[str, int]:
    """The axis of tokens of each output, and of each record of choices."""
    graph = model.graph
    records = {*list_choice_records(model, ports).values()}
    results = {**graph.outputs, **{name: each for name, each in model.routing_results().items() if name in records}}
    shapes = {name: [axis.name for axis in graph.type_of(each).shape] for name, each in results.items()}
    return {
        name: shape.index(ports.axis) for name, shape in shapes.items() if not is_cache(name) and ports.axis in shape
    }


def _read_on(session: Session, ports: StepPorts, batch: Batch, most: int) -> Iterator[tuple[int, int, Value]]:
    """Read sequences after prompts that differ in length, token by token.

    Yields the example and place of each token, and a function that has its value of an output along an axis.
    """
    whole = ports.whole.length_inputs.get(ports.axis)
    ends = batch[whole].tolist() if whole in batch else [most] * len(batch[ports.tokens])
    given = {name: value for name, value in batch.items() if name in ports.graph.input_types}
    tokens, rows = given.pop(ports.tokens), [row for row, end in enumerate(ends) if end]
    new, past = [max(1, ends[row] * (row + 1) // (len(ends) + 1)) for row in rows], [0] * len(rows)
    caches = {name: each.numpy() for name, each in ports.begin(len(rows)).items()}
    while rows:
        taken = ports.take(tokens[rows], torch.tensor(past), max(new))
        others = {name: value[rows] for name, value in given.items()}
        feed = {ports.tokens: taken, **others, **ports.list_lengths(new, past)}
        found = session.run({**{name: each.numpy() for name, each in feed.items()}, **caches})
        for at, row in enumerate(rows):
            for place in range(new[at]):
                yield row, past[at] + place, partial(_cut, found, at, place)
        past = [a + b for a, b in zip(past, new, strict=True)]
        kept = [at for at, row in enumerate(rows) if past[at] < ends[row]]
        rows, past, new = [rows[at] for at in kept], [past[at] for at in kept], [1] * len(kept)
        caches = {name: found[name][kept] for name in caches}


def _cut(found: Values, example: int, place: int, name: str, axis: int) -> NDArray[Any]:
    value: NDArray[Any] = found[name][example].take(place, axis)
    return value
