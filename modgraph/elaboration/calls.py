"""Calls of ops and routers: their arguments, checked and turned into settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from modgraph.declare import Declaration, Initial, Setting
from modgraph.diagnostics import Note, Span, closest, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.context import CALL
from modgraph.elaboration.entities import (
    POISON,
    Entity,
    OpUse,
    Poison,
    WithAxis,
    described,
    is_callable,
    names_router,
)
from modgraph.elaboration.site import Site
from modgraph.syntax import ast
from modgraph.types import is_word, word_like, word_problem


@dataclass(frozen=True)
class CallArgument:
    """One argument of a call, evaluated; where it is a block's parameter, `given` is where that is given its value."""

    name: str | None
    value: Any
    span: Span
    given: Span | None = None

    @property
    def at_fault(self) -> dict[str, Any]:
        """Where to tell that the value is of a wrong kind."""
        if self.given is None:
            return {"span": self.span}
        return {"span": self.given, "notes": (Note(text="used here", span=self.span),)}


def settle(declaration: type[Declaration], given: list[CallArgument], site: Site, span: Span) -> OpUse | Poison:
    """A declaration with the arguments of a call as its settings; told mistakes give poison."""
    site.context.spend(CALL, span)
    settings = declaration.settings()
    values: dict[str, Any] = {}
    common, given = _common(given, site)
    sound = POISON not in common.values()
    if declaration.takes_names:
        given = _as_names(given, declaration, site)
    given = _as_list(given, settings)
    positional = iter(settings.items())
    for argument in given:
        setting = _setting_for(argument, declaration, positional, site)
        if setting is None:
            sound = False
        elif setting.name in values:
            site.tell(errors.DuplicateArgument(span=argument.span, callee=declaration.name, name=setting.name))
            sound = False
        else:
            argument = _axis_named(argument, site) if setting.bounds["axis"] else argument
            if setting.bounds["extent"] and isinstance(argument.value, WithAxis):
                values[setting.bounds["extent"]] = argument.value.axis.name
                argument = replace(argument, value=argument.value.size)
            values[setting.name] = argument.value
            sound = _accepts(setting, argument, declaration, site) and sound
    for setting in settings.values():
        if setting.required and setting.name not in values:
            site.tell(
                errors.MissingArgument(
                    span=span, callee=declaration.name, name=setting.name, meaning=setting.bounds["doc"]
                )
            )
            sound = False
    if not sound:
        return POISON
    converted = {name: settings[name].convert(value) for name, value in values.items()}
    return OpUse(declaration(**converted), common.get("name"), common.get("init"))


def _axis_named(argument: CallArgument, site: Site) -> CallArgument:
    """An argument that may name an axis: of a pool's modules by the pool or its name, of a block's input by the word
    that the block has for it."""
    return replace(argument, value=axis_called(argument.value, site))


def axis_called(value: Any, site: Site) -> Any:
    """The name of an axis by what a spec calls it, or the names of several; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(axis_called(each, site) for each in value)
    if isinstance(value, str):
        value = site.scope.find(value, lambda known: isinstance(known, WithAxis)) or value
    if isinstance(value, WithAxis):
        value = value.axis.name
    known = site.call.axes.get(value) if site.call is not None and isinstance(value, str) else None
    return known.name if known is not None and known.name else value


def _as_list(given: list[CallArgument], settings: dict[str, Setting]) -> list[CallArgument]:
    """The arguments without a name of an op whose first setting is a list of axes, as that list."""
    first = next(iter(settings.values()), None)
    listed = [argument for argument in given if argument.name is None]
    if first is None or not (first.bounds["axis"] and tuple in first.kinds) or not listed:
        return given
    values = tuple(argument.value for argument in listed)
    value = POISON if POISON in values else values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
    rest = [argument for argument in given if argument.name is not None]
    return [CallArgument(first.name, value, listed[0].span), *rest]


def _as_names(given: list[CallArgument], declaration: type[Declaration], site: Site) -> list[CallArgument]:
    """The arguments of an op that takes any name, as its setting `names`."""
    named = [argument for argument in given if argument.name not in (None, "names")]
    others = [argument for argument in given if argument not in named]
    if any(argument.name is None for argument in others):
        _accepts(declaration.settings()["names"], replace(others[0], value="…"), declaration, site)
        return [replace(others[0], name="names", value=POISON)]
    if not named or others:
        return given
    words: list[str] = []
    for argument in named:
        for word in (argument.name, argument.value):
            axis = _axis_named(replace(argument, name=None, value=word), site)
            if not isinstance(axis.value, str):
                _accepts(declaration.settings()["names"], axis, declaration, site)
                return [replace(argument, name="names", value=POISON)]
            words.append(axis.value)
    for place, argument in enumerate(named):
        if argument.name in words[: 2 * place : 2]:
            site.tell(errors.DuplicateArgument(span=argument.span, callee=declaration.name, name=str(argument.name)))
            return [replace(argument, name="names", value=POISON)]
    span = named[0].span
    return [CallArgument("names", tuple(words), span)]


def _common(given: list[CallArgument], site: Site) -> tuple[dict[str, Any], list[CallArgument]]:
    """The arguments that every op takes, `name=` and `init=`, checked; and the others."""
    common: dict[str, Any] = {}
    rest = []
    for argument in given:
        if argument.name == "name":
            common["name"] = label_of(argument, site)
        elif argument.name == "init":
            common["init"] = argument.value
        else:
            rest.append(argument)
    return common, rest


def _setting_for(argument: CallArgument, declaration: type[Declaration], positional: Any, site: Site) -> Setting | None:
    settings = declaration.settings()
    if argument.name is None:
        _, setting = next(positional, (None, None))
        if setting is None:
            names = ", ".join(settings) or "none"
            site.tell(
                errors.TooManyArguments(span=argument.span, callee=declaration.name, most=len(settings), names=names)
            )
        return setting
    if argument.name not in settings:
        suggestion = did_you_mean(argument.name, settings, f"{declaration.name} takes: {{known}}")
        site.tell(
            errors.UnknownArgument(
                span=argument.span, callee=declaration.name, name=argument.name, suggestion=suggestion
            )
        )
    return settings.get(argument.name)


def _accepts(setting: Setting, argument: CallArgument, declaration: type[Declaration], site: Site) -> bool:
    if isinstance(argument.value, Poison):
        return False
    what = f"{setting.name} of {declaration.name}"
    if (word := site.word_of_axis(argument.value)) is not None:
        site.tell_axis(word, argument.span)
        return False
    if isinstance(argument.value, Entity):
        way_out = f"{setting.name}: {setting.bounds['doc']}"
        found = described(argument.value)
        site.tell(errors.NotConstant(**argument.at_fault, what=what, found=found, way_out=way_out))
        return False
    problem = setting.problem(argument.value)
    if problem is not None:
        word = word_like(argument.value) if setting.names_axis and isinstance(argument.value, str) else ""
        meaning = setting.bounds["doc"] + (f', as in {setting.name}="{word}"' if word else "")
        site.tell(
            errors.BadSetting(
                **argument.at_fault, callee=declaration.name, name=setting.name, problem=problem, meaning=meaning
            )
        )
    return problem is None


def label_of(argument: CallArgument, site: Site) -> str | Poison:
    """The word given as `name=`."""
    value = argument.value
    if isinstance(value, Poison):
        return POISON
    if isinstance(value, str) and is_word(value):
        return value
    problem = word_problem(value) if isinstance(value, str) else "must be a word of letters, digits and underscores"
    word = word_like(value) if isinstance(value, str) else ""
    meaning = "how this op and its weights are called" + (f', as in name="{word}"' if word else "")
    site.tell(errors.BadSetting(span=argument.span, callee="an op", name="name", problem=problem, meaning=meaning))
    return POISON


def arguments_of(call: ast.Call, site: Site) -> list[CallArgument]:
    """The arguments of a call, evaluated in order."""
    return [
        CallArgument(each.name, _value_of(each, site), each.span, site.given_at(each.value)) for each in call.arguments
    ]


def arguments_for_block(call: ast.Expression, site: Site) -> list[CallArgument]:
    """The arguments of a use of a block or a router, in order: constants, and what can be applied or routed by."""
    arguments = call.arguments if isinstance(call, ast.Call) else ()
    return [CallArgument(each.name, _given(each, site), each.span, site.given_at(each.value)) for each in arguments]


def _given(argument: ast.Argument, site: Site) -> Any:
    """What an argument of a block stands for; of `axis=` the word of an axis, the name of that."""
    value = argument.value
    if argument.name == "axis" and isinstance(value, ast.Name) and value.name in site.axes:
        return axis_called(value.name, site)
    return given(value, site)


def given(expression: ast.Expression, site: Site) -> Any:
    """What an argument of a block stands for: a constant, what can be applied, or a list of such; a kind of router that
    is no op stays as it is written."""
    callee = expression.callee if isinstance(expression, ast.Call) else expression
    if isinstance(callee, ast.Name) and names_router(callee.name, site.scope):
        return site.unapplied(ast.Stage(span=expression.span, term=expression))
    if isinstance(expression, ast.ListOf) and any(isinstance(item, APPLICABLE) for item in expression.items):
        members = tuple(
            site.evaluate(item) if isinstance(item, ast.ListOf) else given(item, site) for item in expression.items
        )
        if any(map(is_callable, members)) and not any(map(_is_value, members)):
            return members
    return site.evaluate(expression)


def _is_value(member: Any) -> bool:
    """Whether a member of a list is neither a constant nor something to be applied."""
    return isinstance(member, Entity) and not is_callable(member)


def _value_of(argument: ast.Argument, site: Site) -> Any:
    value = argument.value
    if argument.name == "init":
        return initial_of(value, site)
    if argument.name == "axis" and isinstance(value, ast.Name) and value.name in site.axes:
        return value.name
    if argument.name == "axis" and isinstance(value, ast.Name) and site.scope.find(value.name) is None:
        suggestion = f'an axis is named by a string: axis="{value.name}"'
        suggestion = did_you_mean(value.name, site.axes) if closest(value.name, site.axes) else suggestion
        return site.tell(errors.UnknownName(span=value.span, name=value.name, suggestion=suggestion))
    return site.evaluate(value)


APPLICABLE = ast.Name | ast.Call | ast.Pipeline | ast.Index  # what may stand for something to be applied
STARTS = {"zeros": 0, "ones": 0, "constant": 1, "normal": 1, "uniform": 1}


def initial_of(expression: ast.Expression, site: Site) -> Initial | Poison:
    """What `init=` says: zeros, ones, constant(number), normal(deviation) or uniform(bound)."""
    callee = expression.callee if isinstance(expression, ast.Call) else expression
    arguments = expression.arguments if isinstance(expression, ast.Call) else ()
    name = callee.name if isinstance(callee, ast.Name) else ""
    scales = [site.constant(argument.value, "a start") for argument in arguments]
    if POISON in scales:
        return POISON
    sound = all(type(scale) in (int, float) and (scale >= 0 or name == "constant") for scale in scales)
    if STARTS.get(name) != len(scales) or not sound:
        return site.tell(errors.UnknownStart(span=expression.span))
    return Initial(name, float(scales[0]) if scales else 1.0)
