"""Writes scans: the step as a function within the function, and the call that takes it along a sequence."""

from __future__ import annotations

import ast

from modgraph.backends.errors import NoSource
from modgraph.backends.torch.source.copied import STANDALONE
from modgraph.backends.torch.source.formulas import Expression, Value, name
from modgraph.backends.torch.source.function import Lines, expanded
from modgraph.backends.torch.source.layout import Layout
from modgraph.backends.torch.source.writer import Writer
from modgraph.declare import sizes
from modgraph.diagnostics import ModgraphError
from modgraph.ir import OpNode, Result, ScanNode


def scan_of(writer: Writer, node: ScanNode) -> None:
    """The lines of one scan."""
    lines, graph = writer.lines, writer.graph
    inputs = graph.inputs(node.name)
    operands = [*inputs.values()]
    values = writer.for_examples(node, operands, [writer.value(each) for each in operands])
    for each in writer.layout.counts(node):
        lines.left[each] -= 1
    given = {slot: _variable(writer, of, value) for (slot, of), value in zip(inputs.items(), values, strict=True)}
    results = [Result(node.name, at) for at in range(len(node.types))]
    chance = any(isinstance(each, OpNode) and writer.layout.is_chance(each) for each in node.region.graph)
    kept = results if chance else [each for each in results if lines.left[each]]
    program = writer.layout.programs[node.name]
    assert isinstance(program, ScanNode)
    wanted = (*node.following, *(node.stacked[each.index] for each in kept))
    layout = Layout(node.region.graph, program.region.graph, wanted, node)
    inner = Lines(layout.word)
    inner.taken = lines.taken
    step = Writer(writer.file, layout, writer.tree, writer.root, inner)
    step.helpers, step.borrowed, step.names = writer.helpers, writer.borrowed, writer.names
    length = ""
    for each in writer.layout.lengths(node):
        lines.left[each] -= 1
        length = f", {lines.variable(each)}"
    if length and any(isinstance(each, OpNode) and each.op.over_batch for each in layout.inside(layout.root)):
        reason = "an op over the batch in its steps leaves out examples that have ended"
        raise ModgraphError([NoSource(path=f'scan "{node.name}"', reason=reason)])
    items = step.flat(layout.root)
    step.count(items, wanted)
    sequence = given.pop(node.variable)
    starts = [given.pop(state) if state in given else _zeros(step, node, sequence, state) for state in node.states]
    for slot, said in given.items():
        inner.values[Result(slot)] = name(said)
    function = inner.named("step")
    takes = [inner.named(each.rpartition(".")[2]) for each in (node.variable, *node.states)]
    for slot, called in zip((node.variable, *node.states), takes, strict=True):
        inner.give(Result(slot), called)
    step.write(items)
    found = [ast.unparse(_for_examples(step, each, takes[0], node)) for each in wanted]
    count = len(node.states)
    lines.line("")
    with lines.indented(f"def {function}({', '.join(takes)}):"):
        for line in inner.lines:
            lines.line(line)
        lines.line(f"return [{', '.join(found[:count])}], [{', '.join(found[count:])}]")
    lines.line("")
    along = writer.copied.needed((STANDALONE, "scan"))
    lines.set_all(kept, name(f"{along}({function}, {sequence}, [{', '.join(starts)}]{length})"))


def _variable(writer: Writer, of: Result, value: Value) -> str:
    said = ast.unparse(value.said)
    if said.isidentifier():
        return said
    called = writer.lines.named(writer.lines.word(of))
    writer.lines.line(f"{called} = {said}")
    return called


def _for_examples(step: Writer, result: Result, x: str, node: ScanNode) -> Expression:
    """A result of a step for each example."""
    value = step.value(result)
    rank = len(step.type_of(Result(node.variable)).shape)
    return expanded(value, name(x), rank, step.inside) if result.node in step.layout.alike else value.said


def _zeros(step: Writer, node: ScanNode, sequence: str, state: str) -> str:
    """The state before the first step where none is given."""
    shape = ", ".join(map(str, sizes(step.type_of(Result(state)).shape)))
    kind = step.type_of(Result(node.variable)).dtype
    learnt = any(not each.buffer and each.name.startswith(f"{step.root}.") for each in step.tree.weights.values())
    weight = "next(self.parameters()).dtype" if learnt or not step.root else "torch.get_default_dtype()"
    dtype = f"{sequence}.dtype" if kind == "float" else weight
    return f"torch.zeros(len({sequence}), {shape}, dtype={dtype}, device={sequence}.device)"
