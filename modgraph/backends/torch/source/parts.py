"""Writes a part of a model that has a class of its own, and the call of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from modgraph.backends.torch.construct import paths_of
from modgraph.backends.torch.plan import Plan
from modgraph.backends.torch.source.body import Body
from modgraph.backends.torch.source.classes import Class
from modgraph.backends.torch.source.formulas import name
from modgraph.backends.torch.source.held import held_all
from modgraph.backends.torch.source.names import below
from modgraph.backends.torch.source.pools import function
from modgraph.backends.torch.source.scopes import Scope
from modgraph.backends.torch.source.starts import frozen
from modgraph.backends.torch.source.steps import Writer, reads


def part_of(writer: Writer, scope: Scope, plan: Plan) -> None:
    """The call of a part of the model, whose class is written."""
    read, readers = reads(plan)
    inner = Body(writer.graph, read, readers)
    own = {step.node for step in scope.steps}
    inside, _ = reads(replace(plan, steps=scope.steps, wanted=()))
    outside = Counter(read)
    outside.subtract(inside)
    gives = [each for each in outside if each.node in own and outside[each] > 0]
    order = [step.node for step in scope.steps]
    last = max(order.index(each.node) for each in gives)
    gives.sort(key=lambda each: (order.index(each.node) != last, order.index(each.node)))  # what comes last is first
    inner.uses, inner.left = Counter([*inside, *gives]), Counter([*inside, *gives])
    inner.readers = {each: node for each, node in readers.items() if node in own}
    root = below(writer.home.root, scope.path)
    assert root is not None
    home = Class(writer.home.file, root, f"{scope.path}.")
    names = ["x"] if len(scope.takes) == 1 else [writer.body.called(each) for each in scope.takes]
    takes = [inner.argument(each, called) for each, called in zip(scope.takes, names, strict=True)]
    inner.owners |= {called: [each] for called, each in zip(takes, scope.takes, strict=True)}
    Writer(inner, home, writer.graph, paths_of(root), writer.rules, prefix=f"{scope.path}.").write(scope.steps)
    found = inner.variables(gives)
    held_all(home, writer.graph, home.prefix)
    home.after += frozen(home)
    method = function(f"forward({', '.join(['self', *takes])})", [*inner.folded(), f"return {', '.join(found)}"])
    name_ = writer.home.file.add(
        home.text(f"One of {scope.path.rpartition('.')[0]}.", [method]), scope.path.rpartition(".")[0]
    )
    writer.home.members[scope.path] = f"{name_}()"
    writer.home.scopes.append(f"{scope.path}.")
    given = writer.body.variables(scope.takes, again=True)
    writer.body.left.subtract(each for each in inside if each in scope.takes)
    said = f"{writer.home.at(scope.path)}({', '.join(given)})"
    if len(gives) == 1:
        writer.body.gives(gives[0], name(said), writer.consumer(gives[0]))
    else:
        writer.body.assign_all(gives, said)
