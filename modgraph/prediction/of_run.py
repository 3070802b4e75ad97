"""Predictions of a run, by its model in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from modgraph_runtime.ports import Array

from modgraph.backends.torch import Model
from modgraph.metrics.metrics import move_to_model
from modgraph.prediction.facts import Facts
from modgraph.training.processes import choose_device
from modgraph.training.run import threads
from modgraph.training.stored_run import load_run


def find_facts_and_model(path: str) -> tuple[Facts, Callable[[Mapping[str, Array]], Mapping[str, Array]]]:
    """Return the facts of a run's model, and the model itself. Raises `ModgraphError`."""
    run = load_run(path)
    facts, model = load_model(path)

    def compute(arrays: Mapping[str, Array]) -> dict[str, Array]:
        batch = move_to_model({name: torch.from_numpy(array) for name, array in arrays.items()}, model)
        with torch.no_grad(), threads(run.recipe.train.threads):
            outputs = model.compute(batch, losses=False).outputs
        return {name: value.cpu().numpy() for name, value in outputs.items()}

    return facts, compute


def load_model(path: str) -> tuple[Facts, Model]:
    """Return the facts of a run's model, and the model itself. Raises `ModgraphError`."""
    run = load_run(path)
    model = run.model(choose_device(run.recipe.train.device))
    return Facts.from_graph(model.graph, run.description(), f'the run "{path}"'), model
