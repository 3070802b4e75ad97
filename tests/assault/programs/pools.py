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
