"""Statements that bind values: inputs, chains, arithmetic, ops of several values, modules."""

from __future__ import annotations

from modgraph.ops import Op
from modgraph.types import Axis, TensorType, floats
from tests.assault.programs.names import AXES
from tests.assault.programs.stages import (
    ARRAYS,
    CHAINED,
    KEEPING,
    LOSSES,
    axis_of,
    results_of,
    settings_for,
    stages,
    written,
)
from tests.assault.programs.writer import Writer, is_small, plain, width, written_axis, written_type

WIDTHS = (2, 4, 4, 6, 8)
LENGTHS = (1, 2, 3, 4, 5)
SEVERAL = [
    name
    for name, op in Op.registry.items()
    if sum(not operand.optional for operand in op.operands) > 1 and name not in LOSSES | ARRAYS | {"batch_mean"}
]
COMPARED = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!="}


def an_input(writer: Writer) -> None:
    rng = writer.rng
    kind, name = rng.random(), writer.names.fresh("in")
    if kind < 0.2:
        type_ = floats(rng.choice((1, 2, 4)), rng.choice((4, 5, 6)), rng.choice((4, 6)))
    elif kind < 0.3:
        type_ = floats(*([] if writer.chance(0.5) else [rng.choice(WIDTHS)]))
    else:
        lead = [_outer_axis(writer) for _ in range(rng.choice((1, 1, 1, 2)))]
        type_ = floats(
            *(axis for at, axis in enumerate(lead) if axis.name == "" or axis not in lead[:at]), *_last(writer)
        )
    if kind > 0.85 and len(type_.shape) > 1:
        token = TensorType("token", type_.shape[:-1], size=rng.randint(2, 12))
        writer.line(f"input {name}: {written_type(token)}")
        size = rng.choice(WIDTHS)
        writer.bind(f"{name} -> embedding({size})", floats(*type_.shape[:-1], size))
        return
    writer.line(f"input {name}: {_declared(writer, type_)}")
    writer.values[name] = type_


def _outer_axis(writer: Writer) -> Axis:
    rng = writer.rng
    if writer.chance(0.45):
        return Axis(None, rng.choice(AXES[: 3 if writer.chance(0.7) else None]))
    if writer.chance(0.15):
        name = rng.choice(("place", "of", "kind"))
        return Axis(writer.named.setdefault(name, rng.choice(LENGTHS)), name)
    return Axis(rng.choice(LENGTHS))


def _last(writer: Writer) -> list[Axis]:
    return [Axis(writer.rng.choice(WIDTHS))]


def _declared(writer: Writer, type_: TensorType) -> str:
    axes = [f"{axis.name}={axis.size}" if axis.name and axis.size else written_axis(axis) for axis in type_.shape]
    return f"float[{', '.join(axes)}]" if axes else "float"


def a_chain(writer: Writer) -> None:
    if found := writer.value():
        source, type_ = found
        texts, type_ = stages(writer, type_, writer.rng.randint(1, 3), CHAINED)
        writer.bind(" -> ".join([source, *texts]), type_)


def a_residual(writer: Writer) -> None:
    if found := writer.value():
        source, type_ = found
        texts, _ = stages(writer, type_, writer.rng.randint(1, 2), KEEPING)
        writer.bind(f"{source} + ({' -> '.join([source, *texts])})", type_)


def arithmetic(writer: Writer) -> None:
    """Between values that may stand over each other, or with numbers."""
    rng = writer.rng
    found = writer.value()
    if found is None:
        return
    source, type_ = found
    others = [each for each, other in (writer.values | writer.arrays).items() if results_of("add", {}, type_, other)]
    other = rng.choice(others or [source])
    symbol = rng.choice(list(COMPARED.values()))
    expression = rng.choice(
        [
            f"0.5 * {source} + 1",
            f"-{source}",
            f"1 - {source}",
            f"{source} ** 2",
            f"{source} / 3",
            f"2 ** tanh({source})",
        ]
        + [f"{source} {sign} {other}" for sign in "+-**"]
        + [
            f"{source} / (abs({other}) + 0.5)",
            f"(abs({source}) + 0.5) ** tanh({other})",
            f"0.3 / ({source} ** 2 + 0.5)",
        ]
        + [f"({source} {symbol} {other}) * {source}", f"{source} {symbol} 0.2", f"abs({source}) + {other} * 0.1"]
    )
    results = results_of("add", {}, type_, (writer.values | writer.arrays)[other])
    writer.bind(expression, results[0] if other in expression and results else type_)


def several(writer: Writer) -> None:
    """An op of several values: any that there is, of values that fit it."""
    name = writer.rng.choice(SEVERAL)
    op = Op.registry[name]
    for _ in range(12):
        sampled = [_operand(writer) for operand in op.operands if not operand.optional or writer.chance(0.5)]
        if name in ("draw", "normal_noise"):
            sampled = sampled[:1]
        if name == "expand":
            sampled = sampled[:2]
        if None in sampled:
            return
        sources = [each for each in sampled if each is not None]
        settings = settings_for(writer, name, sources[0][1])
        if name == "expand":
            settings = {"axis": axis_of(writer, sources[1][1])}
        results = results_of(name, settings, *(type_ for _, type_ in sources))
        if len(results) == 1 and is_small(results[0]):
            operands = [source for source, _ in sources]
            if name in ("masked_softmax", "within_capacity"):
                operands[1] = f"{operands[1]} -> top_k(1)"
            if name in ("where",) and writer.chance(0.5):
                operands[0] = f"{operands[0]} > 0.1"
            if name == "straight_through":
                operands[1] = f"{operands[1]} -> {writer.rng.choice(['top_k(1)', 'above'])}"
            given = f"({', '.join(operands)})" if len(operands) > 1 else operands[0]
            if name == "divide":
                given = f"({operands[0]}, abs({operands[1]}) + 0.4)"
            if name == "power":
                given = f"(abs({operands[0]}) + 0.4, tanh({operands[1]}))"
            writer.bind(f"{given} -> {written(name, settings)}", results[0])
            return


def _operand(writer: Writer) -> tuple[str, TensorType] | None:
    """A value, or sometimes an array."""
    if writer.arrays and writer.chance(0.25):
        return writer.rng.choice(list(writer.arrays.items()))
    return writer.value()


def side_by_side(writer: Writer) -> None:
    """Values of one type joined, or one cut, or one stood beside others."""
    found = writer.value(plain)
    if found is None:
        return
    source, type_ = found
    candidates = [name for name, other in writer.values.items() if other == type_]
    kind = writer.rng.randrange(4)
    if kind == 0:
        others = [writer.rng.choice(candidates) for _ in range(writer.rng.randint(1, 2))]
        size = width(type_) * (1 + len(others))
        writer.bind(f"({', '.join([source, *others])}) -> concat", floats(*type_.shape[:-1], size))
    elif kind == 1 and width(type_) % 2 == 0:
        first, second = writer.names.fresh("left"), writer.names.fresh("right")
        writer.line(f"{first}, {second} = {source} -> split(2)")
        half = floats(*type_.shape[:-1], width(type_) // 2)
        writer.values |= {first: half, second: half}
    elif kind == 2:
        writer.bind(
            f'({source}, {writer.rng.choice(candidates)}) -> stack(axis="pair")', floats(Axis(2, "pair"), *type_.shape)
        )
    else:
        writer.bind(f"({source}, {writer.rng.choice(candidates)}) -> training_or_inference", type_)


def a_module(writer: Writer) -> None:
    """A named instance, used once or more, sometimes frozen."""
    if found := writer.value():
        source, type_ = found
        texts, result = stages(writer, type_, writer.rng.randint(1, 3), CHAINED)
        name = writer.names.fresh("e")
        keyword = writer.rng.choice(("module", "tokenizer"))
        declaration = f"{keyword} {name} = {' -> '.join(texts)}"
        writer.line(f"frozen {{ {declaration} }}" if writer.chance(0.15) else declaration)
        writer.bind(f"{source} -> {name}", result)
        candidates = [each for each, other in writer.values.items() if other == type_]
        if writer.chance(0.4) and candidates:
            writer.bind(f"{writer.rng.choice(candidates)} -> {name} -> relu", result)
