"""Check that a graph has the targets, losses, inputs and states that a recipe names. Needs neither torch nor numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path
from typing import Any

from modgraph.data import DataSet
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.elaboration.errors import CopiesTarget
from modgraph.elaboration.later_reads import LaterReadsFinder
from modgraph.extras import WillNeedExtra, find_missing
from modgraph.files import exists
from modgraph.ir import Graph, OpNode, Result, comparisons, weights_of
from modgraph.ir.analysis.causality import Tokens, find_token_axis
from modgraph.ir.analysis.division import list_divided_pools
from modgraph.ir.analysis.learnt import find_ruled_states
from modgraph.ops.array import State
from modgraph.program import Program, load
from modgraph.recipes.metrics import REQUESTED_METRICS
from modgraph.recipes.optimizers import Schedule
from modgraph.recipes.schema import Section, list_paths
from modgraph.training import errors
from modgraph.training.errors import NotAnImage
from modgraph.training.losses import find_unfit_losses
from modgraph.training.recipe import Recipe, read_with_spec
from modgraph.training.sections import Augment, Labels, names_in
from modgraph.training.start.fresh import find_unknown_fresh
from modgraph.training.start.weight_map import read_map

DECLARE = "the spec has no state; declare one: state temperature: float = constant(100)"
IMAGE_RANK = 3


def diagnose_training(
    spec: str | Path,
    recipe: str | Path,
    overrides: Mapping[str, Any],
    read_spec: Callable[..., Program] = load,
    needs: bool = True,
) -> Sequence[Diagnostic]:
    """Return every mistake of a spec and its recipe that needs no data, and cautions, as a training reports them before
    it begins. `overrides` are values by dotted key; `read_spec` may know the tree of the spec already. Without
    `needs`, packages and files that a training needs may be missing."""
    warnings: Sequence[Diagnostic] = ()
    try:
        found, program = read_with_spec(recipe, spec, overrides, read_spec=read_spec)
        warnings = program.warnings
        refuse_unfit(program.ir, found)
        warnings = [*warnings, *find_next_token_leaks(program.ir, found.data)]
        if needs:
            warnings = [*warnings, *find_missing_extras(found), *find_missing_files(found)]
        if found.start is not None and found.start.map is not None:
            read_map(found.start.map, program.ir)
    except ModgraphError as error:
        return [*warnings, *error.diagnostics]
    return warnings


def find_next_token_leaks(graph: Graph, data: DataSet) -> Iterator[Diagnostic]:
    """Yield a caution for each comparison whose prediction reads later tokens of the input that its target follows."""
    finder = LaterReadsFinder(graph)
    for each in comparisons(graph) if data.follows() else ():
        tokens = data.follows().get(each.target, "")
        axis = find_token_axis(graph.input_types[tokens]) if tokens in graph.input_types else None
        if axis is not None:
            target, prediction = graph.target_types[each.target], graph.type_of(each.prediction)
            along = (find_token_axis(target) or 0) - len(prediction.shape) + len(target.shape)
            fits = -len(prediction.shape) <= along < 0
            found = finder.find(each.prediction, Tokens(Result(tokens), axis), along if fits else None)
            if found is not None:
                yield CopiesTarget(span=each.node.span, target=each.target, tokens=tokens, **vars(found))


def find_missing_extras(recipe: Recipe) -> Iterator[Diagnostic]:
    """Yield a caution for each extra that the recipe's data or metrics need and that is not installed."""
    extras = {extra: "data" for extra in recipe.data.extras()} | (
        {"metrics": "train.metrics"} if recipe.train.metrics else {}
    )
    for extra, key in extras.items():
        package = find_missing(extra)
        if package is not None:
            place = recipe.places.get(f"{key}.name", recipe.places.get(key))
            yield WillNeedExtra(span=place, package=package, extra=extra)


def find_missing_files(recipe: Recipe) -> Iterator[Diagnostic]:
    """Yield a caution for each file or folder that the recipe names and that is not there. The map of weights is left
    out, since it is read."""
    sections: dict[str, Section | None] = {"data": recipe.data, "start": recipe.start}
    for name, section in sections.items():
        for key in () if section is None else list_paths(section):
            path, dotted = attrgetter(key)(section), f"{name}.{key}"
            if path and dotted != "start.map" and not exists(path):
                place = recipe.places.get(dotted, recipe.places.get(name))
                yield errors.WillNeedFile(span=place, path=path, key=dotted)


def refuse_unfit(graph: Graph, recipe: Recipe) -> None:
    """Raises `ModgraphError` with every target, loss, input, state or weight of the recipe that the model lacks."""
    train = recipe.train
    unfit = {
        "labels": find_unfit_labels(graph, train.labels or {}),
        "losses": find_unfit_losses(graph, train.losses or {}),
        "metrics": find_unfit_metrics(graph, train.metrics or {}),
        "augment": find_unfit_inputs(graph, train.augment or {}),
        "states": find_unfit_states(graph, train.states or {}),
    }
    unfit_pools = find_unfit_pools(graph, train.experts) if train.algorithm.one_phase else ()
    keyed = [(f"train.{section}.{key}", each) for section, found in unfit.items() for key, each in found]
    if recipe.start is not None and recipe.start.fresh:
        names = [weight.name for weight in weights_of(graph)]
        keyed += [("start.fresh", each) for each in find_unknown_fresh(names, recipe.start.fresh, graph.name)]
    keyed += [("train.experts", each) for each in unfit_pools]
    if keyed:
        raise ModgraphError([each.replace(span=recipe.places.get(key)) for key, each in keyed])


def find_unfit_pools(graph: Graph, experts: int) -> Iterator[Diagnostic]:
    """Yield an error if no pool has a module for each of so many processes."""
    if experts == 1 or list_divided_pools(graph, experts):
        return
    largest = max(graph.pools().values(), key=lambda pool: pool.size, default=None)
    if largest is None:
        problem, way_out = "has no pool to divide", "leave it out: -s train.experts=1"
    else:
        problem = f'is more than the modules of any pool: the largest, "{largest.name}", has {largest.size}'
        way_out = f"at most -s train.experts={largest.size}"
    yield errors.CannotDividePools(experts=experts, problem=problem, way_out=way_out)


def find_unfit_labels(graph: Graph, labels: Mapping[str, Labels]) -> Iterator[tuple[str, Diagnostic]]:
    """Yield an error for each target that no suitable loss compares with, by name."""
    every = comparisons(graph)
    of_classes = [each.target for each in every if each.class_weights is not None]
    may_miss = [each for each in every if each.may_miss]
    reads_missing = {each.node.name for each in may_miss}
    for name, each in labels.items():
        known, by = [each.target for each in may_miss], "loss"
        if each.weights is not None or each.ignore is not None:
            known, by = of_classes, "cross_entropy"
        if name not in known:
            yield name, errors.UnknownTarget(target=name, by=by, suggestion=did_you_mean(name, sorted(set(known))))
        elif each.missing:
            for node in graph:
                reads = any(source.node == name for source in graph.inputs(node.name).values())
                if reads and node.name not in reads_missing:
                    yield name, errors.CannotBeMissing(target=name, reader=node.name)


def find_unfit_states(graph: Graph, schedules: Mapping[str, Schedule]) -> Iterator[tuple[str, Diagnostic]]:
    """Yield an error for each pattern that names no state, or one that has a rule of its own or is no number."""
    states, ruled = find_states(graph), {state.owner for _, state in find_ruled_states(graph)}
    for pattern in schedules:
        named = [name for name in states if fnmatchcase(name, pattern)]
        if not named:
            suggestion = did_you_mean(pattern, states, "its states are called: {known}") if states else DECLARE
            yield pattern, errors.NoSuchState(pattern=pattern, suggestion=suggestion)
        for name in named:
            if name in ruled:
                yield pattern, errors.StateWithRule(pattern=pattern, state=name)
            elif states[name].types[0].shape:
                yield pattern, errors.StateIsNoNumber(pattern=pattern, state=name, type=str(states[name].types[0]))


def find_states(graph: Graph) -> dict[str, OpNode]:
    """Return the states of a graph by name, and those of each module of a pool."""
    found = {node.owner: node for node in graph.nodes_of(OpNode) if isinstance(node.op, State)}
    for pool in graph.pools().values():
        for at, key in enumerate(pool.keys):
            inside = find_states(pool.region(at).graph)
            found |= {f"{pool.name}.{key}.{name}": node for name, node in inside.items()}
    return found


def find_unfit_inputs(graph: Graph, augment: Mapping[str, Augment]) -> Iterator[tuple[str, Diagnostic]]:
    """Yield an error for each name that is no input of images."""
    images = [
        name for name, each in graph.input_types.items() if each.dtype == "float" and len(each.shape) == IMAGE_RANK
    ]
    for name in augment:
        if name not in images:
            yield name, NotAnImage(name=name, suggestion=did_you_mean(name, images))


def find_unfit_metrics(graph: Graph, asked: Mapping[str, str | Sequence[str]]) -> Iterator[tuple[str, Diagnostic]]:
    """Yield an error for each metric that a target does not have, by target."""
    targets = {each.target: graph.target_types[each.target] for each in comparisons(graph)}
    for target, names in asked.items():
        if target not in targets:
            reason = "no loss of the spec compares with it"
            yield target, errors.CannotMeasure(target=target, reason=reason, suggestion=did_you_mean(target, targets))
            continue
        fitting = [each for each, dtype in REQUESTED_METRICS.items() if dtype == targets[target].dtype]
        for name in names_in(names):
            if name not in fitting:
                reason = f"{name} does not suit {targets[target]}"
                reason = reason if name in REQUESTED_METRICS else f'unknown metric "{name}"'
                suggestion = did_you_mean(name, fitting, "metrics of such a target: {known}")
                yield target, errors.CannotMeasure(target=target, reason=reason, suggestion=suggestion)
