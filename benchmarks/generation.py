"""Generation, batch 1: tokens per second with caches, against transformers' cached generate with the same weights.

    python benchmarks/generation.py [--quick] [--tokens 64] [--rounds 5] [--hidden 512]

Decoders of 4 layers: Mixtral and Qwen3-MoE, 8 experts of which 2 are chosen, with a prompt of 32 tokens. "theirs" is
transformers' generate with the fastest of its experts on this machine. "floor" is a matrix product with each matrix
that a token reads, and nothing else. "runtime" is a `--stepwise` bundle in ONNX Runtime. "story" is specs/story.mod,
which writes `--story` tokens after one: by steps, and by computing all of them anew for each, at eight lengths.
Needs transformers (`pip install modgraph-compiler[bench]`). Goals: torch at least 1.3 of theirs, ONNX Runtime 2, and
steps 10 times as fast as recomputing.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from modgraph_runtime import Bundle
from options import parse_options
from torch import nn

import modgraph
from modgraph import export
from modgraph.backends.torch import Model
from modgraph.training.published import read_config
from modgraph.training.start.inherit import inherit_file
from modgraph.training.start.weight_map import read_map

ZOO = Path(__file__).parent.parent / "specs" / "zoo"
WORDS, PROMPT, LAYERS = 1000, 32, 4
Run = Callable[[int], list[int]]  # continues the prompt by so many tokens


def config_of(family: str, hidden: int) -> Any:
    """The configuration of a family, as transformers has it."""
    import transformers

    sizes: dict[str, Any] = {
        "vocab_size": WORDS,
        "hidden_size": hidden,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": hidden // 8,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    if family == "mixtral":
        return transformers.MixtralConfig(**sizes, num_local_experts=8, intermediate_size=2 * hidden)
    return transformers.Qwen3MoeConfig(**sizes, num_experts=8, moe_intermediate_size=2 * hidden, norm_topk_prob=True)


def load_ours(family: str, theirs: Any, folder: Path) -> Model:
    """The model of the language with the weights of theirs."""
    theirs.save_pretrained(folder)
    hub = str(ZOO / f"{family}_hub.yaml")
    program = modgraph.load(ZOO / "mixtral.mod", **read_config(hub, str(folder), str(ZOO / "mixtral.mod")))
    model = program.build()
    inherit_file(model.graph, model.state_dict(), str(folder), read_map(hub, model.graph))
    return model.eval()


def list_theirs(theirs: Any, prompt: list[int]) -> dict[str, Run]:
    """transformers' generate, by the way it computes experts."""

    def run(way: str, tokens: int) -> list[int]:
        theirs.set_experts_implementation(way)
        ids = torch.tensor([prompt])
        mask = torch.ones_like(ids)
        found = theirs.generate(ids, attention_mask=mask, max_new_tokens=tokens, do_sample=False, use_cache=True)
        new: list[int] = found[0, len(prompt) :].tolist()
        return new

    return {way: partial(run, way) for way in ("eager", "batched_mm", "grouped_mm")}


def build_floor(model: Model, experts: int = 8, used: int = 2) -> Run:
    """A product with each matrix that a token reads: of each pool, the first modules."""
    matrices = [
        each.detach()
        for name, each in model.named_parameters()
        if each.dim() == 2 and "embed" not in name and not re.search(rf"\.expert\.[{used}-{experts - 1}]\.", name)
    ]
    tokens = {each.shape[1]: torch.randn(1, each.shape[1]) for each in matrices}

    def run(count: int) -> list[int]:
        with torch.no_grad():
            for _ in range(count):
                for each in matrices:
                    nn.functional.linear(tokens[each.shape[1]], each)
        return []

    return run


def measure(runs: Mapping[str, Run], tokens: int, rounds: int) -> dict[str, float]:
    """Tokens per second of each, as the median of rounds that take turns."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run(tokens)
            found[name].append(tokens / (time.perf_counter() - start))
    return {name: statistics.median(each) for name, each in found.items()}


def compare(family: str, options: argparse.Namespace, folder: Path) -> None:
    """Print a row for a family, after all of them have continued the prompt by the same tokens."""
    import transformers

    config = config_of(family, options.hidden)
    theirs = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.dim() > 1:  # norms keep their ones
                parameter.normal_(0, 0.05)
    prompt = torch.randint(WORDS, (PROMPT,)).tolist()
    model = load_ours(family, theirs, folder / "weights")
    export(model, folder / "model.onnx", stepwise=True)
    bundle = Bundle(folder / "model.onnx", threads=options.threads)
    known = list_theirs(theirs, prompt)
    runs: dict[str, Run] = {
        "torch": lambda tokens: model.generate([prompt], tokens)[0],
        "runtime": lambda tokens: bundle.generate([prompt], tokens)[0],
        **known,
        "floor": build_floor(model),
    }
    ids = {name: run(options.tokens) for name, run in runs.items() if name != "floor"}
    assert all(each == ids["torch"] for each in ids.values()), "they continue by unlike tokens"
    speeds = measure(runs, options.tokens, options.rounds)
    best = max(known, key=speeds.__getitem__)
    ratios = " ".join(f"{speeds[each] / speeds[best]:8.2f}" for each in ("torch", "runtime", "floor"))
    print(
        f"{family:8} {speeds['torch']:7.0f} {speeds['runtime']:7.0f} {speeds[best]:7.0f} {ratios}  {best}", flush=True
    )


@torch.no_grad()
def compare_with_recomputing(tokens: int, rounds: int) -> None:
    """Print how much faster steps are than computing all tokens for each new one."""
    model = modgraph.load(ZOO.parent / "story.mod").build(seed=0).eval()
    lengths = [max(1, tokens * (2 * at + 1) // 16) for at in range(8)]  # the middles of eight parts
    texts = {length: torch.randint(2048, (1, length)) for length in lengths}
    steps, whole = list[float](), list[float]()
    for _ in range(rounds):
        start = time.perf_counter()
        model.generate([[1]], tokens)
        middle = time.perf_counter()
        for words in texts.values():
            model(words)[:, -1].argmax(-1)
        steps.append((middle - start) / tokens)
        whole.append((time.perf_counter() - middle) / len(texts))
    ours, theirs = statistics.median(steps), statistics.median(whole)
    print(f"story    {1 / ours:7.0f} tokens per second, {theirs / ours:.1f} times those of recomputing {tokens}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Generation with caches against transformers'.")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--story", type=int, default=512)
    options = parse_options(parser, tokens=8, rounds=1, hidden=64, story=32)
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    print(f"{'':8} {'torch':>7} {'runtime':>7} {'theirs':>7} {'torch/':>8} {'runtime/':>8} {'floor/':>8}  theirs by")
    for family in ("mixtral", "qwen3"):
        with tempfile.TemporaryDirectory() as folder:
            compare(family, options, Path(folder))
    compare_with_recomputing(options.story, options.rounds)


if __name__ == "__main__":
    main()
