"""Scans: states, yields, and pools, routers, modules and repeats in their bodies or around them."""

from __future__ import annotations

from modgraph.types import Axis, TensorType, floats
from tests.assault.programs.arrays import used
from tests.assault.programs.loops import INSIDE, a_repeat
from tests.assault.programs.pools import a_pool
from tests.assault.programs.routers import a_router
from tests.assault.programs.values import WIDTHS
from tests.assault.programs.writer import Writer, plain, width, written_axis


def a_scan(writer: Writer) -> None:
    """A scan with states, yields, and perhaps pools, routers, modules and repeats, its own or from outside."""
    found = writer.value(lambda type_: len(type_.shape) >= 2 and plain(type_))
    if found is None or writer.in_scan:
        return
    source, type_ = found
    rng = writer.rng
    axis, *step = type_.shape
    size = rng.choice(WIDTHS)
    initial = [name for name, other in writer.values.items() if other == floats(size)]
    h, v = writer.names.fresh("h"), writer.names.fresh("v")
    carried = [f"{h}: float[{size}]" + (f" = {rng.choice(initial)}" if initial and writer.chance(0.6) else "")]
    second = writer.names.fresh("c") if writer.chance(0.4) else ""
    if second:
        carried.append(f"{second}: float[{', '.join(written_axis(each) for each in step)}]")
    outer = list(writer.values)
    results = [writer.names.fresh("states") for _ in range(rng.randint(1, 3))]
    tail = f"}} as {', '.join(results)}"
    yields: dict[str, TensorType] = {h: floats(size)}
    with writer.nested(f"scan {source} as {v} with {', '.join(carried)} {{", tail, scan=True):
        writer.values |= {v: floats(*step), h: floats(size)}
        if second:
            writer.values[second] = floats(*step)
        _step(writer, v, h, size)
        if second:
            writer.line(f"{second} = 0.5 * {second} + tanh({v})")
            yields[second] = floats(*step)
        inside = {name: type_ for name, type_ in writer.values.items() if name not in outer}
        yields |= dict(rng.sample(list(inside.items()), min(2, len(inside))))
        yields |= {f"{h} * 2": floats(size), v: floats(*step)}
        yielded = [h, *[each for each in yields if each != h][: len(results) - 1]]
        while len(yielded) < len(results):
            yielded.append(h)
        writer.line(f"yield ({', '.join(yielded)})" if len(yielded) > 1 else f"yield {yielded[0]}")
    for name, what in zip(results, yielded, strict=True):
        writer.values[name] = floats(axis, *yields[what].shape)
    if writer.chance(0.4):
        writer.bind(f"{results[0]} -> last", floats(size))


def _step(writer: Writer, v: str, h: str, size: int) -> None:
    """What one step makes of its slice and the state."""
    rng = writer.rng
    step = writer.values[v]
    for _ in range(rng.randint(0, 2)):
        rng.choice(INSIDE)(writer)
    if writer.arrays and writer.chance(0.3):
        used(writer)
    if writer.chance(0.25):
        a_repeat(writer)
    reduced = v if len(step.shape) == 1 else f"({v} -> mean)" if len(step.shape) == 2 else f"({v} -> flatten)"
    if writer.chance(0.5) and len(step.shape) == 1 and plain(step):
        joined = writer.bind(f"({v}, {h}) -> concat", floats(width(step) + size))
        pool, result = a_pool(writer, width(step) + size, keeps=False)
        router, _ = a_router(writer, pool)
        routed = writer.bind(f"{joined} -> {pool.name} by {router}", floats(*result.shape))
        writer.line(f"{h} = ({routed}, {h}) -> concat -> linear({size}) -> tanh")
    else:
        writer.line(f"{h} = ({reduced}, {h}) -> concat -> linear({size}) -> tanh")


def shared_in_scan(writer: Writer) -> None:
    """A module and a pool that a scan and what stands around it share, and a state with a row for each module."""
    found = writer.value(lambda type_: len(type_.shape) == 2 and plain(type_))
    if found is None or writer.in_scan:
        return
    source, type_ = found
    size = width(type_)
    pool, _ = a_pool(writer, size, keeps=True)
    module, h, v, result = (writer.names.fresh(stem) for stem in ("shared", "h", "v", "out"))
    writer.line(f"module {module} = linear({size}) -> tanh")
    before = writer.bind(f"{source} -> {module}", type_)
    with writer.nested(f"scan {before} as {v} with {h}: float[{pool.name}, {size}] {{", f"}} as {result}", scan=True):
        writer.line(f"u = {v} -> {module}")
        writer.line(f"{h} = 0.5 * {h} + 0.5 * (u + {h} -> {pool.name})")
        writer.line(f"yield {h} -> mean(axis={pool.name})")
    writer.values[result] = floats(type_.shape[0], Axis(size))


def a_loop(writer: Writer) -> None:
    """Rounds that end by a value of each example, or of each entry along the first axes."""
    found = writer.value(lambda type_: plain(type_) and type_.dtype == "float")
    if found is None or writer.in_scan:
        return
    source, type_ = found
    rng, names = writer.rng, writer.names
    own = rng.randint(0, len(type_.shape) - 1)
    axes = [written_axis(each) for each in type_.shape]
    h, n, t, first, second = (names.fresh(stem) for stem in ("h", "n", "t", "ended", "rounds"))
    total = f"float[{', '.join(axes[:own])}]" if own else "float"
    head = f"scan 0..{rng.randint(1, 5)} as {n} with {h}: float[{', '.join(axes)}] = {source}, {t}: {total} {{"
    with writer.nested(head, f"}} until {t} > {rng.choice((0.0, 0.7, 1.6))} as {first}, {second}", scan=True):
        writer.values[h] = type_
        for _ in range(rng.randint(0, 1)):
            rng.choice(INSIDE)(writer)
        writer.line(f"{h} = 0.5 * {h} + ({h} -> linear({width(type_)}) -> tanh)")
        reduced = f"({h} * {h}" + " -> mean(axis=-1)" * (len(axes) - own) + ")"
        writer.line(f"{t} = {t} + {reduced} + 0.1 * {n}")
        writer.line(f"yield ({h}, {t})")
    writer.values |= {first: type_, second: floats(*type_.shape[:own])}
