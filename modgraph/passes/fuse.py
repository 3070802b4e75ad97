"""Turn attention that a graph computes as scores, softmax and sum into one op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from modgraph.declare.indexing import Use
from modgraph.ir import (
    Built,
    Change,
    DecisionNode,
    Graph,
    Node,
    OpNode,
    OutputNode,
    Part,
    Result,
    build_op,
    rewrite_graph,
)
from modgraph.ir.node import Inputs
from modgraph.ops import Op
from modgraph.ops.arithmetic import Add, Multiply
from modgraph.ops.dot_product import DotProductAttention, find_window, format_piece
from modgraph.ops.linear import Contract
from modgraph.passes.attention import Attention, Recogniser, Term, Unfit
from modgraph.passes.inference import list_ends
from modgraph.passes.infrastructure import Pass
from modgraph.types import Misfit, TensorType

DENSE, FUSED, WINDOWS = "dense", "fused", "windows"
FEW = 16  # keys; for fewer, products of matrices are as fast
HEADS, OWN, WIDTHS = "hgijklopqrst", "evuxyz", "dc"


@dataclass(frozen=True)
class Choice:
    """How attention is computed, and why; the nodes that replace its sum if it is not `dense`."""

    lowering: str
    reason: str
    attention: Attention | None = None
    nodes: tuple[tuple[Node, Inputs], ...] = ()

    @property
    def keys(self) -> tuple[Result, int]:
        """The value of keys, and the place of their axis."""
        assert self.attention is not None, "there are no keys"
        keys = self.attention.scores.products[0].keys
        return keys.value, keys.letters.index("M")

    @property
    def seen(self) -> int | None:
        """How many keys a query sees at most, if they are read in blocks."""
        window = find_window(self.attention.pieces) if self.attention and self.lowering == WINDOWS else None
        return None if window is None else window[1] - window[0] + 1 + window[2]


@dataclass(frozen=True)
class Fuse(Pass):
    """Compute attention by torch's fused kernel, or by blocks of keys where a band is narrow; dead nodes stay for
    `Prune`.

    With a `lowering` that is `dense` or `fused`, attention has no better one. Results that are `asked` for are kept.
    In ONNX, a mask from positions takes less time than one from lengths.
    """

    name: ClassVar[str] = "fuse"

    lowering: str | None = None
    asked: frozenset[str] = frozenset()
    exportable: bool = False

    def __call__(self, graph: Graph) -> Graph:
        known = {id(each): choices for _, each, choices in self.choose(graph)}

        def rule(node: Node, part: Part) -> Change:
            found = known[id(part.graph)].get(node.name)
            return Built(found.nodes) if found is not None and found.nodes else node

        return rewrite_graph(graph, rule) if any(choices for choices in known.values()) else graph

    def choose(self, graph: Graph) -> list[tuple[str, Graph, dict[str, Choice]]]:
        """Choose how attention is computed in a graph, in its scans, and in modules of pools, which have a path."""
        parts = [("", part.graph, () if part.scan is None else part.scan.region.results) for part in graph.parts()]
        parts += [(f"{path}.", region.graph, region.results) for path, region in graph.modules()]
        found = []
        for path, each, results in parts:
            ends = [*list_ends(each, self.asked), *(result.node for result in results)]
            found.append((path, each, choose_lowerings(each, ends, self.lowering, not self.exportable)))
        return found


def list_seen_keys(graph: Graph, results: Iterable[Result] = ()) -> dict[str, tuple[Result, int, int]]:
    """List the sums of products over keys or of them that are read in blocks: keys, their place, how many are seen."""
    found = dict[str, tuple[Result, int, int]]()
    ends = [*list_ends(graph, frozenset()), *(result.node for result in results)]
    for name, choice in choose_lowerings(graph, ends).items():
        if choice.seen is not None and choice.attention is not None:
            products = (each for each in choice.attention.inside if isinstance(_op_of(graph[each]), Contract))
            found |= dict.fromkeys((name, *products), (*choice.keys, choice.seen))
    return found


def _op_of(node: Node) -> Op | None:
    return node.op if isinstance(node, OpNode) else None


def list_attention(graph: Graph) -> dict[str, Choice]:
    """List how each attention of a graph is computed, by its path."""
    return {path + name: choice for path, _, choices in Fuse().choose(graph) for name, choice in choices.items()}


def choose_lowerings(
    graph: Graph, ends: Iterable[str], lowering: str | None = None, counts_places: bool = True
) -> dict[str, Choice]:
    """Choose how each attention of a graph is computed, by the name of its sum; the nodes `ends` are needed."""
    recogniser, found = Recogniser(graph, counts_places), dict[str, Choice]()
    if lowering == DENSE:
        return found
    for node in graph.nodes_of(OpNode):
        try:
            attention = recogniser.recognise(node)
            if attention is not None:
                found[node.name] = _choose(node, attention, graph, lowering)
        except Unfit as unfit:
            found[node.name] = Choice(DENSE, str(unfit))
    return _keep_read(found, graph, [*ends]) if found else found


def _choose(node: OpNode, attention: Attention, graph: Graph, lowering: str | None) -> Choice:
    """Choose the best lowering for attention. Raises `Unfit`."""
    value, place = Choice(DENSE, "", attention).keys
    size = graph.type_of(value).shape[place].size
    window = find_window(attention.pieces) if lowering != FUSED and not attention.last else None
    if size is not None and size < FEW:
        raise Unfit(f"{size} keys are few")
    if window is not None:
        low, high, first = window
        width = high - low + 1
        if size is None or 2 * (width + first) <= size:
            early = f" and the first {first}" if first else ""
            nodes = Builder(node, attention, graph).build(blocks=True)
            return Choice(WINDOWS, f"a query sees {width} keys{early}, in blocks", attention, nodes)
    if _share_all(attention, graph):
        raise Unfit("torch's kernel would copy the keys that all heads share for each head")
    if attention.scores.cap is not None or attention.sink is not None:
        lacks = "cap" if attention.sink is None else "sink"
        raise Unfit(f"torch's kernel has no {lacks}, and the keys are no narrow window")
    extent = "keys up to its own" if [*map(format_piece, attention.pieces)] == ["..0"] else "keys of a band"
    seen = [extent] if attention.pieces else []
    seen += ["a mask"] * bool(attention.masks) + ["a bias"] * bool(attention.scores.biases)
    reason = "by torch's kernel" + (f", with {' and '.join(seen)}" if seen else "")
    return Choice(FUSED, reason, attention, Builder(node, attention, graph).build(blocks=False))


def _share_all(attention: Attention, graph: Graph) -> bool:
    """Whether heads share all keys and values of other tokens, and more than one product or a mask makes the scores."""
    products = attention.scores.products
    axes = {
        letter: axis.lengths
        for term in (products[0].queries, products[0].keys)
        for letter, axis in zip(term.letters, graph.type_of(term.value).shape, strict=True)
        if letter in "NM"
    }
    if axes.get("N") == axes["M"]:
        return False
    heads = {*products[0].queries.letters} & {*attention.result} - {"N"}
    own = {*attention.values.letters, *(letter for each in products for letter in each.keys.letters)}
    return bool(heads) and not heads & own and bool(len(products) > 1 or attention.masks)


def _keep_read(found: Mapping[str, Choice], graph: Graph, ends: list[str]) -> dict[str, Choice]:
    """Compute attention densely where something else needs its scores or weights."""
    kept = dict(found)
    while True:
        live = _find_live(graph, kept, ends)
        users = [name for each in kept.values() if each.attention for name in each.attention.inside]
        read = {
            name: reason
            for name, each in kept.items()
            if each.attention is not None and (reason := _explain_read(each.attention, graph, live, users))
        }
        if not read:
            return kept
        kept |= {name: Choice(DENSE, reason) for name, reason in read.items()}


def _find_live(graph: Graph, choices: Mapping[str, Choice], ends: list[str]) -> set[str]:
    """Find the nodes that the ends need where attention is replaced."""
    live, pending = {*ends}, [*ends]
    while pending:
        name = pending.pop()
        nodes = choices[name].nodes if name in choices else ()
        sources = {result.node for _, inputs in nodes for result in inputs.values()} - {node.name for node, _ in nodes}
        if not nodes:
            read = (*graph.inputs(name).values(), *graph.lengths(name).values())
            sources = {*(result.node for result in read), *graph.uses(name).values()}
        pending += sources - live
        live |= sources
    return live


def _explain_read(attention: Attention, graph: Graph, live: set[str], inside: list[str]) -> str:
    """Explain what else needs the scores or weights of attention; an empty text if nothing does."""
    for at, name in enumerate(attention.inside):
        if name in live:
            users = [each for each in graph.users_of(name) if each.name in live and each.name != attention.node]
            reader = next((each for each in users if each.name not in attention.inside), graph[name])
            label = reader.label if isinstance(reader, DecisionNode | OutputNode) else ""
            return f'"{label or reader.name}" reads its {"scores" if at else "weights"}'
        if inside.count(name) > 1:
            return "several sums share its scores"
    return ""


class Builder:
    """Builds the nodes of attention as one op, with letters of axes that are easy to read. Raises `Unfit`."""

    def __init__(self, node: OpNode, attention: Attention, graph: Graph) -> None:
        self.node, self.attention, self.graph = node, attention, graph
        self.nodes: list[tuple[Node, Inputs]] = []
        self.types: dict[Result, TensorType] = {}

    def build(self, blocks: bool) -> tuple[tuple[Node, Inputs], ...]:
        found, scores = self.attention, self.attention.scores
        first, *others = scores.products
        if len(others) > 1 or first.factor == 0:
            raise Unfit("more than two products make the scores")
        terms = {"queries": first.queries, "keys": first.keys, "values": found.values}
        if scores.biases:
            terms["bias"] = self._join(Add(left=None, right=None), scores.biases, "bias")
        if found.masks:
            terms["mask"] = self._join(Multiply(left=None, right=None), found.masks, "mask")
        if found.sink is not None:
            terms["sink"] = found.sink
        for each in others:
            queries = replace(each.queries, factor=each.factor / first.factor)
            second = self._scale(queries, "queries").rename({"W": "w"})
            terms |= {"queries2": second, "keys2": each.keys.rename({"W": "w"})}
        op = DotProductAttention(
            equation=self._write_equation(terms),
            terms=tuple(terms)[3:],
            scale=first.factor,
            cap=scores.cap,
            band=tuple(map(format_piece, found.pieces)),
            blocks=blocks,
            last=found.last,
        )
        inputs = {slot: each.value for slot, each in terms.items()}
        if self._infer(op, [*inputs.values()]) != self.node.types[0]:
            raise Unfit("its axes are not those of queries, keys and values")
        return (*self.nodes, (replace(self.node, op=op), inputs))

    def _write_equation(self, terms: Mapping[str, Term]) -> str:
        scored = {each for slot, term in terms.items() if slot != "values" for each in term.letters}
        heads, own, widths = iter(HEADS), iter(OWN), iter(WIDTHS)
        to = {"N": "N", "M": "M"}
        for each in dict.fromkeys("".join(term.letters for term in terms.values())):
            source = widths if each in "Ww" else heads if each in scored else own
            to.setdefault(each, next(source) if each not in to else "")
        given = ",".join(term.rename(to).letters for term in terms.values())
        return f"{given}->{Term(Result(''), self.attention.result).rename(to).letters}"

    def _infer(self, op: Op, operands: list[Result]) -> TensorType:
        try:
            return op.bind(*map(self._type_of, operands)).results[0]
        except Misfit as misfit:
            raise Unfit(misfit.reason) from misfit

    def _type_of(self, value: Result) -> TensorType:
        return self.types[value] if value in self.types else self.graph.type_of(value)

    def _add(self, name: str, op: Op, *operands: Result) -> Result:
        value = Result(name)
        self.types[value] = self._infer(op, [*operands])
        self.nodes.append(build_op(name, op, *operands, span=self.node.span))
        return value

    def _scale(self, term: Term, word: str) -> Term:
        """Multiply a term by its factor."""
        if term.factor == 1:
            return term
        name = f"{self.node.name}~{word}~scaled"
        while Result(name) in self.types:
            name += "~again"
        return Term(self._add(name, Multiply(left=term.factor, right=None), term.value), term.letters)

    def _join(self, op: Op, terms: tuple[Term, ...], word: str) -> Term:
        """Join terms by an op of two values."""
        found, *others = (self._scale(each, word) for each in terms)
        name = f"{self.node.name}~{word}"
        for each in others:
            value = self._add(name, op, found.value, each.value)
            signature = op.bind(self._type_of(found.value), self._type_of(each.value))
            letters = [""] * len(signature.results[0].shape)
            for reading in op.indexing(Use(signature))[0]:
                own = (found, each)[reading.operand].letters
                for letter, place in zip(own, reading.places, strict=True):
                    index = place.terms[0][0] if place.terms else None
                    if isinstance(index, int):
                        letters[index] = letter
            if not all(letters):
                raise Unfit(f"its {word} broadcasts")
            found, name = Term(value, "".join(letters)), f"{name}~and"
        return found
