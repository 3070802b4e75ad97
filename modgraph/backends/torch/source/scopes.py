"""The iterations of a `repeat` that have weights of their own, each as a part of the model with a class of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from torch import nn

from modgraph.backends.torch.construct import paths_of
from modgraph.backends.torch.route import CompiledRoute
from modgraph.backends.torch.run import Once, Step
from modgraph.backends.torch.scan import CompiledScan
from modgraph.backends.torch.source.arrays import computing, is_array, told
from modgraph.backends.torch.source.names import below
from modgraph.ir import Result
from modgraph.nn import Parameter

FEW = 3  # steps that are not worth a class


@dataclass(frozen=True)
class Scope:
    """Steps that stand below one name, as does all that has weights in them."""

    path: str
    steps: list[Step]
    takes: list[Result]


def in_scopes(steps: Sequence[Step], model: nn.Module, labelled: Set[str] = frozenset()) -> list[Step | Scope]:
    """The steps in order, those of an iteration together as far as nothing outside is needed between them, and none
    depends on targets, which a call may leave out: those are `labelled`."""
    found: list[Step | Scope] = list(steps)
    paths = paths_of(model)
    for path in dict.fromkeys(path for step in steps if (path := _numbered(step.node, model)) is not None):
        inside = [step for step in steps if step.node.startswith(f"{path}.")]
        if len([step for step in inside if not is_array(step)]) < FEW or not _is_closed(inside, path, paths, steps):
            continue
        scope = Scope(path, inside, _taken(inside))
        if not labelled.isdisjoint(step.node for step in inside):
            continue
        if scope.takes and (together := _together(found, scope)) is not None:
            found = together
    return found


def _numbered(node: str, model: nn.Module) -> str | None:
    """The iteration that a node stands in, if this has weights."""
    parts = node.split(".")
    for at, part in enumerate(parts[:-1], start=1):
        if part.isdigit():
            path = ".".join(parts[:at])
            module = below(model, path)
            return path if module is not None and any(True for _ in module.state_dict()) else None
    return None


def _is_closed(inside: Sequence[Step], path: str, paths: dict[int, str], steps: Sequence[Step]) -> bool:
    """Whether all modules with weights stand below a path, and nothing is shared with routes elsewhere."""
    names = [f"{paths.get(id(module), '')}." for step in inside for module in _modules(step.compute)]
    others = {step.common for step in steps if step not in inside}
    return all(name.startswith(f"{path}.") for name in names) and not others & {
        step.common for step in inside if step.common
    }


def _modules(compute: Any) -> Iterator[nn.Module]:
    """The modules with weights that something computes with."""
    parts: list[Any] = [compute]
    if isinstance(compute, CompiledRoute):
        parts = [compute.pool, compute.router]
    elif isinstance(compute, CompiledScan):
        parts = [each for step in compute.plan.steps for each in _modules(step.compute)]
    elif isinstance(compute, Once):
        parts = [compute.compute]
    elif isinstance(computing(compute), Parameter):
        yield computing(compute).home
        return
    yield from (part for part in parts if isinstance(part, nn.Module) and any(True for _ in part.state_dict()))


def _taken(inside: Sequence[Step]) -> list[Result]:
    """What steps take from others, each once, in the order in which they do."""
    own = {step.node for step in inside}
    read = [each for step in inside for each in (*told(step), *step.lengths)]
    return list(dict.fromkeys(each for each in read if each.node not in own))


def _together(items: Sequence[Step | Scope], scope: Scope) -> list[Step | Scope] | None:
    """The items with those of a scope as one, where the first of them that depends on examples stands; None if others
    need what it gives before, or give what it needs behind."""
    own = {step.node for step in scope.steps}
    first = next(step for step in scope.steps if not is_array(step))
    found: list[Step | Scope] = []
    for item in items:
        if item is first:
            found.append(scope)
        if isinstance(item, Scope) or item.node not in own:
            found.append(item)
    at = found.index(scope)
    behind = {node for item in found[at:] for node in _nodes(item)} - own
    needs_behind = any(each.node in behind for each in scope.takes)
    needed_before = any(each.node in own for item in found[:at] for each in _reads(item))
    return None if needs_behind or needed_before else found


def _nodes(item: Step | Scope) -> list[str]:
    return [item.node] if isinstance(item, Step) else [step.node for step in item.steps]


def _reads(item: Step | Scope) -> Sequence[Result]:
    return [*told(item), *item.lengths] if isinstance(item, Step) else item.takes
