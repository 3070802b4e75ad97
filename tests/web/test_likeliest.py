"""Every language model writes the same tokens, by the same modules, in three ways: torch that reads one token after
another, ONNX Runtime that does so with a bundle, and the ES module, which reads the whole sequence again for each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle
from modgraph_runtime.generation import Generator as BundleGenerator
from modgraph_runtime.generation import Next
from modgraph_runtime.generation import Sampler as BundleSampler

import modgraph
from modgraph.backends.torch import Model
from modgraph.backends.torch.generation import Generator, can_continue
from modgraph.backends.torch.sampling import Sampler
from modgraph.diagnostics import ModgraphError
from tests.backends.onnx.test_steps import WRITER
from tests.traces import shared_traces
from tests.web.test_module import NODE, needs_node

ROOT = Path(__file__).parents[2]
FOLDERS = "specs", "specs/zoo", "tests/papers"
TEXTS = {"writer": WRITER}
KNOWN = {
    "specs/zoo/mixtral",
    "specs/zoo/olmoe",
    "specs/zoo/switch",
    "specs/modular_networks_lm",
    "tests/papers/gpt_oss",
}
TIE = 1e-5  # of the largest logit: nearer ones may change places by rounding
TOKENS, LENGTHS = 200, (1, 7, 64)


def find_writers() -> Iterator[str]:
    """The specs of language models that can continue a text."""
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.mod"))):
        try:
            graph = modgraph.load(path).ir
        except ModgraphError:  # its files are for others to import, or it misses parameters
            continue
        if can_continue(graph):
            yield str(path.relative_to(ROOT).with_suffix(""))


def build(name: str) -> Model:
    """A model whose next tokens depend on those before."""
    program = modgraph.loads(TEXTS[name]) if name in TEXTS else modgraph.load(ROOT / f"{name}.mod")
    model = program.build(seed=1).eval()
    matrices = {key: weight for key, weight in model.state_dict().items() if weight.ndim == 2}
    embeddings = {key: weight for key, weight in matrices.items() if "embed" in key}
    with torch.no_grad():
        for weight in (embeddings or matrices).values():  # a tied embedding as large would repeat each word
            weight.mul_(20 if embeddings else 8)
    return model


@dataclass(frozen=True)
class Written:
    """The tokens [B, T] after prompts, and the modules of the last token of a prompt and of each new one."""

    tokens: list[list[int]]
    modules: list[list[dict[str, list[int]]]]

    @classmethod
    def from_steps(cls, steps: list[tuple[Any, Any]]) -> Written:
        tokens = [list(row) for row in zip(*(tokens for tokens, _ in steps[:-1]), strict=True)]
        rows = range(len(tokens))
        return cls(
            tokens, [[{route: [*each] for route, each in found[row].items()} for _, found in steps] for row in rows]
        )

    @classmethod
    def from_stream(cls, stream: Iterator[Next]) -> Written:
        return cls.from_steps([(each.tokens, each.modules) for each in stream])


def write_anew(folder: Path, bundle: Bundle, prompts: list[list[int]], tokens: int) -> Written:
    """What the ES module writes that reads everything anew."""
    facts = bundle.stepwise
    assert facts is not None
    lengths = [name for name, port in bundle.inputs.items() if port.along == facts.axis]
    cases = {
        "bundle": str(bundle.path),
        "prompts": prompts,
        "tokens": tokens,
        "words": facts.tokens,
        "lengths": lengths[0],
        "logits": facts.logits,
        "choices": dict(facts.choices),
        "found": str(folder / "found.json"),
    }
    (folder / "cases.json").write_text(json.dumps(cases))
    subprocess.run([str(NODE), "tests/web/write_whole.js", str(folder / "cases.json")], check=True, cwd=ROOT)
    steps = json.loads((folder / "found.json").read_text())
    return Written.from_steps([(each["tokens"], each["modules"]) for each in steps])


def find_margin(model: Model, logits: str, sequence: list[int]) -> float:
    """How far the likeliest next token is from the second, relative to the largest logit, of the whole sequence."""
    words = Generator(model).tokens
    with torch.no_grad():
        found = model.compute({words: torch.tensor([sequence])}, losses=False).outputs[logits][0, -1]
    first, second = found.topk(2).values
    return float((first - second) / found.abs().max())


def compare(model: Model, logits: str, prompts: list[list[int]], wanted: Written, found: Written) -> list[str]:
    """The first difference of each sequence, in words. A tie is one too: it ends the comparison of its sequence."""
    notes = []
    for row, prompt in enumerate(prompts):
        pairs = zip(wanted.tokens[row], found.tokens[row], strict=True)
        place = next((at for at, (theirs, ours) in enumerate(pairs) if theirs != ours), len(wanted.tokens[row]))
        modules = zip(wanted.modules[row][: place + 1], found.modules[row][: place + 1], strict=True)
        other = next((at for at, (theirs, ours) in enumerate(modules) if theirs != ours), None)
        if other is not None:
            notes.append(f"prompt {row}: other modules at token {other}")
        elif place < len(wanted.tokens[row]):
            margin = find_margin(model, logits, [*prompt, *wanted.tokens[row][:place]])
            notes.append(f"prompt {row}: {'tie' if margin < TIE else 'other'} at token {place}, margin {margin:.1e}")
    return notes


def check(name: str, folder: Path, traces: Path, lengths: tuple[int, ...], most: int) -> tuple[str, bool]:
    """Write in three ways, and compare; returns a row of the table, and whether nothing but ties differs."""
    model = build(name)
    generator = Generator(model)
    room = most + max(lengths) if generator.longest is None else generator.longest  # the last token is read too
    lengths = tuple(min(each, max(1, room // 2)) for each in lengths)
    tokens = min(most, room - max(lengths))
    random = np.random.default_rng(0)
    prompts = [random.integers(0, generator.words, length).tolist() for length in lengths]
    with shared_traces(traces):
        modgraph.export(model, folder / "m.onnx", stepwise=True, routing=True)
    bundle = Bundle(folder / "m.onnx", threads=1)
    wanted = Written.from_stream(generator.run(prompts, tokens, Sampler(), routing=True))
    stepped = Written.from_stream(BundleGenerator(bundle).run(prompts, tokens, BundleSampler(), routing=True))
    anew = write_anew(folder, bundle, prompts, tokens)
    assert len(wanted.tokens[0]) == tokens
    notes = [
        f"{way}: {note}"
        for way, found in (("bundle", stepped), ("ES module", anew))
        for note in compare(model, generator.output, prompts, wanted, found)
    ]
    kinds, routes = len({each for row in wanted.tokens for each in row}), len(wanted.modules[0][0])
    row = f"{name} | {tokens} after {lengths} | {kinds} | {routes} | {'; '.join(notes) or 'equal'}"
    return row, kinds > 2 and all(": tie at" in note for note in notes)


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_written_on_in_three_ways(name: str, tmp_path: Path, traces: Path) -> None:
    row, is_right = check(name, tmp_path, traces, (1, 7, 12), 12)
    assert is_right, row


def test_a_tie_and_another_token_are_distinguished() -> None:
    model = build("writer")
    prompts, logits = [[1, 2]], "logits"
    wanted = Written([[3, 4]], [[{"p": [0]}] * 3])
    other = Written([[3, 5]], [[{"p": [0]}] * 3])
    (note,) = compare(model, logits, prompts, wanted, other)
    assert note.startswith("prompt 0: other at token 1, margin ")
    with torch.no_grad():
        model.lookup("logits.linear.weight").zero_()
        model.lookup("logits.linear.bias").fill_(1)
    (note,) = compare(model, logits, prompts, wanted, other)
    assert note == "prompt 0: tie at token 1, margin 0.0e+00"
    moved = Written([[3, 5]], [[{"p": [0]}, {"p": [1]}, {"p": [0]}]])
    assert compare(model, logits, prompts, wanted, moved) == ["prompt 0: other modules at token 1"]


@pytest.mark.slow
@needs_node
def test_every_language_model_is_written_on_in_three_ways(tmp_path: Path, traces: Path) -> None:
    names = [*TEXTS, *find_writers()]
    assert {*names} >= KNOWN
    wrong = []
    for at, name in enumerate(names):
        folder = tmp_path / str(at)
        folder.mkdir()
        row, is_right = check(name, folder, traces, LENGTHS, TOKENS)
        print(row, flush=True)
        wrong += [] if is_right else [row]
    assert not wrong, wrong
