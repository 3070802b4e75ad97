"""Torch modules from declarations: import paths resolved, constructors called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from torch import nn

from modgraph.declare import Signature
from modgraph.declare.errors import BrokenModule, failure
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph, OpNode, PoolNode
from modgraph.nn import Parameter


def resolve(path: str) -> Any:
    """What an import path such as `torch.nn.Linear` names. Paths come from declarations, never from a spec.

    Raises `ModgraphError` where that of an installed package fails.
    """
    home, _, name = path.rpartition(".")
    try:
        return getattr(import_module(home), name)
    except Exception as error:  # code of others, which can fail in any way
        if home.partition(".")[0] in ("modgraph", "torch"):
            raise
        raise ModgraphError([BrokenModule(path=path, problem=failure(error))]) from error


def construct(signature: Signature) -> Any:
    """The torch module of a bound declaration, its weights not yet set."""
    path, positional, named = signature.constructor()
    return resolve(path)(*positional, **named)


class Namespace(nn.Module):
    """A name with modules below it, so that state dicts have hierarchical names."""

    def put(self, path: str, module: Any) -> Any:
        """Register a module below this one, or an array that is learnt, under a dotted path."""
        first, _, rest = path.partition(".")
        if not rest and isinstance(module, Parameter):
            return module.kept_by(self, first)
        if not rest:
            self._modules[first] = module
            return module
        inner = self._modules.setdefault(first, Namespace())
        assert isinstance(inner, Namespace), f"{path} lies below a module"
        return inner.put(rest, module)


def shared_parts(pool: PoolNode) -> Namespace | None:
    """What the modules of a pool have in common, by the owner of the weights in its region."""
    shared = Namespace()
    if not pool.alike:
        return None
    region = pool.region(0).graph
    for node in region.of_kind(OpNode):
        if any(weight.shared for weight in node.op.all_weights()):
            path, positional, named = region.signature(node).constructor()
            shared.put(node.owner, resolve(path).Shared(*positional, **named))
    return shared if shared._modules else None


def expert_module(region: Graph, node: OpNode, shared: Namespace | None) -> Any:
    """One op of one module of a pool; where the op shares weights, only its own part."""
    signature = region.signature(node)
    if shared is None or not any(weight.shared for weight in node.op.all_weights()):
        return construct(signature)
    own = resolve(node.op.module.path).Own
    module: nn.Module = own(shared.get_submodule(node.owner), signature.axes["code_width"])
    return module
