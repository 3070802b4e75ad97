"""Statements that declare pools."""

from __future__ import annotations

from modgraph.types import TensorType, floats
from tests.assault.programs.stages import VECTORS, stages
from tests.assault.programs.values import WIDTHS
from tests.assault.programs.writer import Pool, Writer

UNLIKE = "linear({w}) | linear(3) -> gelu -> linear({w}) | layer_norm -> linear({w}) | linear({w}) -> tanh".split(" | ")


def a_pool(writer: Writer, message: int, keeps: bool = False) -> tuple[Pool, TensorType]:
    """A pool over vectors: of one kind or of several, perhaps frozen, perhaps grown, perhaps like another."""
    rng, name = writer.rng, writer.names.fresh("p")
    size, out = rng.choice((1, 2, 3, 3, 4)), message if keeps else rng.choice(WIDTHS)
    kind = rng.random()
    if kind < 0.3:
        kinds = [each.format(w=out) for each in UNLIKE] + (["identity", "dropout(0.3)"] if out == message else [])
        text, result = f"pool {name} = [{', '.join(rng.choice(kinds) for _ in range(size))}]", floats(out)
    elif kind < 0.34:
        text, result = f"pool {name}[{size}] = {_nested(writer, out, rng.choice((1, 1, 2)))}", floats(out)
    elif kind < 0.4:
        block = writer.names.fresh("unit")
        writer.define(
            f"block {block}(k={out}) {{", ["input v: float[d]", "y = v -> linear(k) -> tanh -> linear(k)", "output y"]
        )
        text, result = f"pool {name}[{size}] = {block}", floats(out)
    else:
        texts, result = stages(writer, floats(message), rng.randint(1, 2), VECTORS.split())
        if keeps:
            texts, result = [*texts, f"linear({out})"], floats(out)
        like = [pool for pool in writer.pools.values() if pool.size == size]
        length = rng.choice(like).name if like and writer.chance(0.15) else writer.number(size)
        text = f"pool {name}[{length}] = {' -> '.join(texts)}"
    writer.line(f"frozen {{ {text} }}" if writer.chance(0.1) else text)
    if kind >= 0.4 and writer.chance(0.1) and length.isdigit() and not writer.in_scan:
        more = rng.randint(1, 2)
        size += more
        writer.line(f"grow {name}[{more}]")
    pool = Pool(name, size, message)
    writer.pools[name] = pool
    return pool, result


DECIDES = (
    "linear(1) | linear({n}) | linear(1, noise=0.1, capacity=1.5) | cosine(1, width=3) | noisy_top_k({n}) | "
    "noisy_top_k(1, noise=false) | agreement(2) | fixed | truncated_kernel"
).split(" | ")
BY_WEIGHTS = (
    "v -> inner by ({s} -> softmax)",
    "v -> inner by (({s} -> softmax) * ({s} -> top_k(1)))",
    "v -> inner by (({s}, {s} -> top_k({n})) -> masked_softmax)",
    "v -> inner -> mean(axis=inner)",
    "(v -> inner) by ({s} -> sigmoid) over inner",
)


def _nested(writer: Writer, out: int, depth: int) -> str:
    """A block with a pool of its own, by a router or by weights; that of a pool again where it is deeper."""
    rng, size = writer.rng, writer.rng.choice((1, 2, 3))
    unlike = rng.sample([each.format(w=out) for each in UNLIKE], size)
    inner = (
        f"pool inner[{size}] = {rng.choice(unlike)}" if writer.chance(0.7) else f"pool inner = [{', '.join(unlike)}]"
    )
    inner = inner if depth == 1 else f"pool inner[{size}] = {_nested(writer, out, depth - 1)}"
    n = rng.randint(1, size)
    if writer.chance(0.5):
        body = [f"router gate = {rng.choice(DECIDES).format(n=n)}", "y = v -> inner by gate"]
    else:
        body = [f"y = {rng.choice(BY_WEIGHTS).format(s='(v -> linear(inner))', n=n)}"]
    block = writer.names.fresh("nest")
    writer.define(f"block {block}(k={out}) {{", ["input v: float[d]", inner, *body, "output y"])
    return block
