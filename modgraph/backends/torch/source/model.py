"""Writes a model as one PyTorch file: imports, vendored definitions, and the class of the model.

`forward` returns the outputs, and also the losses if targets are given. The file is compared with its model before it
is written.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from modgraph.backends.errors import NoSource, WrongSource
from modgraph.backends.torch.labelled import find_labels_of_losses, mean_of_loss
from modgraph.backends.torch.model import Model
from modgraph.backends.torch.source.calls import write_items
from modgraph.backends.torch.source.file import File, function
from modgraph.backends.torch.source.formulas import expand, name, text
from modgraph.backends.torch.source.layout import Item, Layout
from modgraph.backends.torch.source.text import LINE, arguments, class_name, literal, prose, wrap_lines
from modgraph.backends.torch.source.writer import Writer
from modgraph.declare import format_value
from modgraph.declare.errors import describe_failure
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, Result, list_padding, outline, weights_of
from modgraph.nn.device import seed_draws
from modgraph.nn.padding import has_labels, repeat_last, valid
from modgraph.passes import scatter_edges
from modgraph.version import VERSION

HEAD = '''"""{title}

Written by modgraph {version}; it needs torch alone, and takes modgraph's weights:
model = {name}(); model.load_state_dict(safetensors.torch.load_file("weights.safetensors")); {call}
B is the axis of examples, "..." stands for any axes before those of one message.
"""

from __future__ import annotations

'''
HEAD_WITH_WEIGHTS = '''"""{title}

Written by modgraph {version}; it needs torch, and safetensors for its weights, which stand next to it:
    {load}; from safetensors.torch import load_file
    model = {name}(); model.load_state_dict(load_file("{weights}")); model.eval()
    {call}
B is the axis of examples, "..." stands for any axes before those of one message.
"""

from __future__ import annotations

'''
TOLERANCE = 1e-5  # relative to the largest magnitude; most files agree to the last bit
MODULE = "a file that modgraph writes"  # the module's name while it runs; no import can have this name
IMPORTS = {  # imports, with patterns for their uses
    "import math": r"\bmath\.",
    "import torch": r"\btorch\.",
    "import torch.nn.functional as F": r"\bF\.",
    "from torch import Tensor": r"\bTensor\b",
    "from torch import nn": r"\bnn\.",
}


def write_source(model: Model, path: Path | None = None) -> str:
    """Write the file: helpers, the classes of definitions, then the model's class.

    A file with a `path` also says how to load its weights, which stand next to it. Raises `ModgraphError` for a layer
    that cannot be copied.
    """
    large = [pool for pool in model.graph.pools().values() if pool.is_large]
    if large:
        reason = f"each of its {large[0].size:,} modules would be one of the file's"
        raise ModgraphError([NoSource(path=f'pool "{large[0].name}"', reason=reason)])
    file, graph = File(), scatter_edges(model.computed)
    layout = Layout(graph, outline(graph).body, [*graph.outputs.values(), *graph.losses.values()])
    tree = file.build_tree(graph, layout)
    weights = {weight.name: weight for weight in weights_of(model.graph)}
    if weights.keys() != tree.weights.keys():  # passes removed nodes that own weights
        tree.weights = weights | tree.weights
        file.add_graph(tree, model.graph, Layout(model.graph, outline(model.graph).body, ()))
    writer = Writer(file, layout, tree, "")
    forward = _forward(writer, model.graph)
    file.define_pools(tree)
    outputs = ", ".join(f"{name}: {model.graph.type_of(result)}" for name, result in model.graph.outputs.items())
    doc = f"{', '.join(f'{name}: {type_}' for name, type_ in model.graph.input_types.items())} to {outputs}."
    frozen = [*tree.write_frozen()]
    own = file.add(class_name(str(model.graph.name)), lambda name: file.class_(name, writer, forward, doc, frozen))
    parts = [each() for each in file.texts.values()]
    file.vendored.calls |= {
        each.attr for part in parts for each in ast.walk(ast.parse(part)) if isinstance(each, ast.Attribute)
    }
    imports, definitions = file.vendored.text()
    texts = [wrap_lines(each) for each in (*definitions, *parts)]
    return "\n\n\n".join([_head(model.graph, own, path) + _imports(imports, "\n".join(texts)), *texts]) + "\n"


def _head(graph: Graph, name: str, path: Path | None) -> str:
    called = arguments(graph)
    inputs = [called[key] for key, each in graph.input_types.items() if each.dtype != "length"]
    said = ", ".join(f"{key}={format_value(value)}" for key, value in graph.parameters.items())
    title = textwrap.wrap(prose(f"{graph.name}({said})"), LINE, subsequent_indent="    ", break_long_words=False)
    facts = {"title": "\n".join(title), "version": VERSION, "name": name}
    facts["call"] = f"output = model({', '.join(inputs)})"
    if path is None:
        return HEAD.format(**facts)
    load = f"from {path.stem} import {name}"
    if not path.stem.isidentifier():
        load = f'import runpy; {name} = runpy.run_path("{prose(path.name)}")["{name}"]'
    return HEAD_WITH_WEIGHTS.format(**facts, load=load, weights=prose(path.with_suffix(".safetensors").name))


def _imports(lines: list[str], whole: str) -> str:
    """Write the import lines that the texts need, torch's last."""
    froms: dict[str, list[str]] = defaultdict(list)
    for line in sorted({*lines, *(line for line, mark in IMPORTS.items() if re.search(mark, whole))}):
        source, _, what = line.partition(" import ")
        froms[source].append(what)
    found = [source + (f" import {', '.join(what)}" if any(what) else "") for source, what in froms.items()]
    found.sort(key=lambda line: (not line.startswith("import"), line))
    groups = [[line for line in found if ("torch" in line) is own] for own in (False, True)]
    return "\n\n".join("\n".join(group) for group in groups if group)


def _forward(writer: Writer, graph: Graph) -> str:
    lines, layout, computed = writer.lines, writer.layout, writer.graph
    names, targets = arguments(graph), [*graph.target_types]
    for key, called in names.items():
        lines.give(Result(key), called)
    lines.lines += _prepare_inputs(writer, graph, names)
    now, later = _split_losses(
        layout, writer.items(layout.root, (*computed.outputs.values(), *computed.losses.values()))
    )
    write_items(writer, now, " and ".join(f"{names[target]} is not None" for target in targets))
    x, found = name(next(iter(names.values()))), dict[str, str]()
    for key, each in computed.outputs.items():
        said = lines.variable(each) if graph.losses else ast.unparse(lines.read(each))
        is_same = each.node in layout.invariant
        lines.left[each] += is_same and bool(graph.losses)  # the last line reads it again
        found[key] = ast.unparse(expand(writer.value(each), x, 0, inside=False)) if is_same else said
    result = f"{{{', '.join(f'{literal(key)}: {value}' for key, value in found.items())}}}"
    result = next(iter(found.values())) if len(found) == 1 else result
    doc = '"""The output."""'
    if graph.losses:
        doc = '"""The output, and the losses by name where targets are given."""'
        if targets:
            lines.line(f"if {' or '.join(f'{names[target]} is None' for target in targets)}:")
            lines.line(f"    return {result}")
        write_items(writer, later)
        lines.line(f"losses = {{{', '.join(_losses(writer, graph, names))}}}")
        result = f"{result}, losses"
    lines.line(f"return {result}")
    types = graph.input_types
    given = [names[key] for key, each in types.items() if each.dtype != "length"]
    given += [f"{names[key]}=None" for key in (*(key for key in types if types[key].dtype == "length"), *targets)]
    return function("forward", ["self", *given], [doc, *lines.lines])


def _split_losses(layout: Layout, items: list[Item]) -> tuple[list[Item], list[Item]]:
    """Split items into those before the `return` of outputs and those that only losses need. An item that samples keeps
    its order, and so do the items that it depends on."""
    stay, now, later = set(layout.first), list[Item](), list[Item]()
    for item in reversed(items):
        nodes = layout.inside(item)
        if (now and layout.is_chance(item)) or any(node.name in stay for node in nodes):
            stay |= {each.node for node in nodes for each in layout.list_reads(node)}
            now.insert(0, item)
        else:
            later.insert(0, item)
    return now, later


def _prepare_inputs(writer: Writer, graph: Graph, names: Mapping[str, str]) -> Iterator[str]:
    """Write the lines that prepare inputs. Padding repeats the last element in training; absent lengths become full."""
    for key, type_ in graph.input_types.items():
        for axis, length in list_padding(graph, type_):
            filled = writer.vendored.name_of(repeat_last)
            yield f"if self.training and {names[length]} is not None:"
            yield f"    {names[key]} = {filled}({names[key]}, {axis}, {names[length]})"
    for key, type_ in graph.input_types.items():
        if type_.dtype == "length":
            places = ((names[source], each.find_length(type_.of)) for source, each in graph.input_types.items())
            x, at = next((x, at) for x, at in places if at is not None)
            yield f"if {names[key]} is None:"
            yield f"    {names[key]} = torch.full({x}.shape[:1], {x}.shape[{1 + at}], device={x}.device)"


def _losses(writer: Writer, graph: Graph, names: Mapping[str, str]) -> Iterator[str]:
    """Write each loss by name: the mean over the batch, or over the examples with labels."""
    labelled, name_of = find_labels_of_losses(graph), writer.vendored.name_of
    for key, result in writer.graph.losses.items():
        examples = list[str]()  # the examples with a label, by target
        for each in labelled.get(key) or ():
            target, mask = names[each.target], "None"
            if each.padding:
                place = name_of(valid)
                mask = " & ".join(f"{place}({target}, {axis}, {names[length]})" for axis, length in each.padding)
            function = name_of(has_labels)
            examples.append(f"{function}({target}, {mask}, {each.ignored!r}, {each.missing!r})")
        if examples:
            mean = name_of(mean_of_loss)
            said = f"{mean}({writer.lines.variable(result)}, {' | '.join(examples)})"
        else:
            said = ast.unparse(text("_0.mean()", writer.lines.read(result)))
        yield f"{literal(key)}: {said}"


# ------------------------------------------------------------ verified


def verify_source(model: Model, batch: Mapping[str, Tensor], path: Path | None = None) -> str:
    """Write the file of a model, and compare both on a batch, with targets in training and without targets in
    evaluation.

    Raises `ModgraphError` for a layer that cannot be copied, and if the file computes something else.
    """
    source, mode, problems = write_source(model, path), model.training, list[str]()
    inputs = {name: value for name, value in batch.items() if name in model.graph.input_types}
    module = sys.modules[MODULE] = ModuleType(MODULE)  # `dataclass` needs it
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            with _reporting():
                exec(compile(source, MODULE, "exec"), vars(module))  # generated text that quotes all text of the spec
            for given in (batch, inputs):
                seed_draws(0)
                losses = model.graph.target_types.keys() <= given.keys()
                computed = model.compute(given, losses=losses, moves=False)
                expected = {f"output {name}": each for name, each in computed.outputs.items()} | computed.losses
                seed_draws(0)
                with _reporting():
                    found = _run(vars(module), model, given)
                problems += _differences(expected, {name: each for name, each in found.items() if name in expected})
                model.eval()
    finally:
        model.train(mode)
        del sys.modules[MODULE]
    if problems:
        raise ModgraphError(WrongSource(problem=problem) for problem in problems)
    return source


@contextmanager
def _reporting() -> Iterator[None]:
    """Report any exception of the generated text as a mistake of modgraph."""
    try:
        yield
    except Exception as error:
        raise ModgraphError([WrongSource(problem=f"does not run: {describe_failure(error)}")]) from error


def _run(definitions: Mapping[str, Any], model: Model, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Run the last class of a file with the model's weights, and return its outputs and losses."""
    with torch.device("meta"):
        last = [each for each in definitions.values() if isinstance(each, type) and each.__module__ == MODULE][-1]
        other: nn.Module = last()
    other.load_state_dict(model.state_dict(), assign=True)
    other.train(model.training)
    called = arguments(model.graph)
    found = other(**{called[name]: value for name, value in given.items()})
    outputs, losses = found if isinstance(found, tuple) else (found, {})
    outputs = outputs if len(model.graph.outputs) > 1 else dict.fromkeys(model.graph.outputs, outputs)
    return {**{f"output {name}": each for name, each in outputs.items()}, **losses}


def _differences(expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> Iterator[str]:
    """Describe each value that differs."""
    if expected.keys() != found.keys():
        yield f"gives {', '.join(found)} in place of {', '.join(expected)}"
        return
    for output, value in expected.items():
        other = found[output]
        if value.shape != other.shape:
            yield f"computes {output} of shape {list(other.shape)} in place of {list(value.shape)}"
            continue
        size = max(1.0, value.nan_to_num(0, 0, 0).abs().max().item()) if value.numel() else 1.0
        if not torch.allclose(other, value, rtol=0, atol=TOLERANCE * size, equal_nan=True):
            yield f"computes {output} with a difference of {(other - value).abs().max().item():.1e}"
