"""Random models of sequences: layers that read the same token, the past, a window or everything, in many ways."""

from __future__ import annotations

from hypothesis import strategies as st

SIZE = 6  # tokens, where their axis has a number
NUMBERS = st.integers(-3, 3)
DISTANCE = (
    'k{n} = {x} -> rename(time="key{n}") s{n} = ({x}, k{n}) -> contract '
    "d{n} = (({x} -> positions(axis=-2), s{n}) -> expand(-1, at=-1)) - (k{n} -> positions(axis=-2)) "
    "f{n} = k{n} -> positions(axis=-2) "
)
OUTER = (
    'k{n} = {x} -> rename(time="key{n}") s{n} = ({x}, k{n}) -> contract '
    "d{n} = ({x} -> positions(axis=-2)) - (k{n} -> positions(axis=-2)) "
)
POOL = "pool p{n}[3] = linear(8) g{n} = {x} -> linear(p{n}) -> softmax "
LAYERS = (
    "{y} = {x} -> attention(2)",
    "{y} = {x} + ({x} -> layer_norm -> attention(2, causal=true, rotary=100.0))",
    "{y} = ({x}, {x} -> shift(1)) -> attention(2, causal=true)",
    "{y} = {x} -> shift({a}) -> tanh",
    '{y} = {x} -> conv1d(8, kernel={c}, padding="causal", dilation=2)',
    '{y} = {x} -> conv1d(8, kernel={c}, padding="same")',
    "{y} = {x} -> lstm(8)",
    "{y} = {x} -> flip",
    "{y} = {x} -> flip -> gru(8) -> flip",
    "{y} = {x} -> gru(8, reverse=true)",
    "{y} = 0.2 * ({x} -> cumulative_sum(axis=-2))",
    "m{n} = {x} -> mean {y} = {x} + m{n}",
    "m{n} = {x} -> select(0) {y} = {x} * m{n}",
    "m{n} = {x} -> last {y} = {x} + m{n}",
    "{y} = {x} * ({x} -> softmax(axis=-2))",
    "{y} = {x} * ({x} -> top_k(2, axis=-2))",
    "{y} = {x} - 0.1 * ({x} -> sort_order(axis=-2))",
    "{y} = {x} -> layer_norm -> linear(8) -> gelu",
    "scan {x} as v{n} with h{n}: float[8] {{ h{n} = (h{n} + v{n}) -> linear(8) -> tanh yield h{n} }} as {y}",
    "m{n} = {x} -> mean scan {x} as v{n} with h{n}: float[8] {{ h{n} = h{n} + v{n} * m{n} yield h{n} }} as {y}",
    "scan 0..3 as r{n} with h{n}: float[{axis}, 8] = {x}, t{n}: float[{axis}] {{ h{n} = h{n} -> linear(8) -> tanh "
    "t{n} = t{n} + (h{n} -> max(axis=-1)) yield h{n} }} until t{n} > 0.8 as {y}",
    "scan 0..4 as r{n} with h{n}: float[{axis}, 8] = {x}, t{n}: float {{ h{n} = h{n} -> linear(8) -> tanh "
    "t{n} = t{n} + (h{n} -> mean -> max(axis=-1)) yield h{n} }} until t{n} > 0.5 as {y}",
    "scan 0..4 as r{n} with h{n}: float[{axis}, 8] = {x}, t{n}: float[{axis}] {{ h{n} = h{n} -> lstm(8) "
    "t{n} = t{n} + (h{n} -> max(axis=-1)) yield h{n} }} until t{n} > 0.5 as {y}",
    "scan {x} as v{n} with h{n}: float[8] {{ h{n} = h{n} + v{n} yield h{n} }} until (h{n} -> max(axis=-1)) > 2 as g{n} "
    "{y} = {x} + g{n}",
    "m{n} = {x} -> batch_mean {y} = ({x} - m{n}, {x}) -> training_or_inference",
    POOL + "{y} = {x} -> p{n} by (g{n} * (g{n} -> top_k))",
    POOL + "{y} = {x} -> p{n} by (g{n} * (g{n} -> top_k(2, axis=-2)))",
    POOL + "{y} = {x} -> p{n} -> mean(axis=-2)",
    POOL + "c{n} = (g{n}, g{n} -> top_k) -> within_capacity(0.7) {y} = {x} -> p{n} by (g{n} * c{n})",
    POOL + "c{n} = g{n} -> top_k c{n} = (c{n}, c{n}) -> within_capacity(0.7) {y} = {x} -> p{n} by (g{n} * c{n})",
    "pool p{n}[3] = linear(8) router r{n} = linear(k=1, noise=0.1, capacity=0.7) {y} = {x} + ({x} -> p{n} by r{n})",
    "pool p{n}[3] = linear(8) router r{n} = agreement v{n} = {x} -> p{n} by r{n} {y} = {x} + (v{n} -> mean)",
    "pool p{n}[2] = gru(8) {y} = {x} -> p{n} -> mean(axis=-3)",
    DISTANCE + "{y} = ((s{n}, d{n} >= {a}) -> masked_softmax, k{n}) -> {sum}",
    DISTANCE + "{y} = ((s{n}, (d{n} >= 0) * (d{n} < {c})) -> masked_softmax, k{n}) -> {sum}",
    DISTANCE + "{y} = ((s{n}, maximum(d{n} < {c}, f{n} < 1) * (d{n} >= 0)) -> masked_softmax, k{n}) -> {sum}",
    DISTANCE + "{y} = (s{n} * (d{n} == {a}), k{n}) -> {sum}",
    OUTER + "w{n} = (s{n}, d{n} >= {a}) -> masked_softmax output w{n} {y} = (w{n}, k{n}) -> {sum}",
    OUTER + "{y} = (where(d{n} != {a}, 0, s{n}), k{n}) -> {sum}",
    DISTANCE + "{y} = (where(2 * d{n} > {a}, s{n}, 0) -> tanh, k{n}) -> {sum}",
    DISTANCE + "{y} = (s{n} -> softmax, k{n}) -> {sum}",
    DISTANCE + "{y} = ({x}, k{n}, minimum(d{n} >= 0, d{n} < {c})) -> attention(2)",
    DISTANCE + "{y} = {x} + ((s{n} * (1 - (d{n} < 0))) -> mean(axis=-1) -> new_axis(8, at=-1))",
)
FIXED = (
    "{y} = {x} -> unmerge([2, 3], axis=-2) -> cumulative_sum(axis=-2) -> merge(-3, -2)",
    "{y} = {x} -> unmerge([3, 2], axis=-2) -> mean(axis=-2) -> new_axis(2, at=-2) -> merge(-3, -2)",
    "{y} = {x} -> unmerge([3, 2], axis=-2) -> transpose(-2, -3) -> merge(-3, -2)",
    "m{n}, {y} = {x} -> class_token -> attention(2, causal=true) -> split([1, 6], axis=-2)",
    "m{n}, o{n} = {x} -> split([2, 4], axis=-2) {y} = (o{n}, m{n}) -> concat(axis=-2)",
    "{y} = {x} -> transpose -> cumulative_sum -> transpose",
    "{y} = {x} -> transpose -> linear(6) -> transpose",
    "m{n} = {x} -> select({c}) {y} = {x} + m{n}",
    "pool p{n}[2] = batch_norm -> flatten {y} = {x} -> unmerge([2, 2, 2]) -> p{n} -> mean(axis=-2)",
    "pool p{n}[2] = group_norm(1) -> flatten {y} = {x} -> unmerge([2, 2, 2]) -> p{n} -> mean(axis=-2)",
)


@st.composite
def models(draw: st.DrawFn) -> str:
    """The text of a model of one to three layers, of any length or of six tokens."""
    fixed = draw(st.booleans())
    kinds = draw(st.lists(st.sampled_from(LAYERS + FIXED * fixed), min_size=1, max_size=3))
    lines, x = [f"input x: float[{SIZE if fixed else 'time'}, 8]"], "x"
    if fixed:
        lines, x = [*lines, 'x0 = x -> rename(["-2", "time"])'], "x0"
    for n, kind in enumerate(kinds, start=1):
        names = {"x": x, "y": f"y{n}", "n": n, "sum": f'contract(axis="key{n}")'}
        names |= {"axis": f"time={SIZE}" if fixed else "time"}
        names |= {"a": draw(NUMBERS), "c": draw(st.integers(1, 4))}
        plain = fixed and kind in FIXED
        lines += [f'z{n} = {x} -> rename(time="")'] * plain
        lines.append(kind.format(**(names | {"x": f"z{n}", "y": f"w{n}"} if plain else names)))
        lines += [f'y{n} = w{n} -> rename(["-2", "time"])'] * plain
        x = f"y{n}"
    return f"model m() {{ {' '.join(lines)} output y = {x} }}"
