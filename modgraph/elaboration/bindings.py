"""Names bound to values, and members of families."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from modgraph.diagnostics import Span
from modgraph.elaboration import errors
from modgraph.elaboration.entities import (
    POISON,
    Family,
    ModuleEntity,
    Poison,
    RouterEntity,
    TensorTuple,
    WithAxis,
    described,
    is_callable,
    several,
)
from modgraph.elaboration.scans import carried_out
from modgraph.elaboration.site import Site
from modgraph.syntax import ast
from modgraph.types import is_key


def elaborate_binding(statement: ast.Binding, site: Site) -> None:
    keys = [member_key(reference, site) for reference in statement.references]
    name = "_".join(reference.name for reference in statement.references)
    indexed = dict.fromkeys(key for key in keys if key is not None)
    if indexed and POISON not in keys:
        inside = site.under(site.scope.next_binding(f"{name}.{'.'.join(map(str, indexed))}", is_member=True))
    else:
        inside = named_after(name, site)
    value = inside.evaluate(statement.value)
    values = _results(value, len(keys))
    if isinstance(value, Poison):
        values = [POISON] * len(keys)
    elif len(values) != len(keys):
        site.tell(errors.NamesAndResults(span=statement.span, names=len(keys), values=len(values)))
        values = [POISON] * len(keys)
    for reference, key, each in zip(statement.references, keys, values, strict=True):
        if carried_out(reference.name, site):
            site.tell(errors.NotAState(span=reference.span, name=reference.name))
        _bind(reference, key, each, statement, site)


def _results(value: Any, names: int) -> list[Any]:
    """What several names are bound to, or one; a family is one result, or as many as it has members."""
    if isinstance(value, TensorTuple):
        return list(value.tensors)
    return [value] if names == 1 else list(several(value))


def member_key(reference: ast.Reference, site: Site) -> Any:
    """The member that `s[k]` names, or None for a plain name."""
    if reference.index is None:
        return None
    key = site.constant(reference.index, "an index")
    if isinstance(key, Poison) or is_key(key):
        return key
    problem = f"a member is named by a whole number from 0 or a word, not by {described(key)}"
    return site.tell(errors.BadIndex(span=reference.index.span, problem=problem))


def _bind(reference: ast.Reference, key: Any, value: Any, statement: ast.Binding, site: Site) -> None:
    if is_callable(value):
        advice = f"apply it to a value, or declare it: module {reference.name} = …"
        found = described(value)
        site.tell(errors.NotValue(span=statement.value.span, what="what is bound", found=found, way_out=advice))
        value = POISON
    if isinstance(site.scope.bound(reference.name), ModuleEntity | WithAxis | RouterEntity):
        site.tell(errors.DuplicateName(span=reference.span, name=reference.name))
        return
    if isinstance(value, Family):  # as a block gives it; from here on it is called so
        value = replace(value, name=reference.name)
    site.context.observe(reference.span, value)
    remember(reference, key, value, site)


def remember(reference: ast.Reference, key: Any, value: Any, site: Site) -> None:
    """Bind a name, or a member of a family, which is visible in the whole body."""
    if key is None or isinstance(key, Poison):
        site.scope.rebind(reference.name, value)
        return
    body = site.scope.body
    family = body.names.get(reference.name)
    if isinstance(family, Poison):
        return
    if not isinstance(family, Family):
        if family is not None:
            advice = "a family needs a name of its own"
            site.tell(errors.DuplicateName(span=reference.span, name=reference.name, way_out=advice))
            return
        family = Family(reference.name, {})
        body.declare(reference.name, family)
    if isinstance(value, Poison):
        body.declare(reference.name, POISON)
    else:
        family.members[key] = value


def named_after(name: str, site: Site) -> Site:
    """Where the right side of a statement stands: its inline ops are named after what it binds."""
    return site.under(site.scope.next_binding(name))


def is_taken(name: str, span: Span, site: Site) -> bool:
    if name in site.scope.names:
        site.tell(errors.DuplicateName(span=span, name=name))
        return True
    return False
