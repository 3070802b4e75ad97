"""Opens bundles to predict and to continue texts, without torch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from modgraph_runtime import Bundle, BundleError
from modgraph_runtime.generation import Generator, find_misfit

from modgraph.backends.errors import BadBundle, BadPrompt, NotStepwise
from modgraph.diagnostics import ModgraphError
from modgraph.ir import UnreadableGraph, from_json
from modgraph.prediction.facts import Facts


def open_bundle(path: str | Path, check: bool = True) -> tuple[Facts, Bundle]:
    """Return the facts of a bundle, and the bundle itself. Raises `ModgraphError`."""
    try:
        bundle = Bundle(path, check=check)
        return Facts.from_bundle(bundle, from_json(bundle.manifest["ir"])), bundle
    except BundleError as error:
        raise ModgraphError([BadBundle.from_error(error)]) from error
    except (LookupError, TypeError, UnreadableGraph) as error:
        raise ModgraphError([BadBundle(reason=f'the manifest of "{path}" is damaged: {error}')]) from error


class BundleGenerator(Generator):
    """Continues sequences of tokens by a bundle. Raises `ModgraphError`."""

    def __init__(self, bundle: Bundle) -> None:
        try:
            super().__init__(bundle)
        except BundleError as error:
            reason = error.reason.removeprefix(f'"{bundle.path}" ')
            raise ModgraphError([NotStepwise(path=str(bundle.path), reason=reason, way_out=error.way_out)]) from error

    def check(self, prompts: Sequence[Sequence[int]], tokens: int, stop: Collection[int], routing: bool) -> None:
        """Raise `ModgraphError` for prompts that are empty, have ids beyond the words, or become too long."""
        for number, prompt in enumerate(prompts, start=1):
            if misfit := find_misfit(prompt, tokens, self.words, self.longest, routing):
                raise ModgraphError([BadPrompt(number=number, reason=misfit[0], way_out=misfit[1])])
