"""Evaluates the arguments of calls and binds them to the settings of ops and routers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from modgraph.declare import INITIALIZERS, Declaration, Initial, Setting
from modgraph.diagnostics import Span, closest, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.context import CALL
from modgraph.elaboration.elaborator import Elaborator, locate_fault
from modgraph.elaboration.entities import (
    POISON,
    Entity,
    OpUse,
    Poison,
    Tensor,
    WithAxis,
    describe,
    is_callable,
    is_router_name,
)
from modgraph.elaboration.torch_calls import Callee, read_torch_call
from modgraph.syntax import ast
from modgraph.types import explain_word_problem, is_word, word_like

APPLICABLE = ast.Name | ast.Call | ast.Pipeline | ast.Index  # expressions that may evaluate to a callable


@dataclass(frozen=True)
class CallArgument:
    """An evaluated argument of a call; `given` is the span of its value where it is a parameter of a block."""

    name: str | None
    value: Any
    span: Span
    given: Span | None = None

    @property
    def text(self) -> str:
        """The text of its value."""
        return self.span.text.partition("=")[2].strip() if self.name else self.span.text

    @property
    def locate(self) -> dict[str, Any]:
        return locate_fault(self.span, self.given)


def evaluate_arguments(call: ast.Expression, elaborator: Elaborator, of_op: bool = True) -> list[CallArgument]:
    """Evaluate the arguments of a call in order: settings of an op, or constants and callables otherwise."""
    return [
        CallArgument(
            each.name, _evaluate_value(each, elaborator, of_op), each.span, elaborator.find_argument(each.value)
        )
        for each in (call.arguments if isinstance(call, ast.Call) else ())
    ]


def _evaluate_value(argument: ast.Argument, elaborator: Elaborator, of_op: bool) -> Any:
    value = argument.value
    word = value.name if argument.name == "axis" and isinstance(value, ast.Name) else ""
    if word in elaborator.axes:
        return word if of_op else resolve_axis(word, elaborator)
    if not of_op:
        return evaluate_argument(value, elaborator)
    if argument.name == "init":
        return read_initial(value, elaborator)
    known = elaborator.scope.find(word) if word else None
    if word and known is None and closest(word, elaborator.axes):
        suggestion = did_you_mean(word, elaborator.axes)
        return elaborator.report(errors.UnknownName(span=value.span, name=word, suggestion=suggestion))
    return word if word and (known is None or isinstance(known, Tensor)) else elaborator.evaluate(value)


def evaluate_argument(expression: ast.Expression, elaborator: Elaborator) -> Any:
    """Evaluate an argument of a block: a constant, a callable, a list of these, or a kind of router."""
    callee = expression.callee if isinstance(expression, ast.Call) else expression
    if isinstance(callee, ast.Name) and is_router_name(callee.name, elaborator.scope):
        return elaborator.make_template(ast.Stage(span=expression.span, term=expression))
    if isinstance(expression, ast.ListOf) and any(isinstance(item, APPLICABLE) for item in expression.items):
        members = tuple(
            elaborator.evaluate(item) if isinstance(item, ast.ListOf) else evaluate_argument(item, elaborator)
            for item in expression.items
        )
        others = [member for member in members if not is_callable(member)]
        if len(others) < len(members) and not any(isinstance(member, Entity) for member in others):
            return members
    return elaborator.evaluate(expression)


def match_arguments(
    arguments: list[CallArgument],
    callee: str,
    names: Collection[str],
    values: Mapping[str, Any],
    elaborator: Elaborator,
) -> Iterator[tuple[str, CallArgument]]:
    """Pair each argument with the name of its parameter ("" if surplus); a reported mistake yields poison."""
    positional = iter(names)
    for argument in arguments:
        name, span = argument.name or next(positional, ""), argument.span
        if not name:
            known = ", ".join(names) or "none"
            elaborator.report(errors.TooManyArguments(span=span, callee=callee, most=len(names), names=known))
        elif name not in names:
            suggestion = did_you_mean(name, names, f"{callee} takes: {{known}}")
            elaborator.report(errors.UnknownArgument(span=span, callee=callee, name=name, suggestion=suggestion))
        elif name in values:
            elaborator.report(errors.DuplicateArgument(span=span, callee=callee, name=name))
        else:
            yield name, argument
            continue
        yield name, replace(argument, value=POISON)


def bind_settings(
    declaration: type[Declaration], arguments: list[CallArgument], elaborator: Elaborator, span: Span
) -> OpUse | Poison:
    """Bind the arguments of a call to the settings of a declaration; poison after a reported mistake."""
    elaborator.context.spend(CALL, span)
    settings, callee = declaration.settings(), declaration.name
    common: dict[Any, Any] = {
        argument.name: read_label(argument, elaborator) if argument.name == "name" else argument.value
        for argument in arguments
        if argument.name in ("name", "init")
    }
    arguments = [argument for argument in arguments if argument.name not in ("name", "init")]
    if declaration.takes_names:
        arguments = _collect_names(arguments, declaration, elaborator)
    if report_torch_call(Callee(callee, settings, declaration.torch_arguments), arguments, elaborator, span):
        return POISON
    values: dict[str, Any] = {}
    sound = POISON not in common.values()
    for name, argument in match_arguments(_collect_list(arguments, settings), callee, settings, values, elaborator):
        if name not in settings:
            sound = False
            continue
        bounds = settings[name].bounds
        is_axis = bounds["axis"] or (declaration.takes_names and name == "names")
        value = resolve_axis(argument.value, elaborator) if is_axis else argument.value
        if bounds["extent"] and isinstance(value, WithAxis):
            values[bounds["extent"]] = value.axis.name
            value = value.size
        values[name] = value
        sound = _accepts(settings[name], replace(argument, value=value), callee, elaborator) and sound
    for setting in settings.values():
        if setting.required and setting.name not in values:
            meaning = setting.bounds["doc"]
            elaborator.report(errors.MissingArgument(span=span, callee=callee, name=setting.name, meaning=meaning))
            sound = False
    if not sound:
        return POISON
    converted = {name: settings[name].convert(value) for name, value in values.items()}
    return OpUse(declaration(**converted), common.get("name"), common.get("init"))


def report_torch_call(callee: Callee, arguments: list[CallArgument], elaborator: Elaborator, span: Span) -> bool:
    """Report a call with the arguments of torch's layer; return whether it is one."""
    given = [(each.name, each.value, each.text) for each in arguments]
    if not (given and callee.torch_arguments) or any(value is POISON for _, value, _ in given):
        return False
    found = read_torch_call(callee, given)
    if found is not None:
        difference = found.explain(callee.name)
        elaborator.report(errors.TorchArguments(span=span, difference=difference, suggestion=f"write {found.text}"))
    return found is not None


def resolve_axis(value: Any, elaborator: Elaborator) -> Any:
    """Resolve what a spec calls an axis to its name: a pool or its name, or a block's word for an axis.

    Resolves a list element by element, and returns anything else as it is. A word that names no axis yet stays the
    axis's name where a later type declares it.
    """
    if isinstance(value, tuple):
        return tuple(resolve_axis(each, elaborator) for each in value)
    if isinstance(value, str):
        known = elaborator.scope.find(value, lambda known: isinstance(known, WithAxis))
        if known is None:
            elaborator.scope.body.axis_words.add(value)
        value = known or value
    if isinstance(value, WithAxis):
        value = value.axis.name
    known = elaborator.axes.get(value) if isinstance(value, str) else None
    return known.name if known is not None and known.name else value


def _collect_list(arguments: list[CallArgument], settings: dict[str, Setting]) -> list[CallArgument]:
    """Collect the positional arguments of an op whose first setting is a list of axes into that list."""
    first = next(iter(settings.values()), None)
    listed = [argument for argument in arguments if argument.name is None]
    if first is None or not (first.bounds["axis"] and tuple in first.kinds) or not listed:
        return arguments
    values = tuple(argument.value for argument in listed)
    value = POISON if POISON in values else values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
    rest = [argument for argument in arguments if argument.name is not None]
    return [CallArgument(first.name, value, listed[0].span), *rest]


def _collect_names(
    arguments: list[CallArgument], declaration: type[Declaration], elaborator: Elaborator
) -> list[CallArgument]:
    """Collect the arguments of an op that takes any name into its setting `names`."""
    setting, callee = declaration.settings()["names"], declaration.name
    named = [argument for argument in arguments if argument.name not in (None, "names")]
    others = [argument for argument in arguments if argument not in named]
    positional = [argument for argument in others if argument.name is None]
    if len(positional) == len(arguments) == 1 and isinstance(positional[0].value, tuple):
        return [replace(positional[0], name="names")]
    if positional and len(positional) == len(arguments):
        given = tuple(argument.value for argument in positional)
        if POISON not in given:
            value = given if isinstance(given[0], tuple) else given[0]
            _accepts(setting, replace(positional[0], value=value), callee, elaborator)
        return [replace(positional[0], name="names", value=POISON)]
    if positional:
        twice = errors.DuplicateArgument(span=positional[0].span, callee=callee, name="names")
        elaborator.report(twice)
        return [replace(positional[0], name="names", value=POISON)]
    if not named or others:
        return arguments
    words: list[str] = []
    for argument in named:
        for word in (argument.name, argument.value):
            axis = resolve_axis(word, elaborator)
            if not isinstance(axis, str):
                _accepts(setting, replace(argument, value=axis), callee, elaborator)
                return [replace(argument, name="names", value=POISON)]
            words.append(axis)
    for place, argument in enumerate(named):
        if argument.name in words[: 2 * place : 2]:
            elaborator.report(errors.DuplicateArgument(span=argument.span, callee=callee, name=str(argument.name)))
            return [replace(argument, name="names", value=POISON)]
    return [CallArgument("names", tuple(words), named[0].span)]


def _accepts(setting: Setting, argument: CallArgument, callee: str, elaborator: Elaborator) -> bool:
    value, name, meaning = argument.value, setting.name, setting.bounds["doc"]
    if isinstance(value, Poison) or elaborator.is_axis(value, argument.span):
        return False
    if isinstance(value, Entity):
        facts: Any = {"what": f"{name} of {callee}", "found": describe(value), "way_out": f"{name}: {meaning}"}
        elaborator.report(errors.NotConstant(**argument.locate, **facts))
        return False
    problem = setting.problem(value)
    if problem is not None:
        word = word_like(value) if setting.names_axis and isinstance(value, str) else ""
        facts = {"name": name, "problem": problem, "meaning": meaning + (f', as in {name}="{word}"' if word else "")}
        elaborator.report(errors.BadSetting(**argument.locate, callee=callee, **facts))
    return problem is None


def read_label(argument: CallArgument, elaborator: Elaborator) -> str | Poison:
    """Check the word that `name=` gives."""
    value = argument.value
    if isinstance(value, Poison) or (isinstance(value, str) and is_word(value)):
        return value
    problem = (
        explain_word_problem(value) if isinstance(value, str) else "must be a word of letters, digits and underscores"
    )
    word = word_like(value) if isinstance(value, str) else ""
    meaning = "the name of this op and its weights" + (f', as in name="{word}"' if word else "")
    facts: Any = {"callee": "an op", "name": "name", "problem": problem, "meaning": meaning}
    return elaborator.report(errors.BadSetting(span=argument.span, **facts))


def read_initial(expression: ast.Expression, elaborator: Elaborator) -> Initial | Poison:
    """Read the initialiser of `init=`: one of `INITIALIZERS` with its number."""
    callee = expression.callee if isinstance(expression, ast.Call) else expression
    arguments = expression.arguments if isinstance(expression, ast.Call) else ()
    name = callee.name if isinstance(callee, ast.Name) else ""
    scales = [elaborator.evaluate_constant(argument.value, "a start") for argument in arguments]
    if POISON in scales:
        return POISON
    sound = all(type(scale) in (int, float) and (scale >= 0 or name == "constant") for scale in scales)
    fewest, most = INITIALIZERS.get(name, (1, 0))
    if not fewest <= len(scales) <= most or not sound:
        return elaborator.report(errors.UnknownStart(span=expression.span))
    return Initial(name, float(scales[0]) if scales else 1.0)
