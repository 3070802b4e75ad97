"""Statements that declare routers: those of the vocabulary, and definitions in the program itself."""

from __future__ import annotations

from modgraph.prelude import routers
from tests.assault.programs.text import Statement
from tests.assault.programs.writer import Pool, Writer

LOSSES = {"agreement": ["importance"], "linear": ["importance", "load"], "cosine": ["importance", "load"]}
LOSSES |= {"noisy_top_k": ["importance", "load"], "categorical": [], "fixed": [], "truncated_kernel": ["importance"]}


def a_router(writer: Writer, pool: Pool) -> tuple[str, str]:
    """A router of the vocabulary, or one written here, and what kind it is."""
    rng, name = writer.rng, writer.names.fresh("r")
    kind = rng.choice([*routers(), "mine", "mine"])
    if kind == "mine":
        kind = _definition(writer)
        writer.line(f"router {name} = {kind}")
        writer.routers[name] = ["importance"]
        return name, kind.partition("(")[0].partition("_")[0]
    k = rng.randint(1, pool.size)
    options = {
        "agreement": [f"iterations={rng.randint(0, 3)}", "bias=true", 'update="normalised"', "residual=true"],
        "linear": [
            f"k={k}",
            "noise=0.1",
            'load="kth_of_others"',
            'load="code"',
            "capacity=1.5",
            'priority="first_choice"',
        ],
        "cosine": [f"k={k}", "width=5", "noise=0.2", 'load="code"', "capacity=1.2"],
        "noisy_top_k": [f"k={k}", "noise=false", 'softmax="before_top_k"'],
        "categorical": ["slots=2", 'combine="concat"', "dedupe=true"],
        "fixed": [f"slots={min(2, pool.size)}", "dedupe=true", 'combine="concat"'],
        "truncated_kernel": ["truncation=1.2", "bias=true"],
    }.get(kind, [])
    given = {each.partition("=")[0]: each for each in rng.sample(options, rng.randint(0, len(options)))}
    if '"concat"' in given.get("combine", ""):
        given.pop("dedupe", None)
    written = f"{kind}({', '.join(given.values())})" if given else kind
    writer.line(f"router {name} = {written}")
    writer.routers[name] = LOSSES.get(kind, ["importance"])
    return name, written


BODIES = {
    "softmax": ["gates = x -> linear(p) -> softmax", "record gates", "y = x -> p by gates"],
    "switch": [
        "scores = x -> linear(p, bias=false)",
        "chosen = scores -> top_k(k)",
        "gates = (scores -> softmax) * chosen",
        "record gates, scores: logits, choice = chosen",
        "y = x -> p by gates",
    ],
    "tight": [
        "weight key: float[p, dim] = normal(0.4)",
        "scores = (x, key) -> contract",
        "gates = (scores, scores -> top_k(k)) -> masked_softmax",
        "record gates, scores: logits",
        "y = x -> p by gates",
    ],
    "rounds": [
        "v = x -> mean(axis=tokens)",
        "scores = x -> linear(p)",
        "gates = scores -> softmax(axis=p)",
        "repeat round[t] in 0..2 { gates = scores + 0.5 * t -> softmax(axis=p) record gates scores = scores * gates }",
        "y = x -> p by gates",
    ],
    "average": ["gates = x -> linear(p) -> sigmoid", "record gates", "y = x -> p -> mean(axis=p)"],
    "expert_choice": [
        "scores = x -> linear(p) -> softmax(axis=p)",
        "gates = scores * (scores -> top_k(k, axis=tokens))",
        "record gates",
        "y = x -> p by gates",
    ],
    "threshold": [
        "open = x -> linear(p)",
        "gates = (open -> sigmoid, open -> above) -> straight_through",
        "record gates",
        "y = x -> p by gates",
    ],
    "drawing": [
        "scores = x -> linear(p) -> log_softmax",
        "gates = scores -> draw",
        "record gates, scores: log_probabilities, selected: choice = gates",
        "y = x -> p by gates",
    ],
}


def _definition(writer: Writer) -> str:
    """A router written in the spec."""
    kind = writer.rng.choice(list(BODIES))
    name = writer.names.fresh(f"{kind}_")
    lines = ["input x: float[tokens, dim]", *BODIES[kind], "output y"]
    statements = [Statement(line) for line in lines]
    writer.tree.definitions.append(Statement(f"router {name}(k=1) for p {{", statements))
    return f"{name}(k=1)" if writer.chance(0.3) else name
