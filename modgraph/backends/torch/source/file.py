"""A model as one file of PyTorch."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Iterator

from modgraph.backends.torch.construct import paths_of
from modgraph.backends.torch.labelled import TargetLabels
from modgraph.backends.torch.model import Model
from modgraph.backends.torch.plan import needed
from modgraph.backends.torch.route import CompiledRoute
from modgraph.backends.torch.run import Step
from modgraph.backends.torch.scan import CompiledScan
from modgraph.backends.torch.source.body import Body
from modgraph.backends.torch.source.classes import LINE, NAME, Class, File, laid_out
from modgraph.backends.torch.source.copied import Copied
from modgraph.backends.torch.source.held import held_all
from modgraph.backends.torch.source.names import arguments
from modgraph.backends.torch.source.order import before_return, find_dependents
from modgraph.backends.torch.source.parts import part_of
from modgraph.backends.torch.source.pools import function
from modgraph.backends.torch.source.quote import literal, prose
from modgraph.backends.torch.source.routes import route_of
from modgraph.backends.torch.source.scans import scan_of
from modgraph.backends.torch.source.scopes import Scope, in_scopes
from modgraph.backends.torch.source.starts import frozen
from modgraph.backends.torch.source.steps import Rules, Writer, reads
from modgraph.declare import shown_value
from modgraph.ir import Result, weights_of
from modgraph.nn import selected
from modgraph.version import VERSION

RULES: Rules = {CompiledRoute: route_of, CompiledScan: scan_of}
HEAD = '''"""{title}

Written by modgraph {version}; torch is all that it needs. Weights have the names that they have in modgraph:

    model = {name}()
    model.load_state_dict(safetensors.torch.load_file("weights.safetensors"))
    {call}

B is the batch axis, "..." stands for any axes before those of one message.
"""

from __future__ import annotations

'''
PARTS = "# ---------------------------------------------------------------- {title}"


def source_of(model: Model) -> str:
    """The file: the model's class, those of its parts, and what they need of modgraph's layers.

    Raises `ModgraphError` for a layer that cannot be copied.
    """
    file = File(weights={weight.name: weight for weight in weights_of(model.graph)}, rules=RULES, hold=held_all)
    file.by_index |= {route.pool for route in _routes(model.steps) if isinstance(route.form, selected.SelectedGathered)}
    home = Class(file, model)
    lines = _forward(model, home)
    held_all(home, model.computed, "")
    home.after += frozen(home)
    text = home.text(_title(model), [lines])
    name = file.add(text, str(model.graph.name))
    classes = [each.replace(NAME, called) for each, called in file.classes.items()]
    file.copied.calls |= {
        each.attr for part in classes for each in ast.walk(ast.parse(part)) if isinstance(each, ast.Attribute)
    }
    imports, definitions = file.copied.text()
    graph = model.graph
    called = arguments(graph)
    inputs = [called[key] for key, each in graph.input_types.items() if each.dtype != "length"]
    said = ", ".join(f"{key}={shown_value(value)}" for key, value in graph.parameters.items())
    title = prose(f"{graph.name}({said})")
    head = HEAD.format(
        title="\n".join(textwrap.wrap(title, LINE, subsequent_indent="    ", break_long_words=False)),
        version=VERSION,
        name=name,
        call=f"output = model({', '.join(inputs)})",
    )
    text = "\n\n\n".join(
        [
            head + _imports(imports, [*definitions, *classes]),
            PARTS.format(title="layers"),
            *definitions,
            PARTS.format(title=f"the model, from its parts to {name}"),
            *(_double_quoted(each) for each in classes),
        ]
    )
    return text + "\n"


def _imports(lines: list[str], texts: list[str]) -> str:
    """The lines that import what the texts speak of."""
    whole = "\n".join(texts)
    own = {
        "import math": r"\bmath\.",
        "import torch": r"\btorch\.",
        "import torch.nn.functional as F": r"\bF\.",
        "from torch import Tensor": r"\bTensor\b",
        "from torch import nn": r"\bnn\.",
    }
    found = {line for line, mark in own.items() if re.search(mark, whole)} | set(lines)
    froms: dict[str, list[str]] = {}
    for line in sorted(each for each in found if each.startswith("from ")):
        source, _, what = line.partition(" import ")
        froms.setdefault(source, []).append(what)
    found = {each for each in found if each.startswith("import ")}
    found |= {f"{source} import {', '.join(what)}" for source, what in froms.items()}
    groups = [[line for line in sorted(found, key=_plain_first) if ("torch" in line) is own] for own in (False, True)]
    return "\n\n".join("\n".join(group) for group in groups if group)


def _plain_first(line: str) -> tuple[bool, str]:
    return not line.startswith("import"), line


def _double_quoted(text: str) -> str:
    """A text of Python whose strings stand in double quotes."""
    lines = text.splitlines(keepends=True)
    for token in reversed([*tokenize.generate_tokens(io.StringIO(text).readline)]):
        if token.type == tokenize.STRING and token.string.startswith("'") and '"' not in token.string:
            (row, start), (_, end) = token.start, token.end
            line = lines[row - 1]
            lines[row - 1] = f'{line[:start]}"{token.string[1:-1]}"{line[end:]}'
    return "".join(lines)


def _routes(steps: list[Step]) -> Iterator[CompiledRoute]:
    for step in steps:
        if isinstance(step.compute, CompiledRoute):
            yield step.compute
        elif isinstance(step.compute, CompiledScan):
            yield from _routes(step.compute.plan.steps)


def _forward(model: Model, home: Class) -> str:
    """The model's `forward`: its outputs, and its losses where targets are given."""
    graph = model.graph
    whole = needed(model.steps, (*graph.outputs.values(), *graph.losses.values()))
    outputs = needed(model.steps, tuple(graph.outputs.values()))
    read, readers = reads(whole)
    body = Body(model.computed, read, readers)
    names = {name: body.given(Result(name), called) for name, called in arguments(graph).items()}
    for line in _prepared(model, names, home.file.copied):
        body.line(line)
    writer = Writer(body, home, model.computed, paths_of(model), RULES)
    first = before_return(whole.steps, {step.node for step in outputs.steps})
    labelled = find_dependents(whole.steps, graph.target_types)
    for item in in_scopes([step for step in whole.steps if step.node in first], model, labelled):
        if isinstance(item, Scope):
            part_of(writer, item, whole)
        elif item.node in labelled:
            with body.guard(" and ".join(f"{names[target]} is not None" for target in graph.target_types)):
                writer.step(item)
        else:
            writer.step(item)
    found = dict(zip(graph.outputs, body.variables(whole.wanted[: len(graph.outputs)], again=True), strict=True))
    told = ", ".join(f"{literal(name)}: {value}" for name, value in found.items())
    result = next(iter(found.values())) if len(found) == 1 else f"{{{told}}}"
    if graph.losses:
        targets = [names[target] for target in graph.target_types]
        if targets:
            body.line(f"if {' or '.join(f'{target} is None' for target in targets)}:")
            body.line(f"    return {result}")
        writer.write(step for step in whole.steps if step.node not in first)
        said = _losses(
            model, body, writer, names, dict(zip(graph.losses, whole.wanted[len(graph.outputs) :], strict=True))
        )
        body.lines += laid_out("losses = ", ("{", [("", each) for each in said], "}"), 0)
        result = f"{result}, losses"
    given = [names[name] + ("=None" if type_.dtype == "length" else "") for name, type_ in graph.input_types.items()]
    given = sorted(given, key=lambda each: "=" in each) + [f"{names[target]}=None" for target in graph.target_types]
    return function(f"forward({', '.join(['self', *given])})", [*body.folded(), f"return {result}"], _doc(model))


def _title(model: Model) -> str:
    outputs = ", ".join(f"{name}: {model.graph.type_of(result)}" for name, result in model.graph.outputs.items())
    return f"{', '.join(f'{name}: {type_}' for name, type_ in model.graph.input_types.items())} to {outputs}."


def _doc(model: Model) -> str:
    return "The output, and the losses by name where targets are given." if model.graph.losses else "The output."


def _prepared(model: Model, names: dict[str, str], copied: Copied) -> Iterator[str]:
    """What is done to inputs first: padding refilled while the model learns, lengths that are not given made full."""
    graph = model.graph
    lengths = {name: type_ for name, type_ in graph.input_types.items() if type_.dtype == "length"}
    for name, axis, length in model._padded:
        filled = copied.needed(("modgraph.backends.torch.padding", "refilled"))
        yield f"if self.training and {names[length]} is not None:"
        yield f"    {names[name]} = {filled}({names[name]}, {axis}, {names[length]})"
    for name, type_ in lengths.items():
        source, at = next(
            (source, each.position(type_.of))
            for source, each in graph.input_types.items()
            if each.position(type_.of) is not None
        )
        x = names[source]
        yield f"if {names[name]} is None:"
        yield f"    {names[name]} = torch.full({x}.shape[:1], {x}.shape[{1 + (at or 0)}], device={x}.device)"


def _losses(
    model: Model, body: Body, writer: Writer, names: dict[str, str], losses: dict[str, Result]
) -> Iterator[str]:
    """Each loss by its name: the mean over the batch, or over the examples that have labels."""
    for name, result in losses.items():
        (value,) = body.variables([result])
        labels = model._labels.get(name)
        if not labels:
            yield f"{literal(name)}: {value}.mean()"
            continue
        copied = writer.home.file.copied
        mean = copied.needed(("modgraph.backends.torch.labelled", "mean_of_loss"))
        examples = [_examples(each, names, copied) for each in labels]
        yield f"{literal(name)}: {mean}({value}, {' | '.join(examples)})"


def _examples(labels: TargetLabels, names: dict[str, str], copied: Copied) -> str:
    """Which examples have a label: an expression."""
    target = names[labels.target]
    lengths = ", ".join(f"{axis}: {names[name]}" for axis, name in labels.padding)
    along = copied.needed(("modgraph.nn.padding", "valid_along"))
    real = f"{along}({target}, {{{lengths}}})" if lengths else "None"
    function = copied.needed(("modgraph.backends.torch.source.alone", "with_labels"))
    return f"{function}({target}, {real}, {labels.ignored!r}, {labels.missing!r})"
