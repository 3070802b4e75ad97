"""Runs the incremental form of a model: the next tokens, from what earlier ones left in caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from modgraph_runtime.steps import count_lengths
from torch import Tensor

from modgraph.backends.torch.model import Model, ids
from modgraph.backends.torch.one_token import TokenPlan, can_run_arrays, plan_one_token
from modgraph.backends.torch.plan import all_steps, plan_for
from modgraph.backends.torch.run import Plan
from modgraph.backends.torch.stored import list_stored
from modgraph.frozen import replace_fields
from modgraph.passes import STEPWISE, TRAINING, apply_passes, optimise
from modgraph.passes.cache_names import is_cache, list_extents
from modgraph.passes.incremental import Incremental, find_tokens


@dataclass(frozen=True)
class Cache:
    """What tokens have left behind: tensors by name, and the number of tokens of each example."""

    values: Mapping[str, Tensor] = field(repr=False)
    counts: tuple[int, ...]
    step: object = field(default=None, repr=False, compare=False)  # the step function that made it

    def take(self, rows: Sequence[int]) -> Cache:
        """The caches of some examples, in this order; an example may occur several times."""
        index = list(rows)
        return Cache(
            {name: each[index] for name, each in self.values.items()}, tuple(self.counts[at] for at in index), self.step
        )


@dataclass(frozen=True)
class Step:
    """The outputs for new tokens by name, [B, tokens, …], records of routers if asked for, and the next cache."""

    outputs: Mapping[str, Tensor]
    routing: Mapping[str, Tensor] = field(repr=False)
    cache: Cache


@dataclass(frozen=True)
class StepPlan:
    """A plan with the names of its arguments, and of its results: outputs, caches, then records of routers."""

    plan: Plan | TokenPlan
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    caches: tuple[str, ...]
    records: tuple[str, ...]

    def run(self, batch: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
        """Compute the results by name. Missing arguments are lengths; their examples are full."""
        given: list[Any] = [batch.get(name) for name in self.arguments]
        found = iter(self.plan.run(given))
        outputs, caches, records = (
            dict(zip(names, found, strict=False)) for names in (self.outputs, self.caches, self.records)
        )
        return outputs, caches, records


class Stepwise:
    """The incremental form of a model in inference. It shares the model's weights.

    `step = Stepwise(model)`; then `found = step(words)` for the first tokens, and `step(more, found.cache)` for those
    that follow. Raises `ModgraphError` if the model is not causal, or has no incremental form.
    """

    def __init__(self, model: Model, tokens: str = "") -> None:
        found = find_tokens(model.graph, tokens)
        graph = apply_passes(model.graph, (*STEPWISE[:-1], Incremental(found.value.node)))
        self.tokens, type_ = found.value.node, model.graph.type_of(found.value)
        self.axis, self.along = found.axis, type_.shape[found.axis].name
        with torch.device("meta"):
            self.model = Model(graph, optimise(graph, TRAINING))
        self.addresses: list[int] = []  # of the weights, which stay in memory as long as they are shared
        self.of_token: dict[bool, StepPlan] = {}  # by whether there are records, of these weights
        self.share_weights(model)
        inputs = graph.input_types.items()
        self.caches = {name: type_ for name, type_ in inputs if is_cache(name)}
        self.needed = {name: type_ for name, type_ in inputs if type_.dtype != "length"}
        takes_others = self.needed.keys() != {self.tokens, *self.caches}
        self.words = 0 if takes_others else type_.size or 0
        self.plans = {routing: self._plan(routing) for routing in (False, True)}
        self.windows = list_extents(graph)
        shapes = ((name, at, axis) for name, type_ in self.caches.items() for at, axis in enumerate(type_.shape, 1))
        self.growing = [(name, at, axis.name) for name, at, axis in shapes if axis.is_padded]
        self.lengths = {name: type_.of for name, type_ in inputs if type_.dtype == "length"}

    def share_weights(self, model: Model) -> None:
        """Take the weights of the model, or of another of the same graph. Those that it shares already need nothing."""
        model.settle()
        addresses = [each.data_ptr() for each in (*model.parameters(), *model.buffers())]
        if addresses == self.addresses:
            return
        self.addresses, known = addresses, model.state_dict()
        self.model.load_state_dict({name: known[name] for name in self.model.state_dict()}, assign=True)
        stored = {each.name: each.weight for each in list_stored(model)}
        for each in list_stored(self.model):
            if each.name in stored:  # its rows above were copied
                each.array.home.register_parameter(each.array.name, stored[each.name])
        self.model.eval()
        self.of_token = {}

    def plan_for_token(self, routing: bool) -> StepPlan:
        """The plan for one token, of these weights; the plan for any number if it cannot run on arrays."""
        if routing not in self.of_token:
            known = self.plans[routing]
            if isinstance(known.plan, Plan) and can_run_arrays(self.model):
                known = replace_fields(known, plan=plan_one_token(known.plan))
            self.of_token[routing] = known
        return self.of_token[routing]

    def begin(self, examples: int) -> Cache:
        """The cache before the first token."""
        weight = next(self.model.parameters(), torch.empty(0))
        values = {}
        for name, type_ in self.caches.items():
            shape = [0 if axis.size is None else axis.size for axis in type_.shape]
            dtype = weight.dtype if type_.dtype == "float" else torch.int64
            values[name] = torch.zeros(examples, *shape, dtype=dtype, device=weight.device)
        return Cache(values, (0,) * examples)

    @torch.no_grad()
    def __call__(
        self,
        tokens: Tensor,
        cache: Cache | None = None,
        lengths: Sequence[int] | None = None,
        routing: bool = False,
        others: Mapping[str, Tensor] | None = None,
    ) -> Step:
        """Compute the outputs of new tokens [B, n, …]. Without `lengths` every example has all n.

        `others` are the values of further inputs, by name. Raises `TypeError` and `ValueError` for inputs and caches
        that do not fit.
        """
        if cache is not None and not isinstance(cache, Cache):
            raise TypeError(f"a cache is that of a step, step(words).cache, not {type(cache).__name__}")
        cache = self.begin(len(tokens)) if cache is None else cache
        size = tokens.shape[self.axis]
        new = (size,) * len(tokens) if lengths is None else tuple(lengths)
        counts = tuple(map(sum, zip(cache.counts, new, strict=True)))
        batch = {self.tokens: ids(tokens), **cache.values, **{name: ids(each) for name, each in (others or {}).items()}}
        is_one = size == 1 == len(tokens)
        if not (is_one and cache.step is self and not others and self._is_word(tokens)):
            self._check(batch, cache)
        known = count_lengths(self.along, self.windows, cache.counts, new)
        places = {along: cache.values[name].shape[at] for name, at, along in self.growing}
        if any(count != places for along, places in {self.along: size, **places}.items() for count in known[along]):
            batch |= {name: torch.tensor(known[of], device=tokens.device) for name, of in self.lengths.items()}
        is_one = is_one and not self.lengths.keys() & batch.keys()
        is_one = is_one and not torch.is_autocast_enabled(tokens.device.type)
        plan = self.plan_for_token(routing) if is_one else self.plans[routing]
        outputs, caches, records = plan.run(batch)
        return Step(outputs, records, Cache(caches, counts, self))

    def _is_word(self, token: Tensor) -> bool:
        """Whether one token [1, 1] on a processor, the only input, is an id of the vocabulary: no further check."""
        is_id = token.dim() == 2 and token.dtype is torch.int64 and token.device.type == "cpu"
        return is_id and 0 <= token.item() < self.words

    def _check(self, batch: Mapping[str, Tensor], cache: Cache) -> None:
        """Raise `TypeError` or `ValueError` for inputs that do not fit. A cache of this step needs no check."""
        if cache.values.keys() != self.caches.keys():
            raise TypeError(f"{self.model.graph.name} takes the cache of a step of its own: step(words).cache")
        known = cache.values if cache.step is self else {}
        self.model.check({name: each for name, each in batch.items() if name not in known})
        missing = next((name for name in self.needed if name not in batch), None)
        if missing is not None:
            raise TypeError(f'{self.model.graph.name} needs the input "{missing}": {self.needed[missing]}')

    def _plan(self, routing: bool) -> StepPlan:
        """Plan the results of a step, without structure and hooks."""
        computed = self.model.computed
        outputs = {name: each for name, each in computed.outputs.items() if name not in self.caches}
        caches = {name: computed.outputs[name] for name in self.caches}
        records = computed.records() if routing else {}
        ends = (*outputs.values(), *caches.values(), *records.values())
        plan = plan_for([*all_steps(self.model.steps)], ends, training=False)
        return StepPlan(
            plan, tuple(each.node for each in plan.arguments), tuple(outputs), tuple(caches), tuple(records)
        )
