"""The report of `compile`: counts, the results of one batch, and the lowering of each route."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile
from math import prod

import torch
from modgraph_runtime.files import refuse_beyond_memory
from torch import Tensor

from modgraph.backends.torch import Model, make_generator
from modgraph.elaboration.sparsity import find_choice_end, find_support
from modgraph.inspect.cost import compute_cost
from modgraph.inspect.cost_text import note_upper_bound
from modgraph.ir import Graph, OpNode, RouteNode, longest
from modgraph.passes import (
    INFERENCE,
    apply_passes,
    choices,
    edge_lowerings,
    explain_pools,
    images,
    list_attention,
    list_routes_by_path,
    list_scans,
)
from modgraph.types import Axis, TensorType

BATCH = 2
NUMBER = 4  # bytes of a number, at least
SYMBOLIC_LENGTH = 8
MANY = 4  # so many routes with equal facts share a line


def compile_report(graph: Graph, model: Model) -> str:
    """Run one random batch through a model, and describe it in a few lines."""
    cost = compute_cost(graph)
    numbers = [_count_numbers(type_) for part in graph.parts() for node in part.graph for type_ in node.types]
    inputs = sum(map(_count_numbers, graph.input_types.values()))
    refuse_beyond_memory(NUMBER * BATCH * max(inputs, *numbers))
    with torch.no_grad():
        computed = model.compute(random_batch(model), moves=False)
    lines = [
        f"model {graph.name}: {len(graph)} nodes, {cost.parameters:,} parameters "
        f"({cost.trainable:,} trainable), {cost.macs:,} MACs per example ({cost.active_macs:,} active)",
        *note_upper_bound(graph),
    ]
    for name, output in computed.outputs.items():
        lines.append(f"output {name}: {list(output.shape)} from a batch of {BATCH}")
    for name, loss in computed.losses.items():
        lines.append(f"{name}: {loss.item():.6g}")
    lines += [f"op {image.last.name}: {image.reason}" for image in images(model.graph)]
    attention = {name: f"{found.lowering}; {found.reason}" for name, found in list_attention(model.graph).items()}
    lines += describe_lowerings(attention, "attention")
    lines += _scans(model.computed)
    lines += describe_lowerings(edge_lowerings(model.computed), "edge route")
    bundle = apply_passes(graph, INFERENCE)
    lines += describe_lowerings(edge_lowerings(bundle), "edge route", when=" when exported")
    return "\n".join([*lines, *_pools(model.computed, bundle), *_routes(model.computed)])


def _pools(graph: Graph, bundle: Graph) -> list[str]:
    """Find which pools are stored, and those that only a bundle stores."""
    here, there = graph.pools(), bundle.pools()
    exported = explain_pools(bundle, exportable=True)
    others = {name: exported[name] for name in there if name in here and there[name].stored > here[name].stored}
    return [
        *describe_lowerings(explain_pools(graph), "pool"),
        *describe_lowerings(others, "pool", when=" when exported"),
    ]


def _scans(graph: Graph) -> list[str]:
    """Find the lowering of each scan, and that in a bundle if it differs."""
    here = dict(list_scans(graph))
    exported = dict(list_scans(apply_passes(graph, INFERENCE), exportable=True)) if here else {}
    others = {name: reason for name, reason in exported.items() if here.get(name, reason) != reason}
    return [*describe_lowerings(here, "scan"), *describe_lowerings(others, "scan", when=" when exported")]


def _count_numbers(type_: TensorType) -> int:
    return prod(SYMBOLIC_LENGTH if axis.size is None else axis.size for axis in type_.shape)


def describe_lowerings(
    facts: Mapping[str, str], what: str = "route", about: Mapping[str, str] | None = None, when: str = ""
) -> list[str]:
    """Write a line for each route or attention with its fact and `about` it; many with one fact share a line."""
    names: dict[str, list[str]] = {}
    for name, fact in facts.items():
        names.setdefault(fact, []).append(name)
    lines = []
    for fact, group in names.items():
        if len(group) < MANY:
            lines += [f"{what} {name}{(about or {}).get(name, '')}{when}: {fact}" for name in group]
        else:
            many = what if what == "attention" else f"{what}s"
            lines.append(f"{_common_prefix(group)} ({len(group)} {many}){when}: {fact}")
    return lines


def _common_prefix(names: Sequence[str]) -> str:
    """Find the common prefix of some names, in whole parts."""
    parts = [name.split(".") for name in names]
    begun = [of_all[0] for of_all in takewhile(lambda at: len(set(at)) == 1, zip(*parts, strict=False))]
    return ".".join([*begun, "…"])


def _routes(graph: Graph) -> list[str]:
    """Find the lowering of each route, and that in a bundle if it differs."""
    here, exported = choices(graph), choices(apply_passes(graph, INFERENCE))
    facts, others, about = dict[str, str](), dict[str, str](), dict[str, str]()
    for name, (part, route) in list_routes_by_path(graph).items():
        uses, lowering = part.graph.uses(route.name), here[name]
        about[name] = f" ({uses['pool']} by {uses['router']})"
        more = _explain_dense(part.graph, route) + _explain_ungrouped(part.graph, route)
        facts[name] = f"{lowering.name}; {lowering.reason}{more}"
        other = exported.get(name, lowering)
        if not lowering.exportable and other.name != lowering.name:
            others[name] = f"{other.name}; {other.reason}"
    return [*describe_lowerings(facts, about=about), *describe_lowerings(others, when=" when exported")]


def _explain_ungrouped(graph: Graph, route: RouteNode) -> str:
    """Explain why the modules of a `grouped` route run one after another on accelerators too, if they do."""
    pool = graph.pool_of(route)
    if route.lowering != "grouped":
        return ""
    ops = [node.op for node in pool.region(0).graph.nodes_of(OpNode)]
    own = next((op.name for op in ops if op.all_weights() and not op.gathers), None)
    reason = f"{own} has no grouped form" if own else "they are of several kinds" if not pool.is_homogeneous else ""
    reason = "they have pools of their own" if pool.has_pools else reason
    return f"; one after another on accelerators too: {reason}" if reason else ""


def _explain_dense(graph: Graph, route: RouteNode) -> str:
    """Name the op that hides a choice behind the weights of a route, so that every module runs."""
    weights = graph.inputs(route.name).get("weights")
    if weights is None or graph.declaration_of(route).chooses_along is not None:
        return ""
    if find_support(weights, graph) is not None:
        way = "its slots choose as many modules as there are, or its axes are not tokens, slots, modules"
        return f"; a choice lies behind the weights, but {way}"
    op = find_choice_end(weights, graph)
    return "" if op is None else f'; a choice lies behind the weights, but "{op.op.name}" ({op.span}) keeps no zeros'


def random_batch(model: Model, size: int = BATCH) -> dict[str, Tensor]:
    """Make a random batch of the model's input and target types; a function of names and `size`."""
    types = {**model.graph.input_types, **model.graph.target_types}
    bounds = {axis: min(SYMBOLIC_LENGTH, most) for axis, most in longest(model.graph).items()}
    lengths = defaultdict(lambda: SYMBOLIC_LENGTH, bounds)
    named = {name: type_ for name, type_ in types.items() if type_.dtype != "length"}
    return {name: random_values(type_, size, lengths, "batch", name) for name, type_ in named.items()}


def move_ends(batch: dict[str, Tensor], graph: Graph) -> dict[str, Tensor]:
    """Move the ends of edges to nodes that their examples have; an example without nodes loses its edges."""
    found, types, lengths = dict(batch), graph.input_types, graph.length_inputs
    for name, type_ in types.items():
        for end, axis in enumerate(type_.ends):
            if axis.is_padded:
                places = ((x, _find_axis(types, each, axis)) for each, x in batch.items())
                full = next((x.shape[1 + at] for x, at in places if at >= 0), 1)
                length = lengths.get(axis.lengths)
                count = torch.full(found[name].shape[:1], full) if length is None else batch[length]
                found[name] = found[name].clone()
                found[name][..., end] %= count.clamp(min=1).unsqueeze(-1)
                own = lengths.get(type_.shape[0].lengths)
                found |= {} if own is None else {own: found[own].where(count > 0, 0)}
    return found


def _find_axis(types: Mapping[str, TensorType], name: str, axis: Axis) -> int:
    """Find the place of an axis of any length in an input, from 0; −1 if it has none of those lengths."""
    found = types[name].find_length(axis.lengths) if name in types else None
    return -1 if found is None else found


def random_values(type_: TensorType, size: int, lengths: Mapping[str, int], *seed: str | int) -> Tensor:
    """Make random values of a type; a function of seed and shape. Lengths range from zero to full."""
    generator = make_generator(*seed)
    shape = [size, *(lengths[axis.lengths] if axis.size is None else axis.size for axis in type_.shape)]
    if type_.dtype == "length":
        return torch.randint(lengths[type_.of] + 1, shape, generator=generator)
    if type_.ends:
        sizes = [lengths[axis.lengths] if axis.size is None else axis.size for axis in type_.ends]
        return torch.stack([torch.randint(size, shape[:-1], generator=generator) for size in sizes], -1)
    if type_.size is not None:
        return torch.randint(type_.size, shape, generator=generator)
    return torch.randn(shape, generator=generator)
