"""Sweeps that start from the runs of others: their order, and which run gives a point its first weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from modgraph.diagnostics import ModgraphError, did_you_mean, list_names
from modgraph.ir import Graph, find_module_axes, weights_of
from modgraph.study import errors
from modgraph.study.findings import Findings
from modgraph.study.points import Draft, name_point
from modgraph.study.sweep import Sweep
from modgraph.training.recipe import Recipe
from modgraph.training.start.errors import CannotStart
from modgraph.training.start.fresh import is_fresh

if TYPE_CHECKING:
    from modgraph.study.point import Point

Shapes = Mapping[str, tuple[int | None, ...]]  # of weights, by name


def order_sweeps(sweeps: Sequence[Sweep], findings: Findings) -> list[Sweep]:
    """Return sweeps in their order, each after the one that it starts from; those with a wrong start are left out."""
    by_name = {each.name: each for each in sweeps}
    ordered: dict[str, Sweep] = {}
    for sweep in sweeps:
        chain: dict[str, Sweep] = {}
        here: Sweep | None = sweep
        while here is not None and here.name not in ordered:
            if here.name in chain:
                circle = list(chain)[list(chain).index(here.name) :]
                if here.name == min(circle, key=list(by_name).index):  # reported once
                    names = " → ".join([*circle, here.name])
                    findings.add([errors.CircularStart(span=here.places.get("start"), names=names)])
                break
            chain[here.name] = here
            wanted, span = here.start, here.places.get("start")
            if wanted is not None and (not wanted or wanted not in by_name):
                others = [each for each in by_name if each != here.name]
                suggestion = (
                    did_you_mean(wanted, others) if others else "list both sweeps under sweeps, each with a name"
                )
                findings.add([errors.NoSuchSweep(span=span, name=wanted, key="start", suggestion=suggestion)])
                break
            here = None if wanted is None else by_name[wanted]
        else:
            ordered |= dict(reversed(chain.items()))
    return [*ordered.values()]


def find_start(sweep: Sweep, draft: Draft, points: Sequence[Point]) -> Point:
    """Return the point of the sweep that a point starts from, the one with equal values of the keys that both vary.
    Raises `ModgraphError` where none or several have them."""
    has_label = any(each.label == draft.label for each in points)
    shared = [key for key in draft.values if points and key in points[0].values]
    found = [
        each
        for each in points
        if all(each.values[key] == draft.values[key] for key in shared) and (not has_label or each.label == draft.label)
    ]
    if len(found) == 1:
        return found[0]
    others = [key for key in (points[0].values if points else ()) if key not in shared]
    if not points:
        what, way_out = "no run", "its points are not known beforehand: start from a grid"
    elif not found:
        what = "no run"
        way_out = f"give both sweeps the same values of {', '.join(shared)}"
    else:
        what = f"several runs ({list_names([each.run for each in found])})"
        way_out = f"vary {', '.join(others) or 'the named points'} in this sweep too"
    span, point = sweep.places.get("start"), name_point(sweep, draft)
    facts = {"point": point, "sweep": sweep.start, "found": what, "way_out": way_out}
    raise ModgraphError([errors.NothingToStartFrom(span=span, notes=(), **facts)])


def list_shapes(graph: Graph) -> Shapes:
    """Return the shapes of a graph's weights."""
    return {weight.name: tuple(axis.size for axis in weight.axes) for weight in weights_of(graph)}


def find_unlike_weights(graph: Graph, recipe: Recipe, found: Shapes) -> Iterator[CannotStart]:
    """Yield a mistake where weights of a run cannot be the first ones of a graph, as the training would find later."""
    assert recipe.start is not None and recipe.start.run is not None, "it starts from a run"
    path, fresh = recipe.start.run, recipe.start.fresh
    own = list_shapes(graph)
    common = [name for name in own if name in found and not is_fresh(name, fresh)]
    if not common:
        reason = f"no tensor has a name of this spec; the run has {list_names(sorted(found))}"
        yield CannotStart(path=path, reason=reason, way_out="name values and modules as in the run's spec")
        return
    grown = {
        name: (*own[name][: of.axis], of.old, *own[name][of.axis + 1 :]) for name, of in find_module_axes(graph).items()
    }
    unlike = [name for name in common if found[name] not in (own[name], grown.get(name))]
    if unlike:
        listed = list_names([f"{name} is {[*own[name]]} here and {[*found[name]]} there" for name in unlike])
        way_out = "make the shapes equal, or list under start.fresh what should start anew"
        yield CannotStart(path=path, reason=listed, way_out=way_out)
    random = [weight.name for weight in weights_of(graph) if weight.frozen and weight.name not in common]
    if random:
        reason = f"frozen weights would stay random, without a tensor: {list_names(random)}"
        way_out = "move them out of frozen { … }, or start from weights that include them"
        yield CannotStart(path=path, reason=reason, way_out=way_out)
