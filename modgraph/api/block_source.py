"""The PyTorch source of a block: that of the model that holds it, with the names of weights that the block has."""

from __future__ import annotations

import ast

from modgraph.backends.errors import WrongSource
from modgraph.backends.torch.source.text import wrap_lines
from modgraph.diagnostics import ModgraphError


def rename_weights(source: str, path: str) -> str:
    """Make the last class of a source, which holds a block at a path, inherit the block's class.

    Its `forward` then returns several outputs as a tuple, as a block does. Raises `ModgraphError` if the block has no
    class.
    """
    model = [each for each in ast.parse(source).body if isinstance(each, ast.ClassDef)][-1]
    before = source.splitlines()[: model.lineno - 1]
    inherits = _Inherits(path)
    inherits.visit(model)
    if inherits.base is None:
        raise ModgraphError([WrongSource(problem=f"has no class for {path}")])
    model.bases = [ast.Name(inherits.base)]
    return "\n".join([*before, wrap_lines(ast.unparse(ast.fix_missing_locations(model)))]) + "\n"


class _Inherits(ast.NodeTransformer):
    """Replaces the member at a path by the object itself, and its call by the inherited one. `base` is its class."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.base: str | None = None

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """Drop the member, `self.y = nn.ModuleDict({"moe": Moe()})`."""
        if ast.unparse(node.targets[0]) != f"self.{self.path.partition('.')[0]}":
            return self.generic_visit(node)
        match node.value:
            case ast.Call(args=[ast.Dict(values=[ast.Call(func=ast.Name(id=base))])]):
                self.base = base
        return None

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node.func) == f"self.{self.path}":
            node.func = ast.parse("super().forward", mode="eval").body
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name("self") if ast.unparse(node) == f"self.{self.path}" else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Names of losses are the block's."""
        return ast.Constant(node.value.removeprefix(f"{self.path}.")) if isinstance(node.value, str) else node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Return outputs as a tuple, with the losses if there are any."""
        match node.value:
            case ast.Dict() as outputs:
                node.value = ast.Tuple(outputs.values)
            case ast.Tuple(elts=[ast.Dict() as outputs, losses]):
                node.value = ast.Tuple([ast.Tuple(outputs.values), losses])
        return self.generic_visit(node)
