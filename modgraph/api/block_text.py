"""The spec of a block or router by itself: a model with the inputs of the block, whose body is one use of it.

Needs no torch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph.api.errors import NeedsParameters, NeedsPool, NoSuchArgument, NoSuchBlock
from modgraph.declare import format_value
from modgraph.diagnostics import ModgraphError, Report, did_you_mean, list_names
from modgraph.prelude import blocks, find_written, routers
from modgraph.syntax import ast, parse, read

OUT = "out"  # the value that a use gives
MODULES = "modules"


@dataclass(frozen=True)
class BlockText:
    """A block or router of a file, and what it is given: constants by parameter, types by input, pipelines by pool."""

    definition: ast.Definition
    path: Path | None  # of the vocabulary's routers none
    constants: Mapping[str, Any]
    types: Mapping[str, Any]
    pools: Mapping[str, str]
    modules: int | None

    @classmethod
    def read(cls, path: str | Path | None, name: str, given: Mapping[str, Any]) -> BlockText:
        """The definition of a name in a file, or of the vocabulary, with arguments. Raises `ModgraphError`."""
        definition = _find(path, name)
        parameters = [each.name for each in definition.parameters]
        inputs = list(dict.fromkeys(each.reference.name for each in _inputs(definition)))
        of_pool = (*definition.pools, MODULES) if definition.pools else ()
        known = [*parameters, *inputs, *of_pool]
        if unknown := [each for each in given if each not in known]:
            listed = "arguments are: {known}"
            raise ModgraphError(
                NoSuchArgument(block=name, name=each, suggestion=did_you_mean(each, known, listed)) for each in unknown
            )
        if left := [each.name for each in definition.parameters if each.default is None and each.name not in given]:
            call = ", ".join(f"{each}=…" for each in left)
            raise ModgraphError([NeedsParameters(block=name, names=list_names(left), call=call)])
        constants, types = ({each: given[each] for each in kind if each in given} for kind in (parameters, inputs))
        pools = {each: given[each] for each in definition.pools if each in given}
        modules = given.get(MODULES)
        if missing := [each for each in definition.pools if each not in pools]:
            raise ModgraphError([NeedsPool(router=name, pool=missing[0])])
        if definition.pools and not isinstance(modules, int):
            raise TypeError(f'give the router "{name}" a number of modules: {MODULES}=4')
        where = None if path is None else Path(path)
        return cls(definition, where, constants, types, pools, modules)

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_router(self) -> bool:
        return self.definition.keyword == "router"

    def open_inputs(self) -> list[str]:
        """The inputs whose type is not given, and has an axis without a number."""
        known = {each.name for each in self.definition.parameters}

        def is_open(type_: ast.TypeOf) -> bool:
            return any(isinstance(axis, ast.Name) and axis.name not in known for axis in type_.axes)

        return [each.reference.name for each in _inputs(self.definition) if self._is_free(each) and is_open(each.type)]

    def _is_free(self, statement: ast.Input) -> bool:
        return not isinstance(self.types.get(statement.reference.name), str)

    def spec(self, fixed: int | None = 0) -> str:
        """The text of the model. Of an input that is given by an example's shape, the last `fixed` axes have its
        lengths, all for None, and the others any length."""
        body, results = self.definition.body, dict.fromkeys(_outputs(self.definition))
        inputs = list(dict.fromkeys(each.reference.name for each in _inputs(self.definition) if self._is_used(each)))
        lines = list(_write_lines(body, lambda each: self._input(each, fixed)))
        arguments = ", ".join(f"{name}={format_value(value)}" for name, value in self.constants.items())
        if self.is_router:
            first, *others = self.pools
            lines.append(f"pool {first}[{self.modules}] = {self.pools[first]}")
            lines += [f"pool {each}[{first}] = {self.pools[each]}" for each in others]
            lines.append(f"router {self.name} = {self.name}({arguments})")
            also = ", ".join([*others, *inputs[1:]])
            lines.append(f"{OUT} = {inputs[0]} -> {first} by {self.name}" + (f"({also})" if also else ""))
            lines.append(f"output {OUT}")
        else:
            head = inputs[0] if len(inputs) == 1 else f"({', '.join(inputs)})"
            lines.append(f"{', '.join(results)} = {head} -> {self.name}({arguments})")
            names = iter(_outputs(self.definition))
            lines += _write_lines(body, lambda each: _output(each, names))
        imported = "" if self.path is None else f'import {self.name} from "{self.path.name}"\n\n'
        text = "\n".join(f"  {line}" for line in lines)
        parameters = ", ".join(self._parameters(lines))
        return f"{imported}model {self.name}_alone({parameters}) {{\n{text}\n}}\n"

    def _is_used(self, statement: ast.Input) -> bool:
        """Whether an input is one of this use: one in a condition or with a default is where its type is given."""
        is_needed = statement.default is None and statement not in _conditional(self.definition)
        return is_needed or statement.reference.name in self.types

    def _input(self, statement: ast.Statement, fixed: int | None) -> str | None:
        if not isinstance(statement, ast.Input) or not self._is_used(statement):
            return None
        return f"input {statement.reference.span.text}: {self._type(statement, fixed)}"

    def _parameters(self, lines: Sequence[str]) -> Iterator[str]:
        """The parameters that the model's own lines speak of."""
        read = set(re.findall(r"[A-Za-z_]\w*", "\n".join(lines)))
        for parameter in self.definition.parameters:
            if parameter.name in self.constants and parameter.name in read:
                yield f"{parameter.name}={format_value(self.constants[parameter.name])}"
            elif parameter.default is not None and parameter.name in read:
                yield f"{parameter.name}={parameter.default.span.text}"

    def _type(self, statement: ast.Input, fixed: int | None) -> str:
        given = self.types.get(statement.reference.name)
        if isinstance(given, str):
            return given
        if given is None or statement.type.dtype != "float":  # of ids a shape does not tell how many there are
            return statement.type.span.text
        shape = [int(each) for each in given.shape[1:]]
        written = [axis.span.text for axis in statement.type.axes]
        names = written if len(written) == len(shape) else [""] * len(shape)
        known = {each.name for each in self.definition.parameters}
        is_fixed = len(shape) if fixed is None else fixed
        axes = []
        for at, (name, length) in enumerate(zip(names, shape, strict=True)):
            is_free = name.isidentifier() and name not in known and at < len(shape) - is_fixed
            axes.append(name if is_free else str(length))
        return f"{statement.type.dtype}[{', '.join(axes)}]" if axes else statement.type.dtype


def _find(path: str | Path | None, name: str) -> ast.Definition:
    """The definition of a block or router. Raises `ModgraphError`."""
    report = Report()
    if path is None:
        written = find_written(name)
        source, place, others = None if written is None else written.source, "the vocabulary", [*routers(), *blocks()]
    else:
        source, place, others = read(path, report), f'"{path}"', []
    file = None if source is None else parse(source, report)
    if path is not None and file is None:
        raise ModgraphError(report.list_diagnostics())
    found = () if file is None else file.definitions
    known = {each.name: each for each in found if each.keyword != "model"}
    if name not in known:
        suggestion = did_you_mean(name, [*known, *others], "known: {known}")
        if any(each.name == name for each in found):
            suggestion = f'build the model: modgraph.load("{path}").build()'
        raise ModgraphError([NoSuchBlock(name=name, place=place, suggestion=suggestion)])
    return known[name]


def _inputs(definition: ast.Definition) -> list[ast.Input]:
    return [each for each in definition.body.every_statement() if isinstance(each, ast.Input)]


def _conditional(definition: ast.Definition) -> list[ast.Statement]:
    """The statements of a definition that stand in conditions."""
    conditions = [each for each in definition.body.every_statement() if isinstance(each, ast.If)]
    return [each for condition in conditions for body in condition.bodies for each in body.every_statement()]


def _write_lines(body: ast.Body, write: Callable[[ast.Statement], str | None]) -> Iterator[str]:
    """What is written of statements, within the loops that they stand in."""
    for statement in body.statements:
        line = write(statement)
        if line is not None:
            yield line
        inner = [each for own in statement.bodies for each in _write_lines(own, write)]
        if inner and isinstance(statement, ast.Loop):
            loop = f"for {statement.variable} in {statement.domain.span.text} {{"
            yield from (loop, *(f"  {each}" for each in inner), "}")
        else:
            yield from inner


def _outputs(definition: ast.Definition) -> Iterator[str]:
    """Names for the results of a block, in their order; members of a family are one result."""
    names: dict[str, int] = {}
    taken = {each.reference.name for each in _inputs(definition)}
    for at, statement in enumerate(each for each in definition.body.every_statement() if isinstance(each, ast.Output)):
        target = statement.reference or statement.value
        family = getattr(target, "index", None) or isinstance(target, ast.Index)
        name = getattr(target, "name", None) or getattr(getattr(target, "target", None), "name", None) or OUT
        if name in taken or (name in names and not family):
            name = f"{name}_{at}"
        names[name] = at
        yield name


def _output(statement: ast.Statement, names: Iterator[str]) -> str | None:
    """The line that gives out a result of a block."""
    if not isinstance(statement, ast.Output):
        return None
    target, name = statement.reference or statement.value, next(names)
    index = getattr(target, "index", None)
    return f"output {name}" + (f"[{index.span.text}]" if index is not None else "")


def source_name(text: BlockText) -> str:
    """The name of the spec, in the folder of the file that it imports from."""
    folder = Path() if text.path is None else text.path.parent
    return os.fspath(folder / f"<{text.name}>")
