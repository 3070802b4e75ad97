"""Wrong calls of `generate` are refused in the same words by torch and by a bundle, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modgraph_runtime import Bundle, BundleError

import modgraph
from modgraph.backends.torch.generation import Generator
from modgraph.backends.torch.sampling import Sampler
from modgraph.diagnostics import ModgraphError
from tests.backends.onnx.test_steps import build_writer
from tests.traces import shared_traces

Generate = Callable[..., list[list[int]]]
REFUSED = ModgraphError, BundleError, TypeError, ValueError


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory, traces: Path) -> dict[str, Generate]:
    """`generate` of a model, and of its bundle."""
    path, model = tmp_path_factory.mktemp("wrong") / "m.onnx", build_writer()
    with shared_traces(traces):
        modgraph.export(model, path, stepwise=True, routing=True)
    return {"torch": model.generate, "bundle": Bundle(path, threads=1).generate}


WRONG: dict[str, tuple[Any, dict[str, Any]]] = {
    "there is no prompt": ([], {}),
    "cannot continue prompt 2: it has no words": ([[1], []], {}),
    "prompt 1: its id 12 is not one of 12 words": ([[12]], {}),
    "its id -1 is not one of 12 words": ([[3, -1]], {}),
    "1 word and 41 more exceed the model's 40 positions": ([[1]], {"tokens": 41}),
    "ask for at most 39 new words": ([[1, 2]], {"tokens": 41}),
    "give a shorter prompt": ([[1] * 41], {"tokens": 1}),
    "a list of ids for each prompt, generate([[1, 2], [3]])": ([1, 2], {}),
    "and no texts": ("the cat", {}),
    "for each prompt, generate([[1, 2], [3]]), and no texts": (["the cat"], {}),
    "ids of words are whole numbers, not 1.5": ([[1.5]], {}),
    "ids of words are whole numbers, not 'cat'": ([["cat"]], {}),
    "stop tokens are whole numbers, not 'cat'": ([[1]], {"stop": ["cat"]}),
    "the stop token 12 is not one of 12 words": ([[1]], {"stop": [12]}),
    "tokens must be a whole number, 0 or more, not -1": ([[1]], {"tokens": -1}),
    "tokens must be a whole number, 0 or more, not 2.5": ([[1]], {"tokens": 2.5}),
    "top_p must be above 0 and at most 1, not 0": ([[1]], {"top_p": 0}),
    "top_k must be at least 1, not 0": ([[1]], {"top_k": 0}),
    "temperature must be 0 or more, not -1": ([[1]], {"temperature": -1}),
}


@pytest.mark.parametrize("way", ["torch", "bundle"])
@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_call_is_refused(ways: dict[str, Generate], way: str, words: str) -> None:
    prompts, settings = WRONG[words]
    with pytest.raises(REFUSED) as caught:
        ways[way](prompts, **{"tokens": 2, **settings})
    assert words in str(caught.value)


@pytest.mark.parametrize("way", ["torch", "bundle"])
def test_ids_of_numpy_and_torch_are_ids(ways: dict[str, Generate], way: str) -> None:
    expected = ways[way]([[1, 2]], tokens=3, stop=[5])
    assert ways[way](np.array([[1, 2]]), tokens=np.int64(3), stop=np.array([5])) == expected
    assert ways[way](torch.tensor([[1, 2]]), tokens=3, stop=(5,)) == expected
    assert ways[way]([[1, 2]], tokens=0) == [[]]


def test_the_modules_of_the_last_token_need_a_position_too() -> None:
    generator = Generator(build_writer())
    assert len([*generator.run([[1]], 40, Sampler())]) == 40
    assert len([*generator.run([[1]], 39, Sampler(), routing=True)]) == 40
    with pytest.raises(ModgraphError, match="for the last one is read too, for its modules"):
        next(generator.run([[1]], 40, Sampler(), routing=True))
