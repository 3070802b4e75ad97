"""The spec of a block or router by itself: a model with the inputs of the block, whose body is one use of it.

Needs no torch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modgraph.api.errors import NeedsPool, NoSuchArgument, NoSuchBlock
from modgraph.declare import format_value
from modgraph.diagnostics import ModgraphError, Report, did_you_mean
from modgraph.routers.prelude import definitions
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
        inputs = [each.reference.name for each in _inputs(definition)]
        of_pool = (*definition.pools, MODULES) if definition.pools else ()
        known = [*parameters, *inputs, *of_pool]
        if unknown := [each for each in given if each not in known]:
            listed = "it takes: {known}"
            raise ModgraphError(
                NoSuchArgument(block=name, name=each, suggestion=did_you_mean(each, known, listed)) for each in unknown
            )
        constants, types = ({each: given[each] for each in kind if each in given} for kind in (parameters, inputs))
        pools = {each: given[each] for each in definition.pools if each in given}
        modules = given.get(MODULES)
        if missing := [each for each in definition.pools if each not in pools]:
            raise ModgraphError([NeedsPool(router=name, pool=missing[0])])
        if definition.pools and not isinstance(modules, int):
            raise TypeError(f'"{name}" is a router, whose pool has a number of modules: {MODULES}=4')
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
        inputs = _inputs(self.definition)
        names = [each.reference.name for each in inputs]
        arguments = ", ".join(f"{name}={format_value(value)}" for name, value in self.constants.items())
        lines = [f"  input {each.reference.name}: {self._type(each, fixed)}" for each in inputs]
        outputs = [OUT] if self.is_router else list(_outputs(self.definition))
        results = ", ".join(outputs)
        if self.is_router:
            first, *others = self.pools
            lines.append(f"  pool {first}[{self.modules}] = {self.pools[first]}")
            lines += [f"  pool {each}[{first}] = {self.pools[each]}" for each in others]
            lines.append(f"  router {self.name} = {self.name}({arguments})")
            also = ", ".join([*others, *names[1:]])
            lines.append(f"  {OUT} = {names[0]} -> {first} by {self.name}" + (f"({also})" if also else ""))
        else:
            head = names[0] if len(names) == 1 else f"({', '.join(names)})"
            lines.append(f"  {results} = {head} -> {self.name}({arguments})")
        lines += [f"  output {each}" for each in outputs]
        imported = "" if self.path is None else f'import {self.name} from "{self.path.name}"\n\n'
        parameters = ", ".join(self._parameters())
        body = "\n".join(lines)
        return f"{imported}model {self.name}_alone({parameters}) {{\n{body}\n}}\n"

    def _parameters(self) -> Iterator[str]:
        """The parameters that types of inputs speak of."""
        read = {
            tree.name for each in _inputs(self.definition) for tree in ast.walk(each.type) if isinstance(tree, ast.Name)
        }
        for parameter in self.definition.parameters:
            if parameter.name in self.constants and parameter.name in read:
                yield f"{parameter.name}={format_value(self.constants[parameter.name])}"
            elif parameter.default is not None and parameter.name in read:
                yield f"{parameter.name}={parameter.default.span.text}"

    def _type(self, statement: ast.Input, fixed: int | None) -> str:
        given = self.types.get(statement.reference.name)
        if given is None:
            return statement.type.span.text
        if isinstance(given, str):
            return given
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
        written = definitions().get(name)
        source, place, others = None if written is None else written.source, "the vocabulary", [*definitions()]
    else:
        source, place, others = read(path, report), f'"{path}"', []
    file = None if source is None else parse(source, report)
    if path is not None and file is None:
        raise ModgraphError(report.list_diagnostics())
    found = () if file is None else file.definitions
    known = {each.name: each for each in found if each.keyword != "model"}
    if name not in known:
        suggestion = did_you_mean(name, [*known, *others], "it has: {known}")
        if any(each.name == name for each in found):
            suggestion = f'it is a model: modgraph.load("{path}").build()'
        raise ModgraphError([NoSuchBlock(name=name, place=place, suggestion=suggestion)])
    return known[name]


def _inputs(definition: ast.Definition) -> list[ast.Input]:
    return [each for each in definition.body.every_statement() if isinstance(each, ast.Input)]


def _outputs(definition: ast.Definition) -> Iterator[str]:
    """Names for the results of a block, each its own."""
    taken = {each.reference.name for each in _inputs(definition)}
    for at, statement in enumerate(each for each in definition.body.every_statement() if isinstance(each, ast.Output)):
        written = statement.reference or statement.value
        name = getattr(written, "name", None) or OUT
        while name in taken:
            name = f"{name}_{at}"
        taken.add(name)
        yield name


def source_name(text: BlockText) -> str:
    """The name of the spec, in the folder of the file that it imports from."""
    folder = Path() if text.path is None else text.path.parent
    return os.fspath(folder / f"<{text.name} alone>")
