"""Continues sequences of tokens by a stepwise bundle. The words and their meaning are those of `Model.generate`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from modgraph_runtime.ports import Array, BundleError
from modgraph_runtime.steps import AGAIN, Step

if TYPE_CHECKING:
    from modgraph_runtime.bundle import Bundle


@dataclass(frozen=True)
class Sampling:
    """How the next token follows from its logits.

    Temperature 0 takes the most likely token, of equal ones the first. A higher one divides the logits; then only the
    `top_k` most likely tokens are left, and of these the fewest whose probabilities sum to `top_p` (nucleus sampling,
    Holtzman et al., 2020). Raises `ValueError` for values out of range.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or more, not {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, not {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")


@dataclass(frozen=True)
class Sampler(Sampling):
    """Samples by numpy. The noise of numpy is not that of torch: equal seeds sample other tokens, equally likely."""

    def sample(self, logits: Array, samples: Sequence[int], place: int) -> Array:
        """Sample a token for each row of logits [B, V]: [B].

        The noise of a row is a function of the seed, its number in `samples` and the place: other rows do not matter.
        """
        if not self.temperature:
            return np.asarray(logits.argmax(-1))
        found = self.narrow(logits.astype(np.float64) / self.temperature)
        draws = [np.random.default_rng([self.seed % 2**64, each, place]) for each in samples]
        return np.asarray((found + np.stack([each.gumbel(size=found.shape[-1]) for each in draws])).argmax(-1))

    def narrow(self, logits: Array) -> Array:
        """Set the logits [B, V] of tokens that are left out to minus infinity."""
        order = np.argsort(-logits, axis=-1, kind="stable")
        ranked = np.take_along_axis(logits, order, -1)
        kept = np.ones(ranked.shape, bool)
        if self.top_k is not None:
            kept[..., self.top_k :] = False
        if self.top_p is not None:
            powers = np.where(kept, np.exp(ranked - ranked[..., :1]), 0)
            shares = powers / powers.sum(-1, keepdims=True)
            kept &= shares.cumsum(-1) - shares < self.top_p
        found = np.full_like(logits, -np.inf)
        np.put_along_axis(found, order, np.where(kept, ranked, -np.inf), -1)
        return found


@dataclass(frozen=True)
class Next:
    """The next token of each sequence; None where it has ended.

    `modules` has the modules that the last token before it chose, by sequence and route, if asked for.
    """

    tokens: tuple[int | None, ...]
    modules: Mapping[int, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)


def write_on(
    prompts: Sequence[Sequence[int]],
    tokens: int,
    stop: Collection[int],
    read: Callable[[list[list[int]], Sequence[int] | None, Any], Any],
    pick: Callable[[Any, list[int], list[int], int], list[int]],
    list_modules: Callable[[Any, list[int], list[int]], Any],
    routing: bool,
) -> Iterator[Next]:
    """Yield the next token of each prompt, in torch and in ONNX Runtime alike.

    `read(ids, lengths, cache)` computes a step, which has the next cache. `pick(step, rows, last, place)` takes a token
    for each row from the outputs of its last token. With `routing`, the last tokens are read too, for their modules.
    """
    lengths = [len(each) for each in prompts]
    found = read([[*each, *[0] * (max(lengths) - len(each))] for each in prompts], lengths, None)
    rows, last = list(range(len(prompts))), [length - 1 for length in lengths]
    for place in range(tokens):
        listed = dict(zip(rows, pick(found, rows, last, place), strict=True))
        yield Next(tuple(map(listed.get, range(len(prompts)))), list_modules(found, rows, last))
        kept = [at for at, row in enumerate(rows) if listed[row] not in stop]
        if not kept or (place == tokens - 1 and not routing):
            return
        cache = found.cache if len(kept) == len(rows) else found.cache.take(kept)
        rows, last = [rows[at] for at in kept], [0] * len(kept)
        found = read([[listed[row]] for row in rows], None, cache)
    yield Next((None,) * len(prompts), list_modules(found, rows, last))


class Generator:
    """Continues sequences of tokens by a bundle. Raises `BundleError` if it gives no logits of the next token."""

    def __init__(self, bundle: Bundle) -> None:
        if bundle.stepwise is None:
            raise BundleError(f'"{bundle.path}" takes no token after another', AGAIN)
        if bundle.stepwise.logits not in bundle.outputs:
            reason = f'"{bundle.path}" has no output with the logits of the next token'
            raise BundleError(reason, "export that output too, or sample from step(tokens) yourself")
        self.bundle, self.stepwise, self.logits = bundle, bundle.stepwise, bundle.stepwise.logits
        self.tokens, self.longest = self.stepwise.tokens, self.stepwise.longest
        self.words = bundle.inputs[self.tokens].size or 0
        self.choices = self.stepwise.choices if bundle.routing else {}

    def run(
        self,
        prompts: Sequence[Sequence[int]],
        tokens: int,
        sampler: Sampler,
        stop: Collection[int] = (),
        routing: bool = False,
    ) -> Iterator[Next]:
        """Yield the next token of each prompt, one after another, until all have met a `stop` token or have `tokens`.

        A stop token is yielded. Prompts may differ in length. Raises `BundleError` for prompts that do not fit.
        """
        self.check(prompts, tokens, stop, routing)

        def read(ids: list[list[int]], lengths: Sequence[int] | None, cache: Any) -> Any:
            return self.bundle.step(np.array(ids, np.int64), cache, lengths=lengths, routing=routing)

        def pick(found: Any, rows: list[int], last: list[int], place: int) -> list[int]:
            picked: list[int] = sampler.sample(found.outputs[self.logits][range(len(rows)), last], rows, place).tolist()
            return picked

        yield from write_on(prompts, tokens, stop, read, pick, self._modules, routing)

    def check(self, prompts: Sequence[Sequence[int]], tokens: int, stop: Collection[int], routing: bool) -> None:
        """Raise `BundleError` for prompts that are empty, have ids beyond the words, or become too long; `TypeError`
        and `ValueError` for what are no ids."""
        refuse_values(prompts, tokens, stop, self.words)
        if not len(prompts):
            raise BundleError("there is no prompt", "give lists of ids: generate([[1, 2]])")
        for number, prompt in enumerate(prompts, start=1):
            if misfit := find_misfit(prompt, tokens, self.words, self.longest, routing):
                raise BundleError(f"cannot continue prompt {number}: {misfit[0]}", misfit[1])

    def _modules(self, found: Step, rows: Sequence[int], last: Sequence[int]) -> dict[int, dict[str, tuple[int, ...]]]:
        """The modules that a token of each example chose, by route."""
        modules: dict[int, dict[str, tuple[int, ...]]] = {row: {} for row in rows}
        for route, record in self.choices.items() if found.routing else ():
            picked = found.routing[record][range(len(rows)), last]
            for row, each in zip(rows, picked.reshape(len(rows), -1, picked.shape[-1]), strict=True):
                modules[row][route] = tuple(np.flatnonzero((each != 0).any(0)).tolist())
        return modules


def refuse_values(prompts: Any, tokens: Any, stop: Any, words: int) -> None:
    """Raise `TypeError` and `ValueError` for what are no lists of ids, no number of tokens and no stop tokens."""
    if isinstance(prompts, str) or any(isinstance(each, str) or not _is_listed(each) for each in prompts):
        raise TypeError("generate takes a list of ids for each prompt, generate([[1, 2], [3]]), and no texts")
    for what, ids in [("ids of words", each) for each in prompts] + [("stop tokens", stop)]:
        if wrong := [each for each in ids if not _is_whole(each)]:
            raise TypeError(f"{what} are whole numbers, not {wrong[0]!r}")
    if not _is_whole(tokens) or tokens < 0:
        raise ValueError(f"tokens must be a whole number, 0 or more, not {tokens!r}")
    if beyond := [each for each in stop if not 0 <= each < words]:
        raise ValueError(f"the stop token {beyond[0]} is not one of {words:,} words")


def _is_listed(value: Any) -> bool:
    return hasattr(value, "__len__") and hasattr(value, "__iter__")


def _is_whole(value: Any) -> bool:
    """Whether a value is a whole number of Python, numpy or torch."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def find_misfit(
    prompt: Sequence[int], tokens: int, words: int, longest: int | None, routing: bool
) -> tuple[str, str] | None:
    """Why a prompt cannot be continued by so many tokens, and a way out; None if it can.

    With `routing`, the last new token is read too.
    """
    if not len(prompt):
        return "it has no words", "give at least one word"
    if beyond := [each for each in prompt if not 0 <= each < words]:
        return f"its id {beyond[0]} is not one of {words:,} words", f"ids of words are 0 to {words - 1:,}"
    room = None if longest is None else longest + 1 - len(prompt) - routing
    if room is None or tokens <= room:
        return None
    many = f"{len(prompt)} word{'s' * (len(prompt) != 1)} and {tokens} more exceed the model's {longest} positions"
    why = ", for the last one is read too, for its modules" if routing and tokens == room + 1 else ""
    return many + why, f"ask for at most {room} new words" if room > 0 else "give a shorter prompt"
