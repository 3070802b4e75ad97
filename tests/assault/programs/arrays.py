"""Statements that declare arrays: learned, given and remembered ones, and values derived from them."""

from __future__ import annotations

from modgraph.types import Axis, TensorType, floats
from tests.assault.programs.stages import results_of, stages
from tests.assault.programs.writer import Writer, is_small, plain, written_type

DERIVED = (
    "unit softmax tanh relu abs exp cumulative_sum layer_norm silu sigmoid transpose log_softmax sort_order".split()
)


def an_array(writer: Writer) -> None:
    """An array that fits a value in scope: all of its axes of fixed length, the last, or none."""
    found = writer.value(plain)
    if found is None:
        return
    _, type_ = found
    rng = writer.rng
    axes = [axis for axis in type_.shape if axis.size is not None]
    shape = rng.choice([axes, axes[-1:], axes[-1:], [Axis(3), *axes[-1:]], [*axes[-1:], Axis(4)], []])
    if writer.pools and writer.chance(0.2):
        pool = rng.choice(list(writer.pools.values()))
        shape = [Axis(pool.size, pool.name), *shape[-1:]]
    array = floats(*shape)
    name, kind = writer.names.fresh("w"), rng.random()
    declared = written_type(array)
    if kind < 0.6:
        start = rng.choice(("normal(0.5)", "uniform(0.5)", "normal(1.0)", "ones", "zeros"))
        text = f"weight {name}: {declared} = {start}"
        writer.line(f"frozen {{ {text} }}" if writer.chance(0.1) else text)
    elif kind < 0.75:
        writer.line(f"constant {name}: {declared} = {_numbers(writer, shape if writer.chance(0.7) else [])}")
    else:
        writer.line(f"state {name}: {declared} = {rng.choice(('zeros', 'ones', 'normal(0.3)', 'constant(0.7)'))}")
        writer.states[name] = array
    writer.arrays[name] = array
    for _ in range(rng.randint(0, 3)):
        derived(writer)
    for _ in range(rng.randint(1, 3)):
        used(writer)


def _numbers(writer: Writer, shape: list[Axis]) -> str:
    """Numbers in as many lists as there are axes."""
    if not shape:
        return str(round(writer.rng.uniform(-1, 1), 2))
    return f"[{', '.join(_numbers(writer, shape[1:]) for _ in range(shape[0].size or 1))}]"


def derived(writer: Writer) -> None:
    """A value computed from arrays alone."""
    if not writer.arrays:
        return
    source, type_ = writer.rng.choice(list(writer.arrays.items()))
    texts, result = stages(writer, type_, writer.rng.randint(1, 2), DERIVED)
    chain = " -> ".join([source, *texts])
    candidates = [name for name, other in writer.arrays.items() if other == result]
    if candidates and writer.chance(0.4):
        chain = f"({chain}) {writer.rng.choice('+-*')} {writer.rng.choice(candidates)}"
    name = writer.names.fresh("derived")
    writer.line(f"{name} = {chain}")
    writer.arrays[name] = result


def used(writer: Writer) -> None:
    """A value of examples and an array, in arithmetic or summed over an axis."""
    if not writer.arrays:
        return
    array, type_ = writer.rng.choice(list(writer.arrays.items()))
    rng = writer.rng
    for _ in range(6):
        found = writer.value()
        if found is None:
            return
        source, other = found
        operator = rng.choice(["+", "*", "-", "contract", "contract"])
        sides = (other, type_) if writer.chance(0.7) else (type_, other)
        results = results_of("contract" if operator == "contract" else "add", {}, *sides)
        if len(results) != 1 or not is_small(results[0]):
            continue
        names = (source, array) if sides[0] is other else (array, source)
        written = (
            f"({names[0]}, {names[1]}) -> contract" if operator == "contract" else f"{names[0]} {operator} {names[1]}"
        )
        writer.bind(written, results[0])
        return


def a_rule(writer: Writer) -> None:
    """What a state becomes after a step of training: of itself and of what was taken over the batch."""
    if not writer.states:
        return
    name, type_ = writer.rng.choice(list(writer.states.items()))
    found = _statistic(writer, type_)
    if found is None:
        return
    del writer.states[name]
    updates = (f"0.9 * {name} + 0.1 * ({found})", f"{name} + 0.01 * sign({found})", f"({name} + ({found})) / 2")
    writer.line(f"next {name} = {writer.rng.choice(updates)}")


def _statistic(writer: Writer, type_: TensorType) -> str | None:
    """Something of a state's type that was taken over the batch."""
    op = writer.rng.choice(("batch_mean", "batch_mean", "batch_variance"))
    for source, other in writer.rng.sample(list(writer.values.items()), len(writer.values)):
        if other.dtype != "float" or other.per != "example":
            continue
        kept = len(type_.shape)
        if other.shape[len(other.shape) - kept :] == type_.shape:
            outer = [
                axis.name or str(at - len(other.shape))
                for at, axis in enumerate(other.shape[: len(other.shape) - kept])
            ]
            axes = ", ".join(f'"{axis}"' if not axis.startswith("-") else axis for axis in outer)
            return f"{source} -> {op}({axes or '[]'})"
    return None


def remembered(writer: Writer) -> None:
    """A state that keeps what was seen last, and a statistic of training beside its place in inference."""
    found = writer.value(lambda type_: all(axis.size is not None for axis in type_.shape) and len(type_.shape) < 3)
    if found is None:
        return
    source, type_ = found
    if writer.chance(0.5):
        name = writer.names.fresh("recent")
        axes = [*type_.shape, Axis(writer.rng.choice((3, 5)))]
        writer.line(f"state {name}: {written_type(floats(*axes))} = zeros")
        writer.line(f"next {name} = ({name}, {source}) -> keep_recent")
        writer.arrays[name] = floats(*axes)
        writer.bind(f"{source} + ({name} -> mean(axis=-1))", type_)
        return
    name, mean = writer.names.fresh("centre"), writer.names.fresh("mean")
    if not plain(type_):
        return
    writer.line(f"state {name}: {written_type(floats(*type_.shape[-1:]))} = normal(0.2)")
    writer.line(f"{mean} = {source} -> {writer.rng.choice(('batch_mean', 'batch_variance'))}")
    writer.line(f"next {name} = 0.9 * {name} + 0.1 * {mean}")
    writer.bind(f"{source} - (({mean}, {name}) -> training_or_inference)", type_)
