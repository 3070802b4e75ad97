"""Continues texts by the language model of a run or a bundle, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.prediction.errors import NoSuchRoute, NoTexts, UnknownStop, UnknownWords
from modgraph.prediction.texts import encode_texts, open_decoders, split_words

if TYPE_CHECKING:
    from modgraph_runtime.generation import Next, Sampling

    from modgraph.prediction.facts import Facts

CLOSING = re.compile(r"[.,;:!?)\]}'’”]+")  # signs that stand at the end of the word before


@dataclass(frozen=True)
class Word:
    """A new word of a text, with what stands before it. `modules` are those that its token chose, by route. A piece
    that completes no letter is empty."""

    text: int  # the number of the text, from 0
    word: str
    blank: str = " "
    modules: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.blank + self.word


class Continuation:
    """The language model of a run or a bundle, and its words. Raises `ModgraphError` if it cannot continue texts."""

    def __init__(self, path: str) -> None:
        facts, self.generator, self.sampler = _open_bundle(path) if Path(path).suffix == ".onnx" else _open_run(path)
        name = self.generator.tokens
        if name not in facts.text_inputs():
            raise ModgraphError([NoTexts(origin=facts.origin, name=name)])
        self.words, self.how, self.origin = [*map(str, facts.words[name])], facts.preprocessing[name], facts.origin

    def run(
        self, prompts: Sequence[str], tokens: int, sampling: Sampling, stop: Sequence[str] = (), trace: bool = False
    ) -> Iterator[Word]:
        """Yield new words, of all texts in turn. A text ends before a `stop` word.

        Raises `ModgraphError` for prompts and stop words that do not fit, before the first word.
        """
        ids = encode_texts(prompts, self.words, self.how)
        ends = {self._id_of(word) for word in stop}
        self.generator.check(ids, tokens, ends, trace)
        sampler = self.sampler(**asdict(sampling))
        return self._run(ids, self.generator.run(ids, tokens, sampler, ends, routing=trace), ends, trace)

    def _run(self, ids: Sequence[Sequence[int]], steps: Iterator[Next], ends: set[int], trace: bool) -> Iterator[Word]:
        last = [self.words[each[-1]] for each in ids]
        decoders = open_decoders(len(ids), self.words, self.how)
        waiting: dict[int, Word] = {}  # words whose modules are known when they have been read
        for found in steps:
            for text, modules in found.modules.items():
                if text in waiting:
                    yield replace(waiting.pop(text), modules=modules)
            for text, token in enumerate(found.tokens):
                if token is not None and token not in ends:
                    piece = self._show(decoders[text](token))
                    word = Word(text, piece, self._blank(last[text], self.words[token]))
                    last[text] = self.words[token]
                    if trace:
                        waiting[text] = word
                    else:
                        yield word

    def find_route(self, name: str) -> str:
        """The route of a name, by default the last one that chooses modules for each word. Raises `ModgraphError`."""
        known = [*self.generator.choices]
        if name in known or (known and not name):
            return name or known[-1]
        suggestion = did_you_mean(name, known, "routes that choose modules for each word: {known}")
        if not known and self.origin.startswith("the bundle"):
            suggestion = "export the bundle with its routers' records: --stepwise --routing"
        raise ModgraphError([NoSuchRoute(name=name or "any", origin=self.origin, suggestion=suggestion)])

    def find_unknown(self, prompts: Sequence[str]) -> list[Diagnostic]:
        """Warnings of words in prompts that the model does not know."""
        if self.how.get("split") == "tokenizer":  # it has pieces for every word
            return []
        known = set(self.words)
        lists = (split_words(prompt, self.how) for prompt in prompts)
        unknown = dict.fromkeys(word for words in lists for word in words if word not in known)
        return [UnknownWords(words=", ".join(f'"{word}"' for word in unknown), origin=self.origin)] if unknown else []

    def _id_of(self, word: str) -> int:
        if word not in self.words:
            suggestion = did_you_mean(word, [each for each in self.words if each.strip()])
            raise ModgraphError([UnknownStop(word=word, origin=self.origin, suggestion=suggestion)])
        return self.words.index(word)

    def _show(self, word: str) -> str:
        return "\n" if word == self.how.get("end") else word

    def _blank(self, before: str, word: str) -> str:
        if self.how.get("split") == "tokenizer":  # its pieces contain the blanks
            return ""
        if before == self.how.get("end") or word == self.how.get("end"):
            return ""
        return "" if self.how.get("split") == "signs" and CLOSING.fullmatch(word) else " "


def _open_run(path: str) -> tuple[Facts, Any, Any]:
    from modgraph.backends.torch.generation import Generator
    from modgraph.backends.torch.sampling import Sampler
    from modgraph.prediction.of_run import load_model

    facts, model = load_model(path)
    return facts, Generator(model), Sampler


def _open_bundle(path: str) -> tuple[Facts, Any, Any]:
    from modgraph_runtime.generation import Sampler

    from modgraph.prediction.of_bundle import BundleGenerator, open_bundle

    facts, bundle = open_bundle(path)
    return facts, BundleGenerator(bundle), Sampler
