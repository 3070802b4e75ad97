"""Calls of ops and routers: their arguments, checked and turned into settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modgraph.diagnostics import Span, did_you_mean
from modgraph.elaboration import errors
from modgraph.elaboration.context import Here
from modgraph.elaboration.entities import POISON, Entity, Poison, described
from modgraph.ops import Declaration, Setting
from modgraph.syntax import ast
from modgraph.syntax.errors import NotThereYet


@dataclass(frozen=True)
class Given:
    """One argument of a call, evaluated."""

    name: str | None
    value: Any
    span: Span


def settle(
    declaration: type[Declaration], given: list[Given], here: Here, span: Span
) -> tuple[Any, str | None] | Poison:
    """An instance of a declaration from the arguments of a call, and the user's `name=`; told mistakes give poison."""
    settings = declaration.settings()
    values: dict[str, Any] = {}
    label = None
    sound = True
    positional = iter(settings.items())
    for argument in given:
        if argument.name == "name":
            label = _label(argument, here)
            sound = sound and label is not None
            continue
        setting = _setting_for(argument, declaration, positional, here)
        if setting is None:
            sound = False
        elif setting.name in values:
            here.tell(errors.DuplicateArgument(span=argument.span, callee=declaration.name, name=setting.name))
            sound = False
        else:
            values[setting.name] = argument.value
            sound = _accepts(setting, argument, declaration, here) and sound
    for setting in settings.values():
        if setting.required and setting.name not in values:
            here.tell(
                errors.MissingArgument(
                    span=span, callee=declaration.name, name=setting.name, meaning=setting.bounds["doc"]
                )
            )
            sound = False
    if not sound:
        return POISON
    converted = {name: settings[name].convert(value) for name, value in values.items()}
    return declaration(**converted), label


def _setting_for(argument: Given, declaration: type[Declaration], positional: Any, here: Here) -> Setting | None:
    settings = declaration.settings()
    if argument.name is None:
        _, setting = next(positional, (None, None))
        if setting is None:
            names = ", ".join(settings) or "none"
            here.tell(
                errors.TooManyArguments(span=argument.span, callee=declaration.name, most=len(settings), names=names)
            )
        return setting
    if argument.name == "init":
        here.tell(NotThereYet(span=argument.span, what='"init="'))
        return None
    if argument.name not in settings:
        suggestion = did_you_mean(argument.name, settings, f"{declaration.name} takes: {{known}}")
        here.tell(
            errors.UnknownArgument(
                span=argument.span, callee=declaration.name, name=argument.name, suggestion=suggestion
            )
        )
    return settings.get(argument.name)


def _accepts(setting: Setting, argument: Given, declaration: type[Declaration], here: Here) -> bool:
    if isinstance(argument.value, Poison):
        return False
    what = f"{setting.name} of {declaration.name}"
    if isinstance(argument.value, Entity):
        here.tell(errors.NotConstant(span=argument.span, what=what, found=described(argument.value)))
        return False
    problem = setting.problem(argument.value)
    if problem is not None:
        here.tell(
            errors.BadSetting(
                span=argument.span,
                callee=declaration.name,
                name=setting.name,
                problem=problem,
                meaning=setting.bounds["doc"],
            )
        )
    return problem is None


def _label(argument: Given, here: Here) -> str | None:
    value = argument.value
    if isinstance(value, Poison):
        return None
    if isinstance(value, str) and value.isidentifier():
        return value
    problem = "must be a word of letters, digits and underscores"
    meaning = "how this op and its weights are called"
    here.tell(errors.BadSetting(span=argument.span, callee="an op", name="name", problem=problem, meaning=meaning))
    return None


def arguments_of(call: ast.Call, here: Here) -> list[Given]:
    """The arguments of a call, evaluated in order."""
    from modgraph.elaboration.expressions import evaluate

    return [
        Given(argument.name, POISON if argument.name == "init" else evaluate(argument.value, here), argument.span)
        for argument in call.arguments
    ]
