"""What a step of the tour demands of a spec: a closed set of facts about the program, read from data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modgraph.inspect.cost import Cost, compute_cost, list_axes_of_any_length
from modgraph.ir import Graph, Result
from modgraph.ir.analysis.causality import Causality, Tokens, find_token_axis
from modgraph.ir.node import DecisionNode, OpNode, RouterNode
from modgraph.play.documents import WrongParameters
from modgraph.prelude import routers

COUNTS = {"parameters": "parameters", "macs": "MACs", "active_macs": "active MACs"}


@dataclass(frozen=True)
class Fact:
    """A demand in words, what is missing from a graph ("" if nothing is), and how to go on."""

    words: str
    find_missing: Callable[[Graph], str]
    hint: str


def read_facts(given: Any) -> list[Fact]:
    """Read facts from a list of objects with one key each. Raises `WrongParameters`."""
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise WrongParameters("a check is a list of facts")
    return [_read_fact(each) for each in given]


def check_facts(facts: Sequence[Fact], graph: Graph | None) -> list[dict[str, Any]]:
    """Check facts in order; without a graph none holds."""
    found = []
    for fact in facts:
        missing = "the spec has mistakes" if graph is None else fact.find_missing(graph)
        found.append(
            {"words": fact.words, "met": not missing, "missing": missing, "hint": fact.hint if missing else ""}
        )
    return found


def _read_fact(given: Any) -> Fact:
    if not isinstance(given, Mapping) or len(given) != 1:
        raise WrongParameters("a fact is an object with one key")
    [(kind, value)] = given.items()
    if kind not in KINDS:
        raise WrongParameters(f'unknown fact "{kind}": one of {", ".join(KINDS)}')
    type_, make = KINDS[kind]
    if type(value) is not type_:
        raise WrongParameters(f"the value of {kind} has another type")
    found: Fact = make(value)
    return found


def _expect_type(kind: str, types_of: Callable[[Graph], Mapping[str, Any]]) -> Callable[[str], Fact]:
    """A named input, target or output with a type, written `name: type`."""

    def make(value: str) -> Fact:
        name, _, wanted = (part.strip() for part in value.partition(":"))

        def find_missing(graph: Graph) -> str:
            types = types_of(graph)
            if name not in types:
                return f'there is no {kind} "{name}"'
            return "" if str(types[name]) == wanted else f"{kind} {name} is {types[name]}"

        hint = f"output {name}" if kind == "output" else f"{kind} {name}: {wanted}"
        return Fact(f"{kind} `{name}` is `{wanted}`", find_missing, f"write `{hint}`")

    return make


def _output_types(graph: Graph) -> dict[str, Any]:
    return {name: graph.type_of(result) for name, result in graph.outputs.items()}


def _loss(op: str) -> Fact:
    def find_missing(graph: Graph) -> str:
        names = [name.removeprefix("loss.") for name in graph.losses]
        return "" if op in names else f"the losses are: {', '.join(names) or 'none'}"

    return Fact(f"a loss uses `{op}`", find_missing, f"add a line that begins with `loss`, with `{op}(…)`")


def _op(name: str) -> Fact:
    def find_missing(graph: Graph) -> str:
        names = {node.op.name for node in graph.nodes_of(OpNode)}
        names |= {call.definition for node in graph if node.within is not None for call in node.within.chain()}
        return "" if name in names else f"no value passes {name}"

    return Fact(f"a value passes `{name}`", find_missing, f"use `-> {name}`; Help explains `{name}`")


def _parameter(name: str) -> Fact:
    def find_missing(graph: Graph) -> str:
        return "" if name in graph.parameters else f"the parameters are: {', '.join(graph.parameters) or 'none'}"

    return Fact(f"`{name}` is a parameter", find_missing, f"write `{name}=…` behind the name of the model")


def _count(kind: str) -> Callable[[int], Fact]:
    def make(wanted: int) -> Fact:
        def find_missing(graph: Graph) -> str:
            count = getattr(_cost_of(graph), kind)
            return "" if count == wanted else f"there are {count:,} {COUNTS[kind]}"

        return Fact(f"{wanted:,} {COUNTS[kind]}", find_missing, "Costs lists them by node; compare the widths")

    return make


def _cost_of(graph: Graph) -> Cost:
    return compute_cost(graph, dict.fromkeys(list_axes_of_any_length(graph), 1))


def _pools(number: int) -> Fact:
    def find_missing(graph: Graph) -> str:
        return "" if len(graph.pools()) == number else f"there are {len(graph.pools())}"

    words = "one pool" if number == 1 else f"{number} pools"
    return Fact(words, find_missing, "declare `pool name[number] = …`; in a `repeat` each round has its own")


def _modules(number: int) -> Fact:
    def find_missing(graph: Graph) -> str:
        sizes = sorted({pool.size for pool in graph.pools().values()})
        return "" if sizes == [number] else f"the sizes of pools are: {', '.join(map(str, sizes)) or 'none'}"

    return Fact(
        f"each pool has {number} modules", find_missing, f"the number stands in brackets: `pool name[{number}] = …`"
    )


def _choice(k: int) -> Fact:
    def find_missing(graph: Graph) -> str:
        found = sorted({node.facts.k for node in graph.nodes_of(DecisionNode)})
        return "" if found == [k] else _say_choices(found)

    return Fact(
        f"routers choose {k} for each token",
        find_missing,
        f"the setting of the router is `k={k}`, and a route uses it: `x -> pool by router`",
    )


def _say_choices(found: list[int]) -> str:
    if not found:
        return "no router chooses"
    return f"they choose {' or '.join(str(k) if k else 'all' for k in found)}"


def _router(name: str) -> Fact:
    def find_missing(graph: Graph) -> str:
        names = sorted(_routers_of(graph))
        return "" if name in names else f"the routers are: {', '.join(names) or 'none'}"

    return Fact(f"a router is `{name}`", find_missing, f"write `router gate = {name}(…)`")


def _own_router(wanted: bool) -> Fact:
    def find_missing(graph: Graph) -> str:
        has = bool(_routers_of(graph) - {*routers()})
        return "" if has == wanted else "all are routers of the vocabulary" if wanted else "one is your own"

    words = "a router is your own" if wanted else "no router is your own"
    return Fact(words, find_missing, "begin with `router nearest(k=1) for expert {` before the model")


def _routers_of(graph: Graph) -> set[str]:
    return {getattr(node.router, "name", type(node.router).__name__) for node in graph.nodes_of(RouterNode)}


def _causal(value: str) -> Fact:
    output, _, tokens = (part.strip() for part in value.partition(","))

    def find_missing(graph: Graph) -> str:
        type_ = graph.input_types.get(tokens)
        axis = None if type_ is None else find_token_axis(type_)
        if axis is None or output not in graph.outputs:
            return f"{output} or {tokens} is missing"
        for training in (True, False):
            reads = Causality.build(graph, Tokens(Result(tokens), axis), training).read(graph.outputs[output])
            if reads is None or not reads.is_causal:
                return f"{output} reads {'none' if reads is None else reads} of {tokens}"
        return ""

    words = f"`{output}` reads no later entry of `{tokens}`"
    return Fact(words, find_missing, "attention hides later tokens with `causal=true`")


KINDS: Mapping[str, tuple[type, Callable[[Any], Fact]]] = {
    "input": (str, _expect_type("input", lambda graph: graph.input_types)),
    "target": (str, _expect_type("target", lambda graph: graph.target_types)),
    "output": (str, _expect_type("output", _output_types)),
    "loss": (str, _loss),
    "op": (str, _op),
    "parameter": (str, _parameter),
    **{kind: (int, _count(kind)) for kind in COUNTS},
    "pools": (int, _pools),
    "modules": (int, _modules),
    "choice": (int, _choice),
    "router": (str, _router),
    "own_router": (bool, _own_router),
    "causal": (str, _causal),
}
