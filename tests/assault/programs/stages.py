"""Ops in chains and between values: any op of the registry, with settings that fit what flows in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modgraph.declare import format_value
from modgraph.ops import Op
from modgraph.types import Misfit, TensorType
from tests.assault.programs.writer import Writer, is_small
from tests.assault.settings import sample_settings

LOSSES = {name for name, op in Op.registry.items() if op.objective or name in ("load", "importance", "entropy")}
ARRAYS = {"parameter", "constant", "state", "next_state", "keep_recent"}
BATCH = {"batch_mean", "batch_variance"}
ARITHMETIC = "add subtract multiply divide power less less_equal greater greater_equal equal not_equal".split()
CHAINED = [
    name
    for name, op in Op.registry.items()
    if op.operands[0].dtype == "float"
    and sum(not operand.optional for operand in op.operands) == 1
    and name not in LOSSES | ARRAYS | BATCH | {"identity", "concat", "stack", "normal_noise", "dropout"}
]
VECTORS = "linear linear linear scale layer_norm rms_norm relu gelu tanh sigmoid silu modulated_linear modulated_mlp"
KEEPING = (
    "relu gelu tanh tanh layer_norm rms_norm scale softmax elu sigmoid leaky_relu softplus silu unit sin cos erf abs "
    "clamp log_softmax cumulative_sum identity dropout normal_noise stop_gradient"
).split()
CAREFUL = {  # what keeps numbers small and far from where a derivative has no bound
    "exp": "tanh -> exp",
    "log": "abs -> maximum(0.3) -> log",
    "sqrt": "abs -> maximum(0.2) -> sqrt",
    "cumulative_sum": "tanh -> cumulative_sum",
}


def stages(writer: Writer, type_: TensorType, count: int, ops: Sequence[str]) -> tuple[list[str], TensorType]:
    """Ops in a chain, each fitting what the one before yields."""
    found: list[str] = []
    for _ in range(count * 5):
        if len(found) == count:
            break
        name = writer.rng.choice(ops)
        settings = settings_for(writer, name, type_)
        results = results_of(name, settings, type_)
        if len(results) == 1 and is_small(results[0]):
            found.append(_careful(writer, name, written(name, settings)))
            (type_,) = results
    return found or ["identity"], type_


def results_of(name: str, settings: dict[str, Any], *types: TensorType) -> tuple[TensorType, ...]:
    """What an op or a block makes of values of some types; nothing where they do not fit."""
    if name == "attention":
        return types[:1] if len(types[0].shape) > 1 else ()
    try:
        signature = Op.registry[name](**settings).bind(*types)
        signature.weight_axes()
    except (Misfit, TypeError, ValueError):
        return ()
    return signature.results


def written(name: str, settings: dict[str, Any]) -> str:
    """An op with its settings, as a spec has it."""
    if name == "rename":
        given = ", ".join(f"{old}={format_value(new)}" for old, new in (each.split("=") for each in settings["names"]))
    elif name in ("transpose", "merge", "batch_mean", "batch_variance"):
        several = [format_value(each) for each in settings.get("axes", ())]
        into = [f"{key}={format_value(value)}" for key, value in settings.items() if key != "axes"]
        given = ", ".join([*several, *into])
    else:
        given = ", ".join(f"{key}={format_value(value)}" for key, value in settings.items())
    return f"{name}({given})" if given else name


def _careful(writer: Writer, name: str, text: str) -> str:
    return text.replace(name, CAREFUL[name], 1) if name in CAREFUL and writer.chance(0.95) else text


def axis_of(writer: Writer, type_: TensorType) -> Any:
    """One of a value's axes, by its name or counted from the last."""
    if not type_.shape:
        return -1
    at = writer.rng.randrange(-len(type_.shape), 0)
    name = type_.shape[at].name
    return name if name and writer.chance(0.6) else at


def settings_for(writer: Writer, name: str, type_: TensorType) -> dict[str, Any]:
    """Settings of an op for a value: those it must have and some others, the axes being the value's."""
    rng, rank = writer.rng, len(type_.shape)
    if name == "attention":
        return _attention(writer, type_.shape[-1].size or 6 if rank else 1)
    settings = sample_settings(Op.registry[name], rng)
    axis = Op.registry[name].settings().get("axis")
    if axis is not None and int in axis.kinds and ("axis" in settings or writer.chance(0.5)):
        settings["axis"] = axis_of(writer, type_)
    length = type_.shape[-1].size or 6 if rank else 1
    own = {
        "transpose": lambda: {"axes": tuple(rng.sample(range(-rank, 0), rng.randint(2, rank)))} if rank > 1 else {},
        "merge": lambda: {"axes": (-2, -1) if rank < 3 or writer.chance(0.5) else (-3, -2)},
        "unmerge": lambda: {"sizes": (length // 2, 2) if writer.chance(0.5) else (2, length // 2)},
        "split": lambda: {"parts": 2},
        "rename": lambda: {"names": (f"{_renamed(type_)}={rng.choice(('sender', 'of_it', 'row'))}",)},
        "new_axis": lambda: {"length": rng.randint(1, 3), "at": -rng.randint(1, rank + 1)},
        "select": lambda: settings | {"index": rng.choice((0, 0, 1, 2))},
        "kth_largest": lambda: settings | {"k": rng.randint(1, 2)},
        "top_k": lambda: settings | {"k": rng.randint(1, 2)},
        "above": lambda: {"threshold": rng.choice((-0.2, 0.1, 0.3))},
        "flatten": lambda: {"axes": rng.randint(1, rank)} if rank and writer.chance(0.5) else {},
        "stack": lambda: {},
        "position": lambda: {} if rank > 1 and type_.shape[-2].size else {"length": 16},
        "clamp": lambda: {"min": -0.7, "max": 0.9},
        "within_capacity": lambda: {"share": 1.25, "k": 1},
        "power": lambda: {},
        "lstm": lambda: {"hidden": rng.choice((2, 4)), "reverse": writer.chance(0.4)},
        "gru": lambda: {"hidden": rng.choice((2, 4)), "reverse": writer.chance(0.4)},
    }
    return own[name]() if name in own else settings


def _attention(writer: Writer, length: int) -> dict[str, Any]:
    rng = writer.rng
    heads = rng.choice([each for each in (1, 2, 4) if length % each == 0])
    settings: dict[str, Any] = {"heads": heads}
    options: dict[str, Any] = {"causal": True, "bias": False, "out_bias": False, "qk_norm": True, "rotary": 10000.0}
    options |= {"relative": 8, "kv_heads": 1, "head_width": 2}
    return settings | {key: options[key] for key in options if rng.random() < 0.2}


def _renamed(type_: TensorType) -> str:
    return next((axis.name for axis in type_.shape if axis.name), "time")
