"""Writes a model's `forward`: its outputs, and its losses where targets are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from modgraph.backends.torch.labelled import TargetLabels, labels_of_losses
from modgraph.backends.torch.source.copied import STANDALONE
from modgraph.backends.torch.source.formulas import name, text
from modgraph.backends.torch.source.function import expanded
from modgraph.backends.torch.source.layout import Item, Layout
from modgraph.backends.torch.source.names import arguments
from modgraph.backends.torch.source.text import literal
from modgraph.backends.torch.source.writer import Writer
from modgraph.ir import Body, Graph, Result, padding_of


def write_model(writer: Writer, graph: Graph) -> str:
    """The text of a model's `forward`."""
    from modgraph.backends.torch.source.file import function

    lines, layout, computed = writer.lines, writer.layout, writer.graph
    names, targets = arguments(graph), [*graph.target_types]
    for key, called in names.items():
        lines.give(Result(key), called)
    for line in _prepared(writer, graph, names):
        lines.line(line)
    items = writer.flat(layout.root)
    writer.count(items, (*computed.outputs.values(), *computed.losses.values()))
    now, later = _in_order(layout, items)
    writer.write(now, " and ".join(f"{names[target]} is not None" for target in targets))
    if graph.losses:
        outputs = {key: lines.variable(each) for key, each in computed.outputs.items()}
    else:
        outputs = {key: ast.unparse(lines.read(each)) for key, each in computed.outputs.items()}
    x = next(iter(names.values()))
    for key, each in computed.outputs.items():
        if each.node in layout.alike:
            outputs[key] = ast.unparse(expanded(writer.value(each), name(x), 0, False))
    result = f"{{{', '.join(f'{literal(key)}: {value}' for key, value in outputs.items())}}}"
    result = next(iter(outputs.values())) if len(outputs) == 1 else result
    if graph.losses:
        if targets:
            lines.line(f"if {' or '.join(f'{names[target]} is None' for target in targets)}:")
            lines.line(f"    return {result}")
        writer.write(later)
        lines.line(f"losses = {{{', '.join(_losses(writer, graph, names))}}}")
        result = f"{result}, losses"
    lines.line(f"return {result}")
    types = graph.input_types
    given = [names[key] for key, each in types.items() if each.dtype != "length"]
    given += [f"{names[key]}=None" for key in (*(key for key in types if types[key].dtype == "length"), *targets)]
    doc = f'"""The output{", and the losses by name where targets are given" if graph.losses else ""}."""'
    return function("forward", ["self", *given], [doc, *lines.lines])


def _in_order(layout: Layout, items: list[Item]) -> tuple[list[Item], list[Item]]:
    """What comes before the outputs are returned, and what losses alone need. What they draw comes where it stands, as
    all that it is made of."""
    stay: set[str] = set(layout.first)
    found: list[bool] = []
    for item in reversed(items):
        nodes = layout.inside(item)
        drawn = found and any(found) and layout.is_chance(item)
        is_first = bool(drawn) or any(node.name in stay for node in nodes)
        if is_first:
            stay |= {each.node for node in nodes for each in layout.reads(node)}
        found.append(is_first)
    now = [item for item, first in zip(items, reversed(found), strict=True) if first]
    return now, [item for item, first in zip(items, reversed(found), strict=True) if not first]


def _prepared(writer: Writer, graph: Graph, names: Mapping[str, str]) -> Iterator[str]:
    """What is done to inputs first: padding refilled while the model learns, lengths that are not given made full."""
    for key, type_ in graph.input_types.items():
        for axis, length in padding_of(graph, type_):
            filled = writer.copied.needed(("modgraph.backends.torch.padding", "refilled"))
            yield f"if self.training and {names[length]} is not None:"
            yield f"    {names[key]} = {filled}({names[key]}, {axis}, {names[length]})"
    for key, type_ in graph.input_types.items():
        if type_.dtype != "length":
            continue
        source, at = next(
            (source, each.position(type_.of))
            for source, each in graph.input_types.items()
            if each.position(type_.of) is not None
        )
        x = names[source]
        yield f"if {names[key]} is None:"
        yield f"    {names[key]} = torch.full({x}.shape[:1], {x}.shape[{1 + (at or 0)}], device={x}.device)"


def _losses(writer: Writer, graph: Graph, names: Mapping[str, str]) -> Iterator[str]:
    """Each loss by its name: the mean over the batch, or over the examples that have labels."""
    labelled = labels_of_losses(graph)
    for key, result in writer.graph.losses.items():
        labels = labelled.get(key)
        if not labels:
            yield f"{literal(key)}: {ast.unparse(text('_0.mean()', writer.lines.read(result)))}"
            continue
        value = writer.lines.variable(result)
        mean = writer.copied.needed(("modgraph.backends.torch.labelled", "mean_of_loss"))
        yield f"{literal(key)}: {mean}({value}, {' | '.join(_examples(writer, each, names) for each in labels)})"


def _examples(writer: Writer, labels: TargetLabels, names: Mapping[str, str]) -> str:
    """Which examples have a label: an expression."""
    target, real = names[labels.target], "None"
    if labels.padding:
        place = writer.copied.needed((STANDALONE, "real_places"))
        real = " & ".join(f"{place}({target}, {axis}, {names[length]})" for axis, length in labels.padding)
    function = writer.copied.needed((STANDALONE, "with_labels"))
    return f"{function}({target}, {real}, {labels.ignored!r}, {labels.missing!r})"
