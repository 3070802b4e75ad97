"""The incremental form: the program of the next tokens, with what earlier ones left behind as inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, Result
from modgraph.ir.analysis.causality import Causality, Tokens, find_token_axis
from modgraph.passes.cache_names import is_cache
from modgraph.passes.caching import StepBuilder
from modgraph.passes.errors import NoTokens
from modgraph.passes.inference import Prune
from modgraph.passes.infrastructure import Pass, apply_passes
from modgraph.passes.keep_less import KeepLess
from modgraph.passes.merge import Merge
from modgraph.passes.pointwise import raise_impossible
from modgraph.passes.sink import SinkReadings
from modgraph.passes.unroll import UnrollRounds

PREPARE: tuple[Pass, ...] = (SinkReadings(), Merge(), Prune())


@dataclass(frozen=True)
class Incremental(Pass):
    """Take the tokens of an input that follow those seen before.

    Inputs and outputs that begin with `cache.` carry what a later token reads: all tokens at an axis that is read a
    second time, a window for a convolution, a state for a scan, a number of tokens for positions. Before the first
    token they are zero, and have length zero along the axis of tokens. Raises `ModgraphError` where this is impossible.
    """

    name: ClassVar[str] = "incremental"

    tokens: str = ""  # the input; by default the only one with an axis of any length

    def __call__(self, graph: Graph) -> Graph:
        if any(map(is_cache, graph.input_types)):
            return graph
        tokens = find_tokens(graph, self.tokens)
        require_causal(graph, tokens)
        axis = graph.type_of(tokens.value).shape[tokens.axis].name
        prepared = apply_passes(graph, (UnrollRounds(tokens.value, axis), *PREPARE, KeepLess(axis), Merge()))
        return StepBuilder(prepared, tokens).build()


def find_tokens(graph: Graph, name: str = "") -> Tokens:
    """Find the input whose tokens follow each other. Raises `ModgraphError`."""
    known = {each: type_ for each, type_ in graph.input_types.items() if type_.dtype != "length"}
    asked = {name: known[name]} if name in known else known
    found = {each: find_token_axis(type_) for each, type_ in asked.items()}
    fits = [each for each, at in found.items() if at is not None and known[each].shape[at].is_padded]
    if len(fits) != 1:
        reason = "no input has an axis of any length" if not fits else f"it has several such inputs: {', '.join(fits)}"
        raise ModgraphError([NoTokens(model=graph.name, reason=reason)])
    return Tokens(Result(fits[0]), found[fits[0]] or 0)


def require_causal(graph: Graph, tokens: Tokens) -> None:
    """Raise `ModgraphError` where an output reads later tokens, with the op that does."""
    causality = Causality.build(graph, tokens, training=False)
    for label, result in graph.outputs.items():
        read = causality.read(result)
        if read is not None and (not read.is_causal or read.axis is None):
            first = next(iter(causality.find_path(result)), graph[result.node])
            way_out = "see the path: add to the model " + f'"require causal({label}, {tokens.value})"'
            raise_impossible(first, f'through it, output "{label}" reads later tokens', way_out)
