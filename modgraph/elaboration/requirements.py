"""What a definition asks of its parameters: `require k >= 1 and mode in ["sum", "mean"]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modgraph.declare import shown_briefly, shown_value
from modgraph.diagnostics import did_you_mean
from modgraph.elaboration import constants, errors
from modgraph.elaboration.entities import POISON, Entity, Poison
from modgraph.elaboration.site import Site
from modgraph.ops.compared import MIRRORED
from modgraph.syntax import ast

BOUNDS = {
    ">=": ("must be at least {}", "write {name}={}"),
    ">": ("must be more than {}", "choose a number above {}"),
    "<=": ("must be at most {}", "write {name}={}"),
    "<": ("must be less than {}", "choose a number below {}"),
    "==": ("must be {}", "write {name}={}"),
    "!=": ("must be other than {}", "choose something else"),
}


def elaborate_require(statement: ast.Require, site: Site) -> None:
    """Tell what does not hold where the parameter was given; nothing follows from that parameter."""
    for condition in _parts(statement):
        _require(condition, site)


def require_of_arguments(definition: ast.Definition, site: Site) -> None:
    """What a definition asks of its parameters alone, which stand in the scope of the site."""
    known = {parameter.name for parameter in definition.parameters}
    asked = [each for each in definition.body.statements if isinstance(each, ast.Require)]
    for condition in (part for each in asked for part in _parts(each)):
        if known.issuperset(_names(condition)):
            _require(condition, site)


def _require(condition: ast.Expression, site: Site) -> None:
    holds = site.constant(condition, "what is required")
    if holds is True or isinstance(holds, Poison):
        return
    if holds is not False:
        problem = f"a condition is true or false, not {shown_briefly(holds)}"
        site.tell(errors.Arithmetic(span=condition.span, problem=problem, way_out="compare it: x == 1"))
        return
    own = site.scope.body.names
    names = [name for name in _names(condition) if not isinstance(own.get(name, POISON), Entity)]
    site.tell(_broken(condition, names, site))
    own.update(dict.fromkeys(names, POISON))


def _parts(statement: ast.Require) -> Iterator[ast.Expression]:
    """The conditions that all must hold, in order."""
    pending = [statement.condition]
    while pending:
        each = pending.pop()
        if isinstance(each, ast.Binary) and each.operator == "and":
            pending += each.right, each.left
        else:
            yield each


def _names(condition: ast.Expression) -> list[str]:
    """What a condition speaks of, in order."""
    found = dict.fromkeys(tree.name for tree in ast.walk(condition) if isinstance(tree, ast.Name))
    return [name for name in found if name not in constants.FUNCTIONS]


def _broken(condition: ast.Expression, names: list[str], site: Site) -> errors.NotRequired:
    call = site.call
    given = [span for span in map(site.scope.given_at, names) if span is not None]
    span = next(iter(given), call.span if call is not None else None) or condition.span
    callee = call.name if call is not None else site.graph.name
    operator = condition.operator if isinstance(condition, ast.Binary) else ""
    if isinstance(condition, ast.Binary) and operator in (*BOUNDS, "in"):
        left, right = condition.left, condition.right
        if operator in BOUNDS and not isinstance(left, ast.Name):
            left, right, operator = right, left, MIRRORED[operator]
        made = not isinstance(right, ast.Name) and any(name in names for name in _names(right))
        if isinstance(left, ast.Name) and not made:  # of a parameter: each of the two may be what is wrong
            value, bound = site.evaluate(left), site.evaluate(right)
            problem, advice = _out_of_bounds(left.name, value, operator, bound)
            return errors.NotRequired(span=span, callee=callee, name=left.name, problem=problem, way_out=advice)
    written = condition.span.text
    written += ")" * (written.count("(") - written.count(")"))  # a group's span is that of what stands in it
    shown = ", ".join(f"{name}={shown_briefly(site.scope.find(name))}" for name in names) or "not so"
    is_, it = ("are", "one of them") if len(names) > 1 else ("is", "it")
    facts: Any = {
        "problem": f"must be such that {written}, and {is_} {shown}",
        "way_out": f"change {it} until {written}",
    }
    return errors.NotRequired(span=span, callee=callee, name=" and ".join(names) or "this", **facts)


def _out_of_bounds(name: str, value: Any, operator: str, bound: Any) -> tuple[str, str]:
    """What a parameter must be, and how to mend it."""
    if operator in BOUNDS:
        problem, advice = (each.format(shown_briefly(bound), name=name) for each in BOUNDS[operator])
        return f"{problem}, not {shown_briefly(value)}", advice
    problem = f"must be one of {shown_briefly(tuple(bound))[1:-1]}, not {shown_briefly(value)}"
    words = [each for each in bound if isinstance(each, str)]
    return problem, did_you_mean(str(value), words, f"write {name}={shown_value(next(iter(bound), 0))}")
