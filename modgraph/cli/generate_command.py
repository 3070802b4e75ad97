"""Continue a text by a language model, word by word."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from modgraph.cli.common import add_options
from modgraph.diagnostics import ModgraphError, render_all
from modgraph.log import log

if TYPE_CHECKING:
    from modgraph.prediction.continuation import Word

USAGE = (
    'modgraph generate runs/mine --prompt "in the beginning"',
    'modgraph generate runs/mine --prompt "and he said" --temperature 0.8 --top-p 0.9 --samples 3',
    'modgraph generate runs/mine --prompt "the king" --trace',
    'modgraph generate mine.onnx --prompt "in the beginning"',
)
COLOURS = (196, 39, 34, 208, 129, 220, 51, 201, 94, 118, 27, 160)  # of a terminal with 256


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN|model.onnx", help="a run's folder, or a bundle of export --stepwise")
    parser.add_argument(
        "--prompt", metavar="TEXT", action="append", required=True, help="a text to continue; repeatable"
    )
    parser.add_argument("--tokens", metavar="N", type=int, default=64, help="the most new words of a text (64)")
    parser.add_argument("--temperature", metavar="T", type=float, default=0.0, help="0 takes the likeliest word (0)")
    parser.add_argument("--top-k", metavar="K", type=int, help="sample among the K most likely words")
    parser.add_argument("--top-p", metavar="P", type=float, help="sample among the words that have this probability")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the samples (0)")
    parser.add_argument("--samples", metavar="N", type=int, default=1, help="continuations of each prompt (1)")
    parser.add_argument("--stop", metavar="WORD", action="append", default=[], help="end before this word; repeatable")
    parser.add_argument("--trace", metavar="ROUTE", nargs="?", const="", help="show the modules of each new word")
    add_options(parser, "json")


def run(options: argparse.Namespace) -> int:
    from modgraph_runtime.generation import Sampling

    from modgraph.prediction.continuation import Continuation
    from modgraph.prediction.errors import BadSampling

    try:
        sampling = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
        for name in ("tokens", "samples"):
            if getattr(options, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(options, name)}")
    except ValueError as error:
        raise ModgraphError([BadSampling(reason=str(error))]) from error
    model = Continuation(options.path)
    if unknown := model.find_unknown(options.prompt):
        log.warning(render_all(unknown))
    prompts = [prompt for prompt in options.prompt for _ in range(options.samples)]
    route = None if options.trace is None else model.find_route(options.trace)
    words = model.run(prompts, options.tokens, sampling, options.stop, trace=route is not None)
    if options.json:
        print_json(prompts, [*words])
    else:
        print_texts(prompts, words, route)
    return 0


def print_json(prompts: Sequence[str], words: Sequence[Word]) -> None:
    """Print texts with their new words, and the modules of each by route."""
    texts: list[dict[str, Any]] = [{"prompt": prompt, "text": prompt, "words": []} for prompt in prompts]
    for each in words:
        entry = {"word": each.word} | ({"modules": each.modules} if each.modules else {})
        texts[each.text]["words"].append(entry)
        texts[each.text]["text"] += str(each)
    print(json.dumps({"texts": texts}, ensure_ascii=False))


def print_texts(prompts: Sequence[str], words: Iterable[Word], route: str | None) -> None:
    """Print a text as its words come; of several texts, one after another when all have ended."""
    if len(prompts) == 1:
        print(prompts[0], end="", flush=True)
        for each in words:
            print(show_word(each, route), end="", flush=True)
        print()
        return
    found = list(prompts)
    for each in words:
        found[each.text] += show_word(each, route)
    for number, text in enumerate(found, start=1):
        print(f"{number}: {text}")


def show_word(word: Word, route: str | None) -> str:
    """A word, with its modules along a route: in their colour on a terminal, elsewhere with their numbers."""
    modules = word.modules.get(route, ()) if route else ()
    if not modules or not word.word.strip():
        return str(word)
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        return f"{word.blank}\033[38;5;{COLOURS[modules[0] % len(COLOURS)]}m{word.word}\033[0m"
    return f"{word}[{','.join(map(str, modules))}]"
