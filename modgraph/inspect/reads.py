"""What the outputs of a model read: which tokens of each input, other examples, padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modgraph.ir import Graph, Result
from modgraph.ir.analysis.causality import Causality, Tokens, find_token_axis
from modgraph.ir.analysis.independence import find_mixing, find_padding_readers
from modgraph.ir.analysis.transfer import Transfer

MODES = {"training": True, "inference": False}


def find_reads(graph: Graph) -> dict[str, Any]:
    """Find what each output reads: `outputs` by name, and `padding`, the names of ops that read it.

    An output has `tokens`, which tokens of each input it reads, in `training` and `inference`, along the `axis` of the
    input, and `examples`, the name of a node by which it depends on other examples, None if there is none.
    """
    mixing = {mode: find_mixing(graph, training) for mode, training in MODES.items()}
    found: dict[str, Any] = {name: {"tokens": {}, "examples": {}} for name in graph.outputs}
    for name, result in graph.outputs.items():
        by = {mode: nodes.get(result.node) for mode, nodes in mixing.items()}
        found[name]["examples"] = {mode: None if node is None else node.name for mode, node in by.items()}
    transfers = {mode: Transfer(graph, training) for mode, training in MODES.items()}
    for name, type_ in graph.input_types.items():
        axis = find_token_axis(type_)
        if axis is not None and type_.dtype != "length":
            tokens = Tokens(Result(name), axis)
            causal = {mode: Causality(each, tokens) for mode, each in transfers.items()}
            for output, result in graph.outputs.items():
                reads = {mode: each.read(result) for mode, each in causal.items()}
                if any(reads.values()):
                    words = {mode: "nothing" if each is None else str(each) for mode, each in reads.items()}
                    found[output]["tokens"][name] = {"axis": str(type_.shape[axis]), **words}
    return {"outputs": found, "padding": [node.name for node in find_padding_readers(graph)]}


def format_reads(graph: Graph) -> str:
    """Format what each output reads as lines of text."""
    return "\n".join(_list_lines(find_reads(graph)))


def _list_lines(found: dict[str, Any]) -> Iterator[str]:
    for name, facts in found["outputs"].items():
        yield f"output {name}"
        for tokens, reads in facts["tokens"].items():
            yield f"  reads {_join_modes(reads)} of {tokens}, along {reads['axis']}"
        by = {
            mode: "no other examples" if node is None else f"other examples, by {node}"
            for mode, node in facts["examples"].items()
        }
        yield f"  reads {_join_modes(by)}"
    yield f"padding: read by {', '.join(found['padding'])}" if found["padding"] else "padding: not read"


def _join_modes(reads: dict[str, Any]) -> str:
    """What holds in training and inference, or each by itself."""
    training, inference = reads["training"], reads["inference"]
    return f"{training}" if training == inference else f"{training} in training, {inference} in inference"
