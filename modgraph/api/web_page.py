"""Pages that run the models of runs in the browser."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.api.run import Run
from modgraph.web.write import write_page

if TYPE_CHECKING:
    from modgraph.backends.onnx import Report


def write_page_of_run(
    run: Run, folder: str | Path, *, examples: bool = True, force: bool = False, **asked: Any
) -> tuple[Report, str]:
    """Write the page of a run into a folder, and report the sizes of its parts.

    Its bundle has the routing, and is stepwise if the model can continue texts. What is `asked` is as in `Run.export`.
    Raises `ModgraphError` and then leaves everything as it was.
    """
    from modgraph.backends.torch.generation import can_continue

    stepwise = asked.pop("stepwise", False) or (not asked.get("only") and can_continue(run.graph))
    export = partial(run.export, **{**asked, "routing": True, "stepwise": stepwise})
    texts = run.directory.read_texts(run.graph.name)
    return write_page(folder, export, run.test_data() if examples else {}, texts, find_parameters(run), force)


def find_parameters(run: Run) -> dict[str, Any] | None:
    """Find the parameters with which the spec of a run gives its model as it has grown; None if there are none. Raises
    `ModgraphError`."""
    from modgraph.training.continual.evaluation import find_grown_parameters

    began = run.began_with
    grown = find_grown_parameters(run.directory, began, run.graph)
    return None if grown is None else {**began.parameters, **grown}
