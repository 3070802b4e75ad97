"""Continues sequences of tokens by the incremental form of a model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from modgraph_runtime.generation import Next, find_misfit, refuse_values, write_on
from torch import Tensor

from modgraph.backends.errors import BadPrompt, NoNextToken
from modgraph.backends.torch.model import Model
from modgraph.backends.torch.sampling import Sampler
from modgraph.backends.torch.stepwise import Stepwise
from modgraph.declare import Role
from modgraph.diagnostics import ModgraphError, list_names
from modgraph.ir import Graph, longest
from modgraph.passes import STEPWISE, apply_passes
from modgraph.passes.incremental import find_tokens


class Generator:
    """Continues sequences of tokens of a model, whose output gives the logits of the next token for each token.

    Raises `ModgraphError` if the model has no such output, or no incremental form.
    """

    def __init__(self, model: Model, output: str = "") -> None:
        self.output = find_logits(model.graph, output)
        self.step = Stepwise(model)
        self.tokens = self.step.tokens
        self.words = model.graph.input_types[self.tokens].size or 0
        self.longest = longest(model.graph).get(self.step.along)
        self.device = next(model.parameters()).device
        self.choices = dict(
            list_choices(self.step.model.graph, self.step.along)
        )  # the record with the choice of each route of tokens

    @torch.inference_mode()
    def run(
        self,
        prompts: Sequence[Sequence[int]],
        tokens: int,
        sampler: Sampler,
        stop: Collection[int] = (),
        routing: bool = False,
    ) -> Iterator[Next]:
        """Yield the next token of each prompt, one after another, until all have met a `stop` token or have `tokens`.

        A stop token is yielded. Prompts may differ in length. Raises `ModgraphError` for prompts that do not fit.
        """
        self.check(prompts, tokens, stop, routing)

        def read(ids: list[list[int]], lengths: Sequence[int] | None, cache: Any) -> Any:
            return self.step(torch.tensor(ids, device=self.device), cache, lengths=lengths, routing=routing)

        def pick(found: Any, rows: list[int], last: list[int], place: int) -> list[int]:
            picked: list[int] = sampler.sample(found.outputs[self.output][range(len(rows)), last], rows, place).tolist()
            return picked

        def list_modules(found: Any, rows: list[int], last: list[int]) -> Any:
            return self._modules(found.routing, rows, last)

        yield from write_on(prompts, tokens, stop, read, pick, list_modules, routing)

    def _modules(
        self, routing: Mapping[str, Tensor], rows: Sequence[int], last: Sequence[int]
    ) -> dict[int, dict[str, tuple[int, ...]]]:
        """The modules that a token of each example chose, by route."""
        found: dict[int, dict[str, tuple[int, ...]]] = {row: {} for row in rows}
        for route, record in self.choices.items() if routing else ():
            picked = routing[record][range(len(rows)), last].reshape(len(rows), -1, routing[record].shape[-1])
            for row, each in zip(rows, picked.ne(0).any(1).tolist(), strict=True):
                found[row][route] = tuple(at for at, is_picked in enumerate(each) if is_picked)
        return found

    def check(self, prompts: Sequence[Sequence[int]], tokens: int, stop: Collection[int], routing: bool) -> None:
        """Raise `ModgraphError` for prompts that are empty, have ids beyond the words, or become too long; `TypeError`
        and `ValueError` for what are no ids."""
        refuse_values(prompts, tokens, stop, self.words)
        if not len(prompts):
            raise ValueError("there is no prompt: give lists of ids, generate([[1, 2]])")
        for number, prompt in enumerate(prompts, start=1):
            if misfit := find_misfit(prompt, tokens, self.words, self.longest, routing):
                raise ModgraphError([BadPrompt(number=number, reason=misfit[0], way_out=misfit[1])])


def list_choices(graph: Graph, axis: str) -> Iterator[tuple[str, str]]:
    """The routes that choose modules for each token along an axis, and the full names of the records that say which."""
    for decision in graph.decisions():
        record = decision.record_as(Role.CHOICE)
        shape = () if record is None else graph.type_of(decision.results[record]).shape
        if shape and decision.part.scan is None and shape[0].name == axis:
            yield decision.label, f"{decision.label}.{record}"


def find_logits(graph: Graph, output: str = "") -> str:
    """Find the output with the logits of the next token. Raises `ModgraphError`."""
    tokens = find_tokens(graph)
    type_ = graph.type_of(tokens.value)
    if type_.dtype != "token" or len(type_.shape) != 1:
        raise _refuse(graph, f'its input "{tokens.value}" is {type_}, not words')
    shapes = {label: graph.type_of(result).shape for label, result in graph.outputs.items()}
    wanted = (type_.shape[tokens.axis], type_.size)
    fits = [label for label, shape in shapes.items() if len(shape) == 2 and (shape[0], shape[1].size) == wanted]
    if output in fits:
        return output
    if output:
        has = (
            f'"{output}" gives no logits of {type_.size or 0:,} words' if output in shapes else f'no output "{output}"'
        )
        raise _refuse(graph, f"it has {has}" if output not in shapes else has)
    if len(fits) != 1:
        how_many = f"{list_names(fits)} all do" if fits else "none does"
        raise _refuse(graph, f"one output must give the logits of the next word, and {how_many}")
    return fits[0]


def can_continue(graph: Graph) -> bool:
    """Whether a model continues a text: it gives the logits of the next word, and has an incremental form."""
    try:
        find_logits(graph)
        apply_passes(graph, STEPWISE)
    except ModgraphError:
        return False
    return True


def _refuse(graph: Graph, reason: str) -> ModgraphError:
    return ModgraphError([NoNextToken(model=graph.name, reason=reason)])


def generate(
    generator: Generator, prompts: Sequence[Sequence[int]], tokens: int, sampler: Sampler, stop: Collection[int]
) -> list[list[int]]:
    """Continue prompts; returns the new tokens of each, without the stop token."""
    generator.check(prompts, tokens, stop, routing=False)
    found: list[list[int]] = [[] for _ in prompts]
    for each in generator.run(prompts, tokens, sampler, stop):
        for row, token in zip(found, each.tokens, strict=True):
            row += [] if token is None or token in stop else [token]
    return found
