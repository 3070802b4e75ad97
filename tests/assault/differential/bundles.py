"""Bundles in ONNX Runtime, held against the reference."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from modgraph_runtime import Bundle
from torch import Tensor

import modgraph
from modgraph.backends.errors import OfWholeBatch
from modgraph.backends.torch import Model
from modgraph.diagnostics import ModgraphError
from tests.assault.differential.case import Case, Unlike, Values, apartness, by_reference

CLOSE = 1e-5
NUDGE = 1e-6  # as numbers of 32 bits are rounded, and then some
STEADY = 300.0
REFUSED = {OfWholeBatch.code}  # what no bundle can compute


def hold_bundle(case: Case, counts: Counter[str]) -> None:
    """Exports a model and runs the file on the same examples. Raises `Unlike` where it gives something else."""
    model = single(case)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        try:
            modgraph.export(model, path, routing=True)
        except ModgraphError as error:
            codes = {each.code for each in error.diagnostics}
            if not codes <= REFUSED:
                raise
            counts[f"not exported: {', '.join(sorted(codes))}"] += 1
            return
        bundle = Bundle(path)
        batch = {name: value for name, value in case.batch.items() if name in bundle.inputs}
        arrays = {
            name: (value.float() if value.is_floating_point() else value).numpy() for name, value in batch.items()
        }
        found = bundle.run(arrays, routing=True)
    counts["exported"] += 1
    values = case.without_padding({name: torch.from_numpy(value).double() for name, value in found.items()})
    if missing := case.graph.outputs.keys() - values.keys():
        raise Unlike("reference and bundle", f"the bundle has no {sorted(missing)}")
    hold_rounded(case, model, values, counts)


def single(case: Case) -> Model:
    """The same model, in numbers of 32 bits."""
    model = case.program.build()
    model.load_state_dict(case.model.state_dict())
    return model.eval()


def hold_rounded(case: Case, model: Model, values: Values, counts: Counter[str]) -> None:
    """What was computed in 32 bits: as far from the reference as torch is in 32 bits, or 1e-5."""
    expected, nudged = by_reference(case), by_reference(case, nudge=NUDGE)
    if not all(apartness(expected[name], nudged[name]) <= NUDGE * STEADY for name in values):
        counts["too close to a tie for 32 bits"] += 1
        return
    with torch.no_grad():
        batch = {name: value.float() if value.is_floating_point() else value for name, value in case.batch.items()}
        computed = model.compute(batch, losses=False, routing=True)
    rounded = case.without_padding(
        {name: value.double() for name, value in (computed.outputs | computed.routing).items()}
    )
    for name, value in values.items():
        apart, of_torch = apartness(expected[name], value), apartness(expected[name], rounded[name])
        if apart > max(CLOSE, 4 * of_torch) or not _same_choice(expected[name], value):
            raise Unlike("reference and bundle", f"{name}: {apart:.1e} apart, torch {of_torch:.1e}")
    counts["bundles compared"] += 1


def _same_choice(expected: Tensor, found: Tensor) -> bool:
    """Whether what is made of ones and zeros alone is the very same."""
    return not bool(((expected == 0) | (expected == 1)).all()) or torch.equal(expected, found)
