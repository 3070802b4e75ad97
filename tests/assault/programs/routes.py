"""Statements that declare pools and routers, and send values through them."""

from __future__ import annotations

from modgraph.types import Axis, floats
from tests.assault.programs.pools import a_pool
from tests.assault.programs.routers import a_router
from tests.assault.programs.stages import stages
from tests.assault.programs.values import WIDTHS
from tests.assault.programs.writer import Writer, plain, width


def a_route(writer: Writer) -> None:
    """A value through a pool, as a router decides."""
    found = writer.value(lambda type_: 1 < len(type_.shape) < 4 and plain(type_))
    if found is None:
        return
    source, type_ = found
    pool, result = a_pool(writer, width(type_))
    if writer.chance(0.12):
        writer.bind(f"{source} -> {pool.name}", floats(*type_.shape[:-1], Axis(pool.size, pool.name), *result.shape))
        return
    router, kind = a_router(writer, pool)
    whole = kind in ("agreement", "truncated_kernel")
    combined = "concat" in kind
    shape = type_.shape[:-2] if whole else type_.shape[:-1]
    results = floats(*shape, width(result) * 2) if combined else floats(*shape, *result.shape)
    value = writer.bind(f"{source} -> {pool.name} by {router}", results)
    if writer.chance(0.25):
        writer.bind(f"{router}.gates", floats(*type_.shape[:-1], Axis(pool.size, pool.name)))
    if writer.chance(0.15):
        writer.bind(f"{source} -> {pool.name} by {router}", writer.values[value])
    if writer.chance(0.1) and not writer.depth:
        writer.line(f"grow {pool.name} by {router} when ({router}.gates -> batch_mean -> max(axis=-1)) > 2")


CHOICES = ("top_k({k})", "top_k({k})", "top_k(1)", "above(0.1)", "top_k(1, axis={where})", "log_softmax -> draw")
WEIGHTS = (
    "({s} -> softmax)",
    "{s}",
    "({s} -> {choice})",
    "(({s} -> softmax) * ({s} -> {choice}))",
    "(({s}, {s} -> {choice}) -> masked_softmax)",
    "({s} -> softmax(axis={where}))",
    "(({s} -> softmax, {s} -> {choice}) -> straight_through)",
    "({s} -> sigmoid -> relu)",
    "(({s} -> {choice}) * ({s} -> sigmoid) / 2)",
    "(({s} -> {choice}) -> stop_gradient)",
)


def by_weights(writer: Writer) -> None:
    """A value by weights: over modules, over senders, without modules, of an op; dense, chosen, straight-through."""
    found = writer.value(lambda type_: len(type_.shape) == 2 and plain(type_))
    if found is None:
        return
    source, type_ = found
    rng = writer.rng
    known = [pool for pool in writer.pools.values() if pool.width == width(type_) and not writer.in_scan]
    pool = rng.choice(known) if known and writer.chance(0.4) else a_pool(writer, width(type_))[0]
    token = type_.shape[0].name
    scores = writer.bind(
        f"{source} -> linear({pool.name})", floats(type_.shape[0], Axis(pool.size, pool.name)), "scores"
    )
    where = f'"{token}"' if token else "-2"
    over = token or "-2"
    choice = rng.choice(CHOICES).format(k=rng.randint(1, pool.size), where=where)
    weights = rng.choice(WEIGHTS).format(s=scores, choice=choice, where=where)
    each = floats(Axis(pool.size, pool.name), type_.shape[1])
    variant = rng.randrange(6)
    if variant == 0:
        writer.bind(f"{source} -> {pool.name} by {weights} over {over}", each)
    elif variant == 1:
        slots = writer.bind(f"{source} by {weights} over {over}", each)
        writer.bind(f"{slots} -> {pool.name} by {weights}", floats(*type_.shape))
    elif variant == 2:
        size = rng.choice(WIDTHS)
        writer.bind(f"{source} -> linear({size}) by {weights} over {over}", floats(each.shape[0], size))
    elif variant == 3:
        messages = writer.bind(f"{source} -> {pool.name}", floats(*type_.shape[:1], *each.shape))
        writer.bind(f"{messages} by {weights} over {pool.name}", floats(*type_.shape))
    else:
        writer.bind(f"{source} -> {pool.name} by {weights}", floats(*type_.shape))


def a_capacity(writer: Writer) -> None:
    """Choices beyond the largest: slots for chosen tokens and back, capacities, the first places."""
    found = writer.value(lambda type_: len(type_.shape) == 2 and plain(type_))
    if found is None:
        return
    source, type_ = found
    token = type_.shape[0].name
    where = f'"{token}"' if token else "-1"
    score = writer.bind(f"{source} -> linear(1) -> flatten(1) -> mean(axis=-1)", floats(type_.shape[0]), "score")
    place = writer.names.fresh("place")
    writer.line(f'{place} = {score} -> top_k(2, axis={where}) -> dispatch(2, axis={where}, into="slot")')
    writer.values[place] = floats(Axis(2, "slot"), type_.shape[0])
    if token:
        slots = writer.bind(f"{source} by {place} over {token}", floats(Axis(2, "slot"), type_.shape[1]))
        inner, _ = stages(writer, floats(type_.shape[1]), 1, ["tanh", "layer_norm", "gelu"])
        writer.bind(f"({slots} -> {inner[0]}) by {place} over slot", type_)
