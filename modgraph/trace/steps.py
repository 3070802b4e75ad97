"""The use of modules at each position of an example: a place of an image, a token, or a step of a time axis.

Where the tokens are modules of a pool, this also describes which of them send (MT-RMN, figure 4). A route serves a task
if the prediction that is compared with the task's target depends on it. It belongs to one task if no other task's
outputs depend on it; the outputs of one family belong to as many tasks as it has members.

Axis letters: B examples, T steps, S tokens of one step, M modules.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.declare.indexing import Use
from modgraph.ir import Graph, InputNode, Node, OpNode, Result, RouteNode
from modgraph.ops.sequence import ClassToken
from modgraph.trace.statistics import compute_shares
from modgraph.trace.trace import RouteTrace, Trace, find_routes_behind

ACTIVE, GATE = "active", "gate"
MOST_CONNECTIONS = 256
IMAGE_RANK = 3  # channels, height, width

Shares = list[list[float]]


@dataclass(frozen=True)
class Places:
    """The places of tokens in an input image, row by row; the first `in_front` tokens have no place."""

    image: str
    rows: int
    columns: int
    in_front: int = 0

    @property
    def tokens(self) -> int:
        return self.in_front + self.rows * self.columns


def find_places_of_tokens(graph: Graph) -> dict[str, Places]:
    """Return the places of the tokens that each node yields, by its name, for nodes whose tokens have places."""
    found, axes = dict[str, Places](), dict[str, int]()  # the axis of tokens, from the last
    for node in graph:
        places, axis = _find_grid(graph, node), -2
        if places is None:
            places, axis = _inherit_places(graph, node, found, axes)
        if places is not None:
            found[node.name], axes[node.name] = places, axis
    return {name: places for name, places in found.items() if axes[name] == -2}


def _find_grid(graph: Graph, node: Node) -> Places | None:
    """Return the places of tokens that a node makes from the one input image that it depends on."""
    grid: tuple[int, int] | None = graph.signature(node).axes.call(node.op.grid) if isinstance(node, OpNode) else None
    if grid is None:
        return None
    above = (graph[name] for name in graph.ancestors([node.name]))
    types = {each.name: each.types[0] for each in above if isinstance(each, InputNode)}
    images = [name for name, type_ in types.items() if type_.dtype == "float" and len(type_.shape) == IMAGE_RANK]
    return Places(images[0], *grid) if len(images) == 1 else None


def _inherit_places(
    graph: Graph, node: Node, found: dict[str, Places], axes: dict[str, int]
) -> tuple[Places | None, int]:
    """Return the places of an operand whose axis of tokens the node keeps, or lengthens by tokens in front, and where
    its result has that axis."""
    if not isinstance(node, OpNode | RouteNode) or len(node.types[0].shape) < 2:
        return None, 0
    if isinstance(node, RouteNode) and graph.declaration_of(node).one_for_each != "sender":
        return None, 0
    in_front = int(isinstance(node, OpNode) and isinstance(node.op, ClassToken))
    for number, source in enumerate(graph.inputs(node.name).values()):
        if source.node in found:
            places = replace(found[source.node], in_front=found[source.node].in_front + in_front)
            axis = _follow_axis(graph, node, number, axes[source.node]) if isinstance(node, OpNode) else -2
            axis = -2 if axis is None and axes[source.node] == -2 else axis
            if axis is not None and node.types[0].shape[axis].size == places.tokens:
                return places, axis
    return None, 0


def _follow_axis(graph: Graph, node: OpNode, operand: int, axis: int) -> int | None:
    """Find the axis of an op's result whose entries read those of an operand's axis; both count from the last."""
    signature = graph.signature(node)
    reading = next((each for each in node.op.indexing(Use(signature))[0] if each.operand == operand), None)
    if reading is None or len(reading.places[axis].terms) != 1:
        return None
    place, rank = reading.places[axis], len(signature.results[0].shape)
    index, step = place.terms[0]
    if not isinstance(index, int) or (place.low, place.high, step) != (0, 0, 1):
        return None
    return index if index < 0 else index - rank


def find_places_of_routes(trace: Trace) -> dict[str, Places]:
    """Return the places of each route's tokens in an image, by its name; tokens inside a scan belong to one step."""
    known, found = find_places_of_tokens(trace.graph), {}
    for route in trace.routes:
        node = route.decision.name
        if node in trace.graph and (tokens := trace.graph.inputs(node)["tokens"].node) in known:
            found[route.name] = known[tokens]
    return found


def step_axes(trace: Trace) -> dict[str, tuple[int, str | None]]:
    """Return the axis of the gates [B, …, M] that is time, and the pool that sends, if any, by route.

    Only for routes that decide at each step of a time axis: the axis of a scan, one of any length, or one of fixed
    length that is neither a pool's nor that of the places of an image.
    """
    places, pools, found = find_places_of_routes(trace), trace.graph.pools(), {}
    for route in trace.routes:
        axes, lengths = route.decision.token_axes, route.gates.shape[1:]
        padded = [at for at, axis in enumerate(axes, start=1) if axis.is_padded]
        fixed = [at for at, axis in enumerate(axes, start=1) if axis.name not in pools and lengths[at] > 1]
        steps = (padded or fixed)[-1:] if route.decision.name in trace.graph else [1]  # a scan stacks at axis 1
        if steps and route.name not in places:
            sources = axes[-1].name if len(axes) > 1 and axes[-1].name in pools else None
            found[route.name] = steps[0], sources
    return found


def positions_of(trace: Trace) -> dict[str, dict[str, Any]]:
    """Return each module's share of the choices at each position, or of the gates, as in trace.json, for each route
    that decides more than once for an example; zero where no example has such a position.

    Positions are the steps of a scan or of tokens that are a pool's, or else the tokens; where there is one token, the
    last longer axis before it. On images [rows, columns], some tokens `in_front` may come first.
    """
    known, steps, found = find_places_of_routes(trace), step_axes(trace), {}
    for route in trace.routes:
        choice, places, (axis, sources) = route.choice[-1], known.get(route.name), steps.get(route.name, (0, None))
        by_step = axis > 0 and (route.decision.name not in trace.graph or sources is not None)
        if not by_step:
            axis = next((at for at in range(choice.ndim - 2, 0, -1) if choice.shape[at] > 1), choice.ndim - 2)
        if choice.shape[axis] > 1:
            by_position = np.moveaxis(choice, axis, 0).reshape(choice.shape[axis], -1, route.modules)
            use = compute_shares(by_position.sum(1, dtype=np.float64)).tolist()
            of, image = "step" if by_step else "token", {"rows": None, "columns": None, "in_front": 0}
            if not by_step and places is not None and places.tokens == len(use):
                of, image = "place", {"rows": places.rows, "columns": places.columns, "in_front": places.in_front}
            found[route.name] = {"of": of, "use": use, **image}
    return found


StepUse = dict[str, Any]  # the decisions of a route at the steps of an axis, as in trace.json


def use_by_steps(trace: Trace) -> dict[str, StepUse]:
    """Return the use of modules by each route that decides at the steps of a time axis, by its name, without padding.

    `modules` receive messages; a module is active if any token's message goes there. `senders` are the tokens, if they
    are modules of a pool; one is active if any module takes its message. For both, `steps` [modules, steps] is the
    share of examples, or the mean gate, and `mean` [modules] the average over all steps. `connections` [senders,
    modules, steps] are the gates between them. Routers without a choice, whose gates are neither zero nor one, have
    mean gates.
    """
    along = step_axes(trace)
    found = {route.name: _use(trace, route, *along[route.name]) for route in trace.routes if route.name in along}
    return {name: use for name, use in found.items() if use is not None}


def _use(trace: Trace, route: RouteTrace, at: int, sources: str | None) -> StepUse | None:
    """Return the decisions of a route after its last round, without padding; None if all is padding."""
    axis, steps = route.decision.token_axes[at - 1], route.gates.shape[1 + at]
    lengths = trace.arrays.values.get(trace.graph.length_inputs.get(axis.lengths, "")) if axis.is_padded else None
    mask_BT = np.arange(steps) < (np.full(len(trace), steps) if lengths is None else lengths)[:, None]
    if not mask_BT.any():
        return None
    limit = min(trace.steps, int(np.flatnonzero(mask_BT.any(0))[-1]) + 1)
    last = np.asarray(route.choice[-1], np.float64)
    opens = route.has_choice or bool(np.isin(last, (0, 1)).all())
    values = np.moveaxis((last != 0).astype(np.float64) if opens else last, at, 1)
    values = values if sources is not None else values[..., None, :]
    values_BTSM = values.reshape(*values.shape[:2], -1, *values.shape[-2:])
    over = np.max if opens else np.mean

    def mean_by_step(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average over the examples in the mask at each step, [limit, …] from [B, T, …]."""
        ones = [1] * (values.ndim - 2)
        sums = np.where(mask_BT.reshape(*mask_BT.shape, *ones), values, 0).sum(0)
        found: NDArray[np.float64] = sums / np.maximum(1, mask_BT.sum(0)).reshape(-1, *ones)
        return found[:limit]

    def rows(pool: str, axis: int) -> dict[str, Any]:
        values = over(values_BTSM, axis=axis).mean(2)
        return {"pool": pool, "steps": mean_by_step(values).T.tolist(), "mean": values[mask_BT].mean(0).tolist()}

    few = sources is not None and values_BTSM.shape[-1] * values_BTSM.shape[-2] <= MOST_CONNECTIONS
    return {
        "axis": axis.name or "step",
        "of": ACTIVE if opens else GATE,
        "examples": mask_BT.sum(0)[:limit].tolist(),
        "modules": rows(route.pool, -2),
        "senders": None if sources is None else rows(sources, -1),
        "connections": np.moveaxis(mean_by_step(values_BTSM.mean(2)), 0, -1).tolist() if few else None,
    }


def strip_common_prefix(names: Iterable[str]) -> dict[str, str]:
    """Remove the words that all dotted names begin with, but keep the last word and the word before a number."""
    parts = {name: name.split(".") for name in names}
    columns = zip(*(words[:-1] for words in parts.values()), strict=False)
    common = len([*itertools.takewhile(lambda column: len(set(column)) == 1, columns)]) if len(parts) > 1 else 0
    common -= any(words[common].isdecimal() for words in parts.values()) and common > 0
    return {name: ".".join(words[common:]) for name, words in parts.items()}


def tasks_of(trace: Trace) -> dict[str, tuple[str, ...]]:
    """Return the traced routes that serve each target; none where there are not several targets."""
    if len(trace.predictions) < 2:
        return {}
    behind = {target: find_routes_behind(trace.graph, [result]) for target, result in trace.predictions.items()}
    names = [route.name for route in trace.routes]
    return {target: tuple(name for name in names if name in serving) for target, serving in behind.items()}


def use_by_task(trace: Trace) -> dict[str, dict[str, list[float]]]:
    """Return each module's share of the choices for each target after the last round, by pool, for pools whose routes
    serve several targets and differ between them."""
    tasks, found = tasks_of(trace), {}
    for pool in dict.fromkeys(route.pool for route in trace.routes):
        choices_M = {
            route.name: route.choice[-1].reshape(-1, route.modules).sum(0, dtype=np.float64)
            for route in trace.routes
            if route.pool == pool
        }
        serving = {target: [name for name in names if name in choices_M] for target, names in tasks.items()}
        served = {target: names for target, names in serving.items() if names}
        if len({tuple(names) for names in served.values()}) > 1:
            totals = {target: sum((choices_M[name] for name in names), np.zeros(1)) for target, names in served.items()}
            found[pool] = {target: compute_shares(total).tolist() for target, total in totals.items()}
    return found


SubNetwork = tuple[str, int, int]  # a pool, the number of earlier routes of a task that use it, and one of its modules


def find_outputs_behind(trace: Trace) -> dict[str, tuple[str, ...]]:
    """Return the tasks whose outputs depend on each traced route, by its name."""
    outputs: dict[str, list[Result]] = {}
    for label, result in trace.graph.outputs.items():
        outputs.setdefault(label.partition(".")[2] or label, []).append(result)
    behind = {task: find_routes_behind(trace.graph, results) for task, results in outputs.items()}
    return {route.name: tuple(task for task, names in behind.items() if route.name in names) for route in trace.routes}


def steps_by_task(trace: Trace, use: Mapping[str, StepUse]) -> tuple[StepUse | None, dict[str, StepUse]]:
    """Return the use of sub-networks by routes that belong to one task, as in trace.json, and the other routes by name.

    The former is None if fewer than two tasks have such routes. For each sub-network, `use` [sub-networks, steps] is by
    task, `mean` [sub-networks] over all steps in the mask, and `shares` [sub-networks, tasks] are the shares of the
    tasks.
    """
    own: dict[str, list[StepUse]] = {}
    shared = dict(use)
    for name, tasks in find_outputs_behind(trace).items():
        if name in use and len(tasks) == 1:
            own.setdefault(tasks[0], []).append(shared.pop(name))
    if len(own) < 2:
        return None, dict(use)
    taken = {task: _number_uses(routes) for task, routes in own.items()}
    rows = list(dict.fromkeys(row for each in taken.values() for row in each))
    examples = {task: max((each["examples"] for each in routes), key=len) for task, routes in own.items()}
    none = {task: ([0.0] * len(each), 0.0) for task, each in examples.items()}
    averages = {task: [each.get(row, none[task])[1] for row in rows] for task, each in taken.items()}
    every = [each for routes in own.values() for each in routes]
    return {
        "axis": every[0]["axis"],
        "of": GATE if any(each["of"] == GATE for each in every) else ACTIVE,
        "examples": examples,
        "sub_networks": [{"pool": pool, "round": time, "module": module} for pool, time, module in rows],
        "use": {task: [each.get(row, none[task])[0] for row in rows] for task, each in taken.items()},
        "mean": averages,
        "shares": compute_shares(np.array([*averages.values()], np.float64).T).tolist(),
    }, shared


def _number_uses(routes: list[StepUse]) -> dict[SubNetwork, tuple[list[float], float]]:
    """Return the shares of each sub-network by step, and over all steps, for the routes of one task: of the sending
    modules, or else of the modules sent to."""
    seen: dict[str, int] = {}
    found = {}
    for rows in (route["senders"] or route["modules"] for route in routes):
        pool = rows["pool"]
        seen[pool] = seen.get(pool, -1) + 1
        for module, share in enumerate(zip(rows["steps"], rows["mean"], strict=True)):
            found[pool, seen[pool], module] = share
    return found


def names_of(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return a distinguishing name for the pool of each sub-network, with the number of its use if that is not the
    first."""
    short = strip_common_prefix(row["pool"] for row in rows)
    return [(short[row["pool"]], f", use {row['round'] + 1}" if row["round"] else "") for row in rows]
