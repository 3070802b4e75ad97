"""Writes scans: the step as a function within the function, and the call that takes it along a sequence."""

from __future__ import annotations

from functools import partial

from torch import nn

from modgraph.backends.errors import NoSource
from modgraph.backends.torch.plan import Plan, needed
from modgraph.backends.torch.route import CompiledRoute
from modgraph.backends.torch.run import Step
from modgraph.backends.torch.scan import CompiledScan
from modgraph.backends.torch.source.body import Body
from modgraph.backends.torch.source.classes import Class
from modgraph.backends.torch.source.pools import function
from modgraph.backends.torch.source.routes import pool_of
from modgraph.backends.torch.source.steps import ALONE, Writer, reads
from modgraph.declare import sizes
from modgraph.diagnostics import ModgraphError
from modgraph.ir import OpNode, Result
from modgraph.nn import selected


def scan_of(writer: Writer, step: Step, scan: CompiledScan) -> None:
    """The lines of one scan."""
    outer, node = writer.body, scan.node
    if scan.over_batch and step.length is not None:
        reason = "an op over the batch in its steps leaves out examples that have ended"
        raise ModgraphError([NoSource(path=f'scan "{node.name}"', reason=reason)])
    given = dict(zip(scan.slots, outer.variables(step.operands), strict=True))
    sequence = given.pop(node.variable)
    zeros = partial(_zeros, scan, sequence, writer.home)
    starts = [given.pop(state) if state in given else zeros(state) for state in node.states]
    length = f", {outer.variables([step.length])[0]}" if step.length is not None else ""
    results = [each for at, _ in enumerate(node.types) if outer.uses[each := Result(step.node, at)]]
    stacked = [scan.plan.wanted[len(node.states) + each.index] for each in results]
    plan = needed(scan.plan.steps, (*scan.plan.wanted[: len(node.states)], *stacked))
    _refuse_unread_draws(scan, plan)
    inner = Body(node.region.graph, *reads(plan), taken=outer.taken)
    for slot, value in given.items():
        inner.known(Result(slot), value)
    advance = inner.named("step")
    x, *states = (inner.argument(Result(each), each.rpartition(".")[2]) for each in (node.variable, *node.states))
    steps = Writer(inner, writer.home, node.region.graph, writer.paths, writer.rules)
    for inside in plan.steps:
        if isinstance(inside.compute, CompiledRoute) and isinstance(inside.compute.form, selected.SelectedGathered):
            inner.begun[inside.node] = outer.named("gathered_modules")
            outer.line(f"{inner.begun[inside.node]} = {pool_of(steps, inside, inside.compute)}.gathered()")
    steps.write(plan.steps)
    found = inner.returned(plan.wanted)
    unpacked = [f"({x},) = slices", *([f"({', '.join(states)},) = states"] if states else [])]
    count = len(states)
    ending = f"return [{', '.join(found[:count])}], [{', '.join(found[count:])}]"
    outer.line("")
    for line in function(f"{advance}(slices, states)", [*unpacked, *inner.folded(), ending]).splitlines():
        outer.line(line)
    outer.line("")
    along = writer.home.file.copied.needed((ALONE, "scan"))
    outer.assign_all(results, f"{along}({advance}, [{sequence}], [{', '.join(starts)}]{length})")


def _refuse_unread_draws(scan: CompiledScan, written: Plan) -> None:
    """Raises `ModgraphError` where a step of the model draws what nothing reads: without it all later draws differ."""
    there = {step.node for step in written.steps}
    for step in scan.plan.steps:
        node = scan.node.region.graph[step.node]
        if step.node not in there and isinstance(node, OpNode) and (node.op.draws or node.op.zero_outside_training):
            reason = f'its step draws "{node.name}", which nothing reads: leave that out, or read it'
            raise ModgraphError([NoSource(path=f'scan "{scan.node.name}"', reason=reason)])


def _zeros(scan: CompiledScan, sequence: str, home: Class, state: str) -> str:
    """The state before the first step where none is given."""
    shape = ", ".join(map(str, sizes(scan.node.region.graph[state].types[0].shape)))
    kind = scan.node.region.graph[scan.node.variable].types[0].dtype
    weights = home.root.state_dict(keep_vars=True).items()
    first = next((name for name, each in weights if isinstance(each, nn.Parameter) and each.is_floating_point()), None)
    weight = "torch.get_default_dtype()" if first is None else f"{home.at(first)}.dtype"
    dtype = f"{sequence}.dtype" if kind == "float" else weight
    return f"torch.zeros(len({sequence}), {shape}, dtype={dtype}, device={sequence}.device)"
