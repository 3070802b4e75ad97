"""The recipe of a training: its model parameters, data, algorithm and schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from modgraph.data import TRAIN, VALIDATION, Arrays, DataSet
from modgraph.data.errors import DataDoesNotFit
from modgraph.declare import format_briefly, format_value
from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source, Span, did_you_mean
from modgraph.elaboration.errors import UnknownParameter
from modgraph.files import exists
from modgraph.ir import NotReadBack
from modgraph.program import Program, load
from modgraph.recipes import errors
from modgraph.recipes.key_suggestions import find_key, suggest_key
from modgraph.recipes.schema import read_section, refuse
from modgraph.recipes.yaml_tree import Branch, Leaf, dump_yaml, read_tree
from modgraph.syntax import parse, read
from modgraph.training.errors import OtherParameter
from modgraph.training.published import read_config
from modgraph.training.sections import Start, Train, parameters_in, read_mapping, read_recipe_tree

RecipeOrPath = str | Path | Mapping[str, Any]
OPTION = "-s"  # what messages call overrides
SECTIONS = ("model", "start", "data", "train")
KINDS = {"train": Train, "start": Start}  # those whose keys are the same for all data


@dataclass(frozen=True)
class Recipe:
    """A complete and checked recipe. `model` holds parameters of the spec, `places` the span of each dotted key."""

    model: Mapping[str, Any]
    data: DataSet
    train: Train
    start: Start | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    def to_yaml(self) -> str:
        """Return YAML with every key, defaults included. Raises `NotReadBack` if it does not read back as this
        recipe."""
        text, report = dump_yaml(self.record()), Report()
        found = _recipe(read_tree(Source("recipe.yaml", text), report), report)
        if found is None or report.errors or found.record() != self.record():
            raise NotReadBack(f"the recipe is read back as another:\n{text}")
        return text

    def list_changed(self) -> list[str]:
        """Return the dotted keys whose values are no defaults, with the name of the data."""
        start = [] if self.start is None else self.start.list_changed("start.")
        model = [f"model.{name}" for name in self.model]
        return [*model, *start, "data.name", *self.data.list_changed("data."), *self.train.list_changed("train.")]

    def record(self) -> dict[str, Any]:
        """Return every key with its value, defaults included, as YAML writes it."""

        def to_list(value: Any) -> Any:
            return [*map(to_list, value)] if isinstance(value, tuple | range) else value

        start = {} if self.start is None else {"start": self.start.plain()}
        model = {name: to_list(value) for name, value in self.model.items()}
        return {"model": model, **start, "data": self.data.plain(), "train": self.train.plain()}


def key_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides by dotted key: a plain name sets a parameter of the model, a dotted one is a key already."""
    return {name if "." in name else f"model.{name}": value for name, value in overrides.items()}


def read_recipe(
    given: RecipeOrPath, overrides: Mapping[str, Any] | None = None, overrides_name: str = OPTION
) -> Recipe:
    """Read a recipe with overrides by dotted key, which messages call by a name. Raises `ModgraphError` with every
    mistake."""
    report = Report()
    recipe = _recipe(_override(read_recipe_tree(given, report), overrides or {}, overrides_name), report)
    if recipe is None or report.errors:
        raise ModgraphError(report.list_diagnostics())
    return recipe


def read_with_spec(
    given: RecipeOrPath,
    spec: str | Path | Program,
    overrides: Mapping[str, Any],
    data: DataSet | None = None,
    overrides_name: str = OPTION,
    read_spec: Callable[..., Program] = load,
) -> tuple[Recipe, Program]:
    """Read a recipe, and the spec with its parameters or a given program. `data` replaces the recipe's;
    `overrides_name` is what messages call the overrides; `read_spec` may know the program of a path already.

    Raises `ModgraphError` with every mistake of both.
    """
    report, of_spec = Report(), Report()
    recipe, parameters, source = None, None, None
    if not isinstance(spec, Program):
        source = read(spec, of_spec)
        if source is None:
            raise ModgraphError(of_spec.list_diagnostics())
    try:
        tree = _override(read_recipe_tree(given, report), overrides, overrides_name)
        _add_published(tree, spec)
        if data is not None:
            tree.items["data"] = Branch({"name": Leaf(data.name)})
        section = read_mapping(tree, "model", report)
        parameters = parameters_in(section, report) if section.whole else None
        recipe = _recipe(tree, report)
    except ModgraphError as error:
        report.extend(error.diagnostics)
    if isinstance(spec, Program):
        places = {} if recipe is None else recipe.places
        _refuse_other_parameters(spec, parameters or {}, report, places, overrides_name)
        program = spec
    else:
        if parameters is None:
            assert source is not None, "it was read"
            parse(source, of_spec)
            raise ModgraphError([*of_spec.list_diagnostics(), *report.list_diagnostics()])
        try:
            program = read_spec(spec, **parameters)
        except ModgraphError as error:
            found = [_suggest_setting(each) for each in error.diagnostics]
            raise ModgraphError([*found, *report.list_diagnostics()]) from error
    if recipe is None or report.errors:
        raise ModgraphError(report.list_diagnostics())
    return (recipe if data is None else replace(recipe, data=data)), program


def _add_published(tree: Branch, spec: str | Path | Program) -> None:
    """Add to a recipe that starts from the folder of a published checkpoint the parameters in its config.json, but for
    those that the recipe sets. Raises `ModgraphError`."""
    start = tree.items.get("start")
    found = [start.items.get(key) if isinstance(start, Branch) else None for key in ("weights", "map")]
    weights, map_ = (each.value if isinstance(each, Leaf) else None for each in found)
    if not (isinstance(weights, str) and isinstance(map_, str) and exists(weights) and Path(weights).is_dir()):
        return
    model, names = tree.items.get("model"), spec.ir.parameters if isinstance(spec, Program) else spec
    for name, value in read_config(map_, weights, names).items():
        if not (isinstance(model, Branch) and name in model.items):
            tree.put(f"model.{name}", Leaf(value, found[0].span if found[0] else None))


def _refuse_other_parameters(
    program: Program, parameters: Mapping[str, Any], report: Report, places: Mapping[str, Span], overrides_name: str
) -> None:
    """Report parameters of a recipe that differ from those with which a program was read."""
    own = program.ir.parameters
    for name, value in parameters.items():
        span = places.get(f"model.{name}")
        if name not in own:
            suggestion = _suggest_for(name, did_you_mean(name, own, "its parameters are: {known}"))
            report.add(errors.UnknownKey(span=span, section="model", key=name, suggestion=suggestion))
        elif own[name] != value:
            is_override = span is not None and span.source.name == overrides_name
            of = "overrides set" if is_override else "the recipe sets"
            value, kept = format_value(value), format_value(own[name])
            report.add(OtherParameter(span=span, origin=of, name=name, value=value, own=kept))


def _suggest_for(name: str, suggestion: str) -> str:
    """Return the help for a parameter that the spec does not have: a suggestion, or the key of `train` that is called
    like it."""
    found = find_key(name, {"train": Train})
    is_better = name in Train.settings() or not suggestion.startswith("did you mean")
    return f'did you mean "{found}"?' if found is not None and is_better else suggestion


def _suggest_setting(diagnostic: Diagnostic) -> Diagnostic:
    """Suggest a setting of training for a parameter that the model does not have."""
    if not isinstance(diagnostic, UnknownParameter):
        return diagnostic
    facts = vars(diagnostic)
    return diagnostic.replace(suggestion=_suggest_for(facts["name"], facts["suggestion"]))


def _override(tree: Branch, overrides: Mapping[str, Any], name: str) -> Branch:
    """Set values in a tree, with spans in a text of that name for each."""
    for key, value in overrides.items():
        source = Source(name, f"{key}={'null' if value is None else format_briefly(value)}")
        item = _to_item(value, Span(source, len(key) + 1, max(len(source.text), len(key) + 2)))
        tree.put(key, item, Span(source, 0, len(key)))
    return tree


def _to_item(value: Any, span: Span) -> Leaf | Branch:
    """Make the tree of a value; a mapping replaces one of the recipe."""
    if not isinstance(value, Mapping):
        return Leaf(value, span)
    items = {str(key): _to_item(each, span) for key, each in value.items()}
    return Branch(items, dict.fromkeys(items, span), span)


def list_places(tree: Branch, path: str = "") -> Iterator[tuple[str, Span]]:
    """Yield the span of each key of a recipe, by its dotted path."""
    for key, item in tree.items.items():
        if key in tree.keys:
            yield f"{path}{key}", tree.keys[key]
        if isinstance(item, Branch):
            yield from list_places(item, f"{path}{key}.")


def _recipe(tree: Branch, report: Report) -> Recipe | None:
    for key in (key for key in tree.items if key not in SECTIONS):
        suggestion = suggest_key(key, SECTIONS, KINDS, "its sections are: {known}")
        report.add(errors.UnknownKey(span=tree.keys.get(key), section="a recipe", key=key, suggestion=suggestion))
    model, start, data, train = (read_mapping(tree, name, report) for name in SECTIONS)
    epochs = train.items.get("epochs")
    if isinstance(epochs, Leaf) and epochs.value == 0 and epochs.value is not False and not start.items:
        refuse(
            report, epochs.span, "train.epochs", "must be at least 1, or 0 with start", "passes over the training data"
        )
    data_set = read_section(DataSet, data, "data", report, KINDS)  # type: ignore[type-abstract]
    how = read_section(Train, train, "train", report, KINDS)
    parameters = parameters_in(model, report)
    first = read_section(Start, start, "start", report, KINDS) if start.items else None
    return (
        None if data_set is None or how is None else Recipe(parameters, data_set, how, first, dict(list_places(tree)))
    )


def with_validation(splits: dict[str, Arrays], train: Train) -> dict[str, Arrays]:
    """Split off a share of each group of the training data for validation, if the recipe requests it. Raises
    `ModgraphError`."""
    import numpy as np

    from modgraph.data.batches import list_indices_by_group

    arrays = splits[TRAIN]
    groups = list_indices_by_group(arrays, train.by)
    if not train.validation:
        return splits
    if VALIDATION in splits:
        reason = "the data already has a validation split"
        raise ModgraphError([DataDoesNotFit(reason=reason, way_out="leave out train.validation")])
    rng = np.random.default_rng((train.seed, 1))
    parts: dict[str, list[Any]] = {TRAIN: [], VALIDATION: []}
    for indices in groups:
        order = indices[rng.permutation(len(indices))]
        kept = max(1, round(train.validation * len(indices)))
        if kept >= len(indices):
            raise ModgraphError([DataDoesNotFit(reason=f"{len(indices)} examples are too few for a validation split")])
        parts[TRAIN].append(order[kept:])
        parts[VALIDATION].append(order[:kept])
    mixed = {at: each[0] if len(each) == 1 else rng.permutation(np.concatenate(each)) for at, each in parts.items()}
    return {**splits, **{name: arrays.take(rows) for name, rows in mixed.items()}}
