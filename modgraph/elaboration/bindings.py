"""Names bound to values, and members of families."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from modgraph.diagnostics import Span
from modgraph.elaboration import entities, errors
from modgraph.elaboration.entities import POISON, AxisEntity, Family, Poison, described, is_callable, several
from modgraph.elaboration.scans import carried_out
from modgraph.elaboration.site import Site
from modgraph.syntax import ast
from modgraph.types import is_key


def elaborate_binding(statement: ast.Binding, site: Site) -> None:
    references, span = statement.references, statement.span
    keys = [member_key(reference, site) for reference in references]
    name = "_".join(reference.name for reference in references)
    indexed = dict.fromkeys(key for key in keys if key is not None)
    if indexed and POISON not in keys:
        inside = site.under(site.scope.next_binding(f"{name}.{'.'.join(map(str, indexed))}", is_member=True))
    else:
        inside = named_after(name, site)
    value = inside.evaluate(statement.value)
    if isinstance(value, entities.TensorTuple):
        values = list(value.tensors)
    else:  # a family is one result, or as many as it has members
        values = [value] if len(keys) == 1 else list(several(value))
    if len(values) != len(keys) and not isinstance(value, Poison):
        value = site.tell(errors.NamesAndResults(span=span, names=len(keys), values=len(values)))
    if isinstance(value, Poison):
        values = [POISON] * len(keys)
    for reference, key, each in zip(references, keys, values, strict=True):
        if carried_out(reference.name, site):
            site.tell(errors.NotAState(span=reference.span, name=reference.name))
        if is_callable(each):
            advice = f"apply it to a value, or declare it: module {reference.name} = …"
            facts: Any = {"what": "what is bound", "found": described(each), "way_out": advice}
            each = site.tell(errors.NotValue(span=statement.value.span, **facts))
        if isinstance(site.scope.bound(reference.name), entities.DeclaredEntity | AxisEntity):
            site.tell(errors.DuplicateName(span=reference.span, name=reference.name))
            continue
        if isinstance(each, Family):  # as a block gives it; from here on it is called so
            each = replace(each, name=reference.name)
        site.context.observe(reference.span, each)
        remember(reference, key, each, site)


def member_key(reference: ast.Reference, site: Site) -> Any:
    """The member that `s[k]` names, or None for a plain name."""
    if reference.index is None:
        return None
    key = site.constant(reference.index, "an index")
    if isinstance(key, Poison) or is_key(key):
        return key
    problem = f"a member is named by a whole number from 0 or a word, not by {described(key)}"
    return site.tell(errors.BadIndex(span=reference.index.span, problem=problem))


def remember(reference: ast.Reference, key: Any, value: Any, site: Site) -> None:
    """Bind a name, or a member of a family, which is visible in the whole body."""
    name, body = reference.name, site.scope.body
    family = body.names.get(name)
    if key is None or isinstance(key, Poison):
        site.scope.rebind(name, value)
    elif isinstance(family, Poison):
        return
    elif family is not None and not isinstance(family, Family):
        site.tell(errors.DuplicateName(span=reference.span, name=name, way_out="a family needs a name of its own"))
    elif isinstance(value, Poison):
        body.declare(name, POISON)
    else:
        body.names.setdefault(name, Family(name, {})).members[key] = value


def named_after(name: str, site: Site) -> Site:
    """Where the right side of a statement stands: its inline ops are named after what it binds."""
    return site.under(site.scope.next_binding(name))


def is_taken(name: str, span: Span, site: Site) -> bool:
    if name in site.scope.names:
        site.tell(errors.DuplicateName(span=span, name=name))
        return True
    return False
