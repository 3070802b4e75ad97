"""Statements with bodies: repeats, rounds that read earlier rounds, families, branches, scans, blocks."""

from __future__ import annotations

from modgraph.types import floats
from tests.assault.programs.arrays import used
from tests.assault.programs.routes import a_route, by_weights
from tests.assault.programs.stages import KEEPING, stages
from tests.assault.programs.values import a_chain, a_module, arithmetic, several, side_by_side
from tests.assault.programs.writer import Writer, plain, width, written_axis

INSIDE = (a_chain, arithmetic, arithmetic, several, side_by_side, a_module, a_route, by_weights, used)
CONDITIONS = ("true", "2 in 0..4", "not (1 > 2)", "1.5 <= 2 and true", "len([1, 2]) == 2", '"a" == "b"', "false")


def a_repeat(writer: Writer) -> None:
    """Rounds, each with weights of its own, that go on from what the last one left."""
    found = writer.value()
    if found is None:
        return
    source, type_ = found
    x = writer.bind(source, type_)
    rng = writer.rng
    keys = rng.choice([f"0..{writer.number(rng.randint(0, 3))}", '["a", "b"]', "[2, 0, 1]", "1..3"])
    index = rng.choice("ij") if writer.depth == 0 else "k"
    loop = f"repeat {writer.names.fresh('blocks')}[{index}]" if writer.chance(0.7) else f"for {index}"
    with writer.nested(f"{loop} in {keys} {{"):
        for _ in range(rng.randint(0, 2)):
            if writer.arrays and writer.chance(0.3):
                used(writer)
            else:
                rng.choice(INSIDE if writer.depth < 3 else INSIDE[:3])(writer)
        if writer.depth < 3 and writer.chance(0.25) and not writer.in_scan:
            a_repeat(writer)
        candidates = [name for name, other in writer.values.items() if other == type_]
        texts, _ = stages(writer, type_, rng.randint(1, 2), KEEPING)
        writer.line(f"{x} = {x} + 0.5 * ({' -> '.join([rng.choice(candidates), *texts])})")
        if writer.chance(0.2) and not keys.startswith('["'):
            writer.line(f"if {index} in [0, 2] {{ {x} = {x} -> gelu }} else {{ {x} = 0.5 * {x} }}")
    writer.values[x] = type_


def rounds(writer: Writer) -> None:
    """Rounds that read what earlier rounds bound, by their keys, which may be strings."""
    found = writer.value(plain)
    if found is None:
        return
    source, type_ = found
    family, name = writer.names.fresh("s"), writer.names.fresh("stack")
    loop = writer.rng.choice((f"repeat {name}[i]", "for i"))
    texts, _ = stages(writer, type_, 1, KEEPING)
    words = writer.chance(0.4)
    keys = '["low", "high", "type"]' if words else f"0..{writer.rng.randint(1, 4)}"
    x = writer.bind(source, type_)
    first = '"low"' if words else "0"
    writer.line(f"for i in [{first}] {{ {family}[i] = {x} }}")
    with writer.nested(f"{loop} in {keys} {{"):
        if not words and writer.chance(0.6):
            writer.line(f"if i > 0 {{ {x} = {x} + 0.5 * {family}[i - 1] }}")
        writer.line(f"{x} = {' -> '.join([x, *texts])}")
        writer.line(f"{family}[i] = {x} + 1")
    writer.values[x] = type_
    key = '"high"' if words else "0"
    expression = writer.rng.choice((f"{family} -> mean", f"{family} -> sum", f"{family}[{key}]"))
    writer.bind(expression, type_)
    if writer.chance(0.3):
        writer.bind(f'{family} -> stack -> mean(axis="{family}")', type_)
    if writer.chance(0.3):
        writer.bind(f"{family} -> concat", floats(*type_.shape[:-1], width(type_) * 3))


def a_branch(writer: Writer) -> None:
    found = writer.value()
    if found is None:
        return
    source, type_ = found
    x = writer.bind(source, type_)
    one, _ = stages(writer, type_, 1, KEEPING)
    other, _ = stages(writer, type_, 1, KEEPING)
    condition = writer.rng.choice(CONDITIONS)
    writer.line(f"if {condition} {{ {x} = {x} -> {one[0]} }} else {{ {x} = {x} * 2 -> {other[0]} }}")


def a_block(writer: Writer) -> None:
    """A block for a value's type, its outer axis sometimes named, used once or twice, perhaps given an op."""
    found = writer.value()
    if found is None:
        return
    source, type_ = found
    name = writer.names.fresh("b")
    axes = [written_axis(axis) for axis in type_.shape]
    if axes and (type_.shape[0].name or writer.chance(0.5)):
        axes[0] = "any"
    first, result = stages(writer, type_, writer.rng.randint(1, 2), KEEPING)
    second, _ = stages(writer, result, 1, KEEPING)
    inner = f"float[{', '.join(axes)}]" if axes else "float"
    lines = [f"input v: {inner}", f"y = {' -> '.join(['v', *first])}"]
    kind = writer.rng.randrange(4)
    if kind == 0:
        lines += [f"z = y -> inner -> {second[0]}", "output z"]
        writer.define(f"block {name}(inner=tanh, k=2) {{", lines)
        given = writer.rng.choice(
            ["relu", "layer_norm -> tanh" if type_.shape else "tanh", "scale" if plain(type_) else "gelu"]
        )
        writer.bind(f"{source} -> {name}(inner={given})", type_)
        return
    if kind == 1:
        lines += ["repeat layer[i] in 0..k {", f"  y = y + (y -> {second[0]})", "}", "output y"]
    elif kind == 2:
        lines += [f"u = v -> {second[0]}", "output y", "output u"]
        writer.define(f"block {name}(k=2) {{", lines)
        a, b = writer.names.fresh("first"), writer.names.fresh("second")
        writer.line(f"{a}, {b} = {source} -> {name}")
        writer.values |= {a: result, b: result}
        return
    else:
        lines += ["output y"]
    writer.define(f"block {name}(k=2) {{", lines)
    writer.bind(f"{source} -> {name}", result)
    if writer.chance(0.4):
        writer.bind(f"{source} -> {name}(k=3) -> {name}", result)
