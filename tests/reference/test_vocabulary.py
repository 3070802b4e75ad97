"""The interpreter knows the whole vocabulary, and torch computes what it says."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import modgraph
from modgraph.diagnostics import ModgraphError
from modgraph.ops import Op
from modgraph.prelude import routers
from modgraph.routers import Router
from tests.examples import GRU, NOVEL, OP_EXAMPLES, ROUTER_EXAMPLES, ROUTERS_IN_SCAN, SEQUENCE, TRANSFORMER, TWO_SCANS
from tests.ops.test_lengths import NAMES, specs
from tests.reference import Unsupported
from tests.reference.against_torch import compare, random_batch, random_model
from tests.reference.call import BATCH_OPS, OPS
from tests.reference.routes import ROUTERS

NOISE_IN_SCAN = "torch draws noise inside a scan, and tells nobody what"
MODELS = {"transformer": TRANSFORMER, "sequence": SEQUENCE, "gru": GRU, "scans": TWO_SCANS, "growing": NOVEL}
IN_TEXT = {
    name: "model m() { input x: float[time, 6] pool p[3] = linear(6) router r = "
    + f"{name} y = x -> p by r output y loss importance(r) }}"
    for name in routers()
}
SMALL: dict[str, dict[str, Any]] = {
    "specs/gmoe.mod": {"classes": 3, "dim": 8, "depth": 2, "heads": 2, "sparse": [1], "size": 8, "patch": 4},
    "specs/gmoe_digits.mod": {"classes": 3, "dim": 8, "depth": 2, "heads": 2, "sparse": [1], "width": 4, "size": 8},
    "specs/modular_networks.mod": {"layers": 2, "modules": 3, "slots": 2},
    "specs/modular_networks_images.mod": {"classes": 3, "size": 24, "modules": 2, "channels": 2, "hidden": 4},
    "specs/modular_networks_lm.mod": {"vocabulary": 7, "width": 4, "hidden": 5, "modules": 3, "slots": 2},
    "specs/mt_rmn.mod": {"tasks": ["a", "b"], "classes": [3, 2], "features": 3, "state": 4, "cells": 2, "hidden": 3},
    "specs/sema.mod": {
        "classes": 3, "dim": 8, "depth": 2, "heads": 2, "width": 3, "adapters": [1, 2], "expands": [1], "hidden": 4,
        "keeps": 5, "size": 8, "patch": 4,
    },
    "specs/sema_backbone.mod": {"classes": 3, "dim": 8, "depth": 2, "heads": 2, "size": 8, "patch": 4},
    "specs/smn.mod": {"iterations": 2},
    "specs/smn_parity.mod": {"iterations": 2},
    "specs/story.mod": {"vocabulary": 9, "width": 8, "hidden": 5, "depth": 1, "heads": 2, "experts": 3},
    "specs/zoo/deepseek_v3.mod": {
        "vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 2, "n_routed_experts": 4, "n_group": 2,
    },
    "specs/zoo/expert_choice.mod": {"dim": 8, "depth": 1, "heads": 2, "capacity": 3, "classes": 3},
    "specs/zoo/gat.mod": {"features": 5, "hidden": 3, "heads": 2},
    "specs/zoo/gcn.mod": {"features": 5, "hidden": 3},
    "specs/zoo/graph_moe.mod": {"features": 5, "hidden": 4, "layers": 1},
    "specs/zoo/soft_moe.mod": {"dim": 8, "depth": 1, "heads": 2, "classes": 3},
    "specs/zoo/switch.mod": {"vocabulary": 9, "dim": 8, "hidden": 6, "depth": 1, "heads": 2, "experts": 3},
    "specs/zoo/mixtral.mod": {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_local_experts": 4},
    "specs/zoo/gpt_oss.mod": {"vocab_size": 9, "hidden_size": 8, "num_local_experts": 4, "sliding_window": 2},
    "specs/zoo/qwen3_next.mod": {"vocab_size": 9, "hidden_size": 8, "num_experts": 4, "full_attention_interval": 2},
    "specs/zoo/olmoe.mod": {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_experts": 4},
    "tests/papers/adaptive_computation.mod": {},
    "tests/papers/attention_sinks.mod": {"vocabulary": 7},
    "tests/papers/capsules.mod": {},
    "tests/papers/deepseek_moe.mod": {},
    "tests/papers/deepseek_v3.mod": {"vocabulary": 7},
    "tests/papers/gated_delta.mod": {},
    "tests/papers/gated_linear_attention.mod": {},
    "tests/papers/hash_layer.mod": {},
    "tests/papers/gpt_oss.mod": {"vocabulary": 7},
    "tests/papers/graph_attention.mod": {},
    "tests/papers/hierarchical_mixture.mod": {},
    "tests/papers/linear_biases.mod": {"vocabulary": 7},
    "tests/papers/mechanisms.mod": {},
    "tests/papers/mixture_of_attention_heads.mod": {},
    "tests/papers/mixture_of_depths.mod": {},
    "tests/papers/mt_rmn_standalone.mod": {},
    "tests/papers/multi_gate.mod": {},
    "tests/papers/neural_interpreter.mod": {},
    "tests/papers/peer.mod": {},
    "tests/papers/perceiver.mod": {},
    "tests/papers/product_keys.mod": {},
    "tests/papers/selective_state_space.mod": {},
    "tests/papers/soft_caps.mod": {"vocabulary": 7},
    "tests/papers/switch_head.mod": {},
    "tests/papers/tied_embedding.mod": {},
    "tests/papers/universal_transformer.mod": {},
}  # fmt: skip


def hold(program: modgraph.Program, training: bool, skips: bool = False) -> None:
    """Random weights and batches; `skips` where torch's noise cannot be told."""
    try:
        compare(program, random_batch(program), random_model(program), training)
    except Unsupported:
        if not skips:
            raise
        pytest.skip(NOISE_IN_SCAN)


def test_the_interpreter_knows_every_op_and_router() -> None:
    ops, routers = (
        {name for name, each in registry.items() if each.__module__.startswith("modgraph.")}
        for registry in (Op.registry, Router.registry)
    )
    assert {*OPS, *BATCH_OPS, "next_state"} == ops, "another vocabulary of ops"
    assert {*ROUTERS} == {*routers}, "another vocabulary of routers"


def test_every_spec_is_compared_with_it() -> None:
    shipped = {str(path) for folder in ("specs", "specs/zoo", "tests/papers") for path in Path(folder).glob("*.mod")}
    assert shipped == {*SMALL}, "a spec that is not held against the interpreter"


VOCABULARY = {
    **OP_EXAMPLES,
    **{f"router {name}": text for name, text in ROUTER_EXAMPLES.items()},
    **{f"text {name}": text for name, text in IN_TEXT.items()},
    **{f"{name} in a scan": text for name, text in ROUTERS_IN_SCAN.items()},
}
TRAINING = pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])


@pytest.mark.some(152)
@TRAINING
@pytest.mark.parametrize("name", VOCABULARY)
def test_an_example_of_the_vocabulary_computes_its_meaning(name: str, training: bool) -> None:
    hold(modgraph.loads(VOCABULARY[name]), training)


@TRAINING
@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_its_meaning(name: str, training: bool) -> None:
    hold(modgraph.loads(MODELS[name]), training, skips=name in ("gru", "scans"))


@pytest.mark.some(20)
@TRAINING
@pytest.mark.parametrize("path", SMALL)
def test_a_shipped_spec_computes_its_meaning(path: str, training: bool) -> None:
    hold(modgraph.load(path, **SMALL[path]), training)


# examples keep unequally many tokens by `retain`: tests/passes/test_caches.py compares them
@pytest.mark.some(12)
@pytest.mark.parametrize("name", [each for each in NAMES if each != "retain"])
def test_settings_and_axes_of_any_length_mean_what_they_say(name: str) -> None:
    for text in specs(name, Random(name)):
        try:
            program = modgraph.loads(_as_loss(text) if name in Op.registry and Op.registry[name].objective else text)
        except ModgraphError:
            continue
        for training in (False, True):
            hold(program, training)


def _as_loss(text: str) -> str:
    return text.replace("output y", "loss y output x")
